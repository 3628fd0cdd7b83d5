"""Sound libraries: table, card, hash, refusals."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from earwitness.audio import Audio, file_sha256, write_audio
from earwitness.scenes.bank import Bank, load_bank
from earwitness.scenes.bank_library import library_findings, read_library
from earwitness.scenes.sounds import (
    LibraryError,
    MissingTakesError,
    Take,
    accept_edits,
    library_hash,
    load_library,
    merged,
    write_library,
)


@cache
def the_bank() -> Bank:
    return load_bank()


def make_take(folder: Path, path: str, *, split: str = "train", level: float = 0.5) -> Take:
    kind, of, _ = path.split("/")
    tone = np.sin(np.arange(4410) / 7) * level
    write_audio(folder / path, Audio(tone.astype(np.float32), 44100))
    return Take(
        kind="sound" if kind == "sounds" else "ambience", of=of, path=path,
        sha256=file_sha256(folder / path), source="made here", licence="CC0 1.0", attribution="",
        author="", duration_s=0.1, loudness_lufs=-12.0, bandwidth_hz=1200.0, band_limited=True,
        peak_time_s=0.05, sample_rate=44100, channels=1, synthetic=True, split=split,  # type: ignore[arg-type]
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    takes = [
        make_take(tmp_path, "sounds/dog_bark/a.flac"),
        make_take(tmp_path, "sounds/dog_bark/b.flac", split="test"),
        make_take(tmp_path, "ambiences/park/a.flac", split="shared"),
    ]
    write_library(tmp_path, takes, name="small")
    return tmp_path


def test_what_was_written_is_loaded(folder: Path) -> None:
    library = load_library(folder, verify=True)
    assert [take.id for take in library.sounds("dog_bark")] == [
        "sounds/dog_bark/a",
        "sounds/dog_bark/b",
    ]
    assert [take.split for take in library.sounds("dog_bark", "test")] == ["test"]
    assert [take.of for take in library.ambiences("park", "validation")] == ["park"]
    assert library.card.n_sounds == 1
    assert library.card.n_ambiences == 1
    assert library.card.licences == {"CC0 1.0": 3}
    assert library.card.synthetic == 3
    assert library.shared


def test_counts_are_what_a_plan_wants(folder: Path) -> None:
    library = load_library(folder)
    assert library.counts() == {"train": {"dog_bark": 1}, "validation": {}, "test": {"dog_bark": 1}}
    assert library.counts("ambience")["validation"] == {"park": 1}


def test_the_bank_check_reads_the_same_table(folder: Path) -> None:
    contents = read_library(folder)
    assert contents.sounds["dog_bark"] == {"train": 1, "test": 1}
    assert contents.ambiences_in("test") == {"park"}
    assert any(f.code == "B601" for f in library_findings(the_bank(), contents))


def test_missing_takes_are_refused_with_the_whole_list(folder: Path) -> None:
    library = load_library(folder)
    library.require([("sound", "dog_bark", "test"), ("ambience", "park", "train")])
    with pytest.raises(
        MissingTakesError,
        match=r"ambience office \(train\), sound car_horn \(test\), sound dog_bark \(validation\)",
    ):
        library.require(
            [("sound", "car_horn", "test"), ("sound", "dog_bark", "validation"), ("ambience", "office", "train")]
        )  # fmt: skip


def test_the_hash_is_of_the_content_whatever_the_order(folder: Path) -> None:
    takes = load_library(folder).takes
    assert library_hash(takes) == library_hash(takes[::-1])
    assert library_hash(takes) != library_hash((replace(takes[0], licence="CC BY 4.0"), *takes[1:]))


def test_a_table_changed_by_hand_is_noticed_and_can_be_accepted(folder: Path) -> None:
    table = folder / "takes.jsonl"
    table.write_text(table.read_text().replace("CC0 1.0", "CC BY 4.0"))
    with pytest.raises(LibraryError, match="--accept-edits"):
        load_library(folder)
    accept_edits(folder)
    assert load_library(folder).card.licences == {"CC BY 4.0": 3}


def test_a_missing_or_damaged_file_is_named(folder: Path) -> None:
    (folder / "sounds/dog_bark/a.flac").write_bytes(b"fLaC")
    assert load_library(folder)
    with pytest.raises(LibraryError, match=r"a\.flac: SHA-256"):
        load_library(folder, verify=True)
    (folder / "sounds/dog_bark/a.flac").unlink()
    with pytest.raises(LibraryError, match=r"a\.flac: no such file"):
        load_library(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"split": "dev"}, "split 'dev'; wanted train, validation, test, shared"),
        ({"path": "sounds/cat_meow/a.flac"}, "path .*; wanted sounds/dog_bark/<take>"),
        ({"path": "sounds/dog_bark/../x.flac"}, "path "),
        ({"duration_s": "long"}, "duration_s is 'long'; wanted a number"),
        ({"duration_s": True}, "duration_s is True; wanted a number"),
        ({"band_limited": 1}, "band_limited is 1; wanted true or false"),
        ({"sha256": "12"}, "64 hexadecimal digits"),
        ({"peak_time_s": 3.0}, "a moment inside the take"),
        ({"loudness_lufs": float("nan")}, "not finite"),
        ({"colour": "red"}, "the unknown key 'colour'"),
        ({"ambience": "park"}, "both sound and ambience"),
        ({"sound": 3}, "sound is 3; wanted an id"),
    ],
)
def test_lines_that_are_no_take_are_refused_by_number(
    folder: Path, change: dict[str, object], message: str
) -> None:
    table = folder / "takes.jsonl"
    lines = table.read_text().splitlines()
    lines[1] = json.dumps({**json.loads(lines[1]), **change})
    table.write_text("\n".join(lines))
    with pytest.raises(LibraryError, match=r"takes\.jsonl: line 2.*" + message):
        load_library(folder)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not JSON"),
        ("[]", "wanted an object"),
        ("{}", "neither sound nor ambience"),
        ('{"sound": "dog_bark"}', "no attribution, author"),
    ],
)
def test_broken_lines(folder: Path, line: str, message: str) -> None:
    (folder / "takes.jsonl").write_text(line + "\n")
    with pytest.raises(LibraryError, match="line 1.*" + message):
        load_library(folder)


def test_other_folders_are_no_library(tmp_path: Path) -> None:
    with pytest.raises(LibraryError, match="no such folder"):
        load_library(tmp_path / "nowhere")
    with pytest.raises(LibraryError, match=r"no takes\.jsonl"):
        load_library(tmp_path)
    (tmp_path / "takes.jsonl").write_text("\n")
    with pytest.raises(LibraryError, match="no takes"):
        load_library(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a", "no card of this format"),
        ("format: 1\nname: x", "the key"),
        ("a: [", "not YAML"),
    ],
)
def test_cards_that_are_none(folder: Path, text: str, message: str) -> None:
    (folder / "library.yaml").write_text(text)
    with pytest.raises(LibraryError, match=message):
        load_library(folder)


def test_a_take_twice_is_refused(folder: Path) -> None:
    takes = load_library(folder).takes
    with pytest.raises(LibraryError, match="is there twice"):
        write_library(folder, (*takes, takes[0]), name="small")


def test_a_take_that_comes_again_keeps_its_split(folder: Path) -> None:
    library = load_library(folder)
    again = replace(library.takes[1], split="validation", licence="CC BY 4.0")
    kept = {take.path: take for take in merged(library, [again])}
    assert kept[again.path].split == library.takes[1].split
    assert kept[again.path].licence == "CC BY 4.0"
