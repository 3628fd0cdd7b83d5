"""Near-duplicates across a corpus, and reading files of dialogues."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from earwitness.errors import DataError
from earwitness.scenes.bank import load_bank
from earwitness.scenes.dialogue import Dialogue, NearDuplicates, Utterance, dialogue_to_json
from earwitness.scenes.rules.corpus import NEAR_DUPLICATE, SHARED_SENTENCES, SHINGLE_WORDS
from earwitness.scenes.rules.linting import lint, read_records, read_scenarios
from earwitness.scenes.scenario import scenario_to_json, to_lines
from tests.scenes.dialogue_examples import FENCE, STAIRCASE, fence, staircase

WORDS = [f"word{n}" for n in range(3000)]


def talk(name: str, *sentences: str) -> Dialogue:
    return Dialogue(name, "", tuple(Utterance("AB"[n % 2], s) for n, s in enumerate(sentences)))


def numbered(name: str, *numbers: int) -> Dialogue:
    return talk(name, *(f"This is the sentence number x{n}." for n in numbers))


def random_talk(name: str, rng: np.random.Generator, like: list[str] | None = None) -> list[str]:
    """300 words; with ``like``, a random share of that text's words replaced by others."""
    if like is None:
        return [str(word) for word in rng.choice(WORDS, 300)]
    share = rng.uniform(0, 0.3)
    return [str(rng.choice(WORDS)) if rng.random() < share else word for word in like]


@pytest.mark.parametrize(
    ("shared", "found"), [(0, False), (3, False), (4, True), (9, True)], ids=lambda x: str(x)
)
def test_a_third_of_the_sentences_may_be_shared(shared: int, found: bool) -> None:
    seen = NearDuplicates(max_shared_shingles=1)
    assert seen.add(numbered("one", *range(9))) is None
    violation = seen.add(numbered("two", *range(9 - shared, 18 - shared)))
    assert (violation is not None) == found
    if violation is not None:
        assert violation.code == SHARED_SENTENCES
        assert f"{shared / 9:.0%} of its sentences" in violation.message
        assert "scenario one" in violation.message


def test_the_shorter_one_counts() -> None:
    seen = NearDuplicates(max_shared_shingles=1)
    seen.add(numbered("long", *range(100)))
    assert seen.find(numbered("short", 1, 2, 200)) is not None


def test_short_sentences_belong_to_everybody() -> None:
    seen = NearDuplicates()
    assert seen.add(talk("one", "Oh, I see.", "Not at all.")) is None
    assert seen.add(talk("two", "Oh, I see.", "Not at all.")) is None


def test_tags_case_and_punctuation_do_not_count() -> None:
    seen = NearDuplicates()
    seen.add(talk("one", "We paint it [sighs] on Monday, then."))
    assert seen.add(talk("two", "we paint it on Monday then!")) is not None


def test_a_rewriting_replaces_its_draft() -> None:
    seen = NearDuplicates()
    assert seen.add(staircase()) is None
    assert seen.add(staircase()) is None
    assert len(seen) == 1
    assert seen.add(dataclasses.replace(fence(), scenario=STAIRCASE.id)) is None
    assert seen.add(dataclasses.replace(staircase(), scenario="other")) is None
    assert STAIRCASE.id in seen


def test_what_is_refused_is_not_taken_in() -> None:
    seen = NearDuplicates()
    seen.add(numbered("one", 1, 2, 3))
    assert seen.add(numbered("two", 1, 2, 3, 4)) is not None
    assert "two" not in seen
    seen.discard("one")
    seen.discard("never there")
    assert seen.add(numbered("two", 1, 2, 3, 4)) is None


