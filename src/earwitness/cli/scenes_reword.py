"""``earwitness scenes reword-topics``: more pairs to find tau on, by a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from earwitness.cli.scenes_calls import (
    BankFolder,
    Concurrency,
    MaxCalls,
    MaxCost,
    MaxRetries,
    ModelsFile,
    Price,
    Rate,
    Timeout,
    call_settings,
    usage_words,
)

if TYPE_CHECKING:
    from earwitness.scenes.topic_rewording import Reworded


def register_reword(group: typer.Typer) -> None:
    """Add ``reword-topics`` to the ``scenes`` group."""
    group.command("reword-topics")(reword_topics)


def reword_topics(
    folder: Path = typer.Argument(..., metavar="CORPUS", help="Folder of a written corpus."),
    writer: str = typer.Option(
        ..., "--writer", "-w", help="Who rewords: adapter/NAME, or an entry of models.yaml."
    ),
    option: list[str] = typer.Option([], "-M", help="key=value for the model: base_url, seed ..."),
    out: Path = typer.Option(..., "--out", "-o", metavar="FILE", help="File of pairs to write."),
    templates: int | None = typer.Option(
        None, "--templates", min=1, help="Only topics of the first N templates."
    ),
    bank: BankFolder = None,
    prompts: Path | None = typer.Option(
        None, "--prompts", metavar="DIR", help="Folder with a rewordings.yaml of yours."
    ),
    models_file: ModelsFile = None,
    concurrency: Concurrency = 8,
    max_retries: MaxRetries = 5,
    rate: Rate = None,
    timeout: Timeout = 600.0,
    max_calls: MaxCalls = None,
    max_cost: MaxCost = None,
    price: Price = None,
) -> None:
    """Have a model reword the topics of a corpus, as somebody would who only overheard the talk.

    The pairs are for calibrate-topic --pairs: in a language without pairs that ship, or for more of them. Replies
    are kept beside the file (.calls.jsonl), and nothing is asked twice. Exits with 3 while calls failed.

    [bold]Example:[/] earwitness scenes reword-topics corpus --writer openai/gpt-5 --out pairs.yaml
    """
    import asyncio

    from rich.console import Console

    from earwitness.models.options import parse_options
    from earwitness.models.registry import open_text_model
    from earwitness.runs.ledger import Ledger
    from earwitness.scenes import topic_rewording
    from earwitness.scenes.corpus import Corpus
    from earwitness.scenes.writers.calls import Meter, TextCaller
    from earwitness.scenes.writers.prompts import FOLDER, WriterPrompts

    corpus = Corpus(folder)
    loaded = corpus.bank(bank)
    sources = topic_rewording.topics_of(corpus, loaded)[:templates]
    calls = call_settings(
        concurrency=concurrency, max_retries=max_retries, rate=rate, timeout=timeout,
        max_calls=max_calls, max_cost=max_cost, price=price,
    )  # fmt: skip
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    meter = Meter()
    with Ledger(out.with_name(out.name + ".calls.jsonl")) as ledger:
        model = open_text_model(writer, parse_options(option), models_file=models_file)
        caller = TextCaller(model, ledger, calls, meter=meter)
        asked = WriterPrompts(loaded, corpus.config.seed, prompts or FOLDER)

        async def work() -> Reworded:
            try:
                return await topic_rewording.reword_topics(sources, caller, asked)
            finally:
                await caller.aclose()

        with console.status("") as status:
            meter.on_change = lambda m: status.update(f"rewording: {', '.join(usage_words(m))}")
            found = asyncio.run(work())
    for topic, reason in found.given_up.items():
        console.print(f"[yellow]left out[/] {topic}: {reason}")
    if found.failed:
        name, reason = next(iter(found.failed.items()))
        console.print(f"[yellow]incomplete[/] {len(found.failed)} templates wait; {name}: {reason}")
        console.print("Run the same command again to go on.")
        raise typer.Exit(3)
    count = topic_rewording.write_pairs(out, found)
    typer.echo(f"{out}: {count} topics with rewordings, of {len(sources)} templates")
    typer.echo(f"next: earwitness scenes calibrate-topic --pairs {out} --out tau.json")
