"""Reading and writing clip sets: everything is checked, and an error names file and line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from earwitness.clips.corpus import (
    Clip,
    SetCard,
    audio_ref,
    load_clip_set,
    require_trainable,
    safe_relative,
    write_clip_set,
)
from earwitness.errors import DataError, LicenceError
from tests.clips.making import record

CARD = SetCard(name="Test", version="1", licence="CC0", use="any")


def clip(number: int, **changes: object) -> Clip:
    base = Clip(
        id=f"c{number}",
        path=f"audio/c{number}.wav",
        sha256=f"{number:064x}",
        emotion="anger",
        speaker="s1",
        language="en",
        seconds=0.3,
        rate=16_000,
        channels=1,
        source_label="angry",
        licence="CC0",
        metadata={"sex": "female"},
    )
    return replace(base, **changes)  # type: ignore[arg-type]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in (1, 2):
        record(tmp_path / f"audio/c{number}.wav", number)
    write_clip_set(tmp_path, CARD, [clip(2, emotion="fear"), clip(1)])
    return tmp_path


def edit(folder: Path, line: int, **changes: object) -> None:
    path = folder / "clips.jsonl"
    rows = [json.loads(row) for row in path.read_text(encoding="utf-8").splitlines()]
    for key, value in changes.items():
        if value is ...:
            del rows[line - 1][key]
        else:
            rows[line - 1][key] = value
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def test_what_is_written_is_read_back(folder):
    clip_set = load_clip_set(folder)
    assert [c.id for c in clip_set.clips] == ["c1", "c2"]
    assert clip_set.clips[0] == clip(1)
    assert clip_set.card == replace(CARD, counts={"anger": 1, "fear": 1})
    assert not [
        p.name for p in folder.iterdir() if p.name not in ("audio", "card.yaml", "clips.jsonl")
    ]


def test_the_same_set_is_the_same_bytes(folder):
    before = [(folder / name).read_bytes() for name in ("clips.jsonl", "card.yaml")]
    again = write_clip_set(folder, CARD, list(load_clip_set(folder).clips))
    assert [(folder / name).read_bytes() for name in ("clips.jsonl", "card.yaml")] == before
    assert again.sha256 == load_clip_set(folder).sha256


def test_a_clip_gives_a_reference_to_its_audio(folder):
    clip_set = load_clip_set(folder)
    ref = audio_ref(clip_set, clip_set.clips[0])
    assert ref.path == folder / "audio" / "c1.wav"
    assert (ref.sha256, ref.seconds, ref.rate, ref.channels) == (f"{1:064x}", 0.3, 16_000, 1)
    assert audio_ref(clip_set, clip_set.clips[0], "silence").identity.endswith(":silence")


def test_a_clip_without_a_speaker_is_a_cluster_of_its_own():
    assert clip(1).cluster == "s1"
    assert clip(1, speaker="").cluster == "c1"


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"emotion": "joy"}, r"clips.jsonl:2: emotion: found 'joy'; wanted one of anger, disgust"),
        ({"path": "../c2.wav"}, r"clips.jsonl:2: path: '../c2.wav' leads out of the folder"),
        ({"path": "/etc/c2.wav"}, r":2: path: .* is an absolute path"),
        ({"path": "audio\\c2.wav"}, r":2: path: .* forward slashes"),
        ({"path": "C:/c2.wav"}, r":2: path: .* forward slashes"),
        ({"path": "audio/c1.wav"}, r":2: path: 'audio/c1.wav' is already on line 1"),
        ({"id": "c1"}, r":2: id: 'c1' is already on line 1"),
        ({"id": "C1"}, r":2: id: 'C1' is already on line 1"),
        ({"id": "a/b"}, r":2: id: 'a/b' has a character that file names cannot have"),
        ({"id": ".."}, r":2: id: '..' is empty or begins with a dot"),
        ({"id": 7}, r":2: id: found 7; wanted text"),
        ({"sha256": "00"}, r":2: sha256: found '00'; wanted 64 lower-case hex digits"),
        ({"seconds": 0}, r":2: seconds: found 0; wanted a number above 0"),
        ({"seconds": float("nan")}, r":2: seconds: found nan"),
        ({"seconds": "1"}, r":2: seconds: found '1'"),
        ({"rate": 16000.0}, r":2: rate: found 16000.0; wanted a whole number above 0"),
        ({"channels": True}, r":2: channels: found True"),
        ({"language": "English"}, r":2: language: found 'English'; wanted a tag such as en"),
        ({"metadata": {"age": 3}}, r":2: metadata: found .* an object of text values"),
        ({"metadata": []}, r":2: metadata"),
        ({"speaker": ...}, r":2: no field 'speaker'"),
        ({"extra": 1}, r":2: unknown field 'extra'.*Put it under metadata"),
        ({"speaker": "\ud800"}, r":2: not JSON"),
    ],
)
def test_a_bad_field_is_named_with_file_and_line(folder, changes, match):
    edit(folder, 2, **changes)
    with pytest.raises(DataError, match=match):
        load_clip_set(folder)


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"", r"clips.jsonl: no clip in it"),
        (b"{}\n[1]\n", r"clips.jsonl:1: no field 'id'"),
        (b"\n[1]\n", r"clips.jsonl:2: found list"),
        (b"\n\xff\n", r"clips.jsonl:2: not UTF-8"),
        (b'{"id": \n', r"clips.jsonl:1: not JSON"),
        (b"[" * 100_000, r"clips.jsonl:1: not JSON"),
    ],
)
def test_a_file_that_is_no_list_of_clips_is_refused(folder, data, match):
    (folder / "clips.jsonl").write_bytes(data)
    with pytest.raises(DataError, match=match):
        load_clip_set(folder)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        (
            {"use": "sometimes"},
            r"card.yaml: use: found 'sometimes'; wanted one of any, non-commercial",
        ),
        ({"redistribute": "yes please"}, r"redistribute: found 'yes please'; wanted true or false"),
        ({"redistribut": True}, r"unknown field 'redistribut'"),
        ({"version": 1}, r"version: found 1; wanted text. Put numbers and dates in quotes"),
        ({"name": " "}, r"name: is empty"),
        ({"licence": ...}, r"no field 'licence'"),
        ({"counts": {"anger": -1}}, r"counts: found"),
        ({"counts": {"anger": 2}}, r"counts \{'anger': 2\}; wanted the counts of clips.jsonl"),
        ({"skipped": {"a": 1}}, r"skipped: found"),
    ],
)
def test_a_bad_card_is_refused(folder, changes, match):
    path = folder / "card.yaml"
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    for key, value in changes.items():
        if value is ...:
            del data[key]
        else:
            data[key] = value
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    with pytest.raises(DataError, match=match):
        load_clip_set(folder)


def test_a_set_without_its_parts_is_refused(folder, tmp_path):
    with pytest.raises(DataError, match="no such folder"):
        load_clip_set(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"has no clips.jsonl.*earwitness clips import"):
        load_clip_set(folder / "audio")
    (folder / "card.yaml").unlink()
    with pytest.raises(DataError, match=r"card.yaml: no such file"):
        load_clip_set(folder)


def test_a_missing_file_is_an_error_unless_only_the_list_is_wanted(folder):
    (folder / "audio/c2.wav").unlink()
    with pytest.raises(DataError, match=r"c2.wav: 1 of 2 audio files are missing"):
        load_clip_set(folder)
    assert len(load_clip_set(folder, check_files=False).clips) == 2


def test_a_link_out_of_the_folder_is_refused(folder, tmp_path_factory):
    outside = record(tmp_path_factory.mktemp("outside") / "x.wav", 9)
    (folder / "audio/c2.wav").unlink()
    (folder / "audio/c2.wav").symlink_to(outside)
    with pytest.raises(DataError, match="lead out of the folder"):
        load_clip_set(folder)


def test_a_bad_clip_leaves_the_written_set_alone(folder):
    before = (folder / "clips.jsonl").read_bytes()
    with pytest.raises(DataError, match="leads out of the folder"):
        write_clip_set(folder, CARD, [clip(1, path="../x.wav")])
    assert (folder / "clips.jsonl").read_bytes() == before


@pytest.mark.parametrize("path", ["a/b.wav", "ä b/c,d.wav", "-x.wav", "..a/b.wav"])
def test_paths_inside_a_folder_are_fine(path):
    assert safe_relative(path) is None


@pytest.mark.parametrize(
    "path", ["", "a/../../b", "a//b", "./a", "/a", "a\\b", "a\0b", "c:x", " a"]
)
def test_paths_that_lead_elsewhere_are_not(path):
    assert safe_relative(path) is not None


def test_an_evaluation_only_set_is_refused_for_training(folder):
    clip_set = load_clip_set(folder)
    require_trainable(clip_set)
    locked = replace(clip_set, card=replace(clip_set.card, use="evaluation-only"))
    with pytest.raises(LicenceError, match=r"Test is marked evaluation-only \(CC0\)"):
        require_trainable(locked)
