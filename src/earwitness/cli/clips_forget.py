"""``earwitness clips forget``: a speaker withdraws consent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from earwitness.clips.forgetting import Forgotten


def register_forget(group: typer.Typer) -> None:
    """Add ``forget`` to the ``clips`` group."""
    group.command("forget")(forget)


def forget(
    speaker: str | None = typer.Argument(
        None, metavar="SPEAKER", help="A speaker, or an account; a speaker's accounts all go."
    ),
    collection: Path = typer.Option(..., "--in", metavar="COLLECTION", help="The collection."),
    recordings: list[Path] = typer.Option(
        [], "--recordings", metavar="DIR", help="Folder of the recording app; repeatable."
    ),
    review: list[Path] = typer.Option(
        [], "--review", metavar="DIR", help="Folder of the review app; repeatable."
    ),
    sets: list[Path] = typer.Option(
        [], "--set", metavar="DIR", help="An exported clip set, or a copy of one; repeatable."
    ),
    runs: list[Path] = typer.Option(
        [], "--runs", metavar="DIR", help="Folder with runs on such sets; repeatable."
    ),
    derived: list[Path] = typer.Option(
        [], "--derived", metavar="DIR", help="Folder with reports, tables or caches; repeatable."
    ),
    yes: bool = typer.Option(False, "--yes", help="Do it. Without it, only say what would go."),
    resume: bool = typer.Option(False, "--resume", help="Go on with an interrupted withdrawal."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object instead of text."),
) -> None:
    """Withdraw a person's consent: everything of theirs goes, and what must be made anew is listed.

    Recordings, assignments, reviews and pool rows in the collection; clips in exported sets, with their tables and documents; items
    and replies in runs; answers, consents and cached audio of the app; copies, rows and pages in other folders. Clips are recognised
    by the hash of the recording they were made from, wherever the set lies.

    Without --yes nothing is changed. A tombstone with salted hashes stays, so that neither the account nor the same
    recording is taken in again. If it is interrupted, pool, select and export refuse to work until it is finished: say
    the same command again, or --resume. What was published or copied elsewhere cannot be reached from here.

    [bold]Examples:[/]

      earwitness clips forget a017 --in collection --set sets/ours --runs runs --derived report

      earwitness clips forget a017 --in collection --set sets/ours --runs runs --derived report --yes
    """
    from rich.console import Console

    from earwitness.clips.forgetting import Places
    from earwitness.clips.forgetting import forget as work
    from earwitness.clips.forgetting import resume as go_on
    from earwitness.errors import UsageError

    console = Console(stderr=True)
    places = Places(tuple(recordings), tuple(review), tuple(sets), tuple(runs), tuple(derived))
    if (speaker is None) == (not resume):
        raise UsageError("clips forget", "a speaker and --resume, or neither", "one of them")
    with console.status("looking") as status:
        if speaker is None:
            found = go_on(collection, do=yes, on_step=status.update)
        else:
            found = work(collection, speaker, places, do=yes, on_step=status.update)
    if as_json:
        import json
        from dataclasses import asdict

        summary = {
            "done": found.done,
            "effects": [asdict(effect) for effect in found.effects],
            "rebuild": list(found.rebuild),
        }
        typer.echo(json.dumps(summary, ensure_ascii=False, indent=2))
    else:
        _print(found)


def _print(found: Forgotten) -> None:
    from collections import Counter

    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True, markup=False)
    audio = [effect for effect in found.effects if effect.what == "audio file"]
    verb = "gone" if found.done else "would go"
    folders = Counter(str(Path(effect.path).parent) for effect in audio)
    for folder, count in folders.items():
        console.print(f"{verb}: {count} audio files in {folder}")
    for effect in found.effects:
        if effect.what != "audio file":
            console.print(f"{verb}: {effect.count} {effect.what} ({effect.path})")
    if not found.effects:
        console.print("nothing of theirs is left")
    if found.rebuild:
        console.print("to be made anew:")
        for what in found.rebuild:
            console.print(f"  {what}")
    if not found.done:
        console.print("Nothing was changed. Say it again with --yes to do it.")
    else:
        console.print("What was published or copied elsewhere must be withdrawn there.")
