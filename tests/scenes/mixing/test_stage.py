"""The stage: same bytes however it is run, nothing half done, nothing done twice, refusals with names."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from earwitness.audio import file_sha256, read_audio
from earwitness.cli import build_app
from earwitness.errors import DataError, UsageError
from earwitness.scenes.corpus import Corpus
from earwitness.scenes.mixing import stage
from earwitness.scenes.mixing.manifest import (
    manifest_from_json,
    manifest_to_json,
    read_manifest,
)
from earwitness.scenes.mixing.preset import load_mix_preset
from earwitness.scenes.mixing.stage import (
    inputs_of,
    mix_corpus,
    mix_scene,
    plan_corpus_mix,
)
from earwitness.scenes.mixing.twins import TwinRequest
from earwitness.scenes.sounds import MissingTakesError, load_library, write_library
from tests.scenes.mixing.conftest import TURN_S, Made
from tests.scenes.mixing.made import (
    add_take,
    burst,
    make_corpus,
    make_library,
    park_sounds,
    scenario_of,
)

BALANCED = load_mix_preset("balanced")
TWINS = TwinRequest(("all", "e1"), ("e1",), speech_only=True)
OUTPUTS = ("mixes", "twins", "stems", "rooms", "mixes.yaml")


@pytest.fixture
def fresh(made: Made, tmp_path: Path) -> Made:
    """A copy of the corpus without anything mixed."""
    folder = tmp_path / "corpus"
    shutil.copytree(made.corpus.folder, folder, ignore=shutil.ignore_patterns(*OUTPUTS, ".lock"))
    return replace(made, corpus=Corpus(folder))


def hashes(folder: Path) -> dict[str, str]:
    """Every file of the stage with its hash."""
    files = [folder / name for name in OUTPUTS]
    files += [path for name in OUTPUTS for path in (folder / name).rglob("*")]
    return {str(p.relative_to(folder)): file_sha256(p) for p in sorted(files) if p.is_file()}


def mixed(made: Made, **options: object) -> stage.MixReport:
    return mix_corpus(made.corpus, made.bank, made.library, BALANCED, **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def reference(made: Made, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What one worker makes, in order."""
    folder = tmp_path_factory.mktemp("reference") / "corpus"
    shutil.copytree(made.corpus.folder, folder, ignore=shutil.ignore_patterns(*OUTPUTS, ".lock"))
    report = mixed(replace(made, corpus=Corpus(folder)), twins=TWINS, stems=True, workers=1)
    assert (report.made, report.refused, report.unspoken) == (4, {}, [])
    return hashes(folder)


def test_two_workers_make_the_same_bytes(fresh: Made, reference: dict[str, str]) -> None:
    seen: list[tuple[int, int]] = []
    mixed(fresh, twins=TWINS, stems=True, workers=2, on_done=lambda d, n: seen.append((d, n)))
    assert hashes(fresh.corpus.folder) == reference
    assert seen == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]
    card = fresh.corpus.path("CARD.md").read_text()
    assert "library `made` 1" in card
    assert "**takes are shared by the splits**" in card


def test_any_order_and_parts_make_the_same_bytes(
    fresh: Made, reference: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        stage, "_rendered", lambda jobs, _: [mix_scene(job) for job in reversed(jobs)]
    )
    mixed(fresh, twins=TWINS, stems=True, workers=1, only=("s.03", "s.01"))
    mixed(fresh, twins=TWINS, stems=True, workers=1, shard=(2, 2))
    assert not fresh.corpus.path("mixes.yaml").exists()
    report = mixed(fresh, twins=TWINS, stems=True, workers=1)
    assert report.made + report.found == 4
    assert hashes(fresh.corpus.folder) == reference


def test_a_kill_at_any_moment_changes_nothing(fresh: Made, reference: dict[str, str]) -> None:
    folder = fresh.corpus.folder
    command = [
        sys.executable, "-c", "from earwitness.cli import main; main()", "scenes", "mix", str(folder),
        "--sounds", str(fresh.library.folder), "--workers", "1", "--stems",
        "--mute", "all", "--mute", "e1", "--swap-sound", "e1", "--speech-only",
    ]  # fmt: skip
    for wanted in (1, 4, 9):
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        while process.poll() is None and _files(folder) < wanted:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        for path in folder.glob("mixes/*.json"):
            manifest = read_manifest(path)
            assert file_sha256(folder / manifest.audio.file) == manifest.audio.sha256
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert hashes(folder) == reference


def _files(folder: Path) -> int:
    return sum(1 for name in ("mixes", "twins", "stems") for _ in (folder / name).rglob("*.*"))


