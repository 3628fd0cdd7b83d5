"""``earwitness scenes audit``: can the reaction be guessed without the conduct?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from earwitness.scenes.audit import Audit
    from earwitness.scenes.dialogue import Dialogue
    from earwitness.scenes.scenario import Scenario


def register_audit(group: typer.Typer) -> None:
    """Add ``audit`` to the ``scenes`` group."""
    group.command("audit")(audit)


def audit(
    corpus: Path = typer.Argument(
        ..., metavar="CORPUS", help="Folder of a planned or written corpus."
    ),
    split: str | None = typer.Option(
        None, help="Only scenes of this split: train, validation or test."
    ),
    group: list[str] = typer.Option(
        [], "--group", help="Only this group, such as sound or words; may be repeated."
    ),
    seed: int = typer.Option(0, help="Seed of the resampling and of the shuffled control."),
    as_json: bool = typer.Option(False, "--json", help="Print the figures as JSON."),
) -> None:
    """Let classifiers guess each reaction from everything that is not the speakers' conduct.

    Sound, location, position, count of events, turns, people and the words before the first sound are tried
    one after another and together, cross-validated by template. Exits with 1 when a group gives the
    reaction away by more than the design says; a control with shuffled reactions shows that the audit can
    pass.

    [bold]Example:[/] earwitness scenes audit corpora/first
    """
    from rich.console import Console

    from earwitness.errors import UsageError
    from earwitness.scenes.audit import audit as audit_scenes
    from earwitness.scenes.corpus import Corpus
    from earwitness.scenes.scenario import SPLITS

    if split is not None and split not in SPLITS:
        raise UsageError("--split", f"{split!r}", wanted=" or ".join(SPLITS))
    folder = Corpus(corpus)
    spoken = folder.scenes()
    scenes: list[tuple[Scenario, Dialogue | None]] = (
        [*spoken] if spoken else [(scenario, None) for scenario in folder.scenarios()]
    )
    scenes = [scene for scene in scenes if split in (None, scene[0].split)]
    with Console(stderr=True).status("") as status:
        found = audit_scenes(
            scenes,
            floors=folder.config.preset.floors,
            only=group,
            seed=seed,
            on_group=lambda name: status.update(f"guessing reactions from: {name}"),
        )
    if as_json:
        _print_json(found)
    else:
        _print_table(found, len(scenes), with_words=bool(spoken))
    if not found.ok:
        raise typer.Exit(1)


def _print_json(found: Audit) -> None:
    import json
    from dataclasses import asdict

    rows = [{**asdict(group), "leaks": group.leaks} for group in found.groups]
    control = {**asdict(found.control), "leaks": found.control.leaks}
    typer.echo(json.dumps({"ok": found.ok, "groups": rows, "control": control}, indent=1))


def _print_table(found: Audit, scenes: int, *, with_words: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    what = "scenes with their dialogues" if with_words else "planned scenes, no words yet"
    console.print(f"{scenes:,} {what}, {found.control.n:,} events; chance is 25 %")
    table = Table("group", "balanced accuracy", "95 % by template", "floor", "better of two", "")
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
