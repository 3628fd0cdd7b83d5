"""``earwitness clips``: make clip sets and look at them."""

from __future__ import annotations

import importlib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rich.console import Console

    from earwitness.clips.corpus import ClipSet, Use
    from earwitness.clips.importing import Imported

PARTS = ("validate", "script", "assign", "select", "export", "forget")
"""Modules ``clips_<part>``; each has ``register_<part>(group)``."""

group = typer.Typer(
    help="Make clip sets and look at them.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


def register(app: typer.Typer) -> None:
    """Add this group's commands to the program."""
    registered = {command.name for command in group.registered_commands}
    for part in PARTS:
        if part not in registered:
            module = importlib.import_module(f"earwitness.cli.clips_{part}")
            getattr(module, f"register_{part}")(group)
    app.add_typer(group, name="clips")


@group.callback()
def about() -> None:
    """Make clip sets and look at them.

    A clip set is a folder: audio files, clips.jsonl (one line a clip) and card.yaml (name, licence, permitted use).
    """


@group.command("import")
def import_(
    kind: str = typer.Argument(
        ...,
        metavar="KIND",
        help="vocal-affect-bench, ravdess, crema-d, tess, savee, emodb, csv, jsonl or audiofolder.",
    ),
    source: str = typer.Argument(
        ...,
        metavar="SRC",
        help="Folder of the corpus, or the table; for vocal-affect-bench also "
        "besimple-ai/vocal-affect-bench, which is downloaded from the hub.",
    ),
    out: Path = typer.Option(..., "--out", "-o", help="Folder of the clip set; made if absent."),
    columns: str = typer.Option(
        "",
        "--map",
        help="Columns of a table: path=file,emotion=label,speaker=spk,id=,language=,licence=. "
        "Without a table: emotion=part1,speaker=part2 (folders counted from SRC).",
    ),
    label_map: str | None = typer.Option(
        None, help="Label map by name or YAML file (default: that of the kind; see: clips labels)."
    ),
    name: str | None = typer.Option(None, help="Name of the set (default: that of the corpus)."),
    licence: str | None = typer.Option(None, help="Licence of the audio, in words."),
    use: str | None = typer.Option(
        None,
        help="any, non-commercial or evaluation-only. Known corpora can only be made stricter; "
        "sets of your own are evaluation-only unless you say otherwise.",
    ),
    redistribute: bool | None = typer.Option(
        None,
        "--redistribute/--no-redistribute",
        help="Whether a report may carry the audio along (default: as the corpus allows, else no).",
    ),
    synthetic: bool = typer.Option(False, help="Mark the set as synthetic speech."),
    language: str | None = typer.Option(None, help="Language tag of the clips, such as en."),
    seconds: str | None = typer.Option(None, help="Only clips this long: MIN-MAX, MIN- or -MAX."),
    speakers: int | None = typer.Option(None, min=1, help="Only N speakers, drawn with the seed."),
    per_label: int | None = typer.Option(
        None, min=1, help="N clips a label, from as many speakers as possible."
    ),
    seed: int = typer.Option(0, help="Seed of the selection."),
    rate: str = typer.Option(
        "16000", help="Hz; converted once to mono 16-bit WAV. 'keep' copies files as they are."
    ),
    revision: str = typer.Option(
        "",
        help="Revision of the source; on the hub a commit, tag or branch (default: a pinned one).",
    ),
    audio_root: Path | None = typer.Option(
        None, help="Folder that the table's paths are relative to (default: the table's)."
    ),
    skip_bad: bool = typer.Option(
        False, help="Leave out recordings that cannot be used; they are listed in the card."
    ),
    overwrite: bool = typer.Option(False, help="Replace the set that is in --out."),
    workers: int | None = typer.Option(None, min=1, help="Processes (default: one per processor)."),
    as_json: bool = typer.Option(
        False, "--json", help="Print a summary as JSON on standard output."
    ),
) -> None:
    """Turn a corpus into a clip set.

    [bold]Examples[/]

      earwitness clips import ravdess Audio_Speech_Actors_01-24 --out sets/ravdess

      earwitness clips import crema-d AudioWAV --out sets/crema --per-label 40 --seed 1

      earwitness clips import vocal-affect-bench besimple-ai/vocal-affect-bench --out sets/vab

      earwitness clips import csv clips.csv --map path=file,emotion=label --use any --out sets/ours

    Files are converted once, to 16 kHz mono 16-bit WAV, and the card records how. An import that was
    stopped goes on where it was when the same command is run again; the set appears when it is whole.
    Labels the map leaves out or does not know are counted and listed, never guessed.
    """
    from rich.console import Console

    from earwitness.clips.importing import BadFilesError, import_clips
    from earwitness.clips.readers.tables import parse_columns
    from earwitness.clips.settings import Settings, parse_seconds

    console = Console(stderr=True)
    settings = Settings(
        name=name,
        licence=licence,
        use=_use(use),
        redistribute=redistribute,
        synthetic=synthetic,
        language=language,
        label_map=label_map,
        seconds=parse_seconds(seconds) if seconds is not None else None,
        speakers=speakers,
        per_label=per_label,
        seed=seed,
        rate=_rate(rate),
        columns=parse_columns(columns) if columns else {},
        revision=revision,
        audio_root=audio_root,
        skip_bad=skip_bad,
        overwrite=overwrite,
    )
    try:
        with _progress(console) as on_progress:
            imported = import_clips(
                kind, source, out, settings, workers=workers, on_progress=on_progress
            )
    except BadFilesError as error:
        _print_bad(console, error.bad)
        raise
    if as_json:
        _print_json(_import_summary(imported))
    else:
        _print_import(Console(), imported)


@group.command()
def show(
    folder: Path = typer.Argument(..., metavar="DIR", help="Folder of a clip set."),
    verify: bool = typer.Option(False, help="Also compare every file with its hash."),
    as_json: bool = typer.Option(False, "--json", help="Print as JSON on standard output."),
) -> None:
    """Show a set: card, clips by label, speaker and language, length, problems.

    Exits with 1 when there are problems. What is wrong inside audio files is found by: clips validate.
    """
    from rich.console import Console

    from earwitness.clips.corpus import load_clip_set
    from earwitness.clips.summary import summarise

    clip_set = load_clip_set(folder, check_files=False)
    summary = summarise(clip_set, verify=verify)
    if as_json:
        _print_json(summary)
    else:
        _print_summary(Console(), clip_set, summary)
    if summary["problems"]:
        raise typer.Exit(1)


@group.command()
def labels(
    label_map: str | None = typer.Argument(
        None, metavar="[MAP]", help="A packaged map by name, or a YAML file of yours."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print as JSON on standard output."),
) -> None:
    """List the label maps, or the rules of one.

    Label maps are versioned data: which native word means which of the seven emotions, and which are known
    and left out on purpose. Write your own as YAML and name its path with --label-map.
    """
    from rich.console import Console
    from rich.table import Table

    from earwitness.clips.labels import list_label_maps, load_label_map

    console = Console()
    if label_map is None:
        maps = [load_label_map(known) for known in list_label_maps()]
        if as_json:
            _print_json(
                [
                    {
                        "id": known.id,
                        "version": known.version,
                        "hash": known.hash,
                        "description": known.description,
                        "words": len(known.mapping),
                        "dropped": len(known.dropped),
                    }
                    for known in maps
                ]
            )
            return
        table = Table("map", "words", "left out", "for", box=None, pad_edge=False)
        for known in maps:
            table.add_row(
                known.name, str(len(known.mapping)), str(len(known.dropped)), known.description
            )
        console.print(table)
        return
    chosen = load_label_map(label_map)
    by_label = {target: list(chosen.words_of(target)) for target in chosen.targets}
    if as_json:
        _print_json(
            {
                "id": chosen.id,
                "version": chosen.version,
                "hash": chosen.hash,
                "description": chosen.description,
                "source": chosen.source,
                "words": by_label,
                "dropped": dict(chosen.dropped),
            }
        )
        return
    console.print(f"[bold]{chosen.name}[/]  {chosen.hash[:12]}", highlight=False)
    console.print(chosen.description, f"\n[dim]{chosen.source}[/]\n", highlight=False)
    table = Table("label", "native words", box=None, pad_edge=False)
    for target, words in by_label.items():
        table.add_row(target, ", ".join(words) or "-")
    console.print(table)
    if chosen.dropped:
        table = Table("left out", "why", box=None, pad_edge=False)
        for word, reason in chosen.dropped.items():
            table.add_row(word, reason)
        console.print("", table)


def _use(text: str | None) -> Use | None:
    from typing import get_args

    from earwitness.clips.corpus import Use
    from earwitness.errors import UsageError

    known: dict[str, Use] = {value: value for value in get_args(Use)}
    if text is not None and text not in known:
        raise UsageError("--use", f"found {text!r}", f"one of {', '.join(known)}")
    return known[text] if text is not None else None


def _rate(text: str) -> int | None:
    from earwitness.errors import UsageError

    if text == "keep":
        return None
    if not text.isascii() or not text.isdigit() or not 1_000 <= int(text) <= 192_000:
        raise UsageError("--rate", f"found {text!r}", "keep, or Hz from 1000 to 192000")
    return int(text)


@contextmanager
def _progress(console: Console) -> Iterator[Callable[[str, int, int], None]]:
    """A bar on standard error for each stage; a line a stage where that is no terminal."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    with Progress(
        TextColumn("{task.description:<10}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    ) as bars:
        tasks: dict[str, Any] = {}

        def on_progress(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total)
            bars.update(tasks[stage], completed=done)

        yield on_progress


def _print_bad(console: Console, bad: Mapping[str, str]) -> None:
    from rich.markup import escape

    for file, error in bad.items():
        console.print(
            f"[red]bad[/] {escape(file)}: {escape(error)}", highlight=False, soft_wrap=True
        )


def _print_json(value: object) -> None:
    import json

    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


def _import_summary(imported: Imported) -> dict[str, object]:
    card = imported.clip_set.card
    return {
        "folder": str(imported.clip_set.folder),
        "name": card.name,
        "sha256": imported.clip_set.sha256,
        "clips": len(imported.clip_set.clips),
        "converted": imported.converted,
        "kept": imported.kept,
        "counts": dict(card.counts),
        "label_map": card.label_map,
        "dropped": dict(card.dropped),
        "unmapped": dict(card.unmapped),
        "ignored": dict(card.ignored),
        "skipped": dict(card.skipped),
        "selection": card.selection,
        "licence": card.licence,
        "use": card.use,
        "redistribute": card.redistribute,
        "revision": card.revision,
    }


def _print_import(console: Console, imported: Imported) -> None:
    from rich.markup import escape

    clip_set = imported.clip_set
    card = clip_set.card
    lines = [
        f"[bold]{escape(card.name)}[/]: {len(clip_set.clips)} clips in {escape(str(clip_set.folder))}"
        f" ({imported.converted} converted, {imported.kept} kept)",
        "labels    " + _counts(card.counts) + f"   by {escape(card.label_map)}",
        f"licence   {escape(card.licence)}; use: {card.use}",
    ]
    if card.selection:
        lines.append(f"selection {escape(card.selection)}")
    for what, counts in (
        ("left out by the map", card.dropped),
        ("unknown to the map", card.unmapped),
        ("files ignored", card.ignored),
    ):
        if counts:
            lines.append(f"[yellow]{what}[/]: {escape(_counts(counts))}")
    if card.use == "evaluation-only" and card.licence == "unspecified":
        lines.append(
            "[yellow]no --use given[/]: marked evaluation-only; say --use any to train on it as well"
        )
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)
    if card.skipped:
        console.print(f"[yellow]bad files left out[/]: {len(card.skipped)}", highlight=False)
        _print_bad(console, card.skipped)


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {n}" for name, n in counts.items())


def _print_summary(console: Console, clip_set: ClipSet, summary: Mapping[str, Any]) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    for key, value in summary["card"].items():
        if isinstance(value, dict):
            value = _counts(value) if value else ""
        if value not in ("", None):
            table.add_row(f"[bold]{key}[/]", escape(str(value)))
    console.print(table)
    for title, key in (("label", "labels"), ("language", "languages"), ("speaker", "speakers")):
        rows = Table(title, "clips", "seconds", box=None, pad_edge=False)
        for name, row in summary[key].items():
            rows.add_row(escape(name or "(not known)"), str(row["clips"]), f"{row['seconds']:.1f}")
        console.print("", rows)
    length = summary["seconds"]
    console.print(
        f"\n{len(clip_set.clips)} clips, {length['total'] / 60:.1f} minutes; a clip lasts "
        f"{length['min']:.2f} to {length['max']:.2f} s, median {length['median']:.2f} s",
        highlight=False,
    )
    for problem in summary["problems"]:
        console.print(f"[red]problem[/] {escape(problem)}", highlight=False, soft_wrap=True)
