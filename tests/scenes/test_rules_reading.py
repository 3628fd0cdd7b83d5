"""Words, sentences, phrases, vocabularies; and that checking never raises."""

from __future__ import annotations

import dataclasses
import shutil
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earwitness.errors import DataError
from earwitness.scenes.bank import Bank, BankError, load_bank
from earwitness.scenes.bank_records import RulesFile
from earwitness.scenes.dialogue import (
    Checker,
    Dialogue,
    EventMark,
    Utterance,
    check,
    dialogue_from_json,
    load_vocabulary,
    vocabulary_of,
)
from earwitness.scenes.rules import vocabulary as vocabulary_module
from earwitness.scenes.rules.conduct import repeats
from earwitness.scenes.rules.sentences import PhraseIndex, sentences_in, words_in
from earwitness.scenes.scenario import PlannedEvent, Scenario
from tests.scenes.dialogue_examples import FENCE, STAIRCASE, fence, staircase

GERMAN = Path(__file__).parent / "german_bank"
ABBREVIATIONS = frozenset({"mr", "e.g", "p.m"})
PIECES = st.lists(
    st.sampled_from(
        ["dog", "bicycle bell", "umbrella", "no", "I mean", "wait", "hear that", "Mr", "J", "[sighs]", "[gasps]",
         "[pauses]", "[", "]", "(", "*", ".", "!", "?", "...", "…", "—", "-", ",", ":", "A:", "\n", "İ", "今", "😀",
         "\ud800", "’s", "uh", "#", "`"]
    ),
    max_size=25,
).map(" ".join)  # fmt: skip
EVENTS = st.sampled_from(["e1", "e2", "e3", "e9", ""])
PARTS = st.one_of(
    st.builds(lambda s, t: {"speaker": s, "text": t}, st.sampled_from(["A", "B", "C", ""]), PIECES | st.text()),
    st.builds(lambda e: {"event": e}, EVENTS),
)  # fmt: skip


@cache
def shipped() -> Bank:
    return load_bank()


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("I... I don't know. Yes!", ["I... I don't know.", "Yes!"]),
        ("Well… Maybe. “Really?” Yes", ["Well… Maybe.", "“Really?”", "Yes"]),
        ("Ask Mr. Bell at 5 p.m. today. Or J. Bell.", ["Ask Mr. Bell at 5 p.m. today.", "Or J. Bell."]),
        ("So do I. You?", ["So do I.", "You?"]),
        ("It costs 3.50 now", ["It costs 3.50 now"]),
        ("No way?! Yes.", ["No way?!", "Yes."]),
        ("今日は。はい！", ["今日は。", "はい！"]),
        ("  ", []),
        ("", []),
        ("...", ["..."]),
    ],
)  # fmt: skip
def test_sentences(text: str, sentences: list[str]) -> None:
    assert [text[start:end] for start, end in sentences_in(text, ABBREVIATIONS)] == sentences


@settings(derandomize=True, deadline=None, max_examples=200)
@given(PIECES | st.text())
def test_words_and_sentences_are_where_they_say(text: str) -> None:
    even = text.replace("’", "'")
    assert all(even[w.start : w.end].lower() == w.text for w in words_in(text))
    spans = sentences_in(text, ABBREVIATIONS)
    assert all(one[1] <= two[0] for one, two in pairwise(spans))
    covered = "".join(text[start:end] for start, end in spans)
    assert "".join(covered.split()) == "".join(text.split())


@settings(derandomize=True, deadline=None, max_examples=200)
@given(
    st.lists(st.sampled_from("abc"), max_size=8),
    st.lists(st.sampled_from(["a", "a b", "b*", "c a b", "c b*"])),
)
def test_phrases_are_found_as_by_trying_every_place(words: list[str], entries: list[str]) -> None:
    def fits(step: str, word: str) -> bool:
        return word.startswith(step[:-1]) if step.endswith("*") else word == step

    said = [word * (1 + n % 2) for n, word in enumerate(words)]
    expected = sorted(
        (entry, at)
        for entry in entries
        for at in range(len(said) - len(entry.split()) + 1)
        if all(fits(s, w) for s, w in zip(entry.split(), said[at:], strict=False))
    )
    text = " ".join(said)
    found = PhraseIndex({"x": entries}).hits(words_in(text))
    starts = {word.start: n for n, word in enumerate(words_in(text))}
    assert sorted((hit.entry, starts[hit.start]) for hit in found) == expected


def test_phrases_end_with_the_sentence() -> None:
    """ "hear that. I" is not "hear that I", which would mean something else."""
    timeline = (Utterance("A", "Did you hear that? I did."),)
    found = check(Dialogue(STAIRCASE.id, "", timeline), STAIRCASE, load_bank())
    assert "D507-sound-talk" in {violation.code for violation in found}


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("i told her i told her", "i told her"),
        ("the the", "the"),
        ("really really good", None),
        ("it had had enough", None),
        ("the sale i mean the sale", None),
        ("in the hall or in the yard", None),
        ("a b x y z w a b", None),
        ("", None),
    ],
)
def test_restarts(text: str, phrase: str | None) -> None:
    harmless = frozenset({"really", "had"})
    assert repeats(text.split(), harmless) == phrase


