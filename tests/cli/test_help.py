"""What every command says of itself reaches the reader whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer.main
from rich.markup import render

from earwitness.cli import build_app

STYLES = {"bold", "dim", "italic"}


def commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    yield name, command
    for each, found in getattr(command, "commands", {}).items():
        yield from commands(found, f"{name} {each}")


def test_no_word_of_help_is_taken_for_markup() -> None:
    seen = 0
    for name, command in commands(typer.main.get_command(build_app()), "earwitness"):
        texts = [getattr(each, "help", None) or "" for each in command.params]
        for text in [command.help or "", *texts]:
            swallowed = {str(span.style) for span in render(text).spans} - STYLES
            assert not swallowed, f"{name}: {swallowed} in {text!r}"
            seen += 1
    assert seen > 300


def test_every_command_says_what_it_does() -> None:
    for name, command in commands(typer.main.get_command(build_app()), "earwitness"):
        assert (command.help or "").strip(), name