def test_what_is_there_is_not_made_again(fresh: Made) -> None:
    folder = fresh.corpus.folder
    mixed(fresh, workers=1)
    times = {path: path.stat().st_mtime_ns for path in folder.glob("mixes/*")}
    report = mixed(fresh, workers=1)
    assert (report.made, report.found) == (0, 4)
    assert times == {path: path.stat().st_mtime_ns for path in folder.glob("mixes/*")}
    # A twin beside it leaves the audible version as it is; a lost or cut file is made again.
    assert mixed(fresh, workers=1, twins=TwinRequest(("e1",)), only=("s.01",)).made == 1
    assert times == {path: path.stat().st_mtime_ns for path in folder.glob("mixes/*")}
    (folder / "mixes/s.02.wav").unlink()
    os.truncate(folder / "mixes/s.03.wav", 5000)
    assert mixed(fresh, workers=1).made == 2
    # Another form, another preset: everything, and nothing of the old remains.
    assert mixed(fresh, workers=1, form="flac").made == 4
    assert not list(folder.glob("mixes/*.wav"))
    wav, flac = reference_pair(fresh)
    assert np.array_equal(wav, flac)
    paper = mix_corpus(
        fresh.corpus, fresh.bank, fresh.library, load_mix_preset("paper"), workers=1, form="flac"
    )
    assert paper.made == 4


def reference_pair(fresh: Made) -> tuple[np.ndarray, np.ndarray]:
    flac = read_audio(fresh.corpus.path("mixes/s.01.flac")).samples
    mixed(fresh, workers=1, only=("s.01",))
    wav = read_audio(fresh.corpus.path("mixes/s.01.wav")).samples
    mixed(fresh, workers=1, only=("s.01",), form="flac")
    return wav, flac


def test_another_take_changes_only_scenes_in_which_it_wins(fresh: Made, tmp_path: Path) -> None:
    folder = tmp_path / "library"
    shutil.copytree(fresh.library.folder, folder)
    before = plan_corpus_mix(fresh.corpus, fresh.bank, fresh.library, BALANCED, TwinRequest())[0]
    sound = park_sounds()[0]
    new = add_take(folder, f"sounds/{sound}/new.wav", burst(1.0, 0.3, 555))
    library = write_library(folder, [*load_library(folder).takes, new], name="made", policy="shared")  # fmt: skip
    after = plan_corpus_mix(fresh.corpus, fresh.bank, library, BALANCED, TwinRequest())[0]
    for one, two in zip(before, after, strict=True):
        won = [s for s in two.sounds if s.take == new]
        assert (one.inputs == two.inputs) == (not won)
        for a, b in zip(one.sounds, two.sounds, strict=True):
            assert a.draw == b.draw
            assert a.take == b.take or b.take == new


def test_classes_without_takes_are_refused_before_mixing(made: Made, tmp_path: Path) -> None:
    sounds = park_sounds()
    library = make_library(tmp_path / "library", sounds[:1], ["park"])
    with pytest.raises(MissingTakesError, match=rf"ambience kitchen \(validation\), sound {sounds[1]}"):  # fmt: skip
        mix_corpus(made.corpus, made.bank, library, BALANCED, workers=1)
    assert not made.corpus.path("mixes").exists()


def test_a_scene_that_cannot_be_mixed_is_named_and_leaves_nothing(fresh: Made) -> None:
    folder = fresh.corpus.folder
    mixed(fresh, workers=1)
    voices = [json.loads(line) for line in fresh.corpus.path("voices.jsonl").read_text().splitlines()]  # fmt: skip
    (folder / next(v["file"] for v in voices if v["scenario"] == "s.02")).write_bytes(b"RIFF")
    (folder / "mixes/s.02.json").unlink()
    report = mixed(fresh, workers=1)
    assert list(report.refused) == ["s.02"]
    assert "has SHA-256" in report.refused["s.02"]
    assert not list(folder.glob("mixes/s.02*"))
    assert (folder / "mixes/s.01.wav").exists()
    assert "s.02" in fresh.corpus.path("mixes.yaml").read_text()
    done = CliRunner().invoke(
        build_app(),
        ["scenes", "mix", str(folder), "--sounds", str(fresh.library.folder), "--workers", "1"],
    )
    assert done.exit_code == 1
    assert "refused s.02" in done.stderr


def test_two_sounds_that_do_not_fit_one_gap_refuse_the_scene(tmp_path: Path, made: Made) -> None:
    sounds = park_sounds()
    scenario = scenario_of("t.01", [(sounds[0], "ambient"), (sounds[1], "ambient")])
    tight = BALANCED.model_copy(update={"gap_s": (0.5, 0.6)})
    corpus = make_corpus(tmp_path / "corpus", [(scenario, (3, 3), TURN_S)])
    report = mix_corpus(corpus, made.bank, made.library, tight, workers=1)
    assert f"scene t.01, event e1 ({sounds[0]}): only 0.2" in report.refused["t.01"]
    assert "s without speech from" in report.refused["t.01"]
    assert not list(corpus.folder.glob("mixes/*"))
    asked = tight.model_copy(update={"allow_overlap": True})
    assert mix_corpus(corpus, made.bank, made.library, asked, workers=1).made == 1


def test_voices_that_do_not_belong_to_the_dialogue_are_refused(fresh: Made) -> None:
    path = fresh.corpus.path("voices.jsonl")
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[1:]))
    with pytest.raises(DataError, match=r"scene s\.01: 6 spoken turns .* wanted the 7 utterances"):
        mixed(fresh, workers=1)
    path.write_text("".join(line for line in lines if '"s.01"' in line))
    report = mixed(fresh, workers=1)
    assert report.unspoken == ["s.02", "s.03", "s.04"]
    with pytest.raises(UsageError, match="none of the chosen scenes has voices"):
        mixed(fresh, workers=1, only=("s.02",))
    with pytest.raises(UsageError, match=r"--only: 'nope' is no scene of"):
        mixed(fresh, workers=1, only=("nope",))


