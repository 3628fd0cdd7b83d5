"""The phrasebook's data: nothing undefined, nothing dead, and each split with words of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from earwitness.errors import DataError
from earwitness.scenes.bank import Bank, load_bank
from earwitness.scenes.bank_names import Namer
from earwitness.scenes.phrasebook.grammar import (
    PARTS,
    Book,
    Variant,
    load_phrasebook,
    parse,
    tidy,
)
from earwitness.scenes.phrasebook.nouns import (
    Noun,
    facet,
    is_plural,
    known,
    lower_first,
    sound_words,
    the,
    title_kind,
)
from earwitness.scenes.phrasebook.talk import ACTS
from earwitness.scenes.rules.conduct import breaks_in_words
from earwitness.scenes.rules.reading import Line
from earwitness.scenes.rules.vocabulary import vocabulary_of

SPLIT_PARTS = ("behavioral", "verbal", "pivot")
FILLED = "f g the_f side topic title theme who when span num sound that the bare kin s s! s... again pair"
VALUES = {name: Noun(f"xyz{n}") for n, name in enumerate(FILLED.split())} | {"cut": "[gasps]"}
ALLOWED = {
    "talk": {"f", "g", "the_f", "side", "topic", "title", "theme"},
    "roles": set(),
    "topics": {"pair", "title", "theme", "f", "g"},
    "behavioral": {"s", "s!", "s...", "cut"},
    "verbal": {"sound", "that", "the", "bare", "again"},
    "pivot": {"sound", "that", "the", "bare", "kin"},
}


@pytest.fixture(scope="module")
def bank() -> Bank:
    return load_bank()


@pytest.fixture(scope="module")
def book() -> Book:
    return load_phrasebook()


def texts(variant: Variant) -> Iterator[str]:
    for pattern in (variant.said, variant.answer):
        if pattern is not None:
            yield from pattern.expansions(VALUES)


def test_every_slot_is_filled_by_something(book: Book) -> None:
    for key, variants in book.lists.items():
        known_slots = ALLOWED[key.split(".")[0]] | set(book.pools)
        for variant in variants:
            used = variant.said.slots | (variant.answer.slots if variant.answer else set())
            assert used <= known_slots, (key, variant.said.text)


def test_no_list_is_dead_and_none_is_missing(bank: Bank, book: Book) -> None:
    wanted = {f"talk.{name}" for names in ACTS.values() for name in names}
    wanted -= {"talk.claim", "talk.reason"}
    wanted |= {f"talk.{n}_{s}" for n in ("claim", "reason") for s in ("keen", "wary", "any")}
    wanted |= {f"talk.open_{kind}" for kind in ("phrase", "line", "question", "ask")}
    wanted |= {f"talk.anchor_{place}" for place in ("indoor", "outdoor")}
    asked = ("opinion", "experience", "choice", "when")
    wanted |= {f"talk.{part}_{kind}" for part in ("ask", "answer") for kind in asked}
    wanted |= {f"talk.to_{act}" for act in ACTS if act not in ("claim", "side")}
    wanted |= {"talk.to_claim_agree", "talk.to_claim_doubt", "talk.hook", "talk.greet"}
    wanted |= {"talk.callback", "talk.close", "talk.close_last", "talk.bridge", "talk.linker"}
    wanted |= {f"roles.{pair.id}" for pair in bank.roles}
    wanted |= {f"roles.{pair.closeness}" for pair in bank.roles}
    wanted |= {f"topics.{kind}" for kind in ("phrase", "line", "question", "bare", "new_title")}
    wanted |= {
        f"{register.reaction}.{register.id}"
        for register in bank.registers
        if register.reaction != "pivot"
    }
    wanted |= {"pivot.reply", "pivot.linker", "pivot.asker"}
    for register in bank.registers_of("pivot"):
        key = f"pivot.{register.id}"
        sides = f"{key}.turn_a" in book.lists
        names = ("turn_a", "turn_b", "reply_a", "reply_b", "qa_b") if sides else ("turn", "qa")
        wanted |= {f"{key}.{name}" for name in ("open", "end", *names)}
    assert set(book.lists) == wanted
    used_pools = {slot for v in book.lists.values() for x in v for slot in x.said.slots}
    assert {name for name in book.pools if not name.startswith("kin.")} <= used_pools
    assert {name for name in book.pools if name.startswith("kin.")} == {
        f"kin.{kind}" for kind in (*book.language["kinds"], "default")
    }


def test_every_register_has_twelve_variants_for_each_split(bank: Bank, book: Book) -> None:
    for register in bank.registers:
        key = f"{register.reaction}.{register.id}"
        key += ".open" if register.reaction == "pivot" else ""
        for group in range(3):
            assert len(book.variants(key, group)) >= 12, (key, group)


def test_realisations_of_a_register_are_disjoint_between_splits(book: Book) -> None:
    for key, variants in book.lists.items():
        if key.split(".")[0] not in SPLIT_PARTS:
            continue
        seen: dict[str, int] = {}
        for variant in variants:
            assert variant.group in (0, 1, 2)
            for text in texts(variant):
                assert seen.setdefault(text, variant.group) == variant.group, (key, text)
    pools = {name: words for name, words in book.pools.items() if name.startswith("kin.")}
    assert all(len(set(words)) == len(words) >= 6 for words in pools.values())


def test_nothing_in_the_book_breaks_a_rule_of_style(bank: Bank, book: Book) -> None:
    vocabulary, namer = vocabulary_of(bank), Namer(bank)
    tolerated = {"repairs", "not_sound_talk"}
    for key, variants in book.lists.items():
        part = key.split(".")[0]
        for variant in variants:
            for text in texts(variant):
                line = Line(0, "A", text, bank, vocabulary)
                assert [hit for hit in line.hits if hit.kind not in tolerated] == [], (key, text)
                assert namer.named_in(line.plain) == (), (key, text)
                assert not re.search(r"[;()*—–]|\b[AB]:", line.plain), (key, text)
                if part in ("talk", "roles", "pivot") and text[0].isupper():
                    for start, end in line.sentences:
                        one = Line(0, "A", line.plain[start:end], bank, vocabulary)
                        assert breaks_in_words(one, vocabulary.harmless_repeats) is None, text


def test_what_disturbs_stands_inside_a_phrase(book: Book, bank: Bank) -> None:
    for register in bank.registers_of("behavioral"):
        for variant in book.variants(f"behavioral.{register.id}"):
            text = variant.said.text
            if register.tags:
                before, mark, after = text.partition("{cut}")
                assert mark
                assert before.strip()[-1].isalpha()
                assert after.strip()[0].isalpha()
                assert "..." not in text
            else:
                assert "..." in text
            assert variant.answer is not None or re.search(r"\{s(!|\.\.\.)?\}$", text)


def test_required_names_stand_in_every_variant(book: Book, bank: Bank) -> None:
    for register in bank.registers:
        if register.naming != "required":
            continue
        key = f"{register.reaction}.{register.id}"
        for variant in book.variants(key + (".open" if register.reaction == "pivot" else "")):
            assert variant.said.slots & {"sound", "that", "the", "bare"}, variant.said.text


def test_every_sound_is_called_by_what_names_it(bank: Bank, book: Book) -> None:
    namer = Namer(bank)
    for sound in bank.sounds:
        for noun in sound_words(sound, namer, book.language).values().values():
            assert namer.mentions(noun.text, sound.id, tiers=("name",)), noun
    kettle = sound_words(bank.sound("kettle_whistle"), namer, book.language)
    assert (kettle.sound.text, kettle.that.text) == ("a kettle whistling", "that kettle")
    plates = sound_words(bank.sound("plates_stack"), namer, book.language)
    assert plates.that == Noun("those plates", plural=True)
    rain = sound_words(bank.sound("rain_burst"), namer, book.language, {"umbrella_open"})
    assert rain.that.text == "that downpour"


@pytest.mark.parametrize(
    ("phrase", "plural"),
    [
        ("holidays", True),
        ("a jar of plums", False),
        ("sweets from childhood", True),
        ("rising prices", True),
        ("reading maps", False),
        ("being ill as a child", False),
        ("two witnesses", True),
        ("trust", False),
        ("loneliness", False),
        ("children at the next table", True),
        ("caffeine and sleep", True),
        ("", False),
    ],
)
def test_number_of_noun_phrases(book: Book, phrase: str, plural: bool) -> None:
    assert is_plural(phrase, book.language) is plural


def test_articles_follow_what_was_said(book: Book) -> None:
    language = book.language
    assert facet("first payslip", language).text == "the first payslip"
    assert facet("first kisses", language).text == "first kisses"
    assert known(Noun("an old argument"), language).text == "the old argument"
    assert the(Noun("holidays", plural=True), language) == Noun("the holidays", plural=True)
    assert the(Noun("measuring by eye"), language).text == "measuring by eye"
    assert the(Noun("mother's notes"), language).text == "mother's notes"
    assert lower_first("I'd say so.", language) == "I'd say so."
    assert lower_first("That depends.", language) == "that depends."


@pytest.mark.parametrize(
    ("title", "kind"),
    [
        ("Keeping a starter alive", "phrase"),
        ("Baking calms the nerves", "line"),
        ("Nothing to hide, they say", "line"),
        ("A loaf like a brick", "line"),
        ("Does my small step matter", "question"),
        ("How much is enough", "question"),
    ],
)
def test_titles_are_told_apart(book: Book, title: str, kind: str) -> None:
    assert title_kind(title, book.language) == kind


def test_patterns_expand_to_all_their_forms() -> None:
    pattern = parse("(Yes|No), {f} {f~is/are} (fine|gone).", "here")
    forms = set(pattern.expansions({"f": Noun("bikes", plural=True)}))
    assert forms == {
        f"{word}, bikes are {end}." for word in ("Yes", "No") for end in ("fine", "gone")
    }
    assert tidy("so  it is . and why ? well... it is.") == "So it is. And why? Well... it is."


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("(a|b", "brackets that do not pair"),
        ("a {b", "brackets that do not pair"),
        ("(a {b|c} d)", "brackets that do not pair"),
        ("{}", "a slot {}"),
        ("{f~is}", "a slot {f~is}"),
    ],
)
def test_patterns_that_cannot_be_read_are_refused(text: str, found: str) -> None:
    with pytest.raises(DataError, match=re.escape(found)):
        parse(text, "here")


def copied(tmp_path: Path, **changed: str) -> Path:
    source = load_phrasebook().folder
    for part in PARTS:
        text = changed.get(part, (source / f"{part}.yaml").read_text(encoding="utf-8"))
        (tmp_path / f"{part}.yaml").write_text(text, encoding="utf-8")
    return tmp_path


def test_a_folder_of_ones_own_is_read(tmp_path: Path) -> None:
    own = load_phrasebook(copied(tmp_path))
    assert own.lists.keys() == load_phrasebook().lists.keys()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("- no\n", "no lists of sentences"),
        ("x: [", "is not YAML"),
        ("x: [no]\n", "False"),
        ('x: ["a.", "a."]\n', "the same sentence twice"),
    ],
)
def test_files_that_cannot_be_used_are_named(tmp_path: Path, text: str, found: str) -> None:
    with pytest.raises(DataError, match=found):
        load_phrasebook(copied(tmp_path, verbal=text))


def test_a_missing_file_and_a_missing_folder_are_named(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    (folder / "pivot.yaml").unlink()
    with pytest.raises(DataError, match=r"pivot\.yaml: no such file"):
        load_phrasebook(folder)
    with pytest.raises(DataError, match="no such folder"):
        load_phrasebook(tmp_path / "nowhere")


def test_too_few_variants_for_three_splits_are_refused(tmp_path: Path) -> None:
    book = load_phrasebook(copied(tmp_path, verbal='label_and_return: ["{sound}."]\n'))
    assert len(book.variants("verbal.label_and_return", 0)) == 1
    with pytest.raises(DataError, match="too few sentences"):
        book.variants("verbal.label_and_return", 1)
