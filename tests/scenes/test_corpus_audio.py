"""Mixed scenes keep their promises in the audio, and what does not is named with scene and event."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from earwitness.audio import file_sha256
from earwitness.scenes.corpus import Corpus
from earwitness.scenes.corpus_audio import (
    AudioChecked,
    AudioFinding,
    best_lag,
    check_audio,
    expected_twins,
)
from earwitness.scenes.mixing.evidence import SceneFiles
from earwitness.scenes.mixing.manifest import Manifest, manifest_text, read_manifest
from earwitness.scenes.mixing.preset import load_mix_preset
from earwitness.scenes.mixing.stage import manifest_file, mix_corpus, mix_file
from earwitness.scenes.mixing.twins import TwinRequest
from tests.scenes.mixing.conftest import Made, make

TWINS = TwinRequest(("each", "all"), ("e1",), speech_only=True)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Four scenes of noise voices, mixed with twins and stems; do not write into it."""
    made = make(tmp_path_factory.mktemp("checked"))
    mix_corpus(
        made.corpus, made.bank, made.library, load_mix_preset("balanced"),
        twins=TWINS, stems=True, workers=1,
    )  # fmt: skip
    return made


@pytest.fixture
def copy(mixed: Made, tmp_path: Path) -> Corpus:
    """One to damage, without stems."""
    folder = tmp_path / "corpus"
    shutil.copytree(mixed.corpus.folder, folder, ignore=shutil.ignore_patterns("stems", ".lock"))
    return Corpus(folder)


def checked(corpus: Corpus) -> tuple[list[str], AudioChecked]:
    found, counts = check_audio(corpus, workers=1)
    return [f"{f.code} {f.where}: {f.found}" for f in found], counts


def altered(
    corpus: Corpus, scene: str, change: Callable[[np.ndarray], None], variant: str = "audible"
) -> None:
    """Change a file's samples as somebody would who also mends every hash."""
    path, record = mix_file(corpus.folder, scene, variant), manifest_file(corpus.folder, scene, variant)  # fmt: skip
    before = file_sha256(path)
    steps, rate = soundfile.read(path, dtype="int16")
    change(steps)
    soundfile.write(path, steps, rate, subtype="PCM_16")
    manifest = read_manifest(record)
    audio = replace(manifest.audio, sha256=file_sha256(path), bytes=path.stat().st_size)
    record.write_text(manifest_text(replace(manifest, audio=audio)))
    for other in corpus.folder.glob(f"twins/*/{scene}.json"):
        other.write_text(other.read_text().replace(before, audio.sha256))


def span(manifest: Manifest, event: str) -> slice:
    found = manifest.event(event)
    return slice(round(found.start_s * 44_100), round(found.tail_end_s * 44_100))


def test_what_the_mixer_makes_keeps_every_promise(mixed: Made, copy: Corpus) -> None:
    for corpus in (mixed.corpus, copy):
        found, counts = checked(corpus)
        assert not found
        # s.01 has 3 sounds, s.02 two, s.03 one: a twin each, one without any, one swapped; all have speech alone.
        assert (counts.scenes, counts.measured, counts.told, counts.twins) == (
            4,
            6,
            0,
            6 + 3 + 3 + 4,
        )
        assert counts.least_margin_db is not None
        assert counts.least_margin_db >= 6.0


def test_margins_in_the_audio_are_those_of_the_manifest(mixed: Made, copy: Corpus) -> None:
    for folder, source in ((mixed.corpus.folder, "stem"), (copy.folder, "twin")):
        manifest = read_manifest(manifest_file(folder, "s.01"))
        for event in manifest.events:
            heard = SceneFiles(folder, manifest).event(event)
            assert heard is not None
            assert heard.source == source
            assert heard.over_ambience_db == pytest.approx(event.over_ambience_db, abs=0.05)
            at = event.salient_s - event.start_s
            assert heard.below_loudest_db(at, 44_100) < 1.0


