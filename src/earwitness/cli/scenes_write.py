"""``earwitness scenes write``: topics and dialogues for every scene of a plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from earwitness.scenes.corpus import Corpus
    from earwitness.scenes.writers.calls import Meter
    from earwitness.scenes.writing_loop import LoopProgress, WritingResult


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
    bank: Path | None = typer.Option(
        None, "--bank", metavar="DIR", show_default="the bank that ships", help="Bank of the plan."
    ),
    prompts: Path | None = typer.Option(
        None, "--prompts", metavar="DIR", help="Prompts of yours: topic, dialogue, templates .yaml."
    ),
    models_file: Path | None = typer.Option(
        None, help="File of named models [default: models.yaml]."
    ),
    limit: int | None = typer.Option(None, min=1, help="Only the first N scenes."),
    max_attempts: int | None = typer.Option(
        None, min=1, show_default="5", help="Drafts of a scene before it is abandoned."
    ),
    max_refills: int | None = typer.Option(
        None, min=0, show_default="3", help="Fresh scenes tried in place of an abandoned one."
    ),
    shard: str | None = typer.Option(
        None, "--shard", metavar="I/N", help="Only every N-th scene, into logs of its own."
    ),
    workers: int | None = typer.Option(None, min=1, help="Processes [default: one per processor]."),
    concurrency: int = typer.Option(8, min=1, help="Calls at the same time."),
    max_retries: int = typer.Option(5, min=0, help="Further tries of a call that failed."),
    rate: float | None = typer.Option(None, min=0.01, help="Calls a minute at most."),
    timeout: float = typer.Option(600.0, min=0.1, help="Seconds to wait for one reply."),
    max_calls: int | None = typer.Option(None, min=1, help="Stop before more calls than this."),
    max_cost: float | None = typer.Option(
        None, min=0, help="Stop before more US dollars than this."
    ),
    price: str | None = typer.Option(
        None, help="input=2.5,output=10 (USD per million tokens), call=..."
    ),
    replace: bool = typer.Option(
        False, "--replace", help="Write anew what another writer has written."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object instead of text."),
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

    from earwitness.errors import UsageError
    from earwitness.models.options import parse_options
    from earwitness.runs.budgets import parse_price
    from earwitness.runs.runner import RunnerSettings
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
        shard=_shard(shard),
        workers=workers,
        calls=RunnerSettings(
            concurrency=concurrency,
            max_retries=max_retries,
            calls_per_minute=rate,
            call_timeout_s=timeout,
            max_calls=max_calls,
            max_cost_usd=max_cost,
            price=parse_price(price) if price else None,
        ),
        prompts=prompts,
        models_file=models_file,
        replace=replace,
    )
    if order.limit and order.shard:
        raise UsageError("--limit and --shard", "both given", "one of them")
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


def _shard(text: str | None) -> tuple[int, int] | None:
    from earwitness.errors import UsageError

    if text is None:
        return None
    first, slash, second = text.partition("/")
    if not slash or not first.isdigit() or not second.isdigit():
        raise UsageError("--shard", repr(text), "I/N, such as 1/8")
    number, of = int(first), int(second)
    if not 1 <= number <= of:
        raise UsageError("--shard", repr(text), f"a number from 1/{of} to {of}/{of}")
    return number, of


class progress_bar:  # noqa: N801
    """A line that shows stage, scenes, attempts, tokens and cost; use as a context manager."""

    def __init__(self, console: Console, meter: Meter) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as Bars

        self._meter = meter
        self._bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[detail]}"),
            console=console,
        )
        self._last: LoopProgress | None = None
        meter.on_change = self._metered

    def __enter__(self) -> Callable[[LoopProgress], None]:
        self._bars.start()
        self._line = self._bars.add_task("starting", total=None, detail="")
        return self._show

    def __exit__(self, *problem: object) -> None:
        self._bars.stop()

    def _metered(self, meter: Meter) -> None:
        del meter
        if self._last is not None:
            self._show(self._last)

    def _show(self, progress: LoopProgress) -> None:
        self._last = progress
        detail = [f"{progress.accepted} of {progress.places} stand"]
        if progress.rejected:
            detail.append(f"{progress.rejected.total()} faults")
        if progress.abandoned:
            detail.append(f"{progress.abandoned} abandoned")
        detail += usage_words(self._meter)
        if self._meter.waiting:
            detail.append(self._meter.waiting)
        self._bars.update(
            self._line,
            description=progress.stage,
            completed=progress.done,
            total=progress.of,
            detail=", ".join(detail),
        )


def usage_words(meter: Meter) -> list[str]:
    """Calls, tokens and cost in words; nothing where nothing was asked."""
    if not meter.calls:
        return []
    words = [f"{meter.calls} calls", f"{meter.input_tokens:,}+{meter.output_tokens:,} tokens"]
    if meter.cost_usd:
        words.append(f"{meter.cost_usd:.4f} USD")
    return words


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
            "cost_usd": round(meter.cost_usd, 6),
            "acceptance": table.to_json(),
        }
        typer.echo(json.dumps(summary, ensure_ascii=False, indent=2))
    else:
        _print_result(corpus, result, meter, shard=shard)
    if meter.stopped:
        console.print(f"[bold red]stopped[/] {meter.stopped}", highlight=False, markup=True)
    if failed:
        name, reason = next(iter(failed.items()))
        console.print(
            f"[yellow]incomplete[/] {len(failed)} scenes wait; {name}: {reason}", highlight=False,
            soft_wrap=True,
        )  # fmt: skip
        console.print("Run the same command again to go on.", highlight=False)
        raise typer.Exit(3)
    if lost:
        console.print(
            f"[bold red]error[/] {len(lost)} places stay empty, such as {lost[0]}; more attempts "
            "(--max-attempts, --max-refills) or another writer may fill them.",
            highlight=False,
            soft_wrap=True,
        )
        raise typer.Exit(1)


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