def test_the_index_agrees_with_comparing_all_pairs() -> None:
    """Brute force over 60 texts, half of them changed copies of others."""
    rng = np.random.default_rng(5)
    texts: list[list[str]] = []
    for n in range(60):
        like = texts[int(rng.integers(len(texts)))] if n % 2 else None
        texts.append(random_talk(f"t{n}", rng, like))

    def runs(words: list[str]) -> set[tuple[str, ...]]:
        return {tuple(words[n : n + SHINGLE_WORDS]) for n in range(len(words) - SHINGLE_WORDS + 1)}

    seen = NearDuplicates()
    kept: list[set[tuple[str, ...]]] = []
    refused = 0
    for n, words in enumerate(texts):
        mine = runs(words)
        expected = any(len(mine & other) / len(mine | other) > 0.5 for other in kept)
        violation = seen.add(talk(f"t{n}", " ".join(words)))
        assert (violation is not None and violation.code == NEAR_DUPLICATE) == expected
        refused += expected
        if not expected:
            kept.append(mine)
    assert 5 < refused < 30


@pytest.mark.parametrize(
    ("shared", "found"), [(193, False), (198, False), (199, True), (203, True)]
)
def test_half_of_the_runs_may_be_shared(shared: int, found: bool) -> None:
    """Two texts of 297 runs with ``shared`` in common: the index is shared / (594 - shared), 0.5 at 198."""
    seen = NearDuplicates()
    one = [f"one{n}" for n in range(300)]
    same = shared + SHINGLE_WORDS - 1
    two = one[:same] + [f"two{n}" for n in range(300 - same)]
    assert seen.add(talk("one", " ".join(one))) is None
    assert (seen.add(talk("two", " ".join(two))) is not None) == found


def write(path: Path, *values: object) -> Path:
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    return path


def test_scenarios_beside_inside_and_missing(tmp_path: Path) -> None:
    plan = tmp_path / "scenarios.jsonl"
    plan.write_text(to_lines([STAIRCASE]), encoding="utf-8")
    inside = {**dialogue_to_json(fence()), "scenario": scenario_to_json(FENCE)}
    nowhere = {**dialogue_to_json(fence()), "scenario": "x", "timeline": []}
    file = write(tmp_path / "d.jsonl", dialogue_to_json(staircase()), inside, {"dialogue": nowhere})
    report = lint(read_records(file), load_bank(), read_scenarios(plan))
    assert report.dialogues == 3
    assert {found.line for found in report.violations} == {3}
    assert report.faulty == 1
    assert report.counts["D102-scenario"] == 1


@pytest.mark.parametrize("indent", [None, 2])
def test_a_list_and_a_single_object_are_read_too(tmp_path: Path, indent: int | None) -> None:
    values = [dialogue_to_json(staircase()), dialogue_to_json(fence())]
    file = tmp_path / "d.json"
    file.write_text(json.dumps(values, indent=indent), encoding="utf-8")
    assert [n for n, _ in read_records(file)] == [1, 2]
    file.write_text(json.dumps(values[0], indent=indent), encoding="utf-8")
    assert [value for _, value in read_records(file)] == [values[0]]


def test_line_separators_inside_strings_are_no_line_ends(tmp_path: Path) -> None:
    file = tmp_path / "d.jsonl"
    value = json.dumps({"a": "x\u2028y"}, ensure_ascii=False)
    file.write_text(f"\ufeff{value}\n\n{value}\n", encoding="utf-8")
    assert [n for n, _ in read_records(file)] == [1, 3]


def test_every_line_of_a_bad_file_is_told(tmp_path: Path) -> None:
    file = tmp_path / "d.jsonl"
    file.write_text('{"a": 1\n3\n{"scenario": "s"}\n' + "[" * 100_000 + "\n", encoding="utf-8")
    report = lint(read_records(file), load_bank())
    assert report.counts == {"D100-unreadable": 4}
    assert report.violations[0].violation.message.startswith("Not JSON")
    assert "wanted an object" in report.violations[1].violation.message


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No such file or directory; wanted a file of dialogues"):
        read_records(tmp_path / "none.jsonl")
    (tmp_path / "latin").write_bytes(b"\xe4\xff")
    with pytest.raises(DataError, match="byte 0 is not UTF-8"):
        read_records(tmp_path / "latin")
    (tmp_path / "list").write_text("[1, ", encoding="utf-8")
    with pytest.raises(DataError, match="not JSON"):
        read_records(tmp_path / "list")
    (tmp_path / "plan").write_text('{"id": 1}\n{"id\n', encoding="utf-8")
    with pytest.raises(DataError, match="plan:1: not a scenario"):
        read_scenarios(tmp_path / "plan")
