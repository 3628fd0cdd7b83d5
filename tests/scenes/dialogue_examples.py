"""Hand-written dialogues that keep every rule, and small ways of changing them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from earwitness.scenes.dialogue import Dialogue, EventMark, Utterance
from earwitness.scenes.scenario import PlannedEvent, Scenario

STAIRCASE = Scenario(
    id="stairs.01.01",
    template="stairs.01",
    theme="stairs",
    split="train",
    location="park",
    roles="neighbours",
    gender_a="F",
    gender_b="M",
    events=(
        PlannedEvent("e1", "dog_bark", "verbal", "note_the_regularity", "early"),
        PlannedEvent("e2", "bicycle_bell", "behavioral", "restart_the_sentence", "middle"),
        PlannedEvent("e3", "umbrella_open", "ambient", None, "late"),
    ),
)
"""A verbal reaction, a disturbance that shows in words or pauses, and a sound nobody notices."""

STAIRCASE_TALK = """
A: So I spoke to the painter about the staircase, and he wants nine hundred for the whole thing, two coats, with the
   banister included.
B: Nine hundred between six flats is less than I feared. Did he say when he could begin, or is it the usual next month
   and then nothing?
[e1]
A: That dog always starts up around four. He said the second week of October, and he would need three days if nobody
   leaves bicycles on the landing.
B: Three days is fine by me. The Hoffmanns will complain, though, because they complained about the letterboxes, and
   those took one morning.
A: They complained because nobody had asked them first. I would rather knock on every door this weekend than have that
   argument all over again.
[e2]
B: We could put up a — no, a note on the wall won't do, you're right, they would say they never saw it. I will come
   along if you like, they are friendlier with two of us.
A: Saturday before lunch then, when everybody is home. I have the drawing from the painter, so people can choose
   between the pale yellow and that odd green he showed me.
[e3]
B: Please let it be the yellow. The green looked like a hospital from my childhood, and I had my tonsils out in that
   hospital.
A: I feel the same, but Mrs. Keller loves it, and she has lived here the longest. Perhaps we let her pick the colour of
   the front door instead.
B: That is clever. She gets something that visitors notice, and we don't have to walk through mint every morning for
   the next ten years.
A: Good, so I bring the drawing and the list of names, and you bring your charm. If five of six agree, he can order the
   paint on Monday.
"""

FENCE = Scenario(
    id="fence.01.01",
    template="fence.01",
    theme="fence",
    split="test",
    location="park",
    roles="friends",
    gender_a="M",
    gender_b="M",
    events=(
        PlannedEvent("e1", "lawnmower", "pivot", "dispute_its_right", "early"),
        PlannedEvent("e2", "watch_beep", "behavioral", "breath_in_the_middle", "late"),
    ),
)
"""A pivot, and a disturbance that shows in a delivery tag."""

FENCE_TALK = """
A: I have been reading about people who move into a van and work from the road. My sister is thinking of doing it in
   spring, with the cat.
B: With the cat? I would give that a week. She could not even manage the holiday flat because the shower was too small
   for her.
[e1]
A: A lawnmower, on a Sunday, before ten. Nobody should be allowed to start one of those while half the town is still in
   bed.
B: Come on, it has to be cut some day. The gardeners work when the paths are empty, and on a weekday they would chase
   the school classes around.
A: Then let them come on a Tuesday evening. There is a rule about Sundays in this town, my uncle had to pay for drilling
   one hole after lunch.
B: Your uncle drilled for two hours, I was there. A mower is gone in twenty minutes, and afterwards everybody is glad to
   lie on the short grass.
A: Twenty minutes if they do one corner. They will do the slope as well, and then the other side, and that is the whole
   morning taken.
B: So write to the council, you like writing letters. Ask them for a quiet hour until eleven, I would even put my name
   under that.
A: Until noon, or it makes no sense. People who work nights need it most, and nobody ever asks a nurse what she thinks
   of the schedule.
[e2]
B: My cousin is a nurse and she [gasps] sleeps through anything at all. She would tell you that the buses are worse,
   every six minutes under her window.
