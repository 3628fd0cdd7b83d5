"""Plans in a folder: they grow byte by byte, and anything else is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from earwitness.errors import DataError, UsageError
from earwitness.scenes.bank import Bank, load_bank
from earwitness.scenes.bank_library import read_library
from earwitness.scenes.corpus import Corpus
from earwitness.scenes.corpus_plan import library_used, plan_corpus, read_cast, request_of
from earwitness.scenes.plan import InfeasiblePlanError, load_preset, plan


@pytest.fixture(scope="module")
def bank() -> Bank:
    return load_bank()


def planned(folder: Path, bank: Bank, templates: int, **more: Any) -> Any:
    values = {"per_template": 3, "seed": 5, "preset": load_preset("balanced"), **more}
    return plan_corpus(folder, bank, templates=templates, **values)


def test_growing_keeps_every_byte(tmp_path: Path, bank: Bank) -> None:
    planned(tmp_path, bank, 4)
    before = (tmp_path / "scenarios.jsonl").read_bytes()
    grown = planned(tmp_path, bank, 9)
    after = (tmp_path / "scenarios.jsonl").read_bytes()
    assert (grown.before, len(grown.scenarios)) == (12, 27)
    assert after.startswith(before)
    assert Corpus(tmp_path).config.templates == 9
    fresh = tmp_path / "fresh"
    planned(fresh, bank, 9)
    assert (fresh / "scenarios.jsonl").read_bytes() == after
    assert (fresh / "corpus.yaml").read_bytes() == (tmp_path / "corpus.yaml").read_bytes()


@pytest.mark.parametrize(
    ("more", "match"),
    [
        ({"seed": 6}, "--seed was 5 and is 6"),
        ({"per_template": 4}, "--per-template was 3 and is 4"),
        ({"preset": load_preset("paper")}, "--preset was balanced 1 and is paper 1"),
        ({"templates": 2}, "has 4 templates already; wanted --templates 4 or more"),
    ],
)
def test_another_plan_is_refused(
    tmp_path: Path, bank: Bank, more: dict[str, Any], match: str
) -> None:
    planned(tmp_path, bank, 4)
    before = (tmp_path / "scenarios.jsonl").read_bytes()
    templates = more.pop("templates", 9)
    with pytest.raises(UsageError, match=match):
        planned(tmp_path, bank, templates, **more)
    assert (tmp_path / "scenarios.jsonl").read_bytes() == before


def test_an_edited_plan_is_refused_and_left_alone(tmp_path: Path, bank: Bank) -> None:
    planned(tmp_path, bank, 4)
    path = tmp_path / "scenarios.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    lines[6] = lines[6].replace('"gender_a":"', '"gender_a":"F', 1)
    path.write_text("".join(lines))
    with pytest.raises(DataError, match=r"scenarios\.jsonl:7: differs from what this plan"):
        planned(tmp_path, bank, 9)
    assert path.read_text() == "".join(lines)


def test_a_kill_between_the_two_files_is_gone_on_from(tmp_path: Path, bank: Bank) -> None:
    planned(tmp_path, bank, 4)
    config = (tmp_path / "corpus.yaml").read_bytes()
    planned(tmp_path, bank, 6)
    (tmp_path / "corpus.yaml").write_bytes(config)  # The scenarios had grown, the rest had not.
    assert planned(tmp_path, bank, 6).before == 18
    (tmp_path / "corpus.yaml").write_bytes(config)
    with pytest.raises(DataError, match="has 18 lines, more than this plan"):
        planned(tmp_path, bank, 5)


def library(folder: Path, bank: Bank, lacking: str = "") -> Path:
    folder.mkdir()
    lines = [
        {"sound": sound.id, "split": split}
        for split in ("train", "validation", "test")
        for sound in bank.sounds
        if sound.id != lacking or split == "train"
    ]
    (folder / "takes.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_a_library_limits_what_is_drawn_split_by_split(tmp_path: Path, bank: Bank) -> None:
    used = library_used(read_library(library(tmp_path / "lib", bank, "keys_jingle")))
    assert "keys_jingle" in used.drawable["train"]
    assert "keys_jingle" not in used.drawable["test"]
    corpus = planned(tmp_path / "c", bank, 40, library=used)
    held_out = [s for s in corpus.scenarios if s.split != "train"]
    assert not [e for s in held_out for e in s.events if e.sound == "keys_jingle"]
    # The plan can be made again without the library.
    assert plan(bank, request_of(Corpus(tmp_path / "c").config)) == corpus.scenarios
    with pytest.raises(UsageError, match=r"--sounds was .* and is none"):
        planned(tmp_path / "c", bank, 50)


def test_no_scene_is_where_the_library_has_no_ambience(tmp_path: Path, bank: Bank) -> None:
    folder = library(tmp_path / "lib", bank)
    there = ("cafe", "park", "street")
    lines = [
        {"ambience": place, "split": split}
        for place in there
        for split in ("train", "validation", "test")
        if (place, split) != ("street", "test")
    ]
    with (folder / "takes.jsonl").open("a") as table:
        table.writelines(json.dumps(line) + "\n" for line in lines)
    used = library_used(read_library(folder), bank=bank)
    assert {place.id for place in bank.locations} - set(used.left_out) == {"cafe", "park"}
    corpus = planned(tmp_path / "c", bank, 20, library=used)
    assert {s.location for s in corpus.scenarios} == {"cafe", "park"}
    # It grows as it was, and its plan can be made again without the library.
    grown = planned(tmp_path / "c", bank, 30, library=used)
    assert grown.scenarios[: len(corpus.scenarios)] == corpus.scenarios
    assert plan(bank, request_of(Corpus(tmp_path / "c").config)) == grown.scenarios


def test_a_plan_from_before_places_were_left_out_grows(tmp_path: Path, bank: Bank) -> None:
    folder = library(tmp_path / "lib", bank)
    with (folder / "takes.jsonl").open("a") as table:
        table.write(json.dumps({"ambience": "cafe", "split": "shared"}) + "\n")
    before = planned(tmp_path / "c", bank, 10, library=library_used(read_library(folder)))
    grown = planned(tmp_path / "c", bank, 20, library=library_used(read_library(folder), bank=bank))
    assert grown.scenarios[: len(before.scenarios)] == before.scenarios
    assert {s.location for s in grown.scenarios} != {"cafe"}


def test_a_library_of_other_places_is_refused(tmp_path: Path, bank: Bank) -> None:
    folder = library(tmp_path / "lib", bank)
    with (folder / "takes.jsonl").open("a") as table:
        table.write(json.dumps({"ambience": "moon", "split": "shared"}) + "\n")
    used = library_used(read_library(folder), bank=bank)
    with pytest.raises(InfeasiblePlanError, match="no location of the bank has an ambience"):
        planned(tmp_path / "c", bank, 5, library=used)


def test_a_library_without_splits_serves_all_of_them(tmp_path: Path, bank: Bank) -> None:
    for sound in bank.sounds[:3]:
        (tmp_path / "sounds" / sound.id).mkdir(parents=True)
        (tmp_path / "sounds" / sound.id / "take.wav").write_bytes(b"x")
    used = library_used(read_library(tmp_path))
    assert used.drawable["train"] == used.drawable["test"] == tuple(s.id for s in bank.sounds[:3])
    with pytest.raises(InfeasiblePlanError, match="drawable sounds in train"):
        planned(tmp_path / "c", bank, 10, library=used)
    assert not (tmp_path / "c" / "corpus.yaml").exists()
    assert library_used(read_library(tmp_path), 2).drawable["train"] == ()


@pytest.mark.parametrize(
    "text",
    [
        "voices: [{id: a, tags: [sigh, pauses, gasp]}, {id: b, tags: ['[sighs]', pause]}]",
        "[{id: a, tags: [sigh, pause]}, {id: b, tags: [pause, sigh, laugh]}]",
        "{a: {tags: [sigh, pause]}, b: {tags: [sigh, pause, cough]}}",
    ],
)
def test_a_cast_counts_what_every_voice_can_render(tmp_path: Path, bank: Bank, text: str) -> None:
    (tmp_path / "cast.yaml").write_text(text)
    assert read_cast(tmp_path / "cast.yaml", bank).tags == ("pause", "sigh")


def test_a_cast_limits_the_registers(tmp_path: Path, bank: Bank) -> None:
    (tmp_path / "cast.yaml").write_text("voices: [{id: a}, {id: b, tags: [sigh]}]")
    corpus = planned(tmp_path / "c", bank, 40, cast=read_cast(tmp_path / "cast.yaml", bank))
    registers = {e.register for s in corpus.scenarios for e in s.events if e.register}
    assert not [r for r in registers if bank.register(r).tags]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("voices: []", "holds no voices"),
        ("voices: [3]", r"voices\[0\]: is no voice"),
        ("[{id: a, tags: [dances]}]", "the unknown tags dances; wanted of "),
        ("a: [", "is no valid YAML"),
    ],
)
def test_a_broken_cast_is_named(tmp_path: Path, bank: Bank, text: str, match: str) -> None:
    (tmp_path / "cast.yaml").write_text(text)
    with pytest.raises(DataError, match=match):
        read_cast(tmp_path / "cast.yaml", bank)
    with pytest.raises(DataError, match="cannot be read"):
        read_cast(tmp_path / "none.yaml", bank)
