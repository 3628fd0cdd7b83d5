"""``earwitness scenes validate`` and ``scenes schema``: what a corpus promises, and the form of its files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from earwitness.scenes.corpus_validate import Validation


def register_validate(group: typer.Typer) -> None:
    """Add ``validate`` and ``schema`` to the ``scenes`` group."""
    group.command("validate")(validate)
    group.command("schema")(schema)


def validate(
    folder: Path = typer.Argument(..., metavar="CORPUS", help="Folder of the corpus."),
    bank: Path | None = typer.Option(
        None, "--bank", metavar="DIR", show_default="the bank that ships", help="Bank of the plan."
    ),
    workers: int | None = typer.Option(None, min=1, help="Processes (default: one per processor)."),
    unfinished_ok: bool = typer.Option(
        False, "--unfinished-ok", help="Do not mind scenes not written or a filter not run yet."
    ),
    audio: bool = typer.Option(
        True, "--audio/--no-audio", help="Listen to what is mixed: sounds, twins, voices."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object instead of text."),
) -> None:
    """Check every promise of a corpus again: plan, refills, splits, rules, quotas, verdicts, and the audio.

    In mixed scenes every sound is measured: it must stand far enough over the ambience. Twins must differ from the mix
    in the sound in question and in nothing else, and voices must be whole and in their places.

    Exits with 1 when a promise is broken, with 3 when work is left. docs/scene-corpora.md explains the codes.
    """
    import dataclasses
    import json

    from earwitness.cli.scenes_mix import progress as bar
    from earwitness.scenes.corpus import Corpus
    from earwitness.scenes.corpus_validate import validate_corpus
    from earwitness.scenes.recovery_gate import check_verdicts

    corpus = Corpus(folder)
    with bar("Listening") as on_audio:
        found = validate_corpus(
            corpus,
            corpus.bank(bank),
            bank_folder=bank,
            workers=workers,
            verdicts=check_verdicts,
            audio=audio,
            on_audio=on_audio,
        )
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(found), ensure_ascii=False, indent=2))
    else:
        _print(found, folder)
    if found.errors:
        raise typer.Exit(1)
    if found.unfinished and not unfinished_ok:
        raise typer.Exit(3)


def _print(found: Validation, folder: Path) -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False, soft_wrap=True)
    for broken in found.findings:
        colour = "red" if broken.severity == "error" else "yellow"
        console.print(
            f"[bold {colour}]{broken.code}[/] {escape(broken.where)}: {escape(broken.found)}"
        )
    console.print(
        f"{escape(str(folder))}: {found.scenarios} scenarios, {found.dialogues} dialogues, "
        f"{found.refills} refills; {len(found.errors)} broken promises, "
        f"{len(found.unfinished)} things left to do"
    )
    if found.audio is not None:
        heard = found.audio
        least = "" if heard.least_margin_db is None else f", least {heard.least_margin_db:.2f} dB over the ambience"  # fmt: skip
        told = f", {heard.told} told by manifests (no twins or stems)" if heard.told else ""
        console.print(
            f"{heard.scenes} mixes, {heard.twins} twins; {heard.measured} sounds measured in the audio{told}{least}"
        )


def schema(
    name: str = typer.Argument(
        ..., metavar="NAME", help="scenario, dialogue, template, abandoned, corpus, bank or build."
    ),
) -> None:
    """Print the JSON Schema of a file of a corpus, for editors, other programs and CI."""
    import json

    from earwitness.scenes.schemas import schema_of

    typer.echo(json.dumps(schema_of(name), ensure_ascii=False, indent=2))
