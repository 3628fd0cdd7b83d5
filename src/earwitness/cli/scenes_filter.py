"""``earwitness scenes filter``: does an independent reader recover what was planned?"""

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
    from collections.abc import Mapping

    from rich.console import Console

    from earwitness.scenes.corpus import Corpus
    from earwitness.scenes.recovery_filter import Filtered
    from earwitness.scenes.recovery_report import RecoveryReport
    from earwitness.scenes.recovery_threshold import Threshold
    from earwitness.scenes.writers.calls import Meter
    from earwitness.scenes.writing_loop import WritingResult

THRESHOLD = "topic_threshold.json"


def register_filter(group: typer.Typer) -> None:
    """Add ``filter`` to the ``scenes`` group."""
    group.command("filter")(filter_corpus)


def filter_corpus(
    folder: Path = typer.Argument(..., metavar="CORPUS", help="Folder of a written corpus."),
    judge: str = typer.Option(
        "offline/reader",
        "--judge",
        "-j",
        help="offline/reader, adapter/NAME, or an entry of models.yaml.",
    ),
    option: list[str] = typer.Option(
        [], "-M", help="key=value for the judge: family (needed), base_url, temperature ..."
    ),
    embedder: str | None = typer.Option(
        None,
        "--embedder",
        show_default="local/minilm",
        help="local/minilm, hub/OWNER/NAME, openai/NAME: compares planned and recovered topic.",
    ),
    embedder_option: list[str] = typer.Option([], "-E", help="key=value for the embedder."),
    tau: str | None = typer.Option(
        None,
        "--tau",
        metavar="FILE|VALUE",
        show_default="found on the pairs that ship, kept in the corpus",
        help="Least cosine of the topics: a file of calibrate-topic, or a number.",
    ),
    writer: str | None = typer.Option(
        None,
        "--writer",
        show_default="that of the corpus",
        help="Who rewrites what is turned down.",
    ),
    writer_option: list[str] = typer.Option(
        [], "-W", help="key=value for the writer, over those of the corpus."
    ),
    max_attempts: int | None = typer.Option(
        None, min=1, show_default="as written", help="Drafts of a scene before it is abandoned."
    ),
    max_refills: int | None = typer.Option(
        None,
        min=0,
        show_default="20, or more if so written",
        help="Fresh scenes tried in place of an abandoned one.",
    ),
    asks: int | None = typer.Option(
        None,
        min=1,
        show_default="3",
        help="Times a transcript is put to a judge that gives no verdict.",
    ),
    bank: BankFolder = None,
    prompts: Path | None = typer.Option(
        None,
        "--prompts",
        metavar="DIR|default",
        show_default="that of the corpus, or that ships",
        help="Folder with a judge.yaml of yours; kept in the corpus.",
    ),
    models_file: ModelsFile = None,
    limit: Limit = None,
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
        False, "--replace", help="Go on although another writer's dialogues are there."
    ),
    as_json: AsJson = False,
) -> None:
    """Keep the dialogues whose topic and reactions an independent judge recovers from the words.

    The judge reads the transcript with marks where sounds occur, and says what it is about and how the talk
    reacts to each sound. A dialogue it reads otherwise than planned goes back to its writer with the reasons; after
    --max-attempts its scene is abandoned and a fresh one with the same allocation takes the place, so the
    accepted corpus has the planned distribution. Writer and judge must be of different families of models.

    Stopped at any moment, the command goes on where it was: verdicts are kept by content (verdicts.jsonl), raw
    replies in judge_calls.jsonl, figures in recovery.json. Exits with 3 while scenes wait, with 1 when places stay empty.

    With --shard each of N processes judges its part (and has it written again); the run without it that follows
    finds every verdict and puts the corpus together, the same as without shards.

    [bold]Examples:[/]

      earwitness scenes filter corpus

      earwitness scenes filter corpus --judge openai/gpt-5 -M family=gpt --max-cost 20

      earwitness scenes filter corpus --embedder hub/BAAI/bge-large-en-v1.5 --tau bge.json
    """
    import asyncio

    from rich.console import Console

    from earwitness.models.options import parse_options
    from earwitness.scenes.corpus import Corpus
    from earwitness.scenes.corpus_writing import order_of
    from earwitness.scenes.recovery_filter import (
        JudgeOrder,
        filter_corpus,
        with_filter_refills,
    )
    from earwitness.scenes.writers.calls import Meter

    corpus = Corpus(folder)
    loaded = corpus.bank(bank)
    calls = call_settings(
        concurrency=concurrency, max_retries=max_retries, rate=rate, timeout=timeout,
        max_calls=max_calls, max_cost=max_cost, price=price,
    )  # fmt: skip
    order = order_of(
        corpus,
        limit=limit,
        shard=shard_of(shard, limit),
        workers=workers,
        calls=calls,
        models_file=models_file,
        replace=replace,
    )
    order = _rewritten(order, writer, parse_options(writer_option))
    if max_attempts:
        order = _with(order, loop=order.loop.model_copy(update={"max_attempts": max_attempts}))
    by = JudgeOrder(
        judge=judge,
        options=parse_options(option),
        embedder=embedder,
        embedder_options=parse_options(embedder_option),
        tau=tau,
        asks=asks,
        prompts=prompts_folder(prompts),
    )
    console = Console(stderr=True)
    meter = Meter()

    def tell(found: Threshold) -> None:
        console.print(
            f"tau {found.tau:.4f} for {found.embedder}, found on {found.positives} rewordings "
            f"(AUC {found.auc:.3f}); kept in {corpus.path(THRESHOLD)}",
            highlight=False,
            soft_wrap=True,
        )

    with progress_bar(console, meter) as show:
        filtered = asyncio.run(
            filter_corpus(
                corpus, loaded, with_filter_refills(order, max_refills), by, bank_folder=bank,
                on_progress=show, on_threshold=tell, meter=meter,
            )
        )  # fmt: skip
    _finish(corpus, filtered, meter, console, as_json=as_json)