A: Buses carry people, that is different. A machine that makes green things two fingers shorter could come at any hour
   of the week.
B: Fine, send me the letter and I will correct your commas. But I still say the poor man on the machine would rather be
   in bed as well.
A: Then he can sign it too. Three names look better than two, and the one with the machine counts double, if you ask
   me.
"""

STAIRCASE_TOPIC = "two neighbours sharing the cost of painting the staircase before winter"
FENCE_TOPIC = "two friends on a sister who wants to live in a van"


def parse(scenario: str, topic: str, script: str) -> Dialogue:
    """A dialogue from lines ``A: ...`` and ``[e1]``; indented lines go on."""
    timeline: list[Utterance | EventMark] = []
    for line in script.strip("\n").split("\n"):
        if line.startswith("[e"):
            timeline.append(EventMark(line.strip("[]")))
        elif line.startswith("   "):
            last = timeline.pop()
            assert isinstance(last, Utterance)
            timeline.append(Utterance(last.speaker, f"{last.text} {line.strip()}"))
        else:
            speaker, text = line.split(": ", 1)
            timeline.append(Utterance(speaker, text))
    return Dialogue(scenario, topic, tuple(timeline))


def staircase() -> Dialogue:
    return parse(STAIRCASE.id, STAIRCASE_TOPIC, STAIRCASE_TALK)


def fence() -> Dialogue:
    return parse(FENCE.id, FENCE_TOPIC, FENCE_TALK)


def edited(dialogue: Dialogue, number: int, edit: Callable[[str], str] | str) -> Dialogue:
    """The dialogue with another text for utterance ``number``, from 1."""
    timeline = list(dialogue.timeline)
    at = [n for n, part in enumerate(timeline) if isinstance(part, Utterance)][number - 1]
    old = timeline[at]
    assert isinstance(old, Utterance)
    new = edit if isinstance(edit, str) else edit(old.text)
    assert new != old.text
    timeline[at] = Utterance(old.speaker, new)
    return dataclasses.replace(dialogue, timeline=tuple(timeline))


def replaced(dialogue: Dialogue, number: int, old: str, new: str) -> Dialogue:
    """The dialogue with some words of utterance ``number`` (from 1) replaced."""
    assert old in dialogue.utterances[number - 1].text
    return edited(dialogue, number, lambda text: text.replace(old, new, 1))


def spoken_by(dialogue: Dialogue, number: int, speaker: str) -> Dialogue:
    """The dialogue with utterance ``number`` (from 1) given to a speaker."""
    timeline = list(dialogue.timeline)
    at = [n for n, part in enumerate(timeline) if isinstance(part, Utterance)][number - 1]
    old = timeline[at]
    assert isinstance(old, Utterance)
    timeline[at] = Utterance(speaker, old.text)
    return dataclasses.replace(dialogue, timeline=tuple(timeline))


def moved(dialogue: Dialogue, event: str, before: int) -> Dialogue:
    """The dialogue with an event after ``before`` utterances."""
    rest = [part for part in dialogue.timeline if part != EventMark(event)]
    at = [n for n, part in enumerate(rest) if isinstance(part, Utterance)]
    place = at[before] if before < len(at) else len(rest)
    return dataclasses.replace(dialogue, timeline=(*rest[:place], EventMark(event), *rest[place:]))


def without(dialogue: Dialogue, *numbers: int) -> Dialogue:
    """The dialogue without some utterances (from 1)."""
    timeline = list(dialogue.timeline)
    at = [n for n, part in enumerate(timeline) if isinstance(part, Utterance)]
    dropped = {at[number - 1] for number in numbers}
    kept = tuple(part for n, part in enumerate(timeline) if n not in dropped)
    return dataclasses.replace(dialogue, timeline=kept)


def with_event(scenario: Scenario, event: str, **changes: object) -> Scenario:
    """The scenario with one event planned otherwise."""
    events = tuple(
        dataclasses.replace(e, **changes) if e.id == event else e  # type: ignore[arg-type]
        for e in scenario.events
    )
    return dataclasses.replace(scenario, events=events)
