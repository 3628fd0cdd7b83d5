"""The ``filter`` stage: an independent judge reads every dialogue, what it reads otherwise is written again.

Writes ``recovery.json`` (how it went) and, where tau was found here, ``topic_threshold.json`` into the corpus.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from earwitness.errors import UsageError
from earwitness.runs.folder import write_atomically
from earwitness.scenes.bank import Bank
from earwitness.scenes.corpus import VERDICTS, Corpus
from earwitness.scenes.corpus_card import RECOVERY, write_card
from earwitness.scenes.corpus_prompts import keep_prompts, prompts_in_use
from earwitness.scenes.corpus_writing import WritingOrder, logs_folder, write_corpus
from earwitness.scenes.recovery import refuse_related
from earwitness.scenes.recovery_chat import JUDGE_PROMPT
from earwitness.scenes.recovery_gate import RecoveryGate
from earwitness.scenes.recovery_opening import JUDGE_CALLS, READER, authors_of, opened_judge
from earwitness.scenes.recovery_report import RecoveryReport, report
from earwitness.scenes.recovery_threshold import Threshold
from earwitness.scenes.writers.prompts import FOLDER as PROMPTS
from earwitness.scenes.writing_loop import LoopProgress, WritingResult

if TYPE_CHECKING:
    from earwitness.models.protocols import Embedder
    from earwitness.scenes.writers.calls import Meter

THRESHOLD = "topic_threshold.json"
FILTER_REFILLS = 20
"""A judge turns down more than the rules do, and each place has to be filled for the plan to stand: of 1,000 places
of the phrasebook, one needed more than ten."""


@dataclass(frozen=True, slots=True)
class JudgeOrder:
    """Who judges a corpus, and by what.

    Attributes
    ----------
    embedder: None is the one that ships.
    tau: a file of ``calibrate-topic``, a number, or None: kept in the corpus, or found on the pairs that ship.
    asks: how often a transcript is put to a model that gives no verdict.
    prompts: folder with a ``judge.yaml`` of the user's; None means the one kept in the corpus, else what ships.
    """

    judge: str = READER
    options: Mapping[str, Any] = field(default_factory=dict)
    embedder: str | None = None
    embedder_options: Mapping[str, str] = field(default_factory=dict)
    tau: str | None = None
    asks: int | None = None
    prompts: Path | None = None


@dataclass(frozen=True, slots=True)
class Filtered:
    """What filtering made. ``judged`` counts transcripts that were put to the judge in this run."""

    result: WritingResult
    figures: RecoveryReport
    threshold: Threshold
    judged: int

    def to_json(self, judge: Mapping[str, Any] | None) -> dict[str, Any]:
        """What ``recovery.json`` says."""
        return {"judge": judge, "tau": self.threshold.tau, **self.figures.to_json()}


def with_filter_refills(order: WritingOrder, max_refills: int | None = None) -> WritingOrder:
    """An order that tries as many fresh scenes as a judge makes necessary, or as many as are named."""
    tried = max(order.loop.max_refills, FILTER_REFILLS) if max_refills is None else max_refills
    return replace(order, loop=order.loop.model_copy(update={"max_refills": tried}))


async def filter_corpus(
    corpus: Corpus,
    bank: Bank,
    order: WritingOrder,
    by: JudgeOrder,
    *,
    bank_folder: Path | None = None,
    on_progress: Callable[[LoopProgress], None] | None = None,
    on_threshold: Callable[[Threshold], None] | None = None,
    meter: Meter | None = None,
) -> Filtered:
    """Keep the dialogues whose topic and reactions a judge recovers; have the others written again.

    Parameters
    ----------
    order: who writes, and the limits of calls, for writer and judge alike. A shard of it judges every so-many-th
        place into logs of its own; the run without shards that follows finds every verdict there.
    on_threshold: told tau where it was found in this run.

    Raises
    ------
    JudgeFamilyError: writer and judge are of one family, or of families nobody declared.
    ThresholdError: tau is no number, or of another embedder.
    UsageError, DataError: as :func:`earwitness.scenes.corpus_writing.write_corpus`.
    """
    from earwitness.models.embedders.registry import open_embedder

    embedder = open_embedder(by.embedder, by.embedder_options)
    logs = logs_folder(corpus, order.shard)
    calls, verdicts = logs / JUDGE_CALLS, logs / VERDICTS
    prompts = _judge_prompts(corpus, by)
    with opened_judge(
        by.judge,
        by.options,
        bank,
        calls,
        others=[path for path in corpus.logs(JUDGE_CALLS) if path != calls],
        settings=order.calls,
        meter=meter,
        prompts=prompts,
        asks=by.asks,
        models_file=order.models_file,
    ) as reader:
        refuse_related(reader.name, reader.family, authors_of(corpus.config, order))
        threshold, is_new = await _threshold(by.tau, corpus, bank, embedder)
        if is_new and on_threshold:
            on_threshold(threshold)
        if prompts is not None:
            keep_prompts(corpus, prompts, (JUDGE_PROMPT,), PROMPTS)
        others = [path for path in corpus.logs(VERDICTS) if path != verdicts]
        gate = RecoveryGate(bank, reader, embedder, threshold, verdicts, others)
        try:
            made = await write_corpus(
                corpus, bank, order, gate=gate, bank_folder=bank_folder,
                on_progress=on_progress, meter=meter,
            )  # fmt: skip
        finally:
            await gate.aclose()
        found = Filtered(made, report(made, gate.rulings, threshold.tau), threshold, gate.judged)
    if order.shard is not None:
        return found
    kept = found.to_json(Corpus(corpus.folder).config.judge)
    text = json.dumps(kept, ensure_ascii=False, indent=2)
    write_atomically(corpus.path(RECOVERY), text + "\n")
    write_card(corpus, bank)
    return found


def _judge_prompts(corpus: Corpus, by: JudgeOrder) -> Path | None:
    """The folder of the judge's prompt; None for a judge that asks nobody."""
    if by.judge.partition("/")[0] != "offline":
        return prompts_in_use(corpus, by.prompts, (JUDGE_PROMPT,), PROMPTS)
    if by.prompts is not None:
        raise UsageError(
            "--prompts",
            f"given with {by.judge}, which asks nobody",
            "a model as --judge, or no prompts",
        )
    return None


