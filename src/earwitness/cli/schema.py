"""``earwitness schema``: the JSON Schemas of the files Earwitness writes and reads."""

from __future__ import annotations

import typer

from earwitness.cli.scenes_validate import schema


def register(app: typer.Typer) -> None:
    """Add the command; ``earwitness scenes schema`` is the same one."""
    app.command("schema")(schema)
