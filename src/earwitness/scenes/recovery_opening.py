"""Opening judges by name, and saying who wrote what they are to judge."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from earwitness.errors import UsageError
from earwitness.scenes.bank import Bank
from earwitness.scenes.recovery import Author, Judge

if TYPE_CHECKING:
    from earwitness.runs.runner import RunnerSettings
    from earwitness.scenes.corpus_config import CorpusConfig
    from earwitness.scenes.corpus_writing import WritingOrder
    from earwitness.scenes.writers.calls import Meter

READER = "offline/reader"
JUDGE_CALLS = "judge_calls.jsonl"
"""Log in a corpus folder: every call of a judge, with times and costs."""


@contextlib.contextmanager
def opened_judge(
    name: str,
    options: Mapping[str, Any],
    bank: Bank,
    calls: Path,
    *,
    others: Sequence[Path] = (),
    settings: RunnerSettings | None = None,
    meter: Meter | None = None,
    prompts: Path | None = None,
    asks: int | None = None,
    models_file: Path | None = None,
) -> Iterator[Judge]:
    """A judge by name, with the ledger of its calls open for as long as it is used.

    Parameters
    ----------
    name: ``offline/reader``, ``adapter/NAME`` or an entry of the models file.
    calls: the ledger; made where a model is asked, untouched by ``offline/reader``.
    others: ledgers that may hold replies too, such as those of shards.
    asks: how often a transcript is put to a model that gives no verdict.

    Raises
    ------
    UsageError: no such judge or option.
    MissingExtraError: the reader's packages are not installed.
    """
    if name.partition("/")[0] == "offline":
        yield _open_offline(name, options, bank)
        return
    from earwitness.models.registry import open_text_model
    from earwitness.runs.ledger import Ledger
    from earwitness.scenes.recovery_chat import ASKS, ChatJudge
    from earwitness.scenes.writers.calls import TextCaller

    model = open_text_model(name, options, models_file=models_file)
    with contextlib.ExitStack() as stack:
        ledger = stack.enter_context(Ledger(calls))
        read = [stack.enter_context(Ledger(path, read_only=True)) for path in others]
        caller = TextCaller(model, ledger, settings, others=read, meter=meter)
        yield ChatJudge(caller, folder=prompts, asks=asks or ASKS)


def _open_offline(name: str, options: Mapping[str, Any], bank: Bank) -> Judge:
    if name != READER:
        raise UsageError(
            f"judge {name!r}", "there is no such offline judge", f"{READER}, or adapter/NAME"
        )
    if options:
        raise UsageError(f"judge {READER}", f"option {next(iter(options))!r}", "no options")
    from earwitness.models.embedders.static import StaticEmbedder
    from earwitness.scenes.reader.judge import OfflineReader

    return OfflineReader(bank, StaticEmbedder())


def authors_of(config: CorpusConfig, order: WritingOrder) -> tuple[Author, ...]:
    """Who writes the words of a corpus under an order, each with the declared family."""
    authors = [_author("writer", order.writer, config.writer, order)]
    if order.topic_writer is not None:
        authors.append(_author("topic writer", order.topic_writer, config.topic_writer, order))
    return tuple(authors)


def _author(part: str, name: str, used: Any, order: WritingOrder) -> Author:
    """The family the order declares, or that the corpus was written under."""
    from earwitness.scenes.writers.offline import NAME

    if name == NAME:
        return Author(part, name, "phrasebook")
    key = "topic.family" if part == "topic writer" else "dialogue.family"
    declared = order.options.get(key) or order.options.get("family")
    if declared is None and used is not None and used.name == name:
        declared = used.family
    if declared is None:
        from earwitness.models.registry import open_text_model

        declared = open_text_model(name, {}, models_file=order.models_file).family
    return Author(part, name, str(declared) if declared else None)
