"""``earwitness clips pool`` and ``clips select``: recordings and reviews in, a balanced public set out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from earwitness.clips.pool import Pool
    from earwitness.clips.selecting_record import SelectionRecord


def register_select(group: typer.Typer) -> None:
    """Add ``pool`` and ``select`` to the ``clips`` group."""
    group.command("pool")(pool)
    group.command("select")(select)


def pool(
    folder: Path = typer.Argument(..., metavar="COLLECTION", help="Folder with assignments.jsonl."),
    recordings: list[Path] = typer.Option(
        [],
        "--recordings",
        metavar="DIR",
        help="Folder of the recording app, or with recordings/ACCOUNT/SCRIPT--EMOTION.wav; repeatable "
        "(default: the collection).",
    ),
    reviews: list[Path] = typer.Option(
        [],
        "--reviews",
        metavar="FILE",
        help="reviews.jsonl as earwitness review export writes it; repeatable (default: that of the collection).",
    ),
    rule: str = typer.Option(
        "unanimous", help="With several reviewers: unanimous or majority must accept."
    ),
    consent: str = typer.Option(
        "", help="Version of the consent text that speakers of plain files agreed to."
    ),
    language: str = typer.Option("", help="Language of recordings that say none, such as en."),
    workers: int | None = typer.Option(None, min=1, help="Processes (default: one per processor)."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object instead of text."),
) -> None:
    """Bring recordings and reviews together: pool.jsonl says what each recording is good for.

    Accepted is what every reviewer found well recorded and performed as asked. A file that is missing, changed,
    cut or silent, the same as another, or was never asked for is listed with its reason. Recordings of people who withdrew
    consent are refused. speakers.csv in the collection (account, speaker, sex, language) says who is behind an account.

    [bold]Examples:[/]

      earwitness clips pool collection --recordings record --reviews review/export/reviews.jsonl

      earwitness clips pool collection --consent 2026-05 --language en
    """  # fmt: skip
    from rich.console import Console

    from earwitness.cli.clips_progress import steps
    from earwitness.clips.pool import RULES, make_pool
    from earwitness.errors import UsageError

    rules = {name: name for name in RULES}
    if rule not in rules:
        raise UsageError("--rule", f"found {rule!r}", " or ".join(RULES))
    with steps(Console(stderr=True), "looking") as on_progress:
        made = make_pool(
            folder,
            recordings=recordings,
            reviews=reviews,
            rule=rules[rule],
            consent=consent,
            language=language,
            workers=workers,
            on_done=on_progress,
        )
    if as_json:
        _print_json(
            {
                "collection": str(folder),
                "recordings": len(made.entries),
                "refused_withdrawn": made.refused,
                "speakers": len({entry.speaker for entry in made.entries}),
                "statuses": {name: dict(row) for name, row in made.counts().items()},
            }
        )
    else:
        _print_pool(folder, made)


def select(
    folder: Path = typer.Argument(..., metavar="COLLECTION", help="Folder with pool.jsonl."),
    per_label: int = typer.Option(40, min=1, help="Clips of each emotion."),
    label: list[str] = typer.Option(
        [], "--label", help="Only these emotions; repeatable (default: all seven)."
    ),
    max_per_speaker: int | None = typer.Option(None, min=1, help="Most clips of one speaker."),
    seconds: str | None = typer.Option(None, help="Only clips this long: MIN-MAX, MIN- or -MAX."),
    seed: int = typer.Option(0, help="Seed of the draw between equally good choices."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object instead of text."),
) -> None:
    """Choose a balanced public set from the accepted recordings of the pool.

    By integer optimisation, goal by goal: most speakers; clips spread evenly over speakers, sexes, scripts and
    durations; then a seeded draw. The same pool and seed give the same set. selection.json lists what was chosen and why
    everything else was not. Too few recordings are refused with the shortage of each label, exit code 1.

    [bold]Examples:[/]

      earwitness clips select collection

      earwitness clips select collection --per-label 20 --max-per-speaker 3 --seconds 5-40 --json
    """
    from rich.console import Console

    from earwitness.cli.clips_progress import steps
    from earwitness.clips.corpus import EMOTIONS
    from earwitness.clips.forgetting_records import require_no_pending
    from earwitness.clips.pool import read_pool
    from earwitness.clips.selecting import SelectionSettings
    from earwitness.clips.selecting import select as choose
    from earwitness.clips.selecting_record import write_selection
    from earwitness.clips.settings import parse_seconds
    from earwitness.errors import UsageError

    unknown = sorted(set(label) - set(EMOTIONS))
    if unknown:
        raise UsageError("--label", f"found {unknown[0]!r}", f"of {', '.join(EMOTIONS)}")
    require_no_pending(folder)
    entries = read_pool(folder)
    settings = SelectionSettings(
        per_label=per_label,
        seed=seed,
        max_per_speaker=max_per_speaker,
        seconds=parse_seconds(seconds) if seconds is not None else None,
        labels=tuple(name for name in EMOTIONS if not label or name in label),
    )
    with steps(Console(stderr=True), "choosing") as on_progress:
        chosen = choose(entries, settings, on_progress)
    record = write_selection(folder, entries, chosen, settings)
    if as_json:
        _print_json({**record.report, "goals": list(record.goals), "ids": list(record.chosen)})
    else:
        _print_selection(folder, record)


def _print_json(value: Mapping[str, Any]) -> None:
    import json

    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


def _print_pool(folder: Path, made: Pool) -> None:
    from rich.console import Console
    from rich.table import Table

    from earwitness.clips.corpus import EMOTIONS

    console = Console(highlight=False)
    table = Table("status", box=None, pad_edge=False)
    for name in (*EMOTIONS, "all"):
        table.add_column(name, justify="right")
    for status, row in made.counts().items():
        table.add_row(status, *(str(row[name]) for name in EMOTIONS), str(row.total()))
    console.print(table)
    console.print(
        f"{folder}: {len(made.entries)} recordings of {len({e.speaker for e in made.entries})} speakers",
        markup=False,
        soft_wrap=True,
    )
    if made.refused:
        console.print(f"{made.refused} recordings of people who withdrew consent were refused")


def _print_selection(folder: Path, record: SelectionRecord) -> None:
    from rich.console import Console
    from rich.table import Table

    from earwitness.clips.selecting_record import REASONS

    console = Console(highlight=False)
    report = record.report
    table = Table("label", box=None, pad_edge=False)
    for name in ("accepted", "chosen", "speakers", "scripts", "sex", "short/middle/long", "mean s"):
        table.add_column(name, justify="right")
    for label, row in report["labels"].items():
        sex = ", ".join(f"{name} {n}" for name, n in row["sex"].items())
        lengths = "/".join(
            str(row["durations"].get(name, 0)) for name in ("short", "middle", "long")
        )
        table.add_row(
            label, str(row["accepted"]), str(row["chosen"]), str(row["speakers"]),
            str(row["scripts"]), sex, lengths, f"{row['mean_seconds']:.1f}",
        )  # fmt: skip
    console.print(table)
    out = Table("left out", box=None, pad_edge=False)
    for label in report["labels"]:
        out.add_column(label, justify="right")
    out.add_column("all", justify="right")
    for reason, row in report["left_out"].items():
        counts = [row.get(label, 0) for label in report["labels"]]
        out.add_row(REASONS[reason], *(str(n) for n in counts), str(sum(counts)))
    if report["left_out"]:
        console.print("", out)
    for goal in record.goals[:-1]:
        proof = "" if goal["proven"] else " (best found, not proven best)"
        console.print(f"{goal['name']}: {goal['value']:g}{proof}", markup=False)
    low, high = report["clips_per_speaker"]
    console.print(
        f"{folder}: {report['chosen']} clips of {report['speakers']} speakers ({low} to {high} each), "
        f"{report['seconds'] / 3600:.2f} h",
        markup=False,
        soft_wrap=True,
    )