@settings(derandomize=True, deadline=None, max_examples=150)
@given(
    st.lists(PARTS, max_size=18),
    st.text(max_size=40) | PIECES,
    st.sampled_from([STAIRCASE, FENCE, None]),
)
def test_checking_never_raises_and_is_deterministic(
    timeline: list[Any], topic: str, scenario: Scenario | None
) -> None:
    dialogue = dialogue_from_json({"scenario": STAIRCASE.id, "topic": topic, "timeline": timeline})
    bank = shipped()
    found = check(dialogue, scenario, bank)
    assert found == check(dialogue, scenario, bank)
    assert all(v.code and v.message and v.where for v in found)


def test_a_plan_from_elsewhere_does_not_raise() -> None:
    events = (
        PlannedEvent("e1", "nothing_known", "pivot", None, "early"),
        PlannedEvent("e2", "dog_bark", "behavioral", None, "middle"),
        PlannedEvent("e3", "dog_bark", "verbal", "drop_to_a_whisper", "late"),
    )
    plan = dataclasses.replace(STAIRCASE, events=events)
    codes = {violation.code for violation in check(staircase(), plan, load_bank())}
    assert "D107-unknown-sound" in codes


@pytest.mark.parametrize(
    "text",
    [
        "a" * 100_000,
        "a. " * 40_000,
        "(" * 100_000,
        "[" * 100_000,
        "... " * 30_000,
        "-" * 100_000,
        "* " * 50_000,
    ],
)
def test_huge_texts_take_time_in_proportion(text: str) -> None:
    dialogue = Dialogue(STAIRCASE.id, text, (Utterance("A", text), *staircase().timeline))
    assert check(dialogue, STAIRCASE, shipped())


def test_order_of_parts_decides_nothing_else() -> None:
    """A dialogue of events alone, and one of nothing."""
    bank = load_bank()
    for timeline in ((), (EventMark("e1"), EventMark("e2"), EventMark("e3"))):
        codes = [v.code for v in check(Dialogue(STAIRCASE.id, "", timeline), STAIRCASE, bank)]
        assert codes == sorted(codes)
        assert "D201-utterances" in codes


def test_words_of_languages() -> None:
    english = load_vocabulary("en-GB")
    assert english.missing == ()
    assert english.language == "en-GB"
    assert english.limits.max_words == 60
    other = load_vocabulary(
        "fi", RulesFile.model_validate({"fillers": ["niinku"], "limits": {"max_words": 40}})
    )
    assert other.lists["fillers"] == ("niinku",)
    assert "stock_phrases" in other.missing
    assert other.limits.max_words == 40
    assert load_vocabulary("limits").missing


def test_the_english_words_are_in_order() -> None:
    """No entry twice, all in lower case, and every exception contains what it is an exception to."""
    lists = load_vocabulary("en").lists
    for key, entries in lists.items():
        assert len(entries) == len(set(entries)), key
        assert all(entry == entry.lower() and "’" not in entry for entry in entries), key
    index = PhraseIndex({"talk": lists["sound_talk"]})
    idle = [entry for entry in lists["not_sound_talk"] if not index.hits(words_in(entry))]
    assert idle == []


def test_a_broken_language_file_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "qx.yaml").write_text("fillers: 3\n", encoding="utf-8")
    monkeypatch.setattr(vocabulary_module, "FOLDER", tmp_path)
    vocabulary_module.language_rules.cache_clear()
    with pytest.raises(DataError, match=r"qx\.yaml: not words for the rules"):
        load_vocabulary("qx")
    vocabulary_module.language_rules.cache_clear()


def test_a_bank_brings_words_and_limits_of_its_own(tmp_path: Path) -> None:
    plain = load_bank(GERMAN)
    folder = shutil.copytree(GERMAN, tmp_path / "bank")
    rules = "fillers: [äh, ähm]\nstock_phrases: [wo war ich]\nlimits: {min_utterances: 1, min_seconds: 0.5}\n"
    (folder / "rules.yaml").write_text(rules, encoding="utf-8")
    bank = load_bank(folder)
    assert bank.hash != plain.hash
    assert vocabulary_of(bank).lists["fillers"] == ("äh", "ähm")
    talk = Dialogue(
        "s", "zwei Freunde im Park", (Utterance("A", "Ähm, wo war ich?"), Utterance("B", "Hier."))
    )
    found = {violation.code for violation in check(talk, None, bank)}
    assert found == {"D102-scenario", "D307-filler", "D309-stock-phrase"}
    assert "D307-filler" not in {violation.code for violation in check(talk, None, plain)}


def test_rules_of_a_bank_are_read_like_its_other_parts(tmp_path: Path) -> None:
    folder = shutil.copytree(GERMAN, tmp_path / "bank")
    (folder / "rules.yaml").write_text("filler: [äh]\n", encoding="utf-8")
    with pytest.raises(BankError, match=r"rules.yaml: filler: the unknown key 'filler'.*fillers"):
        load_bank(folder)


def test_a_vocabulary_can_be_given() -> None:
    bank = load_bank()
    strict = load_vocabulary("en", RulesFile.model_validate({"fillers": ["clever"]}))
    codes = {v.code for v in check(staircase(), STAIRCASE, bank, vocabulary=strict)}
    assert codes == {"D307-filler"}
    assert Checker(bank, strict).check(fence(), FENCE) == ()
