"""``earwitness baseline``: train and judge what a score must beat."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from earwitness.clips.training import Evaluation, Progress, Trained

group = typer.Typer(
    help="Train and judge baselines: what the plain signal gives away, without words.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


def register(app: typer.Typer) -> None:
    """Add this group's commands to the program."""
    app.add_typer(group, name="baseline")


@group.command()
def train(
    clips: list[Path] = typer.Option(
        ..., "--clips", help="Folder of a clip set to train on; may be repeated."
    ),
    out: Path = typer.Option(..., "--out", "-o", help="Model file to write."),
    folds: int | None = typer.Option(
        None,
        min=2,
        help="Also train K classifiers that leave out one fold of speakers each, to score these very clips.",
    ),
    seed: int = typer.Option(0, help="Divides the speakers into folds."),
    workers: int | None = typer.Option(None, min=1, help="Processes (default: one a processor)."),
    as_json: bool = typer.Option(False, "--json", help="Print a summary as JSON."),
) -> None:
    """Train baseline/prosody on clip sets and write one model file.

    The file is refused at scoring where it knows a clip's speaker or recording. To score the set it is
    trained on, use --folds: each clip is then answered by a classifier that never heard its speaker.
    Sets marked evaluation-only are refused.

    Examples:

      earwitness baseline train --clips sets/ravdess --folds 8 --out prosody.model

      earwitness run emotion --clips sets/ravdess --model baseline/prosody -M weights=prosody.model --out runs
    """
    from rich.console import Console
    from rich.markup import escape

    from earwitness.clips.corpus import load_clip_set
    from earwitness.clips.training import train_prosody

    console = Console(stderr=True)
    sets = [load_clip_set(folder) for folder in clips]
    with _progress(console) as on_progress:
        trained = train_prosody(
            sets, out, folds=folds, seed=seed, workers=workers, on_progress=on_progress
        )
    if as_json:
        _print_json(_training_summary(trained))
        return
    summary = _training_summary(trained)
    console.print(
        f"[bold]{escape(str(trained.path))}[/]: {summary['clips']} clips of {summary['speakers']} speakers, "
        f"{summary['folds'] or 'no'} folds, {', '.join(summary['labels'])}",
        soft_wrap=True,
    )
    if trained.repeated:
        console.print(f"{trained.repeated} copies of the same recordings were left out")
    if trained.model.synthetic:
        console.print(
            "[yellow]Trained on synthetic clips: it tests plumbing and says nothing of emotion.[/]"
        )
    console.print(
        f"Score with: earwitness run emotion --clips DIR --model baseline/prosody "
        f"-M weights={trained.path} --out RUNS",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


@group.command("train-listener")
def train_listener(
    corpus: Path = typer.Argument(
        ..., metavar="CORPUS", help="Folder of a corpus with mixed scenes; its train split is used."
    ),
    out: Path = typer.Option(..., "--out", "-o", help="Model file to write."),
    sounds: Path | None = typer.Option(
        None,
        "--sounds",
        metavar="LIBRARY",
        help="Learn sounds from a library's train takes as well.",
    ),
    bank: Path | None = typer.Option(
        None, "--bank", metavar="DIR", help="Bank of the corpus (default: the one that ships)."
    ),
    workers: int | None = typer.Option(None, min=1, help="Processes (default: one a processor)."),
    as_json: bool = typer.Option(False, "--json", help="Print a summary as JSON."),
) -> None:
    """Train baseline/listener on the train split of a mixed corpus and write one model file.

    It hears levels in 24 bands and nothing else: bursts at a moment for grounding, spectra for sound, the ambience
    for location, gaps and levels for reaction. It is refused at scoring where it knows a scene or a recording, so
    score it with --split test or --split validation.

    Examples:

      earwitness baseline train-listener corpus --sounds library --out listener.model

      earwitness run cares corpus --split test --model baseline/listener -M weights=listener.model --out runs
    """
    from rich.console import Console

    from earwitness.scenes.sounds import load_library
    from earwitness.tasks.listener_training import TRAIN, training_summary
    from earwitness.tasks.listener_training import train_listener as train_it
    from earwitness.tasks.scene_items import load_mixed

    console = Console(stderr=True)
    mixed = load_mixed(corpus, bank=bank, split=TRAIN)
    library = load_library(sounds) if sounds is not None else None
    with _progress(console) as on_progress:
        trained = train_it(mixed, out, library=library, workers=workers, on_done=on_progress)
    summary = training_summary(trained)
    if as_json:
        _print_json(summary)
        return
    counts = ", ".join(
        f"{task} {n} of {summary['classes'][task]} classes" for task, n in trained.examples.items()
    )
    console.print(
        f"{trained.path}: {summary['scenes']} scenes, {summary['takes']} takes; examples: {counts}",
        highlight=False, markup=False, soft_wrap=True,
    )  # fmt: skip
    if trained.left_out:
        console.print(f"nothing to learn from for: {', '.join(trained.left_out)}")
    console.print(
        f"Score with: earwitness run cares {corpus} --split test --model baseline/listener "
        f"-M weights={trained.path} --out RUNS",
        highlight=False, markup=False, soft_wrap=True,
    )  # fmt: skip


@group.command()
def evaluate(
    clips: list[Path] = typer.Option(..., "--clips", help="Folder of a clip set; may be repeated."),
    folds: int = typer.Option(8, min=2, help="Folds; each speaker is in one of them."),
    against: list[str] = typer.Option(
        ["mfcc-svm"], help="Reference to compare with; mfcc-svm is the one there is."
    ),
    seed: int = typer.Option(0, help="Divides the speakers, and draws intervals."),
    shuffle_labels: bool = typer.Option(
        False, help="Control: permute labels within speakers; scores must scatter about chance."
    ),
    workers: int | None = typer.Option(None, min=1, help="Processes (default: one a processor)."),
    as_json: bool = typer.Option(False, "--json", help="Print all results as JSON."),
) -> None:
    """Cross-validate baseline/prosody by speaker, beside a plain MFCC classifier.

    No speaker is ever trained on and scored, and everything that is chosen is chosen inside the
    training speakers. Intervals draw whole speakers.

    Example:

      earwitness baseline evaluate --clips sets/ravdess --folds 8 --against mfcc-svm
    """
    from rich.console import Console

    from earwitness.clips.corpus import load_clip_set
    from earwitness.clips.training import evaluate_prosody

    console = Console(stderr=True)
    sets = [load_clip_set(folder) for folder in clips]
    with _progress(console) as on_progress:
        found = evaluate_prosody(
            sets,
            folds=folds,
            seed=seed,
            against=against,
            shuffle_labels=shuffle_labels,
            workers=workers,
            on_progress=on_progress,
        )
    if as_json:
        from dataclasses import asdict

        _print_json(asdict(found))
    else:
        print_evaluation(Console(), found)


def print_evaluation(console: Console, found: Evaluation) -> None:
    """Tables of a cross-validation: systems, speakers, recall by label, paired gains."""
    from rich.table import Table

    from earwitness.stats.intervals import FEW_CLUSTERS

    first = found.systems[0]
    chance = 1 / len(first.labels)
    control = ", [bold]labels shuffled[/]" if found.shuffled else ""
    console.print(
        f"{found.n_clips} clips, {found.n_speakers} speakers in {len(found.held_out)} folds, "
        f"{len(first.labels)} labels (chance {chance:.1%}), seed {found.seed}{control}"
    )
    table = Table("system", "accuracy", "95 % interval", "macro recall", "95 % interval", "ECE")
    for each in found.systems:
        table.add_row(
            each.name,
            f"{each.accuracy.value:.1%}",
            f"{each.accuracy.low:.1%} to {each.accuracy.high:.1%}",
            f"{each.macro_recall.value:.1%}",
            f"{each.macro_recall.low:.1%} to {each.macro_recall.high:.1%}",
            "" if each.calibration_error is None else f"{each.calibration_error:.3f}",
        )
    console.print(table)
    table = Table("speaker", "clips", *(each.name for each in found.systems))
    for rows in zip(*(each.by_speaker for each in found.systems), strict=True):
        table.add_row(
            rows[0].speaker, str(rows[0].n), *(f"{row.right / row.n:.1%}" for row in rows)
        )
    console.print(table)
    table = Table("label", "clips", *(f"recall {each.name}" for each in found.systems))
    for i, label in enumerate(first.labels):
        support = first.support[i]
        table.add_row(
            label,
            str(support),
            *(f"{each.confusion[i][i] / support:.1%}" for each in found.systems),
        )
    console.print(table)
    for each_gain in found.gains:
        difference = each_gain.difference
        console.print(
            f"gain of {each_gain.a} over {each_gain.b}: {100 * difference.value:+.1f} points, "
            f"95 % interval {100 * difference.low:+.1f} to {100 * difference.high:+.1f} "
            f"(bootstrap over {found.n_speakers} speakers); sign-flip over speakers "
            f"p = {each_gain.p_sign_flip:.2g}; McNemar, items as independent, "
            f"p = {each_gain.p_mcnemar:.2g} ({each_gain.only_a_right} to {each_gain.only_b_right})",
            soft_wrap=True,
            highlight=False,
        )
    if found.n_speakers < FEW_CLUSTERS:
        console.print(f"few speakers ({found.n_speakers}): the intervals are rough")


def _training_summary(trained: Trained) -> dict[str, Any]:
    model = trained.model
    return {
        "file": str(trained.path),
        "sha256": trained.sha256,
        "clips": len(model.examples),
        "repeated": trained.repeated,
        "speakers": len(model.speakers),
        "labels": sorted({example.label for example in model.examples}),
        "folds": model.n_folds,
        "seed": model.seed,
        "synthetic": model.synthetic,
        "sources": [f"{source.name} {source.version}".strip() for source in model.sources],
        "classifiers": [
            {"name": each.name, "held_out": sorted(each.held_out), **each.classifier.chosen}
            for each in model.fitted
        ],
    }


def _print_json(value: Any) -> None:
    import json

    typer.echo(json.dumps(value, ensure_ascii=False, indent=1))


@contextmanager
def _progress(console: Console) -> Iterator[Progress]:
    """A bar for each kind of work, shown where there is a terminal."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    bars: dict[str, Any] = {}
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    ) as progress:

        def on_progress(name: str, done: int, total: int) -> None:
            if name not in bars:
                bars[name] = progress.add_task(name, total=total)
            progress.update(bars[name], completed=done)

        yield on_progress
