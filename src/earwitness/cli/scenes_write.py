"""``earwitness scenes write``: topics and dialogues for every scene of a plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from earwitness.cli.scenes_calls import (
    AsJson,
    BankFolder,
    Concurrency,
    Limit,
    MaxCalls,
    MaxCost,
    MaxRetries,
    ModelsFile,
    Price,
    Rate,
    Shard,
    Timeout,
    Workers,
    call_settings,
    end_by_what_is_left,
    progress_bar,
    prompts_folder,
    shard_of,
    usage_words,
)

if TYPE_CHECKING:
    from rich.console import Console

    from earwitness.scenes.corpus import Corpus
    from earwitness.scenes.writers.calls import Meter
    from earwitness.scenes.writing_loop import WritingResult


def register_write(group: typer.Typer) -> None:
    """Add ``write`` to the ``scenes`` group."""
    group.command("write")(write)


def write(
    folder: Path = typer.Argument(..., metavar="CORPUS", help="Folder made by scenes plan."),
    writer: str | None = typer.Option(
        None,
        "--writer",
        "-w",
        show_default="offline/phrasebook, or that of the corpus",
        help="offline/phrasebook, adapter/NAME, or an entry of models.yaml.",
    ),
    option: list[str] = typer.Option(
        [],
        "-M",
        help="key=value for the models: base_url, temperature, seed, family ...; topic.KEY and "
        "templates.KEY are for one of them alone.",
    ),
    topic_writer: str | None = typer.Option(
        None, "--topic-writer", help="Another model for the topics."
    ),
    templates_writer: str | None = typer.Option(
        None,
        "--templates-writer",
        help="A model for the situations, instead of those of the bank.",
    ),
    bank: BankFolder = None,
    prompts: Path | None = typer.Option(
        None,
        "--prompts",
        metavar="DIR|default",
        show_default="those of the corpus, or that ship",
        help="Prompts of yours: topic, dialogue, templates .yaml; kept in the corpus.",
    ),
    models_file: ModelsFile = None,
    limit: Limit = None,
    max_attempts: int | None = typer.Option(
        None, min=1, show_default="5", help="Drafts of a scene before it is abandoned."
    ),
    max_refills: int | None = typer.Option(
        None, min=0, show_default="3", help="Fresh scenes tried in place of an abandoned one."
    ),
    shard: Shard = None,
    workers: Workers = None,
    concurrency: Concurrency = 8,
    max_retries: MaxRetries = 5,
    rate: Rate = None,
    timeout: Timeout = 600.0,
    max_calls: MaxCalls = None,
    max_cost: MaxCost = None,
    price: Price = None,
    replace: bool = typer.Option(
        False, "--replace", help="Write anew what another writer has written."
    ),
    as_json: AsJson = False,
) -> None:
    """Write a topic and a dialogue for every scene of a plan.

    A draft that breaks a rule goes back to its writer with the list of broken rules. A scene that never
    succeeds is abandoned, and a fresh one with the same allocation takes its place. The command can be
    stopped at any moment and repeated: no reply is bought twice, and the corpus comes out the same.

    Exits with 3 while scenes wait (failed calls) and with 1 when places stay empty.

    [bold]Examples:[/]

      earwitness scenes write corpus

      earwitness scenes write corpus --writer openai/gpt-5 -M family=gpt -M temperature=0.9 --max-cost 20

      earwitness scenes write corpus --writer openai/qwen3 -M base_url=http://localhost:8000/v1 -M family=qwen
    """
    import asyncio

    from rich.console import Console

    from earwitness.models.options import parse_options
    from earwitness.scenes.corpus import Corpus
    from earwitness.scenes.corpus_config import LoopUsed
    from earwitness.scenes.corpus_writing import PHRASEBOOK, WritingOrder, write_corpus
    from earwitness.scenes.writers.calls import Meter

    corpus = Corpus(folder)
    config = corpus.config
    options: dict[str, Any] = dict(parse_options(option))
    if writer is None and config.writer is not None:
        if not (topic_writer or templates_writer):
            topic_writer = config.topic_writer.name if config.topic_writer else None
            templates_writer = config.templates_writer.name if config.templates_writer else None
        writer = config.writer.name
        options = {**config.writer.options, **options}
    used = config.loop or LoopUsed()
    order = WritingOrder(
        writer=writer or PHRASEBOOK,
        options=options,
        topic_writer=topic_writer,
        templates_writer=templates_writer,
        loop=LoopUsed(
            max_attempts=max_attempts or used.max_attempts,
            max_refills=used.max_refills if max_refills is None else max_refills,
        ),
        limit=limit,
        shard=shard_of(shard, limit),
        workers=workers,
        calls=call_settings(
            concurrency=concurrency,
            max_retries=max_retries,
            rate=rate,
            timeout=timeout,
            max_calls=max_calls,
            max_cost=max_cost,
            price=price,
        ),
        prompts=prompts_folder(prompts),
        models_file=models_file,
        replace=replace,
    )
    loaded = corpus.bank(bank)
    console = Console(stderr=True)
    if config.judge is not None and shard is None:
        console.print(
            "[yellow]note[/] this corpus was filtered; what is written now is filtered by: "
            f"earwitness scenes filter {folder} (stored verdicts are used again)",
            highlight=False,
            soft_wrap=True,
        )
    meter = Meter()
    with progress_bar(console, meter) as show:
        result = asyncio.run(
            write_corpus(corpus, loaded, order, bank_folder=bank, on_progress=show, meter=meter)
        )
    finish(corpus, result, meter, console, as_json=as_json, shard=order.shard is not None)


def finish(
    corpus: Corpus,
    result: WritingResult,
    meter: Meter,
    console: Console,
    *,
    as_json: bool,
    shard: bool = False,
) -> None:
    """Say what a run made and exit by it: 0 complete, 3 scenes wait, 1 places stay empty."""
    import json

    from earwitness.scenes.writing_report import acceptance

    table = acceptance(result)
    failed, lost = result.failed, result.lost
    if as_json:
        summary = {
            "corpus": str(corpus.folder),
            "places": len(result.places),
            "dialogues": len(result.dialogues),
            "attempts": table.attempts,
            "abandoned": len(result.abandoned),
            "refills": len(result.refills),
            "lost": list(lost),
            "failed": failed,
            "stopped": meter.stopped,
            "calls": meter.calls,
            "input_tokens": meter.input_tokens,
            "output_tokens": meter.output_tokens,
            "cached_tokens": meter.cached_tokens,
            "cost_usd": round(meter.cost_usd, 6),
            "acceptance": table.to_json(),
        }
        typer.echo(json.dumps(summary, ensure_ascii=False, indent=2))
    else:
        _print_result(corpus, result, meter, shard=shard)
    end_by_what_is_left(result, meter, console, help_with=" or another writer")


def _print_result(corpus: Corpus, result: WritingResult, meter: Meter, *, shard: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    from earwitness.scenes.writing_report import acceptance

    console = Console(highlight=False)
    table = acceptance(result)
    grid = Table("P-V-B-A", box=None, padding=(0, 2, 0, 0))
    for column in ("places", "filled", "first draft", "drafts", "abandoned"):
        grid.add_column(column, justify="right")
    for row in (*table.rows, table.total):
        grid.add_row(
            row.composition, str(row.places), str(row.filled), f"{row.first_share:.1%}",
            str(row.attempts), str(row.abandoned),
        )  # fmt: skip
    console.print(grid)
    if table.reasons:
        told = ", ".join(f"{code} {count}" for code, count in table.reasons.items())
        console.print(f"\nturned down for: {told}", soft_wrap=True)
    if meter.calls:
        console.print("models: " + ", ".join(usage_words(meter)))
    where = "logs of this shard" if shard else str(corpus.folder)
    console.print(
        f"\n{where}: {len(result.dialogues)} of {len(result.places)} dialogues", soft_wrap=True
    )
