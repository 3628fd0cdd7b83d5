"""``earwitness clips validate``: what is wrong with these files, before anybody is paid to hear them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from earwitness.audio.validate import Validation

SHOWN = 100


def register_validate(group: typer.Typer) -> None:
    """Add ``validate`` to a command group."""

    @group.command("validate")
    def validate(
        folder: Path = typer.Argument(
            ...,
            metavar="FOLDER",
            help="A clip set (with clips.jsonl), any folder of audio files, or one file.",
        ),
        as_json: bool = typer.Option(
            False, "--json", help="Print everything found as JSON, for scripts."
        ),
        strict: bool = typer.Option(False, "--strict", help="Let warnings fail too."),
        allow_truncated: bool = typer.Option(
            False,
            "--allow-truncated",
            help="Take cut files as warnings, which say how much is missing.",
        ),
        workers: int | None = typer.Option(
            None, "--workers", min=1, help="Processes; one per processor if not given."
        ),
        show: int = typer.Option(
            SHOWN, "--show", min=0, help="Most problems to list; 0 lists all of them."
        ),
    ) -> None:
        """Check every audio file: cut, silent, empty, no audio at all, and files that differ from their record.

        Reads by content, whatever the names say. Exit code 1 if a file is in error (with --strict also for
        warnings), 0 otherwise. What each code means: docs/audio-files.md.

        Examples:

          earwitness clips validate my-set

          earwitness clips validate recordings --strict --json > problems.json
        """
        result = _validate(folder, allow_truncated, workers)
        if as_json:
            import json

            typer.echo(json.dumps(result.as_dict(), indent=2, ensure_ascii=False))
        else:
            _print(result, show)
        if not result.passed(strict=strict):
            raise typer.Exit(1)


def _validate(folder: Path, allow_truncated: bool, workers: int | None) -> Validation:
    """Validate with a progress bar on the terminal, if there is one."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    from earwitness.clips.validate import validate

    console = Console(stderr=True)
    columns = (
        TextColumn("Checking"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task: Any = bar.add_task("check", total=None)
        return validate(
            folder,
            allow_truncated=allow_truncated,
            workers=workers,
            on_start=lambda total: bar.update(task, total=total),
            on_done=lambda done: bar.update(task, completed=done),
        )


def _print(result: Validation, show: int) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(soft_wrap=False)
    if not console.is_terminal:
        # In a file or a pipe there is no width to fit into.
        console = Console(width=200)
    listed = result.findings if show == 0 else result.findings[:show]
    if listed:
        table = Table("file", "code", "what", "what to do", show_lines=False, pad_edge=False)
        for column in table.columns:
            column.overflow = "fold"
        table.columns[1].no_wrap = True
        for found in listed:
            style = "red" if found.severity == "error" else "yellow"
            name = (
                found.path
                if not found.clip or found.clip in found.path
                else f"{found.path} ({found.clip})"
            )
            table.add_row(
                Text(name),
                Text(found.code, style=style),
                Text(found.message),
                Text(found.next_step),
            )
        console.print(table)
    if len(listed) < len(result.findings):
        rest = len(result.findings) - len(listed)
        console.print(
            f"... and {rest} more (--show 0 lists all, --json for scripts)", highlight=False
        )
    if result.findings:
        counts = ", ".join(f"{code} {count}" for code, count in result.counts().items())
        console.print(Text(f"By code: {counts}"), highlight=False)
    console.print(Text(_summary(result)), highlight=False, soft_wrap=True)


def _summary(result: Validation) -> str:
    bad = len({f.path for f in result.errors})
    flagged = len({f.path for f in result.warnings} - {f.path for f in result.errors})
    files = f"{result.n_files} file{'s' * (result.n_files != 1)}"
    text = f"{result.folder} ({result.kind}): {files}, {result.seconds / 60:.1f} min: "
    return text + f"{bad} with errors, {flagged} with warnings only"
