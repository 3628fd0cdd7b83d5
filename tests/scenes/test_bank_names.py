"""Who names a sound: inflections, phrases, other languages, and what another sound explains."""

from __future__ import annotations

from pathlib import Path

import pytest

from earwitness.scenes.bank import BankError, load_bank
from earwitness.scenes.bank_names import Namer, spoken_forms, words_of

GERMAN = Path(__file__).parent / "german_bank"


@pytest.fixture(scope="module")
def namer() -> Namer:
    return Namer(load_bank())


@pytest.mark.parametrize(
    ("word", "forms"),
    [
        ("bark", {"bark", "barks", "barked", "barking"}),
        ("slam", {"slam", "slams", "slammed", "slamming"}),
        ("crackle", {"crackle", "crackles", "crackled", "crackling"}),
        ("hiss", {"hiss", "hisses", "hissed", "hissing"}),
        ("cry", {"cry", "cries", "cried", "crying"}),
        ("honking", {"honking"}),
        ("wolves", {"wolves"}),
        ("tv", {"tv"}),
    ],
)
def test_english_words_are_found_in_their_regular_forms(word: str, forms: set[str]) -> None:
    assert set(spoken_forms(word, "en")) == forms
    assert spoken_forms(word, "de") == (word,)


@pytest.mark.parametrize(
    ("text", "sound", "entries"),
    [
        ("Whose DOG is that?", "dog_bark", ["dog"]),
        ("He barked at us.", "dog_bark", ["bark"]),
        ("The dog's back.", "dog_bark", ["dog"]),
        ("The dog’s back.", "dog_bark", ["dog"]),
        ("A hot-dog stand", "dog_bark", ["dog"]),
        ("A dogma, embarking", "dog_bark", []),
        ("That car-horn again", "car_horn", ["car horn"]),
        ("Car horns again", "car_horn", ["car horn"]),
        ("It is four o'clock.", "wall_clock_chime", []),
        ("", "dog_bark", []),
    ],
)
def test_whole_words_count_whatever_case_and_hyphen(
    namer: Namer, text: str, sound: str, entries: list[str]
) -> None:
    assert [m.entry for m in namer.mentions(text, sound)] == entries


def test_a_mention_says_where_it_is(namer: Namer) -> None:
    text = "Listen, the dog."
    (mention,) = namer.mentions(text, "dog_bark")
    assert text[mention.start : mention.end] == "dog"
    assert (mention.sound, mention.tier) == ("dog_bark", "name")


def test_weak_words_count_only_when_asked_for(namer: Namer) -> None:
    assert namer.mentions("My phone.", "phone_ringtone") == ()
    assert [m.tier for m in namer.mentions("My phone.", "phone_ringtone", tiers=("weak",))] == [
        "weak"
    ]


def test_hints_give_a_sound_away_without_identifying_it(namer: Namer) -> None:
    assert [m.tier for m in namer.mentions("Some bird.", "crow_caw")] == ["hint"]
    assert namer.mentions("Some bird.", "crow_caw", tiers=("name",)) == ()


def test_a_word_inside_the_name_of_another_sound_is_about_that_one(namer: Namer) -> None:
    text = "The church bells are early."
    assert namer.mentions(text, "bicycle_bell")
    assert namer.mentions(text, "bicycle_bell", explained_by=["church_bell"]) == ()
    both = "The church bells, and then a bell."
    assert len(namer.mentions(both, "bicycle_bell", explained_by=["church_bell"])) == 0, (
        "church_bell has the hint bell"
    )
    assert namer.mentions("A bicycle bell!", "bicycle_bell", explained_by=["bicycle_bell"])


def test_every_sound_in_a_text(namer: Namer) -> None:
    found = namer.named_in("A rooster and a donkey.", tiers=("name",))
    assert [m.sound for m in found] == ["rooster_crow", "donkey_bray"]


def test_stars_serve_languages_without_a_rule() -> None:
    namer = Namer(load_bank(GERMAN))
    assert [m.entry for m in namer.mentions("Wessen Schlüsselbund?", "schluessel")] == [
        "schlüssel*"
    ]
    assert namer.mentions("Ein Busch", "bus") == ()
    assert [m.sound for m in namer.named_in("Die Toaster pfeifen")] == ["toaster"]


def test_an_unknown_sound_is_an_error(namer: Namer) -> None:
    with pytest.raises(BankError, match="no sound 'dog'"):
        namer.mentions("x", "dog")


def test_words_keep_their_places() -> None:
    assert words_of("Clip-clop!") == (("clip", 0, 4), ("clop", 5, 9))


GRAMMAR = {
    *(
        "a",
        "an",
        "the",
        "and",
        "or",
        "but",
        "if",
        "of",
        "to",
        "in",
        "on",
        "at",
        "by",
        "for",
        "with",
    ),
    *("from", "as", "is", "are", "was", "were", "be", "been", "am", "do", "does", "did", "have"),
    *("has", "had", "can", "could", "will", "would", "shall", "should", "may", "might", "must"),
    *("i", "you", "he", "she", "it", "we", "they", "this", "that", "what", "who", "how", "when"),
    *("where", "why", "not", "no", "yes", "so", "then", "too", "just", "even", "still", "only"),
    *("here", "there", "now", "well", "oh", "like"),
}


def test_no_word_of_the_bank_that_ships_is_one_of_grammar() -> None:
    """Right after a sound nobody could open a sentence with *can* or *well* without giving it away."""
    lists = [(s.id, w) for s in load_bank().sounds for w in (*s.names, *s.hints, *s.weak)]
    assert [(sound, word) for sound, word in lists if word.casefold() in GRAMMAR] == []
