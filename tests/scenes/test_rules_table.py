"""Every rule on both sides: a dialogue that keeps it, as near to the edge as can be, and one that breaks it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from earwitness.scenes.bank import Bank, load_bank
from earwitness.scenes.bank_records import Register
from earwitness.scenes.dialogue import (
    RULES,
    Dialogue,
    EventMark,
    Utterance,
    check,
    dialogue_to_json,
)
from earwitness.scenes.rules.linting import lint, rule_table
from earwitness.scenes.scenario import Scenario
from tests.scenes.dialogue_examples import (
    FENCE,
    STAIRCASE,
    edited,
    fence,
    moved,
    replaced,
    spoken_by,
    staircase,
    with_event,
    without,
)

TALK, VAN = staircase(), fence()


@dataclass(frozen=True)
class Case:
    """A dialogue, what it is checked against, and words its message must have if it breaks the rule."""

    dialogue: Dialogue
    scenario: Scenario | None = STAIRCASE
    says: str = ""
    where: str = ""


@dataclass(frozen=True)
class Sides:
    keeps: Sequence[Case]
    breaks: Sequence[Case] = field(default_factory=tuple)


def stair(*changes: tuple[int, str, str], says: str = "", where: str = "") -> Case:
    """The staircase dialogue with words replaced."""
    return Case(_changed(TALK, changes), STAIRCASE, says, where)


def van(*changes: tuple[int, str, str], says: str = "", where: str = "") -> Case:
    """The fence dialogue with words replaced."""
    return Case(_changed(VAN, changes), FENCE, says, where)


def _changed(dialogue: Dialogue, changes: Sequence[tuple[int, str, str]]) -> Dialogue:
    for number, old, new in changes:
        dialogue = replaced(dialogue, number, old, new)
    return dialogue


def topic(text: str, says: str = "") -> Case:
    return Case(dataclasses.replace(TALK, topic=text), STAIRCASE, says)


def with_mark(dialogue: Dialogue, event: str) -> Dialogue:
    return dataclasses.replace(
        dialogue, timeline=(*dialogue.timeline[:4], EventMark(event), *dialogue.timeline[4:])
    )


def padded(dialogue: Dialogue, count: int) -> Dialogue:
    """More utterances at the end, in turn."""
    extra = tuple(Utterance("BA"[n % 2], f"Number {n} of the things to say.") for n in range(count))
    return dataclasses.replace(dialogue, timeline=(*dialogue.timeline, *extra))


AMBIENT_ONLY = dataclasses.replace(STAIRCASE, events=STAIRCASE.events[2:])
SHORT = without(dataclasses.replace(TALK, timeline=tuple(
    p for p in TALK.timeline if p not in (EventMark("e1"), EventMark("e2")))), 1, 2, 4)  # fmt: skip
"""Eight utterances around the ambient sound."""

PIVOT_TOO = with_event(STAIRCASE, "e1", reaction="pivot")
BELLS = with_event(with_event(FENCE, "e1", sound="church_bell"), "e2", sound="bicycle_bell")
ONE_WORD = " ".join(["word"] * 60)
BEHAVIORAL = {
    register: with_event(STAIRCASE, "e2", register=register)
    for register in ("wait_it_out", "answer_the_wrong_thing", "hand_over_midway")
}
FIRST = "We could put up a — no, a note on the wall won't do, you're right, they would say they never saw it."


def broken(sentence: str, register: str = "", says: str = "") -> Case:
    """The staircase dialogue with another first sentence after the sound that disturbs the talk."""
    scenario = BEHAVIORAL[register] if register else STAIRCASE
    return Case(replaced(TALK, 6, FIRST, sentence), scenario, says)


TABLE: dict[str, Sides] = {
    "D101-speakers": Sides(
        [Case(TALK)],
        [Case(spoken_by(TALK, 3, "C"), says='"C"', where="utterance 3 (C)")],
    ),
    "D102-scenario": Sides(
        [Case(TALK)],
        [
            Case(TALK, None, says="Nothing is known"),
            Case(dataclasses.replace(TALK, scenario="x"), says="checked against"),
        ],
    ),
    "D103-unknown-event": Sides(
        [Case(TALK)],
        [Case(with_mark(TALK, "e9"), says="e1, e2, e3", where="event e9 after utterance 3")],
    ),
    "D104-missing-event": Sides(
        [Case(TALK)],
        [
            Case(
                dataclasses.replace(
                    TALK, timeline=tuple(p for p in TALK.timeline if p != EventMark("e2"))
                ),
                says="e2 (bicycle_bell)",
            )
        ],
    ),
    "D105-event-twice": Sides([Case(TALK)], [Case(with_mark(TALK, "e1"), says="2 times")]),
    "D106-event-order": Sides(
        [Case(TALK)],
        [Case(moved(TALK, "e3", 1), says="e3, e1, e2; planned is e1, e2, e3")],
    ),
    "D107-unknown-sound": Sides(
        [Case(TALK)],
        [
            Case(TALK, with_event(STAIRCASE, "e1", sound="unicorn"), says="no sound 'unicorn'"),
            Case(TALK, with_event(STAIRCASE, "e2", register="x"), says="no register 'x'"),
        ],
    ),
    "D201-utterances": Sides(
        [
            Case(SHORT, AMBIENT_ONLY),
            Case(padded(TALK, 2)),
            Case(padded(TALK, 6), PIVOT_TOO),
        ],
        [
            Case(without(SHORT, 8), AMBIENT_ONLY, says="has 7 utterances"),
            Case(padded(TALK, 3), says="needs 8 to 13"),
            Case(padded(TALK, 7), PIVOT_TOO, says="needs 8 to 17"),
        ],
    ),
    "D202-turns-in-a-row": Sides(
        [Case(spoken_by(TALK, 11, "B"))],
        [Case(spoken_by(TALK, 2, "A"), says="A has 3 utterances in a row", where="utterance 3 (A)")],
    ),
    "D203-empty": Sides(
        [Case(edited(TALK, 4, "Oh [sighs].")), Case(edited(TALK, 4, "7"))],
        [
            Case(edited(TALK, 4, "[sighs]"), says="a tag alone", where="utterance 4 (B)"),
            Case(edited(TALK, 4, " ... ")),
            Case(edited(TALK, 4, "")),
        ],
    ),
    "D204-long-utterance": Sides(
        [Case(edited(TALK, 4, ONE_WORD)), Case(edited(TALK, 4, ONE_WORD + " [sighs]"))],
        [Case(edited(TALK, 4, ONE_WORD + " word"), says="has 61 words")],
    ),
    "D205-scene-length": Sides(
        [Case(TALK), Case(VAN, FENCE), Case(SHORT, AMBIENT_ONLY)],
        [
            Case(
                without(SHORT, 7, 8),
                AMBIENT_ONLY,
                says="add at least",
            ),
            Case(padded(edited(edited(edited(TALK, 4, ONE_WORD), 5, ONE_WORD), 8, ONE_WORD), 6),
                 says="cut at least"),
        ],
    ),
    "D206-both-speakers": Sides(
        [Case(spoken_by(TALK, 2, "A"))],
        [
            Case(spoken_by(spoken_by(TALK, 2, "A"), 4, "A"), says="B has 3 of 11 utterances"),
            Case(
                dataclasses.replace(
                    TALK,
                    timeline=tuple(
                        Utterance("B", "Yes, fine.")
                        if isinstance(p, Utterance) and p.speaker == "B"
                        else p
                        for p in TALK.timeline
                    ),
                ),
                says="words; at least 20% are needed",
                where="speaker B",
            ),
        ],
    ),
    "D207-repeated-sentence": Sides(
        [
            stair((4, "Three days is fine by me.", "I see."), (8, "Please let", "I see. Please let")),
            # The sound covered the words before it; they are asked for and said again.
            stair((3, "That dog always starts up around four.", "That dog, I missed the end."),
                  (4, "Three days is fine by me.",
                   "Did he say when he could begin, or is it the usual next month and then nothing?")),
        ],
        [
            stair((10, "That is clever.", "Three days is fine by me."),
                  says="was said before in utterance 4 (B)"),
            stair((4, "Three days is fine by me.", "Three days is fine by me. Three days is fine by me.")),
        ],
    ),
    "D301-stage-direction": Sides(
        [stair((4, "Three days", "Three [sighs] days"))],
        [
            stair((4, "Three days", "(sighs) Three days"), says='"(sighs)"'),
            stair((4, "Three days", "*sighs* Three days"), says="*sighs*"),
            stair((4, "Three days", "<sigh> Three days")),
            stair((4, "Three days", "{sigh} Three days")),
            stair((4, "Three days", "（笑） Three days")),
        ],
    ),
    "D302-speaker-label": Sides(
        [
            stair((4, "Three days", "Here's the thing: three days")),
            stair((4, "Three days", "At 7:30 or so, three days")),
        ],
        [
            stair((4, "Three days", "B: Three days"), says='"B:"'),
            stair((4, "Three days", "Speaker B: Three days")),
            stair((4, "Three days", "Anna: Three days")),
            stair((4, "by me. The", "by me. A: The"), says="within the text"),
        ],
    ),
    "D303-markup": Sides(
        [stair((4, "Three days", "Well-known, e.g. three days"))],
        [
            stair((4, "Three days", "- Three days")),
            stair((4, "Three days", "# Three days")),
            stair((4, "Three days", "1. Three days")),
            stair((4, "Three days", "`Three` days")),
            stair((4, "Three days", "Three\ndays"), says="A line break"),
            stair((4, "Three days", "See https://example.org, three days")),
        ],
    ),
    "D304-symbols": Sides(
        [stair((4, "Three days", "Café, 20°, “so” three days — œuvre"))],
        [
            stair((4, "Three days", "Three days 😀"), says="grinning face"),
            stair((4, "Three days", "Three\x07 days"), says="U+0007"),
            stair((4, "Three days", "★ Three days")),
        ],
    ),
    "D305-brackets": Sides(
        [stair((4, "Three days", "[Clears  throat] Three days"))],
        [
            stair((4, "Three days", "[sighs Three days"), says="do not pair"),
            stair((4, "Three days", "sighs] Three days")),
            stair((4, "Three days", "[[sighs]] Three days")),
            stair((4, "Three days", "[ ] Three days"), says="empty delivery tag"),
        ],
    ),
    "D306-unknown-tag": Sides(
        [stair((4, "Three days", "[Sighs] Three days"))],
        [
            stair((4, "Three days", "[sigh] Three days"), says="did you mean [sighs]?"),
            stair((4, "Three days", "[xyzzy] Three days"), says="there are ["),
        ],
    ),
    "D307-filler": Sides(
        [stair((4, "Three days", "Oh, ah, three days, hummus and umbrage"))],
        [stair((4, "Three days", "Uh, three days"), says='"Uh" is a filler'),
         stair((4, "Three days", "Three, ERM, days"))],
    ),
    "D308-phone-call": Sides(
        [stair((4, "Three days", "Will you be there? Three days"))],
        [stair((4, "Three days", "Are you still there? Three days"), says="side by side"),
         stair((4, "Three days", "You're breaking up. Three days"))],
    ),
    "D309-stock-phrase": Sides(
        [stair((4, "Three days", "At the end of the week. Three days"))],
        [stair((4, "Three days", "At the end of the day, three days"), says="stock phrase"),
         stair((9, "I feel the same", "Where was I? I feel the same"))],
    ),
    "D401-band": Sides(
        [Case(moved(TALK, "e1", 1)), Case(moved(TALK, "e1", 3)), Case(moved(TALK, "e3", 6))],
        [
            Case(moved(TALK, "e1", 4), says="after one of utterances 1 to 3 to be early among 11"),
            Case(moved(TALK, "e2", 6), says="4 to 5"),
            Case(moved(TALK, "e1", 0)),
        ],
    ),
    "D402-too-late": Sides(
        [Case(moved(TALK, "e3", 7))],
        [Case(moved(TALK, "e3", 8), says="Only 3 utterances follow")],
    ),
    "D403-close-reactions": Sides(
        [Case(moved(moved(TALK, "e1", 3), "e2", 5)), Case(moved(TALK, "e2", 6))],
        [
            Case(moved(moved(TALK, "e1", 3), "e2", 4), says="right after event e1"),
            Case(moved(TALK, "e2", 2), says="in the same utterance as event e1"),
        ],
    ),
    "D404-shared-sentence": Sides(
        [Case(replaced(replaced(TALK, 6, FIRST, "That bicycle bell again. We could put a note up."), 7,
                       "Saturday before lunch", "The dog can come too. Saturday before lunch"),
              with_event(STAIRCASE, "e2", reaction="verbal", register="note_the_regularity"))],
        [Case(replaced(TALK, 6, FIRST, "First that dog and now a bicycle bell."),
              with_event(STAIRCASE, "e2", reaction="verbal", register="note_the_regularity"),
              says="events e1 and e2 at once")],
    ),
    "D405-required-tag": Sides(
        [Case(VAN, FENCE), van((10, "and she [gasps] sleeps", "and [clears throat] she sleeps"))],
        [
            van((10, "[gasps] ", ""), says="[gasps] or [gulps]", where="utterance 10 (B)"),
            van((10, "and she [gasps] sleeps through anything at all.",
                 "and she sleeps through anything at all [gasps]."), says="between two words"),
            van((10, "My cousin is a nurse and she [gasps]", "[gasps] My cousin is a nurse and she")),
            van((10, "[gasps] sleeps through anything at all. She", "sleeps through anything. [gasps] She")),
            van((10, "she [gasps] sleeps through anything at all. She would",
                 "she sleeps through anything at all. She [gasps] would"), says="of its first sentence"),
            van((10, "[gasps]", "[sighs]"), says="is missing"),
        ],
    ),
    "D501-not-named": Sides(
        [
            Case(TALK),
            stair((3, "That dog", "That barking")),
            # A pivot may first only stop the talk.
            van((3, "A lawnmower, on a Sunday", "Oh come on, on a Sunday"),
                (4, "Come on, it has to be cut", "It is only the mower, it has to be cut")),
        ],
        [
            stair((3, "That dog always starts up around four.", "They always start up around four."),
                  says="say for instance: dog", where="event e1 (dog_bark) after utterance 2"),
            # A word everybody uses names nothing, though it would give an unnoticed sound away.
            stair((3, "That dog always starts up around four.", "Its owner goes for a walk around four."),
                  says="say for instance: dog"),
            # One utterance too late for a remark in passing.
            stair((3, "That dog always starts up around four.", "They always start up around four."),
                  (4, "Three days", "Yes, the dog. Three days"), says="next utterance"),
            van((3, "A lawnmower, on", "Oh dear, on"), (4, "The gardeners work", "They work"),
                (4, "it has to be cut some day", "it has to be done some day"), says="next 2 utterances"),
        ],
    ),
    "D502-named-before": Sides(
        [stair((2, "than I feared", "than I feared for a puppy"))],
        [stair((2, "than I feared", "than I feared for my dog"), says='"dog" names the sound of event e1')],
    ),
    "D503-named-though-forbidden": Sides(
        [Case(replaced(TALK, 3, "That dog always starts", "There, always starts"),
              with_event(STAIRCASE, "e1", register="unnamed"))],
        [Case(TALK, with_event(STAIRCASE, "e1", register="unnamed"), says="whose register forbids it")],
    ),
    "D504-ambient-alluded": Sides(
        [
            Case(TALK),
            # Weak words belong to ordinary talk: away from the sound, or after its first sentence.
            stair((2, "than I feared", "than I feared in the rain"),
                  (8, "The green looked", "In the rain the green looked")),
        ],
        [
            stair((2, "than I feared", "than an umbrella"), says='"umbrella" names', where="utterance 2 (B)"),
            stair((11, "your charm", "your brolly")),
            stair((11, "your charm", "a parasol"), says="gives away"),
            stair((8, "Please let it be the yellow.", "Please let it be the yellow, even in the rain."),
                  says='"rain" gives away the sound of event e3 (umbrella_open)'),
        ],
    ),
    "D505-behavioral-alluded": Sides(
        [
            Case(TALK),
            stair((3, "leaves bicycles", "leaves a bike")),
            # A word inside the name of a sound that may be named is about that one.
            Case(replaced(VAN, 3, "A lawnmower", "A church bell"), BELLS),
        ],
        [
            stair((11, "your charm", "your bicycle bell"), says="never spoken of"),
            stair((1, "two coats", "with bells on and two coats")),
            Case(replaced(VAN, 3, "A lawnmower", "A church bell, all that dinging"), BELLS,
                 says='"dinging" gives away'),
            broken("We could put up a — no, he rang them, a note won't do."),
        ],
    ),
    "D506-named-on": Sides(
        [stair((4, "Three days", "The dog knows. Three days"))],
        [stair((5, "They complained", "Like the dog they complained"), says="only named in passing")],
    ),
    "D507-sound-talk": Sides(
        [
            stair((4, "Three days", "Such a noise. Three days")),
            stair((9, "I feel the same", "I'm sorry to hear that. I feel the same")),
            van((13, "Then he", "It is that noise. Then he")),
        ],
        [
            # Right after a sound that nobody notices it would be about that one, pivot or not.
            Case(replaced(VAN, 10, "My cousin", "That noise again. My cousin"),
                 with_event(FENCE, "e2", reaction="ambient", register=None)),
            stair((9, "I feel the same", "Did you hear that? I feel the same"), says='"hear that"'),
            stair((5, "They complained", "What a noise. They complained")),
            stair((1, "So I spoke", "Over the noise I spoke")),
        ],
    ),
    "D601-no-break": Sides(
        [
            broken("We could put up a note... we could put up a list."),
            broken("We could put, we could put a note on the wall."),
            broken("We could go on Friday, no, on Saturday, that is better."),
            broken("We could put up a note on the—", "hand_over_midway"),
            broken("We could [pauses] put up a note on the wall.", "wait_it_out"),
            broken("At six, I mean by bus.", "answer_the_wrong_thing"),
        ],
        [
            broken("We could put up a note on the wall.", says="runs on undisturbed after event e2"),
            broken("We could put up a note. We could — no, not there."),
            broken("We could go, no?"),
            broken("I mean, we could really, really put up a note."),
            broken("We could put, we could put a note on the wall.", "wait_it_out",
                   says="hold it up with a dash"),
            broken("[pauses] We could put up a note on the wall.", "wait_it_out"),
        ],
    ),
    "D602-stated-cause": Sides(
        [broken("We could — no, a note won't do."),
         stair((8, "Please let it be the yellow.", "I was distracted by the yellow."))],
        [
            broken("We could — sorry, it's loud here — put a note up.", says="takes the place of the sound"),
            broken("We could — that noise — put a note up."),
            stair((7, "Saturday before lunch", "I couldn't hear you. Saturday before lunch")),
        ],
    ),
    "D603-ambient-break": Sides(
        [
            stair((8, "The green looked", "The green — well, it looked")),
            stair((8, "Please let", "[sighs] Please let")),
            stair((8, "Please let it be the yellow.", "Please, please let it be really, really yellow.")),
        ],
        [
            stair((8, "Please let it be the yellow.", "Please let it be — let it be yellow."),
                  says="disturbs the first sentence after event e3"),
            stair((8, "Please let it be the yellow.", "Please let it... be the yellow.")),
            stair((8, "Please let it be", "Please let it [gasps] be"), says="[gasps]"),
            stair((8, "Please let it be", "Please let it [pauses] be"), says="[pauses]"),
            stair((8, "Please let it be", "Please let it, let it be")),
        ],
    ),
    "D701-topic-length": Sides(
        [topic("painting the old staircase"), topic(" ".join(["word"] * 60))],
        [topic("the old staircase", says="3 words"), topic(" ".join(["word"] * 61)), topic("")],
    ),
    "D702-topic-style": Sides(
        [topic("Two neighbours, Mr. Keller and Ann, share the cost of paint.")],
        [
            topic("They paint the staircase. They share the cost.", says="2 sentences"),
            topic("[sighs] they paint the whole staircase", says="square brackets"),
            topic("they paint (at last) the whole staircase"),
            topic("they paint the whole\nold staircase"),
            topic("they paint the whole staircase 🎨"),
        ],
    ),
    "D703-topic-sound": Sides(
        [topic("two neighbours and a puppy on the staircase"), topic("two neighbours in the rain on a Sunday")],
        [
            topic("two neighbours and a dog on the staircase", says="dog_bark"),
            topic("two neighbours with a parasol on the staircase", says="umbrella_open"),
            topic("two neighbours who wonder about that noise", says="speaks of a sound"),
        ],
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def bank() -> Bank:
    """The bank that ships, and a register that forbids to name what is spoken of."""
    shipped = load_bank()
    unnamed = Register(
        id="unnamed",
        reaction="verbal",
        move="Speak of the sound and do not name it.",
        sense="There must have been one.",
        naming="forbidden",
        renders_in=("words",),
    )
    index = dict(shipped._index)
    index["register"] = {**index["register"], "unnamed": unnamed}
    return dataclasses.replace(
        shipped, registers=(*shipped.registers, unnamed), hash=shipped.hash[:-1] + "x", _index=index
    )


def codes(case: Case, bank: Bank) -> set[str]:
    return {violation.code for violation in check(case.dialogue, case.scenario, bank)}


def cases(side: Callable[[Sides], Sequence[Case]]) -> list[object]:
    return [
        pytest.param(code, case, id=f"{code}-{n}")
        for code, sides in TABLE.items()
        for n, case in enumerate(side(sides), start=1)
    ]


def test_every_rule_is_shown_on_both_sides() -> None:
    assert list(TABLE) == [rule.code for rule in RULES]
    assert all(sides.keeps and sides.breaks for sides in TABLE.values())


@pytest.mark.parametrize(("code", "case"), cases(lambda sides: sides.keeps))
def test_kept(code: str, case: Case, bank: Bank) -> None:
    assert code not in codes(case, bank)


@pytest.mark.parametrize(("code", "case"), cases(lambda sides: sides.breaks))
def test_broken(code: str, case: Case, bank: Bank) -> None:
    found = [v for v in check(case.dialogue, case.scenario, bank) if v.code == code]
    assert found
    assert any(case.says in v.message and case.where in v.where for v in found), found
    assert all(v.message.endswith((".", "?")) and v.where for v in found), found


@pytest.mark.parametrize(("dialogue", "scenario"), [(TALK, STAIRCASE), (VAN, FENCE)])
def test_the_examples_keep_every_rule(dialogue: Dialogue, scenario: Scenario, bank: Bank) -> None:
    assert check(dialogue, scenario, bank) == ()


def test_codes_are_unique_and_in_order() -> None:
    table = [code for code, _ in rule_table()]
    assert len({code.split("-")[0] for code in table}) == len(table)
    assert table == sorted(table)


CORPUS: dict[str, tuple[list[object], list[object]]] = {
    "D100-unreadable": ([dialogue_to_json(TALK)], [{"scenario": "s", "topic": "t"}]),
    "D801-shared-sentences": (
        [dialogue_to_json(TALK), dialogue_to_json(VAN)],
        [
            dialogue_to_json(TALK),
            dialogue_to_json(
                dataclasses.replace(VAN, timeline=(*TALK.timeline[:7], *VAN.timeline[8:]))
            ),
        ],
    ),
    "D802-near-duplicate": (
        [dialogue_to_json(TALK), dialogue_to_json(VAN)],
        [
            dialogue_to_json(TALK),
            # One word more in every sentence: none is shared, but their wording is.
            {
                **dialogue_to_json(TALK),
                "scenario": "other",
                "timeline": [
                    {"speaker": u.speaker, "text": u.text.replace(". ", " so. ")[:-1] + " so."}
                    for u in TALK.utterances
                ],
            },
        ],
    ),
    "D803-scenario-twice": (
        [dialogue_to_json(TALK), dialogue_to_json(VAN)],
        [
            dialogue_to_json(TALK),
            dialogue_to_json(dataclasses.replace(VAN, scenario=TALK.scenario)),
        ],
    ),
}


def test_every_rule_for_files_is_shown_on_both_sides() -> None:
    assert set(CORPUS) == {code for code, _ in rule_table()} - {rule.code for rule in RULES}


@pytest.mark.parametrize("code", CORPUS)
def test_files(code: str, bank: Bank) -> None:
    keeps, breaks = CORPUS[code]
    assert code not in lint(enumerate(keeps, start=1), bank).counts
    assert lint(enumerate(breaks, start=1), bank).counts[code] == 1
