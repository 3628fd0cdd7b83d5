"""``earwitness scenes``: two-speaker scenes, stage by stage."""

from __future__ import annotations

import importlib

import typer

PARTS = (
    "build",
    "bank",
    "plan",
    "write",
    "filter",
    "judge",
    "check",
    "validate",
    "audit",
    "speak",
    "mix",
    "listen",
)
"""Modules ``scenes_<part>``; each has ``register_<part>(group)``."""


def register(app: typer.Typer) -> None:
    """Add this group's commands to the program."""
    group = typer.Typer(
        help="Build two-speaker scenes whose ground truth is fixed before any audio exists.",
        no_args_is_help=True,
        rich_markup_mode="rich",
    )
    for part in PARTS:
        module = importlib.import_module(f"earwitness.cli.scenes_{part}")
        getattr(module, f"register_{part}")(group)
    app.add_typer(group, name="scenes")
