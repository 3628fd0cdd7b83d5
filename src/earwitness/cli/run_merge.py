"""``earwitness run merge``: parts of a run that several machines made become one."""

from __future__ import annotations

from pathlib import Path

import typer


def register_merge(group: typer.Typer) -> None:
    """Add ``merge`` to the ``run`` group."""
    group.command("merge")(merge)


def merge(
    parts: list[Path] = typer.Argument(
        ..., metavar="PART...", help="Folders of parts, or folders that hold them."
    ),
    out: Path = typer.Option(..., "--out", "-o", help="Folder for the joined runs."),
    as_json: bool = typer.Option(
        False, "--json", help="Print a summary as JSON on standard output."
    ),
) -> None:
    """Join runs made with --shard into one, as if one machine had made it.

    Checked first: the parts have the same card (task, model, settings, prompt, set), no item was asked in two ways, and no
    shard is missing. Entries of all ledgers are kept. Parts are only read.

    Examples:

      earwitness run emotion --clips sets/vab --model M --shard 1/2 --out runs-a    (on one machine)

      earwitness run emotion --clips sets/vab --model M --shard 2/2 --out runs-b    (on another)

      earwitness run merge runs-a runs-b --out runs && earwitness score runs
    """
    import json
    from dataclasses import asdict

    from rich.console import Console

    from earwitness.runs.shards import merge_runs

    merged = merge_runs(parts, out)
    if as_json:
        rows = [{**asdict(each), "folder": str(each.folder)} for each in merged]
        typer.echo(json.dumps({"runs": rows}, indent=2))
        return
    console = Console()
    for each in merged:
        left = each.items - each.replies
        told = f"{each.parts} parts, {each.items} items, {each.replies} replies"
        if left:
            told += f", {left} without one ({each.failed} failed)"
        if each.duplicates:
            told += f"; {each.duplicates} replies were there twice, the first stands"
        console.print(f"{each.folder}: {told}", highlight=False, markup=False, soft_wrap=True)
