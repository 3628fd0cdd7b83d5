"""The dialogue of a scene: its topic and its timeline of utterances and events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from earwitness.errors import DataError
from earwitness.scenes.scenario import Scenario, scenario_from_json

SPEAKERS = ("A", "B")


@dataclass(frozen=True, slots=True)
class Utterance:
    """What one speaker (``A`` or ``B``) says in one go; delivery tags stand in square brackets."""

    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class EventMark:
    """Here the sound of a planned event occurs. ``id`` is that of the event, such as ``e1``."""

    id: str


@dataclass(frozen=True)
class Dialogue:
    """The words of one scene.

    Attributes
    ----------
    scenario: id of the scenario it carries out.
    topic: what the two talk about, one sentence.
    timeline: utterances and events in the order of time.
    """

    scenario: str
    topic: str
    timeline: tuple[Utterance | EventMark, ...]

    @cached_property
    def utterances(self) -> tuple[Utterance, ...]:
        """The utterances alone, in order."""
        return tuple(part for part in self.timeline if isinstance(part, Utterance))

    @cached_property
    def events(self) -> tuple[tuple[str, int], ...]:
        """Each event's id with the number of utterances before it, in order of time."""
        found = []
        before = 0
        for part in self.timeline:
            if isinstance(part, EventMark):
                found.append((part.id, before))
            else:
                before += 1
        return tuple(found)

    def position(self, event: str) -> int:
        """Return how many utterances come before an event (its first occurrence).

        Raises
        ------
        KeyError: the timeline has no such event.
        """
        for identifier, before in self.events:
            if identifier == event:
                return before
        raise KeyError(event)

    def after(self, event: str) -> tuple[Utterance, ...]:
        """Return the utterances after an event; :class:`KeyError` if the timeline has none of this id.

        Examples
        --------
        >>> talk = Dialogue("s1", "", (Utterance("A", "Hi."), EventMark("e1"), Utterance("B", "Hey.")))
        >>> talk.after("e1")
        (Utterance(speaker='B', text='Hey.'),)
        """
        return self.utterances[self.position(event) :]


def dialogue_to_json(dialogue: Dialogue) -> dict[str, Any]:
    """A dialogue as plain JSON values, keys in reading order.

    Examples
    --------
    >>> dialogue_to_json(Dialogue("s1", "A bike.", (Utterance("A", "Hi."), EventMark("e1"))))["timeline"]
    [{'speaker': 'A', 'text': 'Hi.'}, {'event': 'e1'}]
    """
    return {
        "scenario": dialogue.scenario,
        "topic": dialogue.topic,
        "timeline": [
            {"event": part.id}
            if isinstance(part, EventMark)
            else {"speaker": part.speaker, "text": part.text}
            for part in dialogue.timeline
        ],
    }


def dialogue_from_json(value: Mapping[str, Any]) -> Dialogue:
    """Read what :func:`dialogue_to_json` wrote; ``scenario`` may also be a whole scenario.

    Keys beside the three are left to others. Whether what is said makes a good dialogue is for
    :func:`earwitness.scenes.dialogue.check`; here it only has to be one.

    Raises
    ------
    DataError: a key is missing, or a value is not of its kind; the text says which.
    """
    if not isinstance(value, Mapping):
        raise DataError("dialogue", f"{_kind(value)}", "an object")
    scenario = value.get("scenario")
    if isinstance(scenario, Mapping):
        scenario = scenario.get("id")
    topic, timeline = value.get("topic"), value.get("timeline")
    for key, found in (("scenario", scenario), ("topic", topic)):
        if not isinstance(found, str):
            raise DataError(f"dialogue: {key}", _kind(found), "a string")
    if not isinstance(timeline, (list, tuple)):
        raise DataError("dialogue: timeline", _kind(timeline), "a list of utterances and events")
    parts = tuple(_part(part, f"dialogue: timeline[{n}]") for n, part in enumerate(timeline))
    return Dialogue(str(scenario), str(topic), parts)


def _part(value: Any, where: str) -> Utterance | EventMark:
    wanted = '{"speaker": "A", "text": "..."} or {"event": "e1"}'
    if not isinstance(value, Mapping):
        raise DataError(where, _kind(value), wanted)
    keys = set(value)
    if keys == {"event"} and isinstance(value["event"], str):
        return EventMark(value["event"])
    if keys == {"speaker", "text"} and all(isinstance(value[key], str) for key in keys):
        return Utterance(value["speaker"], value["text"])
    shown = ", ".join(
        f"{key}: {_kind(value[key])}" for key in sorted(map(str, keys)) if key in value
    )
    raise DataError(where, f"an object with {shown or 'nothing in it'}", wanted)


def embedded_scenario(value: Mapping[str, Any]) -> Scenario | None:
    """The scenario that comes with a dialogue, if its ``scenario`` is a whole one.

    Raises
    ------
    DataError: it is an object and not a scenario.
    """
    scenario = value.get("scenario")
    if not isinstance(scenario, Mapping):
        return None
    try:
        return scenario_from_json(scenario)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(
            "dialogue: scenario", f"not a scenario ({error})", "one as in a plan"
        ) from error


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    names = {
        str: "a string",
        bool: "a truth value",
        list: "a list",
        tuple: "a list",
        dict: "an object",
    }
    for kind, name in names.items():
        if isinstance(value, kind):
            return name
    return "a number" if isinstance(value, (int, float)) else type(value).__name__
