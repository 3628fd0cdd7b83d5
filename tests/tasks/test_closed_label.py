"""The closed-label parser beside a table of replies read by people, and its properties."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from earwitness.clips.corpus import EMOTIONS
from earwitness.errors import DataError
from earwitness.runs.outcomes import OUTCOME_KINDS
from earwitness.tasks.closed_label import argmax, option_codes, parse_text, read_reply
from earwitness.tasks.label_lexicon import (
    build_lexicon,
    exact_key,
    load_lexicon,
    normalise,
    tokenise,
)

GOLDEN = yaml.safe_load(
    (Path(__file__).parents[1] / "golden" / "emotion_replies.yaml").read_text(encoding="utf-8")
)
ROWS = [
    pytest.param(row, id=f"{habit}-{number}")
    for habit, rows in GOLDEN.items()
    for number, row in enumerate(rows)
]
LEXICON = load_lexicon("emotion")
steady = settings(derandomize=True, deadline=None, max_examples=200)

FORMS = sorted({form for forms in LEXICON.forms.values() for form in forms})
GLUE = [
    *[
        "not",
        "no",
        "but",
        "and",
        "or",
        "Answer:",
        "Final answer:",
        "emotion",
        "is",
        "actually",
        "between",
    ],
    *[
        "I'd say",
        "might be",
        "a hint of",
        "can't determine",
        "As an AI",
        "rather than",
        "{",
        "}",
        "[",
        "]",
    ],
    *[
        '"',
        ":",
        ",",
        ".",
        "\n",
        "\n\n",
        "**",
        "<think>",
        "</think>",
        "```json",
        "0.7",
        "30%",
        "|",
        "(",
        ")",
    ],
    *[
        "不是",
        "而是",
        "unhappy",
        "fearless",
        "boredom",
        "voice",
        "the",
        "B)",
        "1.",
        "/",
        "-",
        '{"emotion":',
    ],
]
pieces = st.lists(st.sampled_from(FORMS) | st.sampled_from(GLUE) | st.text(max_size=6), max_size=14)
replies = pieces.map(" ".join) | st.text(max_size=120)


def mentions(text: str, label: str) -> bool:
    """Whether any word of a label stands in a text as a whole word; the plainest possible search."""
    words = f" {' '.join(tokenise(normalise(text).casefold()))} "
    known = {
        *LEXICON.forms[label],
        *(key for key, (_, value) in LEXICON.exact.items() if value == label),
    }
    return any(f" {' '.join(tokenise(normalise(form).casefold()))} " in words for form in known)


@pytest.mark.parametrize("row", ROWS)
def test_a_reply_is_read_as_a_careful_reader_reads_it(row):
    outcome = parse_text(row["text"], LEXICON)
    assert (outcome.label or outcome.kind) == row["is"], outcome
    if "native" in row:
        assert outcome.native == row["native"]


def test_the_table_covers_every_label_and_every_text_outcome():
    seen = {row["is"] for rows in GOLDEN.values() for row in rows}
    by_text = set(OUTCOME_KINDS) - {"answered", "blocked", "failed"}
    assert seen == set(EMOTIONS) | by_text
    assert sum(map(len, GOLDEN.values())) >= 150


@steady
@given(replies)
def test_it_never_raises_and_never_invents(text):
    outcome = parse_text(text, LEXICON)
    assert outcome.kind in OUTCOME_KINDS
    assert outcome.rule
    if outcome.label:
        assert mentions(text, outcome.label), outcome


@steady
@given(replies)
def test_the_same_text_has_the_same_outcome(text):
    assert parse_text(text, LEXICON) == parse_text(text, LEXICON)


@steady
@given(replies)
def test_reading_an_answer_again_changes_nothing(text):
    outcome = parse_text(text, LEXICON)
    if outcome.label:
        assert parse_text(outcome.label, LEXICON).label == outcome.label


@steady
@given(pieces.map(lambda parts: " ".join(part for part in parts if part.isascii())))
def test_case_and_outer_space_do_not_matter(text):
    if "\\" in text:  # an escape inside JSON means something else in another case
        return
    plain = parse_text(text, LEXICON)
    for other in (text.upper(), text.lower(), f"  {text}\n\n", f"\t{text} "):
        changed = parse_text(other, LEXICON)
        assert (changed.kind, changed.label) == (plain.kind, plain.label), other


@pytest.mark.parametrize("form", FORMS)
def test_every_word_alone_is_its_label(form):
    label = LEXICON.label_of(form)
    assert label in EMOTIONS
    for text in (form, form.upper() if form.isascii() else form, f"{form}.", f" {form}\n"):
        assert parse_text(text, LEXICON).label == label, text


@pytest.mark.parametrize("label", EMOTIONS)
@pytest.mark.parametrize(
    "wrap",
    ["**{}**", "*{}*", "_{}_", "`{}`", "# {}", "> {}", "- {}", '"{}"', "“{}”", "({})", "[{}]", "1. {}",
     "<label>{}</label>", "```\n{}\n```", "Answer: {}", "Emotion: **{}**", '{{"emotion": "{}"}}', '["{}"]',
     "The emotion is {}.", "Final answer: {}!", "<think>anger or fear?</think>{}"],
)  # fmt: skip
def test_wrapping_does_not_change_a_label(label, wrap):
    assert parse_text(wrap.format(label), LEXICON).label == label


@pytest.mark.parametrize("label", EMOTIONS)
@pytest.mark.parametrize(
    "denial",
    [
        "not {}",
        "It isn't {}.",
        "no {} at all",
        "without {}",
        "neither {} nor anything else",
        "不是{}",
        "nicht {}",
    ],
)
def test_a_denied_label_is_no_answer(label, denial):
    outcome = parse_text(denial.format(label), LEXICON)
    assert outcome.kind == "unmapped"
    assert outcome.rule == "only denied"


@pytest.mark.parametrize("first", EMOTIONS)
@pytest.mark.parametrize("second", EMOTIONS)
def test_two_labels_at_once(first, second):
    outcome = parse_text(f"{first} and {second}", LEXICON)
    if first == second:
        assert outcome.label == first
    else:
        assert outcome.kind == "ambiguous"
    assert parse_text(f"Not {first}. {second.title()}.", LEXICON).label == second


CODES = {"A": "anger", "B": "disgust", "C": "fear"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("B", "disgust"),
        ("b", "disgust"),
        ("(B)", "disgust"),
        ("**B**", "disgust"),
        ("B)", "disgust"),
        ("B) disgust", "disgust"),
        ("Answer: C", "fear"),
        ("The answer is (C).", "fear"),
        ("Option B", "disgust"),
        ('{"answer": "B"}', "disgust"),
        ("C\n\nThe voice trembles.", "fear"),
        ("A", "anger"),
        ("A sad voice", "sadness"),
        ("B) anger", "ambiguous"),
        ("D", "unmapped"),
        ("A, B", "ambiguous"),
    ],
)
def test_option_codes_of_the_prompt(text, wanted):
    outcome = parse_text(text, LEXICON, codes=CODES)
    assert (outcome.label or outcome.kind) == wanted, outcome


def test_without_codes_a_letter_or_number_means_nothing():
    assert parse_text("B", LEXICON).kind == "unmapped"
    assert parse_text("3", LEXICON).kind == "unmapped"


def test_numeric_codes_in_json():
    assert parse_text('{"answer": 2}', LEXICON, codes={"2": "fear"}).label == "fear"


def test_codes_are_found_in_the_prompt():
    assert option_codes("Pick:\n 1. anger\n 2. sad\n", LEXICON) == {"1": "anger", "2": "sadness"}
    assert option_codes("Pick one: anger, sad", LEXICON) == {}
    assert option_codes("a) listen well\nb) answer", LEXICON) == {}


@pytest.mark.parametrize(
    ("text", "explicit"),
    [
        ("Anger", True),
        ('{"emotion": "fear"}', True),
        ("Answer: fear. The voice", True),
        ("The emotion is fear", False),
        ("The speaker sounds angry and", False),
        ("<think>it may be anger", False),
    ],
)
def test_whether_a_cut_after_the_answer_could_change_it(text, explicit):
    assert read_reply(text, LEXICON).explicit is explicit


def test_numbers_by_label_are_kept():
    outcome = parse_text("anger: 0.7, fear: 0.2", LEXICON)
    assert outcome.scores == {"anger": 0.7, "fear": 0.2}
    assert outcome.rule == "largest number"


def test_a_number_outside_the_labels_can_win():
    outcome = parse_text('{"boredom": 0.8, "anger": 0.1}', LEXICON)
    assert (outcome.kind, outcome.native) == ("unmapped", "boredom")


def test_argmax_knows_ties_and_nothing():
    assert argmax({"a": 0.1 + 0.2, "b": 0.3}) == (None, "tie")
    assert argmax({"a": 0.0}) == (None, "nothing")
    assert argmax({"a": 0.2, "b": 0.3}) == ("b", "argmax")
    assert argmax({"a": 0.2, "b": 0.3}, cutoff=0.4) == (None, "nothing")


def test_the_last_final_answer_counts():
    assert parse_text("Final answer: anger\n\nFinal answer: fear", LEXICON).label == "fear"
    assert parse_text("Answer: anger\n\nAnswer: fear", LEXICON).kind == "ambiguous"


def test_a_label_in_a_clause_that_declines_is_no_answer():
    assert parse_text("I am unable to identify the anger in this clip.", LEXICON).kind == "refused"
    assert parse_text("I am unable to identify more, but it is anger.", LEXICON).label == "anger"


HOSTILE = ["anger ", "not angry ", "{", "[", '{"a":', '"', "! ", "emotion ! ", "<think>", "final ", "怒",
           "anger, ", "anger: 0.5, ", "1.", "{}", '{"emotion":"sad"}', "emotion is not x ", "*", "\n",
           "can't tell anger. ", "between anger and fear ", "9"]  # fmt: skip


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_megabyte_is_read_in_seconds(unit):
    text = unit * (1_000_000 // len(unit))
    begin = time.process_time()
    parse_text(text, LEXICON)
    # Half a second here; what grows with the square of the length takes hours.
    assert time.process_time() - begin < 10


def test_a_typical_reply_takes_milliseconds_at_most():
    texts = [row["text"] for rows in GOLDEN.values() for row in rows]
    begin = time.process_time()
    for text in texts:
        parse_text(text, LEXICON)
    assert (time.process_time() - begin) / len(texts) < 0.005


def test_any_closed_set_of_labels_can_be_read():
    reactions = build_lexicon(
        "reactions",
        "1",
        {
            "pivot": ["change of subject"],
            "verbal": ["remark"],
            "behavioral": [],
            "ambient": ["no reaction"],
        },
        outside=["laughter"],
    )
    assert parse_text("They react with a change of subject.", reactions).label == "pivot"
    assert parse_text("Not verbal but behavioral", reactions).label == "behavioral"
    assert (
        parse_text("pivot, verbal, behavioral or ambient? Answer: ambient", reactions).label
        == "ambient"
    )
    assert parse_text("laughter", reactions).kind == "unmapped"


def test_a_word_for_two_labels_is_refused():
    with pytest.raises(DataError, match="'x' stands for both one and two; wanted one label a word"):
        build_lexicon("bad", "1", {"one": ["x"], "two": ["x"]})


def test_unknown_lexicons_are_refused(tmp_path):
    with pytest.raises(DataError, match="there is no packaged lexicon of that name"):
        load_lexicon("moods")
    with pytest.raises(DataError, match="no such lexicon file"):
        load_lexicon(str(tmp_path / "none.yaml"))
    bad = tmp_path / "bad.yaml"
    bad.write_text("id: x\n", encoding="utf-8")
    with pytest.raises(DataError, match="has no version; wanted id, version and labels"):
        load_lexicon(str(bad))


def test_a_lexicon_of_ones_own_needs_no_python(tmp_path):
    own = tmp_path / "moods.yaml"
    own.write_text(
        'id: moods\nversion: "1"\nlabels: {up: [cheery], down: [gloomy]}\n', encoding="utf-8"
    )
    assert parse_text("rather gloomy", load_lexicon(str(own))).label == "down"


def test_exact_keys_forget_case_and_signs():
    assert exact_key(" **An-GRY!** ") == "an gry"
