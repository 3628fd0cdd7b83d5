"""Looking at every item before the first paid call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from earwitness.errors import UsageError
from earwitness.models.payload import PayloadStore, estimate_bytes
from earwitness.models.protocols import AudioModel, Preflight, Request
from earwitness.runs.items import Item

SHOWN = 5


@dataclass(frozen=True, slots=True)
class Problem:
    """An item that a model cannot take, and why."""

    item: str
    why: str


def _problem(item: Item, model: AudioModel) -> str | None:
    limits = model.limits
    if item.audio is None:
        return "has no audio, and the model needs some" if limits.needs_audio else None
    if not item.audio.path.is_file():
        return f"its audio file is missing: {item.audio.path}"
    seconds = item.audio.seconds
    if limits.max_seconds is not None and seconds > limits.max_seconds:
        return f"is {seconds:.1f} s long, the model takes at most {limits.max_seconds:g} s"
    if limits.min_seconds is not None and seconds < limits.min_seconds:
        return f"is {seconds:.2f} s long, the model needs at least {limits.min_seconds:g} s"
    if limits.max_bytes is not None:
        size = estimate_bytes(item.audio, limits)
        if size > limits.max_bytes:
            return f"is {size} bytes as sent, the model takes at most {limits.max_bytes}"
    return None


def find_problems(items: Sequence[Item], model: AudioModel) -> tuple[Problem, ...]:
    """Items outside the model's declared limits."""
    found = ((item.id, _problem(item, model)) for item in items)
    return tuple(Problem(item, why) for item, why in found if why)


def request_of(item: Item, key: str, payloads: PayloadStore | None = None) -> Request:
    """The request that asks an item; its reply's key doubles as the idempotency key."""
    audio = item.audio
    if audio is not None and payloads is not None:
        audio = replace(audio, store=payloads)
    return Request(
        item_id=item.id,
        prompt=item.prompt,
        audio=audio,
        idempotency_key=key,
        metadata=item.metadata,
    )


def preflight(items: Sequence[Item], model: AudioModel) -> None:
    """Refuse a run that some item would break.

    Raises
    ------
    UsageError: items outside the model's limits; all are counted, the first five are named.
    EarwitnessError: whatever the model itself refuses.
    """
    problems = find_problems(items, model)
    if problems:
        named = "; ".join(f"{problem.item} {problem.why}" for problem in problems[:SHOWN])
        more = f"; and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
        raise UsageError(
            model.name,
            f"cannot take {len(problems)} of {len(items)} items: {named}{more}",
            next_step="Nothing was asked. Choose another model or a set within its limits, or say what to do "
            "with longer ones: --long-audio crop or chunk.",
        )
    if isinstance(model, Preflight):
        model.preflight([request_of(item, "") for item in items])
