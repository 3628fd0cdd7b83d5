"""``earwitness scenes bank``: look at a bank, check one, start one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from earwitness.scenes.bank import Bank
    from earwitness.scenes.bank_lint import LintReport

FOLDER = typer.Argument(
    None, metavar="DIR", show_default="the bank that ships", help="Folder of the bank."
)
JSON = typer.Option(False, "--json", help="Print one JSON object instead of text.")


def register_bank(group: typer.Typer) -> None:
    """Add ``bank`` with its commands to the ``scenes`` group."""
    bank = typer.Typer(
        help="Banks: the locations, sounds, roles, registers and topics that scenes are drawn from, as YAML.",
        no_args_is_help=True,
    )
    bank.command("check")(check)
    bank.command("show")(show)
    bank.command("new")(new)
    bank.command("schema")(schema)
    group.add_typer(bank, name="bank")


def check(
    folder: Path | None = FOLDER,
    sounds: Path | None = typer.Option(
        None,
        "--sounds",
        metavar="LIBRARY",
        help="A sound library: which locations could it not serve?",
    ),
    strict: bool = typer.Option(False, "--strict", help="Exit with 1 for warnings too."),
    as_json: bool = JSON,
) -> None:
    """Check a bank and say what is wrong, with a stable code, the file and the key path.

    Exits with 1 when there is an error. The codes are explained in docs/banks.md.
    """
    import dataclasses
    import json

    from earwitness.scenes.bank import DEFAULT_BANK
    from earwitness.scenes.bank_library import library_findings, read_library
    from earwitness.scenes.bank_lint import lint_folder

    report = lint_folder(folder or DEFAULT_BANK)
    if sounds is not None and report.bank is not None:
        extra = tuple(library_findings(report.bank, read_library(sounds)))
        report = dataclasses.replace(report, findings=report.findings + extra)
    if as_json:
        typer.echo(json.dumps(_report_object(report), ensure_ascii=False, indent=2))
    else:
        _print_report(report, library=sounds)
    if report.errors or (strict and report.warnings):
        raise typer.Exit(1)


def show(
    folder: Path | None = FOLDER,
    location: str | None = typer.Option(
        None, "--location", metavar="ID", help="Show one location with every sound it can draw."
    ),
    as_json: bool = JSON,
) -> None:
    """Print what a bank holds: counts by kind, location, reaction and category."""
    import json

    from rich.console import Console

    from earwitness.scenes.bank import load_bank

    bank = load_bank(folder)
    if location is not None:
        data = _location_object(bank, location)
    else:
        data = _bank_object(bank)
    if as_json:
        typer.echo(json.dumps(data, ensure_ascii=False, indent=2))
        return
    console = Console(highlight=False)
    if location is not None:
        _print_location(console, bank, location)
    else:
        _print_bank(console, bank)


def new(
    target: Path = typer.Argument(..., metavar="DIR", help="Folder to make; must not exist yet."),
) -> None:
    """Copy the bank that ships into a folder, as a start for a bank of your own."""
    import shutil

    from earwitness.errors import UsageError
    from earwitness.scenes.bank import DEFAULT_BANK

    if target.exists():
        raise UsageError(
            str(target), "exists already", "a folder that does not", "Choose another name"
        )
    shutil.copytree(DEFAULT_BANK, target)
    typer.echo(f"{target}: edit it, then run  earwitness scenes bank check {target}")


def schema() -> None:
    """Print the JSON Schema of a bank, for editors and CI."""
    import json

    from earwitness.scenes.bank_records import bank_schema

    typer.echo(json.dumps(bank_schema(), ensure_ascii=False, indent=2))


def _report_object(report: LintReport) -> dict[str, Any]:
    import dataclasses

    return {
        "folder": str(report.folder),
        "bank": report.bank.id if report.bank else None,
        "hash": report.bank.hash if report.bank else None,
        "errors": len(report.errors),
        "warnings": len(report.warnings),
        "counts": _counts(report.bank) if report.bank else None,
        "findings": [dataclasses.asdict(finding) for finding in report.findings],
    }


def _print_report(report: LintReport, *, library: Path | None) -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False, soft_wrap=True)
    for found in report.findings:
        colour = "red" if found.severity == "error" else "yellow"
        step = f". {found.next_step}" if found.next_step else ""
        console.print(
            f"[bold {colour}]{found.code}[/] {escape(found.where)}: {escape(found.found)}; wanted {escape(found.wanted + step)}"
        )
    errors, warnings = len(report.errors), len(report.warnings)
    if report.bank is None:
        console.print("The files have faults; the rest is checked once they are gone.")
    elif library is not None and not errors:
        console.print(f"{library} serves every location.")
    summary = f"{errors} errors, {warnings} warnings" if report.findings else "no faults"
    name = f"{report.bank.id} {report.bank.version} " if report.bank else ""
    console.print(f"{escape(name)}({escape(str(report.folder))}): {summary}")


def _counts(bank: Bank) -> dict[str, Any]:
    from collections import Counter

    return {
        "locations": len(bank.locations),
        "sounds": len(bank.sounds),
        "sounds_by_pool": dict(sorted(Counter(sound.pool for sound in bank.sounds).items())),
        "role_pairs": len(bank.roles),
        "registers": dict(sorted(Counter(r.reaction for r in bank.registers).items())),
        "tags": len(bank.tags),
        "categories": len(bank.categories),
        "themes": sum(len(category.themes) for category in bank.categories),
        "situations": len(bank.templates),
    }


def _bank_object(bank: Bank) -> dict[str, Any]:
    return {
        "id": bank.id,
        "version": bank.version,
        "language": bank.language,
        "licence": bank.licence,
        "title": bank.title,
        "hash": bank.hash,
        **_counts(bank),
        "sounds_at": {x.id: len(bank.sounds_at(x.id)) for x in bank.locations},
        "rare_at": {x.id: len(bank.rare_at(x.id)) for x in bank.locations},
        "themes_by_category": {c.id: len(c.themes) for c in bank.categories},
    }


def _location_object(bank: Bank, location: str) -> dict[str, Any]:
    place = bank.location(location)
    return {
        **place.model_dump(mode="json"),
        "sounds": [
            {
                "id": sound.id,
                "name": sound.name,
                "pool": sound.pool,
                "distance": bank.distance_of(sound.id, location).id,
            }
            for sound in map(bank.sound, (*bank.sounds_at(location), *bank.rare_at(location)))
        ],
    }


def _print_bank(console: Any, bank: Bank) -> None:
    from collections import Counter

    from rich.table import Table

    console.print(
        f"[bold]{bank.id}[/] {bank.version}, language {bank.language}, licence {bank.licence}"
    )
    console.print(f"{bank.title}\nhash {bank.hash}\n", soft_wrap=True)
    table = Table("location", "setting", "own", "shared", "general", "drawable", "rare", box=None)
    for place in bank.locations:
        pools = Counter(bank.sound(sound).pool for sound in bank.sounds_at(place.id))
        table.add_row(
            place.id, place.setting, *(str(pools[pool]) for pool in ("own", "shared", "general")),
            str(pools.total()), str(len(bank.rare_at(place.id))),
        )  # fmt: skip
    console.print(table)
    counts = _counts(bank)
    pools_text = ", ".join(f"{n} {pool}" for pool, n in counts["sounds_by_pool"].items())
    registers = ", ".join(f"{n} {reaction}" for reaction, n in counts["registers"].items())
    console.print(f"\n{counts['locations']} locations, {counts['sounds']} sounds ({pools_text})")
    console.print(f"{counts['role_pairs']} role pairs, {counts['tags']} delivery tags")
    console.print(f"registers: {registers}")
    console.print(
        f"{counts['situations']} situations in {counts['themes']} themes of {counts['categories']} categories"
    )


def _print_location(console: Any, bank: Bank, location: str) -> None:
    from rich.table import Table

    place = bank.location(location)
    room = place.room
    size = " x ".join(f"{side:g}" for side in room.size_m)
    console.print(f"[bold]{place.id}[/] {place.name} ({place.setting})")
    console.print(f"{place.ambience.description}", soft_wrap=True)
    console.print(f"room {size} m, {room.rt60_s:g} s, {room.variations} variations\n")
    table = Table("sound", "pool", "name", "seconds", "loudness", "metres", box=None)
    for sound in map(bank.sound, (*bank.sounds_at(location), *bank.rare_at(location))):
        profile = bank.distance_of(sound.id, location)
        table.add_row(
            sound.id, sound.pool, sound.name, "{:g}-{:g}".format(*sound.duration_s), sound.loudness,
            f"{profile.near_m:g}-{profile.far_m:g}",
        )  # fmt: skip
    console.print(table)