async def _threshold(
    given: str | None, corpus: Corpus, bank: Bank, embedder: Embedder
) -> tuple[Threshold, bool]:
    """The threshold that was named, or kept in the corpus, or found now on the pairs that ship; whether the last."""
    from earwitness.models.embedders.hashes import embedder_hash
    from earwitness.scenes.recovery_threshold import (
        calibrate,
        parse_tau,
        read_threshold,
        require_embedder,
        require_useful,
        write_threshold,
    )
    from earwitness.scenes.topic_pairs import load_topic_pairs

    own_hash = embedder_hash(embedder)
    if given is not None and not _is_file_name(given):
        return Threshold(parse_tau(given), embedder.name, own_hash), False
    kept = corpus.path(THRESHOLD)
    path = Path(given) if given is not None else kept
    if given is not None or (kept.exists() and read_threshold(kept).embedder_hash == own_hash):
        found = read_threshold(path)
        require_embedder(found, embedder.name, own_hash, str(path))
        return found, False
    if not bank.language.lower().startswith("en"):
        raise UsageError(
            "--tau",
            f"none given, and the pairs that ship are English while the bank is {bank.language!r}",
            "a threshold for its language",
            "Find one: earwitness scenes calibrate-topic --pairs FILE --out tau.json.",
        )
    found = (await calibrate(load_topic_pairs(), embedder)).threshold
    require_useful(found)
    write_threshold(kept, found)
    return found, True


def _is_file_name(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return Path(text).suffix != "" or Path(text).exists()
    return False