def test_without_twins_of_speech_the_ambience_is_that_of_the_manifest(copy: Corpus) -> None:
    shutil.rmtree(copy.folder / "twins" / "speech-only")
    found, counts = checked(copy)
    assert counts.measured == 6
    assert counts.least_margin_db >= 6.0
    assert [line.partition(":")[0] for line in found] == [f"V501 s.0{n}" for n in (1, 2, 3, 4)]


def test_without_any_twins_the_manifests_count_and_it_is_said(copy: Corpus) -> None:
    shutil.rmtree(copy.folder / "twins")
    card = copy.path("mixes.yaml")
    card.write_text(card.read_text().partition("twins:")[0] + "twins: {}\n")
    found, counts = checked(copy)
    assert (found, counts.measured, counts.told) == ([], 0, 6)


def test_a_sound_that_cannot_be_heard_is_named(copy: Corpus) -> None:
    manifest = read_manifest(manifest_file(copy.folder, "s.02"))
    where = span(manifest, "e1")
    twin, _ = soundfile.read(mix_file(copy.folder, "s.02", "mute-e1"), dtype="int16")

    def quieter(steps: np.ndarray) -> None:
        sound = steps[where].astype(np.int32) - twin[where]
        steps[where] = twin[where] + np.round(sound * 0.05).astype(np.int16)

    altered(copy, "s.02", quieter)
    found, counts = checked(copy)
    told = [line for line in found if "s.02, event e1" in line]
    assert any("dB over the ambience; wanted 6 or more" in line for line in told)
    assert any("its manifest says" in line for line in told)
    assert counts.least_margin_db is not None
    assert counts.least_margin_db < 6
    assert not any("event" in line and "s.02, event e1" not in line for line in found)


def test_a_sound_that_is_not_there_at_all_is_named(copy: Corpus) -> None:
    muted, _ = soundfile.read(mix_file(copy.folder, "s.03", "mute-e1"), dtype="int16")
    altered(copy, "s.03", lambda steps: np.copyto(steps, muted))
    found, _ = checked(copy)
    assert any(
        "V504 s.03, event e1" in line and "nothing of it is in the mix" in line for line in found
    )
    assert any(
        "V505 s.03, twin mute-e1" in line and "is the same as the mix" in line for line in found
    )


def test_a_sound_that_is_loudest_elsewhere_is_named(copy: Corpus) -> None:
    record = manifest_file(copy.folder, "s.03")
    manifest = read_manifest(record)
    (event,) = manifest.events
    # The moment that is told lies in the sound's first 50 ms, and the gap is said to be there.
    moved = replace(event, salient_s=event.end_s - 0.05, clear=(event.end_s - 0.3, event.end_s))
    record.write_text(manifest_text(replace(manifest, events=(moved,))))
    found, _ = checked(copy)
    assert any("dB louder elsewhere than in its clear window" in line for line in found)


def test_a_sound_over_speech_is_named(copy: Corpus) -> None:
    record = manifest_file(copy.folder, "s.03")
    manifest = read_manifest(record)
    (event,) = manifest.events
    turn = manifest.turns[event.before]
    moved = replace(event, salient_s=(turn.start_s + turn.end_s) / 2)
    record.write_text(manifest_text(replace(manifest, events=(moved,))))
    found, _ = checked(copy)
    assert any("V504" in line and "is loudest outside the gap" in line for line in found)
    assert any("V504" in line and f"while {turn.speaker} speaks" in line for line in found)


def test_a_twin_that_differs_elsewhere_is_named_with_the_time(copy: Corpus) -> None:
    def click(steps: np.ndarray) -> None:
        steps[22_050] += 1

    altered(copy, "s.01", click, "mute-e2")
    found, _ = checked(copy)
    assert found == [
        "V505 s.01, twin mute-e2: differs at 0.500 s, outside the sounds in question (1 samples)"
    ]


