"""``earwitness scenes audit``: can the reaction be guessed without the conduct?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from earwitness.scenes.audit import Audit
    from earwitness.scenes.audit_corpus import CorpusAudit


def register_audit(group: typer.Typer) -> None:
    """Add ``audit`` to the ``scenes`` group."""
    group.command("audit")(audit)


def audit(
    corpus: Path = typer.Argument(
        ..., metavar="CORPUS", help="Folder of a planned, written or mixed corpus."
    ),
    split: str | None = typer.Option(
        None, help="Only scenes of this split: train, validation or test."
    ),
    group: list[str] = typer.Option(
        [], "--group", help="Only this group, such as sound, words or gaps; may be repeated."
    ),
    strict: bool = typer.Option(
        False, "--strict", help="Hold every group to chance, whatever the presets allow."
    ),
    acoustics: bool = typer.Option(
        True, "--acoustics/--no-acoustics", help="Guess from the mixed audio, too."
    ),
    workers: int | None = typer.Option(
        None, "--workers", min=1, show_default="one a processor", help="Processes."
    ),
    seed: int = typer.Option(0, help="Seed of the resampling and of the shuffled control."),
    as_json: bool = typer.Option(False, "--json", help="Print the figures as JSON."),
) -> None:
    """Let classifiers guess each reaction from everything that is not the speakers' conduct.

    Sound, location, position, count of events, turns, people and the words before the first sound are tried
    one after another and together, cross-validated by template. In a mixed corpus so are level, margins, duration,
    distance, gaps, truncation, ducking, spectrum and place of the sounds. Exits with 1 when a group gives the
    reaction away by more than the design says; controls with shuffled reactions show that the audit can
    pass.

    Examples:

      earwitness scenes audit corpora/first

      earwitness scenes audit corpora/first --group duration --group gaps --strict
    """
    import json

    from rich.console import Console

    from earwitness.errors import UsageError
    from earwitness.scenes.audit_corpus import audit_corpus
    from earwitness.scenes.corpus import Corpus
    from earwitness.scenes.scenario import SPLITS

    if split is not None and split not in SPLITS:
        raise UsageError("--split", f"{split!r}", wanted=" or ".join(SPLITS))
    with Console(stderr=True).status("") as status:
        found = audit_corpus(
            Corpus(corpus),
            split=split,
            only=group,
            strict=strict,
            acoustics=acoustics,
            workers=workers,
            seed=seed,
            on_stage=status.update,
        )
    if as_json:
        typer.echo(json.dumps(found.to_json(), indent=1))
    else:
        print_audit(found)
    if not found.ok:
        raise typer.Exit(1)


def print_audit(found: CorpusAudit) -> None:
    """Both halves as tables."""
    what = "scenes with their dialogues" if found.with_words else "planned scenes, no words yet"
    if found.words is not None:
        _print_table(found.words, f"{found.scenes:,} {what}")
    if found.acoustics is not None:
        _print_table(found.acoustics, "acoustics of the mixed scenes")


def _print_table(found: Audit, what: str) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    console.print(f"{what}, {found.control.n:,} events; chance is 25 %")
    table = Table("group", "guessed", "95 % by template", "floor", "by", "", box=None)
    for group in (*found.groups, found.control):
        floor = "no promise" if group.floor is None else f"{group.floor:.1%}"
        verdict = "[bold red]leaks[/]" if group.leaks else "[green]holds[/]"
        table.add_row(
            group.group,
            f"{group.balanced_accuracy:.1%}",
            f"{group.low:.1%} to {group.high:.1%}",
            floor,
            group.classifier,
            "" if group.floor is None else verdict,
        )
    console.print(table)