def _with(order: Any, **changes: Any) -> Any:
    from dataclasses import replace

    return replace(order, **changes)


def _rewritten(order: Any, writer: str | None, options: Mapping[str, str]) -> Any:
    """The order with another writer, or other options of it."""
    if writer is None or writer == order.writer:
        return _with(order, options={**order.options, **options}) if options else order
    return _with(order, writer=writer, options=dict(options), topic_writer=None)


def _finish(
    corpus: Corpus, filtered: Filtered, meter: Meter, console: Console, *, as_json: bool
) -> None:
    """Print the figures; exit by what is left: 0 complete, 3 scenes wait, 1 places stay empty."""
    import json

    from earwitness.scenes.corpus import Corpus

    result, judged = filtered.result, filtered.judged
    failed, lost = result.failed, result.lost
    if as_json:
        summary = {
            "corpus": str(corpus.folder),
            "places": len(result.places),
            "dialogues": len(result.dialogues),
            "abandoned": len(result.abandoned),
            "refills": len(result.refills),
            "lost": list(lost),
            "failed": failed,
            "stopped": meter.stopped,
            "judged_now": judged,
            "calls": meter.calls,
            "cost_usd": round(meter.cost_usd, 6),
            "recovery": filtered.to_json(Corpus(corpus.folder).config.judge),
        }
        typer.echo(json.dumps(summary, ensure_ascii=False, indent=2))
    else:
        _print_report(corpus, result, filtered.figures, filtered.threshold, judged, meter)
    end_by_what_is_left(result, meter, console, help_with=", another writer or another judge")


def _print_report(
    corpus: Corpus,
    result: WritingResult,
    figures: RecoveryReport,
    threshold: Threshold,
    judged: int,
    meter: Meter,
) -> None:
    from rich.console import Console
    from rich.table import Table

    from earwitness.cli.recovery_tables import percent, print_confusion

    console = Console(highlight=False, soft_wrap=True)
    console.print(f"first drafts accepted      {percent(figures.accepted)}")
    console.print(f"  topic recovered          {percent(figures.topic)}, tau {threshold.tau:.4f}")
    for name, share in figures.recovered.items():
        console.print(f"  {name:<10} recovered     {percent(share)}")
    console.print(f"drafts per standing scene  {figures.mean_attempts:.2f}\n")
    print_confusion(console, figures.confusion)
    grid = Table("pivot-verbal-behavioral-ambient", box=None, padding=(0, 2, 0, 0))
    for column in ("places", "filled", "first draft accepted", "drafts", "abandoned"):
        grid.add_column(column, justify="right")
    for row in figures.writing.rows:
        first = figures.compositions.get(row.composition)
        grid.add_row(
            row.composition, str(row.places), str(row.filled),
            f"{first.value:.1%}" if first else "-", str(row.attempts), str(row.abandoned),
        )  # fmt: skip
    console.print(grid)
    if figures.writing.reasons:
        told = ", ".join(f"{code} {count}" for code, count in figures.writing.reasons.items())
        console.print(f"\nturned down for: {told}")
    if figures.as_planned:
        console.print("\ndistribution: as planned, in every marginal and joint count")
    else:
        off = ", ".join(f"{name} {n}" for name, n in figures.distribution.items() if n)
        console.print(f"\ndistribution: not yet as planned; cases off: {off}")
    if meter.calls:
        console.print("models: " + ", ".join(usage_words(meter)))
    console.print(
        f"{corpus.folder}: {len(result.dialogues)} of {len(result.places)} dialogues, {len(result.abandoned)} "
        f"scenarios abandoned, {len(result.refills)} refills; {judged} transcripts judged now"
    )