def test_the_manifest_says_what_is_in_the_file(fresh: Made) -> None:
    mixed(fresh, workers=1, twins=TwinRequest(("e1",)), stems=True)
    folder = fresh.corpus.folder
    path = folder / "mixes/s.01.json"
    manifest = read_manifest(path)
    audio = read_audio(folder / manifest.audio.file)
    assert (audio.rate, audio.channels, audio.frames) == (44_100, 1, manifest.audio.frames)
    assert file_sha256(folder / manifest.audio.file) == manifest.audio.sha256
    assert manifest_from_json(manifest_to_json(manifest)) == manifest
    assert str(folder) not in path.read_text()
    events = {event.id: event for event in made_events(fresh)}
    assert [event.id for event in manifest.events] == ["e1", "e2", "e3"]
    for event in manifest.events:
        planned = events[event.id]
        assert (event.sound, event.reaction) == (planned.sound, planned.reaction)
        assert event.heard == event.sound
        assert event.start_s <= event.salient_s <= event.end_s <= event.tail_end_s
        assert event.clear[0] <= event.salient_s - 0.174
        take = next(t for t in fresh.library.takes if t.id == event.take)
        assert take.sha256 == event.take_sha256
        kept = event.take_to_s - event.take_from_s
        assert kept == pytest.approx(event.end_s - event.start_s, abs=1e-5)
        assert kept + event.cut_start_s + event.cut_end_s == pytest.approx(take.duration_s, abs=1e-4)  # fmt: skip
    assert manifest.stems is not None
    assert set(manifest.stems) == {"voice.wav", "ambience.wav", "event-e1.wav", "event-e2.wav", "event-e3.wav"}  # fmt: skip
    parts = [read_audio(folder / "stems/s.01" / name).samples.astype(float) for name in manifest.stems]  # fmt: skip
    assert np.abs(np.sum(parts, axis=0) - audio.samples).max() <= 1e-6 + 2**-16
    for moment in manifest.catch_times_s:
        assert all(moment < e.start_s - 2.9 or moment > e.end_s + 2.9 for e in manifest.events)
        assert all(t.end_s <= moment - 0.17 or t.start_s >= moment + 0.17 for t in manifest.turns)
    twin = read_manifest(folder / "twins/mute-e1/s.01.json")
    assert twin.audible_sha256 == manifest.audio.sha256
    assert twin.event("e1").heard is None
    assert twin.differs == ((manifest.events[0].start_s, manifest.events[0].tail_end_s),)
    assert (twin.turns, twin.catch_times_s) == (manifest.turns, manifest.catch_times_s)
    assert not (folder / "twins/mute-e1/s.04.wav").exists()


def made_events(fresh: Made) -> list[object]:
    return list(fresh.corpus.scenarios()[0].events)


def test_a_broken_manifest_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"m\.json: cannot be read .* Run: earwitness scenes mix"):
        read_manifest(tmp_path / "m.json")
    (tmp_path / "m.json").write_text('{"format": 99}')
    with pytest.raises(DataError, match=r"is no manifest \(format 99, wanted 1\)"):
        read_manifest(tmp_path / "m.json")


def test_inputs_of_twins(made: Made) -> None:
    plans, _ = plan_corpus_mix(made.corpus, made.bank, made.library, BALANCED, TWINS)
    plan = plans[0]
    assert inputs_of(plan, "mute-e1") == plan.inputs
    assert inputs_of(plan, "swap-e1") != plan.inputs
    assert replace(plan, seed=8).inputs != plan.inputs


def test_commands(fresh: Made, tmp_path: Path) -> None:
    runner, folder = CliRunner(), str(fresh.corpus.folder)
    library = str(fresh.library.folder)
    done = runner.invoke(
        build_app(), ["scenes", "mix", folder, "--sounds", library, "--limit", "1", "--json"]
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["made"] == 1
    for form in ("svg", "png"):
        done = runner.invoke(
            build_app(),
            ["scenes", "render-one", folder, "s.01", "--sounds", library, "--out", str(tmp_path / form), "--page", form],
        )  # fmt: skip
        assert done.exit_code == 0, done.output
        shown = tmp_path / form / f"s.01.{form}"
        assert shown.stat().st_size > 20_000
    assert file_sha256(tmp_path / "svg/s.01.wav") == file_sha256(fresh.corpus.path("mixes/s.01.wav"))  # fmt: skip
    for option in (["--format", "mp3"], ["--shard", "3/2"]):
        done = runner.invoke(build_app(), ["scenes", "mix", folder, "--sounds", library, *option])
        assert isinstance(done.exception, UsageError)
    done = runner.invoke(build_app(), ["scenes", "render-one", folder, "s.01", "--sounds", library, "--page", "pdf"])  # fmt: skip
    assert isinstance(done.exception, UsageError)
