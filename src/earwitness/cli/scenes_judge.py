"""``earwitness scenes calibrate-topic`` and ``judge-test``: what a judge is worth before it filters."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from earwitness.cli.scenes_calls import (
    AsJson,
    Concurrency,
    MaxRetries,
    ModelsFile,
    Rate,
    Timeout,
    call_settings,
)
from earwitness.cli.scenes_reword import register_reword

if TYPE_CHECKING:
    from earwitness.scenes.recovery_trial import Trial


def register_judge(group: typer.Typer) -> None:
    """Add ``calibrate-topic``, ``reword-topics`` and ``judge-test`` to the ``scenes`` group."""
    group.command("calibrate-topic")(calibrate_topic)
    register_reword(group)
    group.command("judge-test")(judge_test)


def calibrate_topic(
    embedder: str | None = typer.Option(
        None,
        "--embedder",
        show_default="local/minilm",
        help="local/minilm, hub/OWNER/NAME or openai/NAME.",
    ),
    option: list[str] = typer.Option(
        [], "-E", help="key=value for the embedder: base_url, revision, pooling ..."
    ),
    pairs: Path | None = typer.Option(
        None,
        "--pairs",
        metavar="FILE",
        show_default="those that ship",
        help="Topics with rewordings.",
    ),
    out: Path | None = typer.Option(
        None, "--out", metavar="FILE", help="Where to keep tau, as JSON for: filter --tau FILE."
    ),
    plot: Path | None = typer.Option(
        None, "--plot", metavar="FILE", help="Where to draw the ROC curve, as SVG."
    ),
    as_json: AsJson = False,
) -> None:
    """Find how near a recovered topic must be to the planned one.

    Topics with a loose rewording belong together, two topics of the same template do not. Tau is the point
    where the two are told apart best; it is bound to the embedder's weights and refused with others.

    [bold]Examples:[/]

      earwitness scenes calibrate-topic --out tau.json --plot tau.svg

      earwitness scenes calibrate-topic --embedder hub/BAAI/bge-large-en-v1.5 --out bge.json
    """
    import asyncio
    import json

    from rich.console import Console

    from earwitness.models.embedders.registry import open_embedder
    from earwitness.models.options import parse_options
    from earwitness.runs.folder import write_atomically
    from earwitness.scenes.recovery_threshold import (
        calibrate,
        plot_svg,
        require_useful,
        write_threshold,
    )
    from earwitness.scenes.topic_pairs import TOPIC_REWORDINGS, load_topic_pairs

    loaded = load_topic_pairs(pairs or TOPIC_REWORDINGS)
    opened = open_embedder(embedder, parse_options(option))

    async def work() -> Any:
        try:
            return await calibrate(loaded, opened)
        finally:
            await opened.aclose()

    found = asyncio.run(_named_failure(opened.name, work()))
    threshold = found.threshold
    if plot is not None:
        write_atomically(plot, plot_svg(found))
    if as_json:
        typer.echo(json.dumps(threshold.to_json(), ensure_ascii=False, indent=2))
    else:
        console = Console(highlight=False, soft_wrap=True)
        console.print(f"embedder     {threshold.embedder}, hash {threshold.embedder_hash[:12]}")
        console.print(
            f"pairs        {threshold.positives} rewordings, {threshold.negatives} other topics, "
            f"{threshold.templates} templates"
        )
        console.print(
            f"AUC          {threshold.auc:.3f} (95 % interval by template {threshold.auc_low:.3f} to "
            f"{threshold.auc_high:.3f})"
        )
        console.print(
            f"tau          {threshold.tau:.4f} ({threshold.tau_low:.4f} to {threshold.tau_high:.4f}): "
            f"{threshold.sensitivity:.1%} of rewordings pass, {threshold.specificity:.1%} of other topics do not"
        )
    require_useful(threshold)
    if out is not None:
        write_threshold(out, threshold)
        Console(stderr=True).print(f"kept in {out}", highlight=False)


async def _named_failure(name: str, work: Any) -> Any:
    """Await; a service that fails is an error of the user's command, not a traceback."""
    from earwitness.errors import DataError, ModelError

    try:
        return await work
    except ModelError as error:
        raise DataError(f"embedder {name}", error.message, "vectors") from None


