"""The command line: one module per command group. Parses arguments, calls, prints; no logic."""

from __future__ import annotations

import importlib
import sys
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer

GROUPS = (
    "clips",
    "run",
    "score",
    "report",
    "compare",
    "baseline",
    "models",
    "voices",
    "asr",
    "scenes",
    "sounds",
    "review",
    "schema",
)
"""Modules of this package; each has ``register(app)``."""


@cache
def build_app() -> typer.Typer:
    """Assemble the program from its groups, once a process. Importing a group must not import anything heavy."""
    import typer

    app = typer.Typer(
        name="earwitness",
        help="Find out what audio-language models really hear, beyond the words.",
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    def version(value: bool) -> None:
        if value:
            from earwitness import __version__

            typer.echo(f"earwitness {__version__}")
            raise typer.Exit

    @app.callback()
    def root(
        version: bool = typer.Option(
            False, "--version", callback=version, is_eager=True, help="Show the version and exit."
        ),
    ) -> None:
        del version

    for group in GROUPS:
        importlib.import_module(f"earwitness.cli.{group}").register(app)
    return app


def main() -> None:
    """Entry point: one line and a non-zero exit for a user's mistake, never a traceback."""
    from earwitness.errors import EarwitnessError

    try:
        build_app()()
    except EarwitnessError as error:
        from rich.console import Console
        from rich.markup import escape

        # What an error quotes ([hub], a model's words) is text, never markup.
        Console(stderr=True, soft_wrap=True).print(
            f"[bold red]error[/] {type(error).__name__}: {escape(str(error))}", highlight=False
        )
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.exit(141)
