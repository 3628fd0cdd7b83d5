"""Every awkward file does what the table in docs/audio-files.md says."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from earwitness.audio import inspect_audio, read_audio, resample, to_mono, to_mono_with_policy
from earwitness.audio.types import ERROR_CLASSES
from earwitness.errors import AudioFileError, TruncatedAudioError

TABLE = Path(__file__).resolve().parents[2] / "docs" / "audio-files.md"


class Row(NamedTuple):
    file: str
    odd: str
    result: str
    codes: tuple[str, ...]
    text: str


def rows() -> list[Row]:
    found = []
    for line in TABLE.read_text("utf-8").splitlines():
        if match := re.fullmatch(
            r"\| `((?:made|real)/.+)` \| (.*) \| (\w+) \| (.*) \| (.+) \|", line
        ):
            file, odd, result, codes, text = match.groups()
            found.append(Row(file, odd, result, tuple(re.findall(r"`(\w+)`", codes)), text))
    return found


ROWS = rows()


@pytest.fixture(scope="module")
def awkward(real_data: Path) -> Path:
    return real_data / "awkward"


@pytest.fixture(scope="module")
def reference(awkward: Path) -> np.ndarray:
    return read_audio(awkward / "made/made_ref_pcm16_16k_mono.wav").samples


def test_the_table_has_every_file_once(awkward: Path) -> None:
    with (awkward / "metadata.csv").open(encoding="utf-8") as file:
        expected = [row["file"] for row in csv.DictReader(file)]
    assert sorted(expected) == sorted(row.file for row in ROWS)
    assert len(expected) == 147


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.file)
def test_row(row: Row, awkward: Path, reference: np.ndarray) -> None:
    path = awkward / row.file
    seen = inspect_audio(path)
    assert tuple(p.code for p in (*seen.errors, *seen.warnings)) == row.codes
    assert (row.result == "error") == bool(seen.errors)
    if row.result == "error":
        with pytest.raises(ERROR_CLASSES[row.codes[0]], match=re.escape(row.file)) as caught:
            read_audio(path)
        assert type(caught.value) is ERROR_CLASSES[row.codes[0]]
        assert caught.value.next_step
        return
    audio = read_audio(path)
    assert (audio.frames, audio.rate, audio.channels) == (seen.frames, seen.rate, seen.channels)
    assert audio.samples.dtype == np.float32
    assert np.isfinite(audio.samples).all()
    same = audio.samples.shape == reference.shape and bool((audio.samples == reference).all())
    assert (same and audio.rate == 16000) == (row.result == "exact")


def test_files_expected_to_hold_the_reference_hold_it(awkward: Path) -> None:
    results = {row.file: row.result for row in ROWS}
    with (awkward / "metadata.csv").open(encoding="utf-8") as file:
        same = [row["file"] for row in csv.DictReader(file) if row["expect"] == "same_audio"]
    assert len(same) > 30
    assert {results[name] for name in same} == {"exact"}


@pytest.mark.parametrize(
    "name", ["made_stereo_same", "made_stereo_one_side", "made_stereo_antiphase", "made_5_1_centre"]
)
def test_every_way_of_many_channels_gives_the_reference_as_mono(
    name: str, awkward: Path, reference: np.ndarray
) -> None:
    mono = to_mono(read_audio(awkward / f"made/{name}.wav"))
    np.testing.assert_array_equal(mono.samples, reference)


def test_other_rates_hold_the_same_words(awkward: Path, reference: np.ndarray) -> None:
    for rate in (22050, 44100, 48000):
        audio = resample(read_audio(awkward / f"made/made_rate_{rate}.wav"), 16000)
        assert abs(audio.frames - 16000) <= 1
        inner = slice(200, 15800)
        assert np.corrcoef(audio.samples[:16000][inner], reference[inner])[0, 1] > 0.99


def test_truncated_says_how_much_and_can_be_allowed(awkward: Path, reference: np.ndarray) -> None:
    path = awkward / "made/made_truncated_in_data.wav"
    with pytest.raises(TruncatedAudioError, match=r"21334 of 32000 bytes .*0\.667 of 1\.000 s"):
        read_audio(path)
    audio = read_audio(path, allow_truncated=True)
    np.testing.assert_array_equal(audio.samples, reference[:5333])
    seen = inspect_audio(path, allow_truncated=True)
    assert seen.ok
    assert [(p.code, p.severity) for p in seen.problems] == [("truncated", "warning")]
    assert "0.667 of 1.000 s" in seen.problems[0].message


def test_real_recordings_are_clean(real_data: Path) -> None:
    folder = real_data / "emotional_speech"
    originals = sorted((folder / "ravdess_wav_original").glob("*.wav"))
    assert len(originals) == 7
    for path in originals:
        assert inspect_audio(path).problems == ()
        flac = folder / "ravdess_flac" / f"{path.stem}.flac"
        np.testing.assert_array_equal(read_audio(path).samples, read_audio(flac).samples)


def test_mp3_is_decoded_without_restarting(real_data: Path) -> None:
    soundfile = pytest.importorskip("soundfile")
    for path in sorted((real_data / "environment").rglob("*.mp3"))[:3]:
        whole, _ = soundfile.read(path, dtype="float32", always_2d=True)
        audio = read_audio(path)
        np.testing.assert_allclose(audio.samples.reshape(whole.shape), whole, atol=1e-6)


def test_a_long_file_is_inspected_in_blocks(awkward: Path) -> None:
    import tracemalloc

    tracemalloc.start()
    seen = inspect_audio(awkward / "made/made_long_30min.flac")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seen.frames == 28_800_000
    assert peak < 8e6


@pytest.mark.parametrize(
    "name",
    ["mutagen__ooming-header.flac", "hound__oom-48ae4cd061ff8578ad3f23dc87624bd365cf5216.wav"],
)
def test_headers_that_ask_for_memory_get_none(name: str, awkward: Path) -> None:
    import tracemalloc

    tracemalloc.start()
    with pytest.raises(AudioFileError, match="the file ends after"):
        read_audio(awkward / "real" / name)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4e6


def test_the_policy_is_said(awkward: Path) -> None:
    said = {
        name: to_mono_with_policy(read_audio(awkward / f"made/made_{name}.wav"))[1]
        for name in ("ref_pcm16_16k_mono", "stereo_same", "stereo_antiphase", "5_1_centre")
    }
    assert said == {
        "ref_pcm16_16k_mono": "mono",
        "stereo_same": "mean of 2 channels",
        "stereo_antiphase": "channel 1 of 2, as the mean cancels (all of it lost)",
        "5_1_centre": "channel 3 of 6, as the others are silent",
    }
