"""Scripts whose words do not tell the emotion: lexicon, checks, phrasebook, loop."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from earwitness.clips.corpus import EMOTIONS
from earwitness.clips.scripts import (
    ATTEMPTS,
    SCRIPTS,
    OfflineWriter,
    ScriptLoop,
    make_scripts,
    read_scripts,
)
from earwitness.clips.scripts_checks import Limits, ScriptIndex, check_script, sentences_of
from earwitness.clips.scripts_lexicon import FOLDER, load_lexicon
from earwitness.clips.scripts_offline import load_phrasebook
from earwitness.errors import DataError, UsageError

LEXICON = load_lexicon("en")
ANY_LENGTH = Limits(1, 1000, 1)


def codes(text: str, language: str = "en") -> list[str]:
    found = check_script(text, load_lexicon(language), ANY_LENGTH)
    return [fault.code.partition("-")[0] for fault in found]


@pytest.mark.parametrize(
    ("text", "side"),
    [
        ("I am happy.", "happiness"),
        ("She went happily home.", "happiness"),
        ("The happiest of all.", "happiness"),
        ("It was her unhappiness.", "sadness"),
        ("He sobbed.", "sadness"),
        ("They were sobbing.", "sadness"),
        ("You frightened me.", "fear"),
        ("It was frighteningly near.", "fear"),
        ("That is disgusting.", "disgust"),
        ("How surprising.", "surprise"),
        ("Angrily.", "anger"),
        ("I’m fed up with it.", "anger"),
        ("That makes me sick.", "disgust"),
        ("I can't believe it.", "surprise"),
        ("I don't care.", "neutral"),
        ("WORRIED", "fear"),
    ],
)
def test_emotion_words_are_found_in_every_form(text: str, side: str) -> None:
    found = [giveaway for giveaway in LEXICON.find(text) if giveaway.kind == "emotion"]
    assert [giveaway.side for giveaway in found] == [side]


@pytest.mark.parametrize(
    "text",
    [
        "He made the bed and sat on the mat.",
        "The shade moved over the saddle.",
        "Good morning, the parcel is here.",
        "We like it where it is.",
        "Madam, the ladder.",
        "A glass of water, an hour late.",
        "The lover of maps.",  # "lover" is of "love"
    ],
)
def test_words_that_only_look_like_it_are_left_alone(text: str) -> None:
    found = LEXICON.find(text)
    if "lover" in text:
        assert [giveaway.side for giveaway in found] == ["happiness"]
    else:
        assert found == ()


def test_negation_takes_nothing_back_and_turns_harmless_words() -> None:
    named = check_script("I am not really angry.", LEXICON, ANY_LENGTH)
    assert [fault.message for fault in named] == [
        '"angry" gives anger away, also after "not"; leave it out.'
    ]
    assert codes("It did not work.") == ["S102"]
    assert codes("It has never worked.") == ["S102"]
    assert codes("It worked.") == []
    # Not across a comma, and not from far away.
    assert codes("No, we work there.") == []
    assert codes("I did not go to the office where they work.") == []


def test_valence_interjections_and_marks() -> None:
    assert codes("That was a terrible day.") == ["S102"]
    assert codes("Oh no, the bus.") == ["S103"]
    assert codes("The bus!") == ["S203"]
    assert codes("The bus... it left.") == ["S203"]
    assert codes("It was NOT here.") == ["S203"]
    assert codes("(waves) The bus.") == ["S203"]
    assert codes("It left at 5.") == ["S204"]
    assert codes("It left \N{GRINNING FACE}.") == ["S203"]
    assert codes("I watched TV, and you did too.") == []


def test_length_and_sentences_have_bounds() -> None:
    found = check_script("It is here.", LEXICON)
    assert [str(fault) for fault in found] == [
        "S201-length: It has 3 words; wanted 45 to 85.",
        "S202-sentences: It has 1 sentence; wanted at least 3.",
    ]
    assert sentences_of("One. Two? Three") == ("One.", "Two?", "Three")


def test_german_needs_no_python() -> None:
    assert codes("Ich bin so glücklich.", "de") == ["S101"]
    assert codes("Er war wütend und fürchtete sich.", "de") == ["S101", "S101"]
    assert codes("Das hat nicht funktioniert, es gefällt mir nicht.", "de") == ["S102"]
    assert codes("Guten Morgen, das Paket steht im Flur.", "de") == []


def test_every_lexicon_knows_all_seven() -> None:
    for path in FOLDER.glob("*.yaml"):
        lexicon = load_lexicon(path)
        text = path.read_text(encoding="utf-8")
        assert all(f"\n  {label}:" in text for label in EMOTIONS)
        assert lexicon.language == path.stem


def test_near_duplicates_share_sentences_or_runs_of_words() -> None:
    index = ScriptIndex()
    first = "The parcel was by the door. I took it up. It was light. You were out."
    index.add("s1", first)
    assert "3 of its 4 sentences are also in script s1" in str(
        index.find("The parcel was by the door. I took it up. It was light. Nobody came at noon.")
    )
    near = "The parcel was by the door and I took it up, it was light, you were out."
    assert "nearly script s1" in str(index.find(near))
    assert index.find("A train left at noon with an empty seat in it.") is None


def test_the_phrasebook_gives_hundreds_of_different_scripts_that_keep_every_rule() -> None:
    book = load_phrasebook("en")
    loop = ScriptLoop(OfflineWriter(book, 3), LEXICON)
    written = asyncio.run(loop.run(300))
    assert len(written.scripts) == 300
    assert not written.empty
    assert written.drafts < 320
    assert len({script.text for script in written.scripts}) == 300
    assert {script.situation for script in written.scripts} == {s.id for s in book.situations}


def test_asking_for_more_keeps_what_is_there(tmp_path: Path) -> None:
    def make(folder: Path, number: int):
        writer = OfflineWriter(load_phrasebook("en"), 1)
        return asyncio.run(make_scripts(folder, number, writer, LEXICON))

    make(tmp_path / "a", 12)
    more = make(tmp_path / "a", 20)
    assert more.new == 8
    make(tmp_path / "b", 20)
    assert (tmp_path / "a" / SCRIPTS).read_bytes() == (tmp_path / "b" / SCRIPTS).read_bytes()
    with pytest.raises(UsageError, match="has 20 already"):
        make(tmp_path / "a", 5)


def test_what_is_turned_down_is_written_down_with_reasons(tmp_path: Path) -> None:
    class Wordy:
        name = "wordy"

        async def write(self, tasks, on_done=None):
            from earwitness.clips.scripts import Draft

            return [Draft("I am happy. I am sad. I am here.") for _ in tasks]

        async def aclose(self):
            pass

    written = asyncio.run(make_scripts(tmp_path, 2, Wordy(), LEXICON, max_attempts=2))
    assert written.scripts == ()
    assert written.empty == ("s0001", "s0002")
    lines = [json.loads(line) for line in (tmp_path / ATTEMPTS).read_text().splitlines()]
    assert [(line["id"], line["attempt"]) for line in lines] == [
        ("s0001", 1), ("s0002", 1), ("s0001", 2), ("s0002", 2),
    ]  # fmt: skip
    assert [reason["code"] for reason in lines[0]["reasons"]] == [
        "S101-emotion", "S101-emotion", "S201-length",
    ]  # fmt: skip
    # Replayed, nothing is noted twice.
    asyncio.run(make_scripts(tmp_path, 2, Wordy(), LEXICON, max_attempts=2))
    assert len((tmp_path / ATTEMPTS).read_text().splitlines()) == 4


def test_bad_data_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("id: x\nversion: '1'\nlanguage: en\nemotions: [no]\n")
    with pytest.raises(DataError, match=r"x\.yaml: is no lexicon"):
        load_lexicon(tmp_path / "x.yaml")
    with pytest.raises(
        DataError, match="there is no lexicon of giveaways for it; wanted one of de, en"
    ):
        load_lexicon("fi")
    with pytest.raises(DataError, match="let a model write"):
        load_phrasebook("de")
    text = load_phrasebook.__wrapped__("en").model_dump_json()
    broken = json.loads(text)
    broken["situations"][0]["turn"] = ["Look at the {nothing}."]
    (tmp_path / "y.yaml").write_text(json.dumps(broken))
    with pytest.raises(DataError, match=r"slot \{nothing\} has no pool"):
        load_phrasebook(tmp_path / "y.yaml")
    (tmp_path / SCRIPTS).write_text('{"id": "s1", "words": "a"}\n')
    with pytest.raises(DataError, match=r"scripts\.jsonl:1: is no script"):
        read_scripts(tmp_path)
