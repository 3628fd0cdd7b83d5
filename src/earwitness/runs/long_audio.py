"""What happens to recordings that are longer than a model takes: refuse them, crop them, or ask chunk by chunk.

``refuse``   nothing is done; preflight names the items and no call is made
``crop``     a question about a moment is asked over the longest stretch the model takes, centred on the moment (moved
             inside the recording at its ends); the moment told is that of the stretch. Questions about the whole
             recording are refused: no stretch stands for it
``chunk``    the same for questions about a moment; any other is asked of every chunk of the recording, all of one
             length, without overlap, and what is said of them is merged by the task

Nothing is cut in silence: every stretch stands in ``items.jsonl`` and enters the reply's key, its seconds stand with
every reply, and the run card counts what was done and tells the rule.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from earwitness.errors import UsageError
from earwitness.models.payload import longest_seconds
from earwitness.models.protocols import AudioRef, Limits
from earwitness.runs.items import Part, Question

LongAudio = Literal["refuse", "crop", "chunk"]
POLICIES: tuple[LongAudio, ...] = get_args(LongAudio)
CROP_RULE = "a question about a moment is asked over the longest stretch the model takes, centred on the moment"
CHUNK_RULE = (
    f"{CROP_RULE}; any other question is asked of every chunk (equal lengths, no overlap) and merged: the label most "
    "chunks name, a tie is ambiguous, chunks without a label do not vote, a failed chunk fails the item; free texts "
    "are joined in their order"
)
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Fitted:
    """Questions as they will be asked. ``cropped`` and ``chunked`` count questions, ``chunks`` the items in place of
    the chunked ones; ``longest_s`` is the longest stretch that is sent of a cut recording."""

    questions: tuple[Question, ...]
    policy: LongAudio
    cropped: int = 0
    chunked: int = 0
    chunks: int = 0
    longest_s: float = 0.0

    def described(self) -> dict[str, Any] | None:
        """What the run card says of it; None where nothing was done."""
        if not self.cropped and not self.chunked:
            return None
        return {
            "policy": self.policy,
            "rule": CROP_RULE if self.policy == "crop" else CHUNK_RULE,
            "longest_s": self.longest_s,
            "cropped": self.cropped,
            "chunked": self.chunked,
            "chunks": self.chunks,
        }


def check_policy(name: str) -> LongAudio:
    """A policy by name.

    Raises
    ------
    UsageError: there is no such policy.
    """
    for policy in POLICIES:
        if policy == name:
            return policy
    raise UsageError("--long-audio", repr(name), " or ".join(POLICIES))


def fit(
    questions: Sequence[Question], limits: Limits, policy: LongAudio, *, model: str = "the model"
) -> Fitted:
    """Cut what is too long for a model.

    Raises
    ------
    UsageError: ``crop``, and a question asks about no moment; or the model takes next to nothing.
    DataError: a file cannot be read.
    """
    if policy == "refuse":
        return Fitted(tuple(questions), policy)
    fitted: list[Question] = []
    without: list[str] = []
    longest: dict[str, float | None] = {}
    cropped = chunked = chunks = 0
    most = 0.0
    for question in questions:
        audio = question.item.audio
        limit = None if audio is None else _limit(audio, limits, longest, model)
        if audio is None or limit is None:
            fitted.append(question)
            continue
        most = max(most, limit)
        if question.item.moment is not None:
            fitted.append(_around(question, audio, limit))
            cropped += 1
        elif policy == "crop":
            without.append(question.item.id)
        else:
            parts = _chunks(question, audio, limit)
            fitted += parts
            chunked += 1
            chunks += len(parts)
    if without:
        named = ", ".join(without[:_SHOWN]) + (", ..." if len(without) > _SHOWN else "")
        raise UsageError(
            "--long-audio crop",
            f"{len(without)} of {len(questions)} items are too long for {model} and ask about no moment to crop "
            f"around: {named}",
            "questions about a moment",
            "Nothing was asked. Use --long-audio chunk for these.",
        )
    return Fitted(tuple(fitted), policy, cropped, chunked, chunks, most)


def _limit(
    audio: AudioRef, limits: Limits, known: dict[str, float | None], model: str
) -> float | None:
    key = f"{audio.identity} {audio.path}"
    if key not in known:
        known[key] = longest_seconds(audio, limits)
    found = known[key]
    if found is not None and found < max(limits.min_seconds or 0.0, 0.05):
        raise UsageError(
            model,
            f"takes {found:g} s of {audio.path.name} at most",
            "enough of it to hear something",
            "Nothing was asked. See its max_seconds, min_seconds and max_bytes.",
        )
    return found


def _cut(audio: AudioRef, start_s: float, end_s: float) -> AudioRef:
    return replace(audio, seconds=round(end_s - start_s, 3), window=(start_s, end_s))


def _around(question: Question, audio: AudioRef, limit: float) -> Question:
    moment = question.item.moment
    assert moment is not None
    start = min(max(moment.seconds - limit / 2, 0.0), audio.seconds - limit)
    start = math.floor(start * 1000) / 1000
    end = round(start + limit, 3)
    known = dict(question.item.metadata)
    if "t" in known:
        # What local models may know of the prompt must say the same as the prompt.
        known["t"] = f"{moment.seconds - start:.1f}"
    item = replace(
        question.item,
        audio=_cut(audio, start, end),
        prompt=moment.prompt_at(moment.seconds - start),
        metadata=known,
    )
    return replace(question, item=item)


def _chunks(question: Question, audio: AudioRef, limit: float) -> list[Question]:
    count = math.ceil(audio.seconds / limit)
    # Edges in whole milliseconds could make one chunk a hair too long.
    while math.ceil(audio.seconds / count * 1000) / 1000 > limit:
        count += 1
    edges = [round(audio.seconds * index / count, 3) for index in range(count + 1)]
    edges[-1] = audio.seconds
    parts = []
    for index in range(1, count + 1):
        item = replace(
            question.item,
            id=f"{question.item.id}#{index}/{count}",
            audio=_cut(audio, edges[index - 1], edges[index]),
        )
        parts.append(replace(question, item=item, part=Part(question.item.id, index, count)))
    return parts
