"""Does a reader of the words recover what was planned? Verdicts, judges, and the rule of acceptance.

Source: CARES, arXiv 2610.10208, "Filter": an evaluator reads the transcript with tags and sound marks and returns
a topic and one reaction per sound; accepted when the cosine of topic embeddings is at least tau and all
reactions match.

Conventions
-----------
* A judge sees the place and the transcript: sounds as ``[SOUND: e1]``, delivery tags as what a listener hears. It
  is told neither what sounded, nor what was planned, nor what a tag is for.
* There are no rescue rules: a reaction read otherwise than planned is not accepted, whatever else speaks for it.
* A verdict that is not one (ids missing, a label nobody knows) is never completed by a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from earwitness.errors import UsageError
from earwitness.runs.items import digest
from earwitness.scenes.bank import Bank
from earwitness.scenes.bank_records import Reaction
from earwitness.scenes.dialogue import render_transcript
from earwitness.scenes.dialogue_records import Dialogue
from earwitness.scenes.rules.registry import Violation
from earwitness.scenes.scenario import Scenario
from earwitness.scenes.snippets import Snippet

TOPIC_LOST = "R101-topic-lost"
REACTION_LOST = "R102-reaction-lost"
CODES: tuple[tuple[str, str], ...] = (
    (TOPIC_LOST, "A reader can tell what the two talk about."),
    (REACTION_LOST, "A reader can tell how the two react to each sound."),
)
"""What the filter asks of a dialogue, by code."""

_SEEN: Mapping[Reaction, str] = {
    "pivot": "the talk left its subject for the sound and stayed with it",
    "verbal": "somebody mentioned the sound in passing and the talk went on",
    "behavioral": "the sentence after the sound was disturbed and nobody mentioned the sound",
    "ambient": "the sound left no trace in the talk",
}


class JudgeFamilyError(UsageError):
    """Nobody judges their own family's work, and nobody judges whose family is not known."""


@dataclass(frozen=True)
class Verdict:
    """What a judge read.

    Attributes
    ----------
    topic: what the talk is about, in the judge's words.
    reactions: one for every sound of the transcript, by event id.
    """

    topic: str
    reactions: Mapping[str, Reaction]


@dataclass(frozen=True)
class Case:
    """What a judge is given: the place in words, the transcript, and the ids of the sounds in it."""

    location: str
    transcript: str
    events: tuple[str, ...]


@dataclass(frozen=True)
class Opinion:
    """What came of asking a judge: a verdict, or why there is none (``failed``)."""

    verdict: Verdict | None = None
    failed: str | None = None


OnDone = Callable[[int], None]


@runtime_checkable
class Judge(Protocol):
    """Reads transcripts. ``name`` is ``adapter/name``; the same case gets the same opinion when asked again."""

    @property
    def name(self) -> str: ...

    @property
    def family(self) -> str | None:
        """Family of models, as declared."""
        ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that changes a verdict; JSON-serialisable, no secrets."""
        ...

    @property
    def prompts(self) -> Mapping[str, str]:
        """Prompts used, by name and version, with their hashes."""
        ...

    async def judge(
        self, cases: Sequence[Case], on_done: OnDone | None = None
    ) -> Sequence[Opinion]:
        """One opinion for every case, in their order."""
        ...

    async def aclose(self) -> None: ...


def case_of(dialogue: Dialogue, scenario: Scenario, bank: Bank) -> Case:
    """What a judge is given of a dialogue."""
    planned = {event.id for event in scenario.events}
    return Case(
        bank.location(scenario.location).name,
        render_transcript(dialogue, scenario, sound_marks=True, tags="heard", bank=bank),
        tuple(event for event, _ in dialogue.events if event in planned),
    )


def case_of_snippet(snippet: Snippet, bank: Bank) -> Case:
    """What a judge is given of a labelled snippet."""
    return Case(snippet.location, snippet.transcript(bank), snippet.events)


def judge_identity(judge: Judge) -> dict[str, Any]:
    """Everything a verdict of a judge depends on beside the case."""
    return {
        "judge": judge.name,
        "settings": dict(judge.settings),
        "prompts": dict(judge.prompts),
    }


def verdict_key(case: Case, identity: Mapping[str, Any]) -> str:
    """Key of a verdict: the same words before the same judge are never judged twice.

    Parameters
    ----------
    identity: of :func:`judge_identity`, or as a corpus has it written down.
    """
    return digest(
        {
            "location": case.location,
            "transcript": case.transcript,
            "events": list(case.events),
            **{key: identity[key] for key in ("judge", "settings", "prompts")},
        }
    )


def likeness_key(topic: str, recovered: str, embedder_hash: str) -> str:
    """Key of the likeness of two topics before one embedder."""
    return digest({"topic": topic, "recovered": recovered, "embedder": embedder_hash})


def reasons_against(
    scenario: Scenario, verdict: Verdict, cosine: float, tau: float
) -> tuple[Violation, ...]:
    """Why a dialogue is turned down; empty when it is accepted.

    Examples
    --------
    >>> from earwitness.scenes.scenario import PlannedEvent
    >>> plan = Scenario("s", "t", "t", "test", "park", "friends", "F", "M",
    ...     (PlannedEvent("e1", "dog_bark", "verbal", "label_and_return", "early"),))
    >>> reasons_against(plan, Verdict("a dog", {"e1": "verbal"}), 0.9, 0.8)
    ()
    >>> [reason.code for reason in reasons_against(plan, Verdict("a dog", {"e1": "pivot"}), 0.7, 0.8)]
    ['R101-topic-lost', 'R102-reaction-lost']
    """
    reasons = []
    if not cosine >= tau:
        reasons.append(
            Violation(
                TOPIC_LOST,
                f'To a reader the talk is about "{verdict.topic}"; keep to its topic and say what it '
                "is about in plain words.",
                "topic",
            )
        )
    for event in scenario.events:
        read = verdict.reactions.get(event.id)
        if read != event.reaction:
            seen = "there was no such sound" if read is None else _SEEN[read]
            reasons.append(
                Violation(
                    REACTION_LOST,
                    f"To a reader {seen}; it must show that {_SEEN[event.reaction]}.",
                    event.id,
                )
            )
    return tuple(reasons)


@dataclass(frozen=True)
class Author:
    """Who wrote something that is judged: the part (``writer``, ``topic writer``), name and declared family."""

    part: str
    name: str
    family: str | None


def refuse_related(judge: str, family: str | None, authors: Sequence[Author]) -> None:
    """Refuse a judge of an author's family, and families that were not declared.

    Raises
    ------
    JudgeFamilyError: with who is related to whom, or what has to be declared.
    """
    wanted = "a judge of another family of models than the writers"
    if family is None:
        raise JudgeFamilyError(
            f"judge {judge}",
            "its family is not declared",
            wanted,
            "Declare it: -M family=NAME, the same name for all models of one origin.",
        )
    for author in authors:
        if author.family is None:
            raise JudgeFamilyError(
                f"{author.part} {author.name}",
                "its family is not declared, so nobody can tell whether the judge is related",
                wanted,
                "Declare it: earwitness scenes write CORPUS -M family=NAME --replace (stored replies stay).",
            )
        if author.family.strip().casefold() == family.strip().casefold():
            raise JudgeFamilyError(
                f"judge {judge}",
                f"is of the family {family!r}, as is the {author.part} {author.name}",
                wanted,
                "Name another judge with --judge.",
            )
