"""How figures of judges are printed, the same for a corpus and for labelled snippets."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from earwitness.scenes.recovery_trial import Share


def percent(share: Share) -> str:
    """A share with its interval and what it is a share of."""
    return f"{share.value:.1%} ({share.low:.1%} to {share.high:.1%}) of {share.of}"


def print_confusion(console: Console, confusion: tuple[tuple[int, ...], ...]) -> None:
    """Planned reactions in rows, what a judge read in columns."""
    from rich.table import Table

    from earwitness.scenes.bank_records import REACTIONS

    width = len(confusion[0])
    grid = Table("planned \\ read as", box=None, padding=(0, 2, 0, 0))
    for column in (*REACTIONS, "no verdict")[:width]:
        grid.add_column(column, justify="right")
    for name, row in zip(REACTIONS, confusion, strict=True):
        grid.add_row(name, *map(str, row))
    console.print(grid)
    console.print()
