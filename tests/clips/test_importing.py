"""Import as a whole: the same bytes whatever happens on the way, and nothing lost without being counted."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import soundfile

from earwitness.audio import Audio, read_audio, resample, write_audio
from earwitness.clips.conversion import STATE_FOLDER
from earwitness.clips.corpus import EMOTIONS, load_clip_set, require_trainable
from earwitness.clips.importing import BadFilesError, import_clips
from earwitness.clips.settings import Settings, parse_seconds
from earwitness.clips.summary import summarise
from earwitness.errors import DataError, LicenceError, UsageError
from tests.clips.making import RAVDESS_EMOTIONS, ravdess, record, samples
from tests.clips.test_readers import release


def contents(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return ravdess(tmp_path / "corpus", actors=3, rate=48_000)


def test_an_import_makes_a_set_that_says_where_it_comes_from(corpus, tmp_path):
    imported = import_clips("ravdess", corpus, tmp_path / "set", workers=1)
    clip_set = load_clip_set(tmp_path / "set")
    assert imported.clip_set == clip_set
    assert (imported.converted, imported.kept) == (21, 0)
    assert dict(clip_set.card.counts) == dict.fromkeys(EMOTIONS, 3)
    card = clip_set.card
    assert (card.licence, card.use, card.redistribute) == (
        "CC BY-NC-SA 4.0",
        "non-commercial",
        False,
    )
    assert card.label_map == "ravdess@1"
    assert card.conversion.startswith("16000 Hz mono 16-bit WAV; resampled by soxr")
    clip = clip_set.clips[0]
    assert (clip.rate, clip.channels, clip.seconds, clip.language) == (16_000, 1, 0.3, "en")
    source = next(corpus.rglob(f"{clip.id}.wav"))
    assert clip.metadata["source_sha256"] == hashlib.sha256(source.read_bytes()).hexdigest()
    assert clip.metadata["source_rate"] == "48000"
    file = tmp_path / "set" / clip.path
    assert hashlib.sha256(file.read_bytes()).hexdigest() == clip.sha256
    assert soundfile.info(file).subtype == "PCM_16"
    assert not (tmp_path / "set" / STATE_FOLDER).exists()
    assert summarise(clip_set, verify=True)["problems"] == []


def test_workers_and_the_source_folder_make_no_difference(corpus, tmp_path):
    import_clips("ravdess", corpus, tmp_path / "one", workers=1)
    moved = corpus.rename(tmp_path / "elsewhere")
    import_clips("ravdess", moved, tmp_path / "two", workers=2)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_conversion_here_equals_conversion_before(corpus, tmp_path):
    """Originals imported with conversion, and the same files converted beforehand, are the same sounds."""
    before = tmp_path / "before"
    for path in corpus.rglob("*.wav"):
        write_audio(before / path.name, resample(read_audio(path), 16_000), subtype="PCM_16")
    one = import_clips("ravdess", corpus, tmp_path / "one", workers=1).clip_set
    two = import_clips("ravdess", before, tmp_path / "two", workers=1).clip_set
    assert [(c.id, c.sha256, c.seconds) for c in one.clips] == [
        (c.id, c.sha256, c.seconds) for c in two.clips
    ]


def test_header_and_container_make_no_difference(tmp_path):
    wav, flac = ravdess(tmp_path / "wav", 1), ravdess(tmp_path / "flac", 1, suffix="flac")
    for path in wav.rglob("*.wav"):
        path.write_bytes(path.read_bytes() + b"LIST\x04\x00\x00\x00note")
    one = import_clips("ravdess", wav, tmp_path / "one", workers=1).clip_set
    two = import_clips("ravdess", flac, tmp_path / "two", workers=1).clip_set
    assert [c.sha256 for c in one.clips] == [c.sha256 for c in two.clips]


def test_files_can_be_kept_as_they_are(corpus, tmp_path):
    clip_set = import_clips(
        "ravdess", corpus, tmp_path / "set", Settings(rate=None), workers=1
    ).clip_set
    assert clip_set.card.conversion == "none: files copied byte for byte"
    for clip in clip_set.clips:
        assert clip.rate == 48_000
        assert clip.sha256 == clip.metadata["source_sha256"]


def test_stereo_is_mixed_by_a_policy_that_is_recorded(tmp_path):
    source = tmp_path / "in" / "angry" / "a.wav"
    source.parent.mkdir(parents=True)
    wave = samples(1, seconds=0.5)
    write_audio(source, Audio(np.stack([wave, -wave], axis=1), 16_000), subtype="PCM_16")
    (clip,) = import_clips(
        "audiofolder", tmp_path / "in", tmp_path / "set", workers=1
    ).clip_set.clips
    assert clip.channels == 1
    assert clip.metadata["source_channels"] == "2"
    assert "cancels" in clip.metadata["mono_policy"]
    assert np.abs(read_audio(tmp_path / "set" / clip.path).samples).max() > 0.1


def test_what_a_map_leaves_out_or_does_not_know_is_counted(tmp_path):
    folder = ravdess(tmp_path / "in", actors=1)
    record(folder / "03-01-02-01-01-01-01.wav", 50)
    plain = import_clips("ravdess", folder, tmp_path / "a", workers=1).clip_set
    assert (len(plain.clips), dict(plain.card.dropped), dict(plain.card.unmapped)) == (
        7,
        {"calm": 1},
        {},
    )
    folded = import_clips(
        "ravdess", folder, tmp_path / "b", Settings(label_map="ravdess-calm-neutral"), workers=1
    ).clip_set
    assert folded.card.counts["neutral"] == 2
    assert folded.card.dropped == {}
    other = tmp_path / "other.yaml"
    other.write_text("id: other\nversion: '1'\nwords: {anger: [angry]}\n", encoding="utf-8")
    few = import_clips(
        "ravdess", folder, tmp_path / "c", Settings(label_map=str(other)), workers=1
    ).clip_set
    assert len(few.clips) == 1
    assert few.card.unmapped == dict.fromkeys(
        ["calm", "disgust", "fearful", "happy", "neutral", "sad", "surprised"], 1
    )
    none = tmp_path / "none"
    for name in ("angry", "happy"):
        record(none / name / "a.wav", 1)
    with pytest.raises(DataError, match=r"emodb@1 has no label for any of: .*angry \(1\)"):
        import_clips("audiofolder", none, tmp_path / "d", Settings(label_map="emodb"), workers=1)


def test_bad_recordings_stop_the_import_unless_they_are_to_be_left_out(corpus, tmp_path):
    (corpus / "Actor_01" / "03-01-01-01-01-01-01.wav").write_bytes(b"<html>404</html>")
    cut = corpus / "Actor_02" / "03-01-03-01-01-01-02.wav"
    cut.write_bytes(cut.read_bytes()[:5000])
    silent = corpus / "Actor_03" / "03-01-04-01-01-01-03.wav"
    soundfile.write(silent, np.zeros(4800), 48_000)
    with pytest.raises(
        BadFilesError, match=r"3 of 21 recordings cannot be used.*--skip-bad"
    ) as caught:
        import_clips("ravdess", corpus, tmp_path / "set", workers=1)
    kinds = {name: error.split(":")[0] for name, error in caught.value.bad.items()}
    assert kinds == {
        "Actor_01/03-01-01-01-01-01-01.wav": "NotAudioError",
        "Actor_02/03-01-03-01-01-01-02.wav": "TruncatedAudioError",
        "Actor_03/03-01-04-01-01-01-03.wav": "SilentAudioError",
    }
    assert not (tmp_path / "set" / "clips.jsonl").exists()
    imported = import_clips("ravdess", corpus, tmp_path / "set", Settings(skip_bad=True), workers=1)
    assert (imported.converted, imported.kept) == (0, 18)
    assert list(imported.clip_set.card.skipped) == list(kinds)


def test_a_bad_recording_takes_no_place_in_a_subset(corpus, tmp_path):
    for path in (corpus / "Actor_01").glob("*.wav"):
        path.write_bytes(b"")
    settings = Settings(per_label=2, skip_bad=True)
    clip_set = import_clips("ravdess", corpus, tmp_path / "set", settings, workers=1).clip_set
    assert dict(clip_set.card.counts) == dict.fromkeys(EMOTIONS, 2)
    assert len(clip_set.card.skipped) == 7
    with pytest.raises(BadFilesError, match="7 of 21"):
        import_clips("ravdess", corpus, tmp_path / "other", Settings(per_label=1), workers=1)


def test_a_length_that_differs_from_the_table_is_a_bad_recording(tmp_path):
    folder = release(tmp_path / "release", duration_seconds=9.5)
    with pytest.raises(BadFilesError, match=r"lasts 0.30 s; wanted 9.50 s, as its table says"):
        import_clips("vocal-affect-bench", folder, tmp_path / "set", workers=1)


def test_a_subset_is_balanced_and_seeded(corpus, tmp_path):
    def ids(name: str, **options: object) -> list[str]:
        settings = Settings(**options)  # type: ignore[arg-type]
        clip_set = import_clips("ravdess", corpus, tmp_path / name, settings, workers=1).clip_set
        assert len({c.emotion for c in clip_set.clips}) == 7
        return [c.id for c in clip_set.clips]

    one = ids("a", per_label=1, seed=1)
    assert len(one) == 7
    assert len({i[-2:] for i in one}) == 3
    assert one == ids("b", per_label=1, seed=1)
    assert any(one != ids(f"seed{n}", per_label=1, seed=n) for n in (2, 3))
    assert len({i[-2:] for i in ids("c", speakers=2)}) == 2
    assert load_clip_set(tmp_path / "c").card.selection == "2 speakers; seed 0"


def test_a_subset_by_length(tmp_path):
    for number, emotion in enumerate(RAVDESS_EMOTIONS):
        for actor, seconds in ((1, 0.2), (2, 0.5), (3, 0.9)):
            record(
                tmp_path / "in" / f"03-01-{emotion}-01-01-01-{actor:02}.wav",
                10 * number + actor,
                seconds,
            )
    settings = Settings(seconds=(0.3, 0.5))
    clip_set = import_clips(
        "ravdess", tmp_path / "in", tmp_path / "set", settings, workers=1
    ).clip_set
    assert {c.seconds for c in clip_set.clips} == {0.5}
    assert clip_set.card.selection == "0.3-0.5 s: 7 of 21 clips; seed 0"
    with pytest.raises(DataError, match=r"no clip of anger, .* is left; wanted wider bounds"):
        import_clips(
            "ravdess", tmp_path / "in", tmp_path / "x", Settings(seconds=(5, None)), workers=1
        )


@pytest.mark.parametrize(
    ("text", "bounds"),
    [("1-10", (1, 10)), ("1.5-", (1.5, None)), ("-30", (None, 30)), (" 2 - 3 ", (2, 3))],
)
def test_bounds_of_length(text, bounds):
    assert parse_seconds(text) == bounds


@pytest.mark.parametrize("text", ["", "-", "5", "a-b", "10-1", "1--2"])
def test_bounds_that_are_none(text):
    with pytest.raises(UsageError, match="--seconds"):
        parse_seconds(text)


def test_a_finished_import_is_kept_and_mended(corpus, tmp_path):
    import_clips("ravdess", corpus, tmp_path / "set", workers=1)
    before = contents(tmp_path / "set")
    again = import_clips("ravdess", corpus, tmp_path / "set", workers=1)
    assert (again.converted, again.kept) == (0, 21)
    (tmp_path / "set" / again.clip_set.clips[0].path).write_bytes(b"damaged")
    (tmp_path / "set" / again.clip_set.clips[1].path).unlink()
    mended = import_clips("ravdess", corpus, tmp_path / "set", workers=1)
    assert (mended.converted, mended.kept) == (2, 19)
    assert contents(tmp_path / "set") == before


def test_a_changed_source_is_converted_anew(corpus, tmp_path):
    import_clips("ravdess", corpus, tmp_path / "set", workers=1)
    record(corpus / "Actor_01" / "03-01-01-01-01-01-01.wav", 999, rate=48_000)
    again = import_clips("ravdess", corpus, tmp_path / "set", workers=1)
    assert (again.converted, again.kept) == (1, 20)


def test_an_import_that_fails_half_way_goes_on(corpus, tmp_path):
    def stop(stage: str, done: int, total: int) -> None:
        if done == 9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_clips("ravdess", corpus, tmp_path / "set", workers=1, on_progress=stop)
    assert not (tmp_path / "set" / "clips.jsonl").exists()
    journal = tmp_path / "set" / STATE_FOLDER / "journal.jsonl"
    with journal.open("ab") as handle:
        handle.write(b'{"id": "torn')
    (tmp_path / "set" / "audio" / ".earwitness-x.part").write_bytes(b"half")
    imported = import_clips("ravdess", corpus, tmp_path / "set", workers=1)
    assert imported.kept >= 8
    assert imported.kept + imported.converted == 21
    import_clips("ravdess", corpus, tmp_path / "whole", workers=1)
    assert contents(tmp_path / "set") == contents(tmp_path / "whole")


def test_a_killed_import_goes_on(tmp_path):
    corpus = ravdess(tmp_path / "corpus", actors=12, rate=48_000)
    command = [sys.executable, "-m", "earwitness", "clips", "import", "ravdess", str(corpus)]
    command += ["--out", str(tmp_path / "set"), "--workers", "1"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    journal = tmp_path / "set" / STATE_FOLDER / "journal.jsonl"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if journal.is_file() and journal.read_bytes().count(b"\n") >= 5:
            break
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "set" / "clips.jsonl").exists()
    imported = import_clips("ravdess", corpus, tmp_path / "set", workers=1)
    assert imported.kept >= 5
    assert imported.kept + imported.converted == 84
    import_clips("ravdess", corpus, tmp_path / "whole", workers=1)
    assert contents(tmp_path / "set") == contents(tmp_path / "whole")


def test_another_import_does_not_touch_a_finished_set(corpus, tmp_path):
    import_clips("ravdess", corpus, tmp_path / "set", workers=1)
    with pytest.raises(
        UsageError, match=r"holds the set 'RAVDESS' from another import.*--overwrite"
    ):
        import_clips("ravdess", corpus, tmp_path / "set", Settings(per_label=1), workers=1)
    settings = Settings(per_label=1, overwrite=True)
    imported = import_clips("ravdess", corpus, tmp_path / "set", settings, workers=1)
    assert (imported.converted, imported.kept) == (0, 7)
    assert len(list((tmp_path / "set" / "audio").iterdir())) == 7


def test_a_folder_with_other_things_in_it_is_left_alone(corpus, tmp_path):
    target = tmp_path / "set"
    target.mkdir()
    (target / "thesis.txt").write_text("precious")
    with pytest.raises(UsageError, match=r"is not empty \(thesis.txt\) and no clip set"):
        import_clips("ravdess", corpus, target, workers=1)
    with pytest.raises(UsageError, match="lies in the source"):
        import_clips("ravdess", corpus, corpus / "set", workers=1)
    with pytest.raises(UsageError, match="is a file"):
        import_clips("ravdess", corpus, target / "thesis.txt", workers=1)


def test_an_evaluation_set_stays_one(tmp_path):
    folder = release(tmp_path / "release")
    imported = import_clips("vocal-affect-bench", folder, tmp_path / "set", workers=1)
    assert imported.clip_set.card.use == "evaluation-only"
    assert [c.cluster for c in imported.clip_set.clips] == [c.id for c in imported.clip_set.clips]
    assert (tmp_path / "set" / "LICENSE").read_text() == "No voice cloning.\n"
    with pytest.raises(LicenceError, match="evaluation-only"):
        require_trainable(imported.clip_set)
    for settings in (
        Settings(use="any"),
        Settings(use="non-commercial"),
        Settings(redistribute=True),
    ):
        with pytest.raises(LicenceError, match="VocalAffectBench"):
            import_clips("vocal-affect-bench", folder, tmp_path / "x", settings, workers=1)


def test_terms_of_ones_own_set_are_ones_own(tmp_path):
    record(tmp_path / "in" / "angry" / "a.wav", 1)
    record(tmp_path / "in" / "sad" / "b.wav", 2)
    card = import_clips("audiofolder", tmp_path / "in", tmp_path / "a", workers=1).clip_set.card
    assert (card.name, card.use, card.licence, card.redistribute) == (
        "in",
        "evaluation-only",
        "unspecified",
        False,
    )
    settings = Settings(
        name="Ours", use="any", licence="CC0", redistribute=True, synthetic=True, language="de"
    )
    clip_set = import_clips(
        "audiofolder", tmp_path / "in", tmp_path / "b", settings, workers=1
    ).clip_set
    card = clip_set.card
    assert (card.name, card.use, card.redistribute, card.synthetic) == ("Ours", "any", True, True)
    assert {(c.language, c.licence) for c in clip_set.clips} == {("de", "CC0")}
    with pytest.raises(LicenceError, match=r"RAVDESS is non-commercial"):
        import_clips("ravdess", tmp_path / "in", tmp_path / "c", Settings(use="any"), workers=1)


def test_a_summary_names_what_does_not_fit(corpus, tmp_path):
    clip_set = import_clips("ravdess", corpus, tmp_path / "set", workers=1).clip_set
    first, second = clip_set.clips[:2]
    (clip_set.folder / first.path).unlink()
    (clip_set.folder / second.path).write_bytes(b"other")
    problems = summarise(load_clip_set(clip_set.folder, check_files=False), verify=True)["problems"]
    assert problems[0] == f"{first.path}: the file is missing or leads out of the folder"
    assert problems[1].startswith(f"{second.path}: its hash is ")
    assert len(problems) == 2


def expected(real_data: Path, folder: str, column: str) -> Counter[str]:
    with (real_data / "emotional_speech" / "metadata.csv").open(
        encoding="utf-8", newline=""
    ) as handle:
        rows = [row for row in csv.DictReader(handle) if row["file"].startswith(f"{folder}/")]
    return Counter(row[column] for row in rows if row["label7"])


@pytest.mark.parametrize(
    ("kind", "folder", "n"),
    [
        ("ravdess", "ravdess_flac", 280),
        ("ravdess", "ravdess_wav_original", 7),
        ("emodb", "emodb", 40),
    ],
)
def test_real_corpora_have_the_counts_of_their_lists(real_data, tmp_path, kind, folder, n):
    source = real_data / "emotional_speech" / folder
    clip_set = import_clips(kind, source, tmp_path / "set").clip_set
    assert len(clip_set.clips) == n
    assert Counter(c.emotion for c in clip_set.clips) == expected(real_data, folder, "label7")
    assert Counter(c.speaker for c in clip_set.clips) == expected(real_data, folder, "speaker")
    assert Counter(c.metadata["text"] for c in clip_set.clips) == expected(
        real_data, folder, "text"
    )
    assert Counter(c.metadata["sex"] for c in clip_set.clips) == expected(real_data, folder, "sex")
    assert Counter(c.language for c in clip_set.clips) == expected(real_data, folder, "language")


def test_real_calm_is_left_out_or_folded(real_data, tmp_path):
    source = real_data / "emotional_speech" / "ravdess_calm_flac"
    with pytest.raises(DataError, match=r"no label for any of: calm \(8\)"):
        import_clips("ravdess", source, tmp_path / "a", workers=1)
    settings = Settings(label_map="ravdess-calm-neutral")
    clip_set = import_clips("ravdess", source, tmp_path / "b", settings, workers=1).clip_set
    assert dict(clip_set.card.counts) == {"neutral": 8}


def test_real_originals_and_their_flac_give_the_same_files(real_data, tmp_path):
    data = real_data / "emotional_speech"
    originals = import_clips(
        "ravdess", data / "ravdess_wav_original", tmp_path / "a", workers=1
    ).clip_set
    stems = {c.id for c in originals.clips}
    for path in (data / "ravdess_flac").iterdir():
        if path.stem in stems:
            (tmp_path / "flac").mkdir(exist_ok=True)
            (tmp_path / "flac" / path.name).symlink_to(path)
    lossless = import_clips("ravdess", tmp_path / "flac", tmp_path / "b", workers=1).clip_set
    assert [c.sha256 for c in originals.clips] == [c.sha256 for c in lossless.clips]


def test_the_lines_of_a_set_are_plain_json(corpus, tmp_path):
    import_clips("ravdess", corpus, tmp_path / "set", workers=1)
    rows = [
        json.loads(line) for line in (tmp_path / "set" / "clips.jsonl").read_text().splitlines()
    ]
    assert [row["id"] for row in rows] == sorted(row["id"] for row in rows)
    assert all(row["path"] == f"audio/{row['id']}.wav" for row in rows)
