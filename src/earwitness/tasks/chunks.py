"""Questions that were asked chunk by chunk: one decision from several.

The rule is stated in :data:`earwitness.runs.long_audio.CHUNK_RULE` and stands in the run card: the label that most
chunks name; a tie is ``ambiguous``; chunks without a label do not vote; where none has one, the outcome most of them
have; a failed chunk fails the item, as it can still be asked. Free texts (summaries) are joined in their order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from earwitness.runs.folder import StoredQuestion
from earwitness.runs.outcomes import OUTCOME_KINDS, Outcome
from earwitness.tasks.records import Decision


def merge_chunks(
    pairs: Iterable[tuple[StoredQuestion, Decision]], *, join_texts: bool = False
) -> tuple[Decision, ...]:
    """One decision for every question, in their order; those that were not divided stay as they are.

    Parameters
    ----------
    join_texts: the answers are free texts.
    """
    grouped: dict[tuple[str, str], list[Decision]] = {}
    whole: dict[tuple[str, str], bool] = {}
    for question, decision in pairs:
        key = (question.part_of or question.id, question.condition)
        grouped.setdefault(key, []).append(decision)
        whole[key] = not question.part_of
    return tuple(
        parts[0] if whole[key] else _merged(key[0], parts, join_texts=join_texts)
        for key, parts in grouped.items()
    )


def _merged(item: str, parts: Sequence[Decision], *, join_texts: bool) -> Decision:
    texts = [part.reply for part in parts]
    costs = [part.cost_usd for part in parts if part.cost_usd is not None]
    latencies = [part.latency_s for part in parts if part.latency_s is not None]
    if join_texts:
        said = [part.reply for part in parts if part.outcome.kind == "answered" and part.reply]
        reply = "\n\n".join(said) or None
    else:
        reply = "\n".join(
            f"[{number}/{len(parts)}] {text}"
            for number, text in enumerate(texts, 1)
            if text is not None
        )
    return replace(
        parts[0],
        item_id=item,
        outcome=_outcome([part.outcome for part in parts], join_texts=join_texts),
        seconds=sum(part.seconds for part in parts),
        reply=reply or None,
        latency_s=sum(latencies) if latencies else None,
        cost_usd=sum(costs) if costs else None,
    )


def _outcome(outcomes: Sequence[Outcome], *, join_texts: bool) -> Outcome:
    n = len(outcomes)
    failed = [outcome for outcome in outcomes if outcome.kind == "failed"]
    if failed:
        return replace(failed[0], rule=f"{len(failed)} of {n} chunks: {failed[0].rule}")
    votes = Counter(outcome.label for outcome in outcomes if outcome.label is not None)
    if not votes:
        kinds = Counter(outcome.kind for outcome in outcomes)
        kind = max(OUTCOME_KINDS, key=lambda each: kinds[each])
        first = next(outcome for outcome in outcomes if outcome.kind == kind)
        return replace(first, rule=f"{kinds[kind]} of {n} chunks: {first.rule}")
    told = ", ".join(f"{label} {count}" for label, count in votes.most_common())
    most = max(votes.values())
    leading = [label for label, count in votes.items() if count == most]
    if len(leading) > 1:
        return Outcome("ambiguous", rule=f"chunks tie ({told})", native=told)
    rule = f"joined from {most} of {n} chunks" if join_texts else f"most of {n} chunks ({told})"
    return Outcome("answered", leading[0], rule=rule, native=told)
