"""``earwitness clips assign`` and ``clips audit``: who speaks what how, and whether the words tell it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from earwitness.clips.assignment import Balance
    from earwitness.clips.assignment_audit import Spoken, WordsAudit


def register_assign(group: typer.Typer) -> None:
    """Add ``assign`` and ``audit`` to the ``clips`` group."""
    group.command("assign")(assign)
    group.command("audit")(audit)


def assign(
    folder: Path = typer.Argument(..., metavar="COLLECTION", help="Folder with scripts.jsonl."),
    accounts: int = typer.Option(
        0, "--accounts", min=0, help="Speaker accounts in all, named a001, a002, ..."
    ),
    account: list[str] = typer.Option([], "--account", help="A new account by name; repeatable."),
    accounts_file: Path | None = typer.Option(
        None, metavar="FILE", help="New accounts, one name a line."
    ),
    scripts: int | None = typer.Option(
        None, min=1, show_default="3", help="Scripts an account gets."
    ),
    emotions: int | None = typer.Option(
        None, min=1, show_default="3", help="Emotions each of them is performed in."
    ),
    seed: int | None = typer.Option(None, show_default="0", help="Seed of the draws."),
    audit_too: bool = typer.Option(
        False, "--audit", help="Afterwards test whether the words alone tell the emotion."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object instead of text."),
) -> None:
    """Give every speaker account scripts and emotions to perform.

    Balanced over emotions, scripts and speakers, drawn with a seed. Accounts that are there keep what they have;
    new ones go on where the others ended. Give accounts made-up names: people who review recordings see them.
    The lines of assignments.jsonl are what the recording app shows (earwitness review create).

    [bold]Examples:[/]

      earwitness clips assign collection --accounts 68 --audit

      earwitness clips assign collection --account maple --account birch
    """
    from rich.console import Console

    from earwitness.cli.clips_progress import steps
    from earwitness.clips.assignment import (
        ASSIGNMENTS,
        Design,
        add_accounts,
        balance,
        read_assignments,
        read_design,
    )
    from earwitness.clips.forgetting_records import read_tombstones, require_not_forgotten
    from earwitness.clips.scripts import read_scripts
    from earwitness.errors import DataError, UsageError

    known = read_scripts(folder)
    if not known:
        raise DataError(
            str(folder), "has no scripts.jsonl", "a collection with scripts",
            "Make them with: earwitness clips script COLLECTION",
        )  # fmt: skip
    before = read_assignments(folder)
    there = {each.account for each in before}
    new = [*account, *_lines(accounts_file)]
    if accounts:
        numbered = (f"a{n:03}" for n in range(1, 100_000))
        gone = read_tombstones(folder)
        taken = {name.casefold() for name in (*there, *new)}
        free = (name for name in numbered if name not in taken and not gone.has_name(name))
        new += [next(free) for _ in range(max(0, accounts - len(there) - len(new)))]
    if not new and not there:
        raise UsageError(
            "clips assign", "no accounts", "--accounts N, --account or --accounts-file"
        )
    fixed = read_design(folder) or Design()
    design = Design(
        seed=fixed.seed if seed is None else seed,
        scripts=fixed.scripts if scripts is None else scripts,
        emotions=fixed.emotions if emotions is None else emotions,
        labels=fixed.labels,
    )
    require_not_forgotten(folder, new)
    made: Sequence[Any] = ()
    if new or design != fixed:
        with steps(Console(stderr=True), "assigning") as on_progress:
            made = add_accounts(
                folder, new, known, design, lambda done: on_progress(done, len(new))
            )
    every = read_assignments(folder)
    found = balance(every, design.labels)
    result = _audit(_from_assignments(every), design.seed) if audit_too else None
    if as_json:
        import json
        from dataclasses import asdict

        summary: dict[str, Any] = {"assignments": str(folder / ASSIGNMENTS), "new": len(made)}
        summary |= asdict(found)
        if result is not None:
            summary["audit"] = _audit_json(result)
        typer.echo(json.dumps(summary, ensure_ascii=False, indent=2))
    else:
        _print_balance(folder, found, len(made))
        if result is not None:
            _print_audit(result)
    if result is not None and not result.ok:
        raise typer.Exit(1)


def audit(
    path: Path = typer.Argument(
        ..., metavar="PATH", help="A collection, or a clip set whose clips have text and script."
    ),
    of: str = typer.Option(
        "assignments", "--of", help="In a collection: assignments, pool or selection."
    ),
    seed: int = typer.Option(0, help="Seed of folds, control and intervals."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object instead of text."),
) -> None:
    """Test whether the words alone tell the emotion; exits with 1 when they do.

    A bag of words and pairs is cross-validated by script and by speaker, against chance (1/7) and against a
    control with shuffled emotions. What reviewers turn down can unbalance what was balanced, so audit the pool and
    the selection as well.

    [bold]Examples:[/]

      earwitness clips audit collection

      earwitness clips audit collection --of selection

      earwitness clips audit sets/ours --json
    """
    result = _audit(_spoken(path, of), seed)
    if as_json:
        import json

        typer.echo(json.dumps(_audit_json(result), ensure_ascii=False, indent=2))
    else:
        _print_audit(result)
    if not result.ok:
        raise typer.Exit(1)


def _lines(path: Path | None) -> list[str]:
    from earwitness.errors import DataError

    if path is None:
        return []
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(str(path), f"cannot be read ({error})", "one account a line") from None
    return [line.strip() for line in text.splitlines() if line.strip()]


def _from_assignments(assignments: Sequence[Any]) -> list[Spoken]:
    from earwitness.clips.assignment_audit import Spoken

    return [Spoken(a.text, a.emotion, a.script_id, a.account) for a in assignments]


def _spoken(path: Path, of: str) -> list[Spoken]:
    from earwitness.clips.assignment import ASSIGNMENTS, read_assignments
    from earwitness.clips.assignment_audit import Spoken
    from earwitness.clips.corpus import CLIPS_FILE, load_clip_set
    from earwitness.clips.pool import read_pool
    from earwitness.clips.selecting_record import read_selection
    from earwitness.errors import DataError, UsageError

    if of not in ("assignments", "pool", "selection"):
        raise UsageError("--of", f"found {of!r}", "assignments, pool or selection")
    if (path / CLIPS_FILE).is_file():
        clips = load_clip_set(path, check_files=False).clips
        without = sum(not clip.metadata.get("text") for clip in clips)
        if without:
            raise DataError(
                str(path), f"{without} of {len(clips)} clips have no text", "text in the metadata"
            )
        return [
            Spoken(
                clip.metadata["text"],
                clip.emotion,
                clip.metadata.get("script", clip.metadata["text"]),
                clip.cluster,
            )
            for clip in clips
        ]
    if of == "assignments":
        found = read_assignments(path)
        if not found:
            raise DataError(
                str(path), f"has no {ASSIGNMENTS}", "a collection with assignments, or a clip set"
            )
        return _from_assignments(found)
    entries = [entry for entry in read_pool(path) if entry.accepted]
    if of == "selection":
        chosen = set(read_selection(path).chosen)
        entries = [entry for entry in entries if entry.id in chosen]
    return [Spoken(e.text, e.emotion, e.script_id, e.speaker) for e in entries]


def _audit(spoken: Sequence[Spoken], seed: int) -> WordsAudit:
    from earwitness.clips.assignment_audit import audit_words

    return audit_words(spoken, seed=seed)


def _audit_json(result: WordsAudit) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "ok": result.ok,
        "guesses": [{**asdict(guess), "leaks": guess.leaks} for guess in result.guesses],
        "controls": [{**asdict(guess), "leaks": guess.leaks} for guess in result.controls],
    }


def _print_balance(folder: Path, found: Balance, new: int) -> None:
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    console.print(
        f"{folder}: {found.accounts} accounts, {found.recordings} recordings to make, {new} of them new",
        markup=False,
    )
    console.print("emotions  " + ", ".join(f"{k} {n}" for k, n in found.labels.items()))
    low, high = found.per_account_label
    console.print(f"an account has each emotion {low} to {high} times")
    low, high = found.per_script
    console.print(f"{found.scripts_used} scripts, each with {low} to {high} accounts")


def _print_audit(result: WordsAudit) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    table = Table(box=None, pad_edge=False)
    for column in ("held out", "emotions", "classifier"):
        table.add_column(column)
    for column in ("right", "95 % interval", "chance", "clusters", ""):
        table.add_column(column, justify="right")
    for guess in (*result.guesses, *result.controls):
        table.add_row(
            guess.held_out, guess.labels, guess.classifier, f"{guess.balanced_accuracy:.1%}",
            f"{guess.low:.1%} to {guess.high:.1%}", f"{guess.chance:.1%}", str(guess.clusters),
            "[bold red]leaks[/]" if guess.leaks else "[green]ok[/]",
        )  # fmt: skip
    console.print(table)
    if any(guess.leaks for guess in result.controls):
        verdict = "the control leaks: the audit itself cannot be trusted on so few recordings"
    elif result.ok:
        verdict = "the words alone do not tell the emotion"
    else:
        verdict = "the words alone tell the emotion better than chance"
    console.print(verdict)
