"""``offline/reader``: what it takes a transcript for, what it counts, and how well it reads what it never saw."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from earwitness.errors import DataError, UsageError
from earwitness.models.embedders.hashed import HashedEmbedder
from earwitness.models.embedders.registry import open_embedder
from earwitness.scenes.bank import Bank, load_bank
from earwitness.scenes.corpus_card import reader_trial
from earwitness.scenes.reader.disturbance import disturbance, first_sentence
from earwitness.scenes.reader.fitting import fitted
from earwitness.scenes.reader.judge import OfflineReader, load_weights
from earwitness.scenes.reader.lexicon import Phrases, load_lexicon
from earwitness.scenes.reader.transcript import HEARD, Sentence, Turn, read
from earwitness.scenes.recovery import Case, Verdict
from earwitness.scenes.recovery_trial import try_judge
from earwitness.scenes.snippets import load_snippets

GOLDEN = Path(__file__).parents[1] / "golden"
OWN = GOLDEN / "reader_dev_snippets.yaml"


@pytest.fixture(scope="module")
def bank() -> Bank:
    return load_bank()


@pytest.fixture(scope="module")
def reader(bank: Bank) -> OfflineReader:
    return OfflineReader(bank, open_embedder("local/wordllama"))


def verdict(reader: OfflineReader, transcript: str, *events: str) -> Verdict:
    (opinion,) = asyncio.run(reader.judge([Case("a park", transcript, events or ("e1",))]))
    assert opinion.verdict is not None, opinion.failed
    return opinion.verdict


BEFORE = (
    "A: I have to sell my mother's boat before the harbour raises the fees.\n"
    "B: The fees go up in June, so you have all of spring to sell the boat.\n[SOUND: e1]\n"
)
AFTER = (
    "\nA: Who buys a boat in spring? The harbour is full of boats for sale.\n"
    "B: Then sell it inland, on the lake, where the fees are lower.\n"
    "A: My mother would never forgive me if her boat ended up on a lake."
)


@pytest.mark.parametrize(
    ("line", "reaction"),
    [
        ("A: I could put a notice in the harbour office about the boat.", "ambient"),
        ("A: I could put a, I could put up a notice in the harbour office.", "behavioral"),
        ("A: I could [a sudden breath drawn in] put a notice in the harbour office.", "behavioral"),
        ("A: That dog is barking again. I could put a notice in the harbour office.", "verbal"),
    ],
)
def test_the_same_talk_with_another_line_after_the_sound(
    line: str, reaction: str, reader: OfflineReader
) -> None:
    assert verdict(reader, BEFORE + line + AFTER).reactions == {"e1": reaction}


def test_talk_that_stays_with_the_sound(reader: OfflineReader) -> None:
    pivot = (
        "A: Did you hear that siren? It is coming down our street.\n"
        "B: Two sirens, I think. An ambulance and the police behind it.\n"
        "A: It has stopped at the corner. I can see the blue light on the wall.\n"
        "B: Somebody has called them for old Mr Brandt, I am afraid.\n"
        "A: Put your coat on, we will see whether his wife needs anybody."
    )
    found = verdict(reader, BEFORE + pivot)
    assert found.reactions == {"e1": "pivot"}
    # What the sound brought in is no part of the topic.
    assert "boat" in found.topic
    assert "siren" not in found.topic


def test_names_of_tags_tell_it_nothing(reader: OfflineReader) -> None:
    line = "A: I could {} put a notice in the harbour office."
    for heard in ("[zzz]", "(a long breath let out)", "[a word nobody knows]"):
        found = verdict(reader, BEFORE + line.format(heard) + AFTER)
        assert found.reactions == {"e1": "behavioral"}


def test_every_sound_gets_its_own_reaction_and_none_gets_none(reader: OfflineReader) -> None:
    talk = BEFORE + "A: I could put a notice up." + AFTER.replace("\nB:", "\n[SOUND: e2]\nB:")
    assert set(verdict(reader, talk, "e1", "e2").reactions) == {"e1", "e2"}
    (opinion,) = asyncio.run(reader.judge([Case("a park", "A: Hi.\nB: Hello there.", ())]))
    assert opinion.verdict is not None
    assert opinion.verdict.reactions == {}
    (lost,) = asyncio.run(reader.judge([Case("a park", "A: Hi.\nB: Hello.", ("e1",))]))
    assert lost.failed == "no mark of e1 in the transcript"


def test_the_same_whatever_else_is_judged(reader: OfflineReader, bank: Bank) -> None:
    cases = [
        Case("a park", BEFORE + line + AFTER, ("e1",))
        for line in ("A: What was that noise?", "A: I, I will ask.", "A: Fine, in June then.")
    ]
    together = asyncio.run(reader.judge(cases * 20))
    fresh = OfflineReader(bank, open_embedder("local/wordllama"))
    alone = [asyncio.run(fresh.judge([case]))[0] for case in cases]
    assert together == alone * 20


# -- parts ------------------------------------------------------------------


def test_transcripts_are_taken_apart() -> None:
    talk = read(
        "A: Mr. Hill said (sighs) no... Then he left.\nstill A\n\n[SOUND: e1]\nB: Why? Because."
    )
    assert talk.events == (("e1", 1),)
    assert [s.text for s in talk.turns[0].sentences] == [
        f"Mr. Hill said {HEARD} no...",
        "Then he left. still A",
    ]
    assert talk.turns[1].words == ("why", "because")
    assert talk.window(0) == (1, 2)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("I wanted to ask the... the porter.", "cut"),
        ("He is at the — well, he left.", "cut"),
        ("And will she still, is she coming?", "comma_cut"),
        ("It ran out in, it was, March.", "comma_cut"),
        ("You could, you could ask.", "restart"),
        ("We took the the bus.", "stutter"),
        (f"We took {HEARD} the bus.", "inside"),
        (f"{HEARD} We took the bus.", "edge"),
        ("Three, no, four of them.", "repair"),
        ("It would be fine if the door weren't so", "open_end"),
    ],
)
def test_what_disturbs_a_sentence(text: str, field: str) -> None:
    found = disturbance(Sentence(text), load_lexicon("en"))
    assert getattr(found, field) >= 1
    assert found.total > 0


@pytest.mark.parametrize(
    "text",
    [
        "They have, but you need a letter.",
        "It is late, isn't it?",
        "They were not cracked, they were perfect.",
        "She had had enough of it.",
        "If you ask me, you should sell.",
        "Yes, and in spring.",
    ],
)
def test_what_does_not(text: str) -> None:
    found = disturbance(Sentence(text), load_lexicon("en"))
    assert found.total == 0, found


def test_a_scrap_takes_the_next_sentence_with_it() -> None:
    assert first_sentence(Turn("A", "I... We took the bus. Then home.")).words[:3] == (
        "i", "we", "took",
    )  # fmt: skip
    assert first_sentence(Turn("A", "Yes. We took the bus.")).words == ("yes",)


def test_phrases_of_several_words() -> None:
    found = Phrases(["what was that", "what", "ring*"])
    assert found.at(["what", "was", "that"], 0) == 3
    assert found.at(["what", "was", "it"], 0) == 1
    assert "ringing" in found
    assert found.count(["so", "what", "rings"]) == 2


# -- what it rests on -------------------------------------------------------


def test_weights_are_those_fitted_on_its_own_snippets() -> None:
    again = asyncio.run(fitted(OWN))
    shipped = load_weights()
    for group in ("reference", "takeover", "disturbed"):
        assert again[group] == pytest.approx(shipped[group], abs=2e-3)
    assert again["fitted_on"] == shipped["fitted_on"]


def test_its_snippets_are_not_the_test_set() -> None:
    test_set = load_snippets(GOLDEN / "reaction_snippets.yaml")
    own = load_snippets(OWN)
    said = {u.text for snippet in test_set.snippets for u in snippet.utterances}
    assert not said & {u.text for snippet in own.snippets for u in snippet.utterances}
    assert load_weights()["fitted_on"]["hash"] == own.hash != test_set.hash


def test_it_reads_what_it_never_saw_well_above_chance(reader: OfflineReader, bank: Bank) -> None:
    """The figures of docs/recovery.md; a change of them is a new evaluation and belongs there."""
    trial = asyncio.run(try_judge(reader, load_snippets(GOLDEN / "reaction_snippets.yaml"), bank))
    assert trial.sounds == 220
    assert trial.balanced_accuracy.value == pytest.approx(0.704, abs=0.005)
    told, found = reader_trial(), trial.balanced_accuracy
    assert (told["snippets"], told["sounds"]) == (trial.snippets, trial.sounds)
    # The card of every corpus states it; intervals to the digit, the rest as near as platforms agree.
    for name in ("value", "low", "high"):
        assert told["balanced_accuracy"][name] == pytest.approx(getattr(found, name), abs=0.01)
    assert trial.balanced_accuracy.low > 0.6
    assert all(share.value > 0.4 for share in trial.recall.values())
    assert sum(map(sum, trial.confusion)) == 220
    assert not trial.failed


def test_other_embedders_and_languages_are_refused(bank: Bank) -> None:
    with pytest.raises(DataError, match=r"judge offline/reader: embedder offline/hashed"):
        OfflineReader(bank, HashedEmbedder())
    german = load_bank(Path(__file__).parent / "german_bank")
    with pytest.raises(UsageError, match=r"language 'de.*--judge openai/NAME"):
        OfflineReader(german, open_embedder("local/wordllama"))
