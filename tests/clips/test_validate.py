"""A clip set's records against its files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from earwitness.audio import file_sha256
from earwitness.clips.corpus import Clip, SetCard, write_clip_set
from earwitness.clips.validate import validate
from earwitness.errors import DataError
from tests.audio.wavs import plain, tone


@pytest.fixture
def clip_set(tmp_path: Path) -> Path:
    clips = []
    for number, emotion in enumerate(("anger", "fear", "neutral")):
        path = tmp_path / f"audio/c{number}.wav"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(plain(tone(1600 + number)))
        clips.append(
            Clip(
                id=f"c{number}",
                path=f"audio/c{number}.wav",
                sha256=file_sha256(path),
                emotion=emotion,  # type: ignore[arg-type]
                speaker="s1",
                language="en",
                seconds=round((1600 + number) / 16000, 3),
                rate=16000,
                channels=1,
                source_label=emotion,
                licence="CC0-1.0",
            )
        )
    write_clip_set(tmp_path, SetCard("tones", "1", "CC0-1.0", "any"), clips)
    return tmp_path


def rewrite(folder: Path, index: int, **changes: object) -> None:
    """Change one record behind the back of the checks that writing makes."""
    path = folder / "clips.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[index].update(changes)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def found(folder: Path) -> list[tuple[str, str, str]]:
    return [(f.clip or f.path, f.code, f.severity) for f in validate(folder).findings]


def test_a_good_set_is_clean(clip_set: Path) -> None:
    result = validate(clip_set)
    assert (result.kind, result.n_files, result.findings) == ("clip set", 3, ())
    assert result.passed(strict=True)


@pytest.mark.parametrize("workers", [1, 2])
def test_progress_and_order_with_several_processes(tmp_path: Path, workers: int) -> None:
    for number in range(20):
        data = plain(tone(800 + number))
        (tmp_path / f"z{number:02}.wav").write_bytes(data[: len(data) - 10 * (number % 2)])
    progress: list[int] = []
    result = validate(tmp_path, workers=workers, on_start=progress.append, on_done=progress.append)
    assert [f.path for f in result.findings] == [f"z{n:02}.wav" for n in range(1, 20, 2)]
    assert {f.code for f in result.findings} == {"truncated"}
    assert progress == [20, *range(1, 21)]


def test_a_plain_folder_works_too(clip_set: Path) -> None:
    (clip_set / "clips.jsonl").unlink()
    assert validate(clip_set).kind == "folder"


def test_missing_and_changed_files(clip_set: Path) -> None:
    (clip_set / "audio/c0.wav").unlink()
    (clip_set / "audio/c1.wav").write_bytes(plain(tone(4000, level=0.4)))
    assert found(clip_set) == [
        ("c0", "missing", "error"),
        ("c1", "changed", "error"),
        ("c1", "record_mismatch", "error"),
    ]
    messages = [f.message for f in validate(clip_set).findings]
    assert messages[2] == "it has 0.250 s, the record says 0.100 s"


def test_records_that_do_not_fit(clip_set: Path) -> None:
    rewrite(clip_set, 0, rate=8000, channels=2)
    assert found(clip_set) == [("c0", "record_mismatch", "error")]
    message = validate(clip_set).findings[0].message
    assert message == "it has 16000 Hz, the record says 8000 Hz; 1 channel, the record says 2"


def test_the_same_recording_twice(clip_set: Path) -> None:
    data = (clip_set / "audio/c0.wav").read_bytes()
    (clip_set / "audio/c1.wav").write_bytes(data)
    rewrite(clip_set, 1, sha256=file_sha256(clip_set / "audio/c0.wav"))
    assert found(clip_set) == [("c1", "label_conflict", "error")]
    assert "anger and fear" in validate(clip_set).findings[0].message


def test_the_same_recording_twice_with_one_label(clip_set: Path) -> None:
    from earwitness.clips.corpus import load_clip_set

    loaded = load_clip_set(clip_set)
    first = loaded.clips[0]
    (clip_set / "audio/copy.wav").write_bytes((clip_set / first.path).read_bytes())
    again = replace(first, id="z", path="audio/copy.wav")
    write_clip_set(clip_set, loaded.card, [*loaded.clips, again])
    assert found(clip_set) == [("z", "duplicate", "warning")]


def test_files_that_no_record_names(clip_set: Path) -> None:
    (clip_set / "audio/extra.wav").write_bytes(plain())
    assert found(clip_set) == [("audio/extra.wav", "unlisted", "warning")]


def test_bad_audio_carries_its_clip(clip_set: Path) -> None:
    path = clip_set / "audio/c2.wav"
    path.write_bytes(plain(0 * tone(1602)))
    rewrite(clip_set, 2, sha256=file_sha256(path))
    assert found(clip_set) == [("c2", "silent", "error")]


def test_a_link_out_of_the_folder_is_an_error(
    clip_set: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "c0.wav"
    (clip_set / "audio/c0.wav").rename(outside)
    (clip_set / "audio/c0.wav").symlink_to(outside)
    assert found(clip_set) == [("c0", "outside", "error")]


def test_a_broken_list_is_named(clip_set: Path) -> None:
    (clip_set / "clips.jsonl").write_text("{not json\n")
    with pytest.raises(DataError, match=r"clips\.jsonl"):
        validate(clip_set)