def test_a_twin_of_another_mix_is_named(copy: Corpus) -> None:
    record = manifest_file(copy.folder, "s.04", "speech-only")
    record.write_text(manifest_text(replace(read_manifest(record), audible_sha256="0" * 64)))
    found, _ = checked(copy)
    assert found == [
        "V505 s.04, twin speech-only: is a twin of another mix than the one that is there"
    ]


@pytest.mark.parametrize("what", ["late", "cut", "silent"])
def test_a_voice_that_was_not_only_shifted_is_named(copy: Corpus, what: str) -> None:
    manifest = read_manifest(manifest_file(copy.folder, "s.04"))
    turn = manifest.turns[2]
    first, last = round(turn.start_s * 44_100), round(turn.end_s * 44_100)

    def change(steps: np.ndarray) -> None:
        if what == "late":
            steps[first:last] = np.roll(steps[first:last], 882)
        elif what == "cut":
            steps[(first + last) // 2 : last] = 0
        else:
            steps[first:last] = 0

    altered(copy, "s.04", change, "speech-only")
    found, _ = checked(copy)
    assert len(found) == 1
    assert found[0].startswith("V506 s.04, turn 2 (voices/")
    assert ("its end" if what == "cut" else "its beginning") in found[0]


def test_gaps_and_turns_are_those_of_the_manifest(copy: Corpus) -> None:
    record = manifest_file(copy.folder, "s.04")
    manifest = read_manifest(record)
    gaps = (*manifest.gaps_s[:3], manifest.gaps_s[3] + 0.01, *manifest.gaps_s[4:])
    record.write_text(manifest_text(replace(manifest, gaps_s=gaps)))
    assert [line[:18] for line in checked(copy)[0]] == ["V506 s.04, turn 3:"]
    record.write_text(manifest_text(replace(manifest, turns=manifest.turns[:-1])))
    assert any(
        "has other voices than voices.jsonl (6 and 7 turns)" in line for line in checked(copy)[0]
    )


def test_other_bytes_and_other_sounds_are_named(copy: Corpus) -> None:
    path = mix_file(copy.folder, "s.04")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    record = manifest_file(copy.folder, "s.03")
    manifest = read_manifest(record)
    changed = replace(manifest.events[0], reaction="pivot")
    record.write_text(manifest_text(replace(manifest, events=(changed,))))
    mix_file(copy.folder, "s.02").unlink()
    found, counts = checked(copy)
    assert counts.scenes == 4
    assert f"V502 {path}: has other bytes than its manifest says" in found
    assert any(line.startswith("V502") and line.endswith("s.02.wav: is missing") for line in found)
    assert any(line.startswith("V503") and "e1" in line and "pivot" in line for line in found)


def test_scenes_that_are_not_mixed_are_work_left_and_refused_ones_are_errors(copy: Corpus) -> None:
    manifest_file(copy.folder, "s.01").unlink()
    card = copy.path("mixes.yaml")
    card.write_text(
        card.read_text().replace("refused: {}", "refused: {s.02: two sounds in one gap}")
    )
    found, counts = check_audio(copy, workers=1)
    assert counts.scenes == 2
    assert AudioFinding("V501", "s.02", "cannot be mixed: two sounds in one gap") in found
    assert [(f.code, f.open) for f in found] == [("V501", False), ("V501", True)]


def test_a_voice_is_found_where_it_is() -> None:
    rng = np.random.default_rng(3)
    speech = rng.standard_normal(8000)
    assert best_lag(speech[2000:4000], speech, 2000) == (0.0, pytest.approx(1.0))
    assert best_lag(speech[2000:4000], speech, 1960.0)[0] == pytest.approx(0.005)
    assert best_lag(speech[2000:4000], np.zeros(8000), 2000)[1] == 0.0
    assert best_lag(np.zeros(100), speech, 50) == (0.0, 0.0)


def test_which_twins_a_scene_must_have() -> None:
    assert expected_twins(["mute-all", "mute-e1", "speech-only"], []) == {"speech-only"}