def judge_test(
    judge: str = typer.Option(
        ..., "--judge", "-j", help="offline/reader, adapter/NAME, or an entry of models.yaml."
    ),
    option: list[str] = typer.Option([], "-M", help="key=value for the judge."),
    snippets: Path = typer.Option(
        ..., "--snippets", metavar="FILE", help="Labelled snippets (docs/reader-test-set.md)."
    ),
    bank: Path | None = typer.Option(
        None,
        "--bank",
        metavar="DIR",
        show_default="the bank that ships",
        help="Words what is heard.",
    ),
    prompts: Path | None = typer.Option(
        None, "--prompts", metavar="DIR", help="Folder with a judge.yaml of yours."
    ),
    store: Path | None = typer.Option(
        None, "--store", metavar="FILE", help="Ledger that keeps a model's replies, to go on from."
    ),
    asks: int | None = typer.Option(
        None,
        min=1,
        show_default="3",
        help="Times a snippet is put to a judge that gives no verdict.",
    ),
    models_file: ModelsFile = None,
    concurrency: Concurrency = 8,
    max_retries: MaxRetries = 5,
    rate: Rate = None,
    timeout: Timeout = 600.0,
    as_json: AsJson = False,
) -> None:
    """Score a judge on labelled snippets of talk that belong to no corpus.

    Prints balanced accuracy (chance is 25 %), recall by reaction, the share right by kind of difficulty, and
    what was read as what. A snippet without a verdict counts as wrong. Exits with 3 when there is one.

    [bold]Examples:[/]

      earwitness scenes judge-test --judge offline/reader --snippets reaction_snippets.yaml

      earwitness scenes judge-test --judge openai/gpt-5 -M family=gpt --snippets mine.yaml --store replies.jsonl
    """
    import asyncio
    import json
    import tempfile

    from rich.console import Console

    from earwitness.models.options import parse_options
    from earwitness.scenes.bank import load_bank
    from earwitness.scenes.recovery_opening import opened_judge
    from earwitness.scenes.recovery_trial import try_judge
    from earwitness.scenes.snippets import load_snippets

    loaded = load_snippets(snippets)
    words = load_bank(bank)
    with (
        tempfile.TemporaryDirectory() as scratch,
        opened_judge(
            judge,
            parse_options(option),
            words,
            store or Path(scratch) / "calls.jsonl",
            settings=call_settings(
                concurrency=concurrency, max_retries=max_retries, rate=rate, timeout=timeout
            ),
            prompts=prompts,
            asks=asks,
            models_file=models_file,
        ) as opened,
    ):

        async def work() -> Trial:
            try:
                return await try_judge(opened, loaded, words)
            finally:
                await opened.aclose()

        trial = asyncio.run(work())
    if as_json:
        typer.echo(json.dumps(trial.to_json(), ensure_ascii=False, indent=2))
    else:
        _print_trial(trial, snippets)
    if trial.failed:
        name, reason = next(iter(trial.failed.items()))
        Console(stderr=True).print(
            f"[yellow]no verdict[/] on {len(trial.failed)} snippets; {name}: {reason}",
            highlight=False,
            soft_wrap=True,
        )
        raise typer.Exit(3)


def _print_trial(trial: Trial, path: Path) -> None:
    from rich.console import Console

    from earwitness.cli.recovery_tables import percent, print_confusion

    console = Console(highlight=False, soft_wrap=True)
    console.print(f"judge              {trial.judge['judge']}")
    console.print(
        f"snippets           {path.name}, {trial.snippets} with {trial.sounds} sounds, "
        f"hash {trial.snippets_hash[:12]}"
    )
    console.print(f"balanced accuracy  {percent(trial.balanced_accuracy)}; chance is 25 %")
    if trial.single.of:
        console.print(f"  one sound        {percent(trial.single)}")
    console.print("\nrecall")
    for name, share in trial.recall.items():
        console.print(f"  {name:<16} {percent(share)}")
    console.print("\nright, by kind of difficulty")
    for name, share in trial.hard.items():
        console.print(f"  {name:<22} {percent(share)}")
    console.print()
    print_confusion(console, trial.confusion)
