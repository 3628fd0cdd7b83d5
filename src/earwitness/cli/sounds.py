"""``earwitness sounds``: sound libraries."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from earwitness.scenes.sound_import import Imported, ImportSettings
    from earwitness.scenes.sounds import SoundLibrary, SplitPolicy

OUT = typer.Option(
    ..., "--out", "-o", metavar="LIB", help="Folder of the library, new or existing."
)
BANK = typer.Option(
    None, "--bank", metavar="DIR", show_default="the bank that ships", help="Folder of the bank."
)
JSON = typer.Option(False, "--json", help="Print one JSON object instead of text.")
POLICY = typer.Option(
    None, "--split-policy", metavar="disjoint|shared",
    help="disjoint: 4/6 of each class for train, 1/6 for validation, 1/6 for test; decided once, never moved. "
    "shared: every split may use every take, for libraries too small to be divided; the card says so.",
    show_default="disjoint",
)  # fmt: skip
SKIP_FEW = typer.Option(
    False,
    "--skip-few",
    help="Leave out classes with fewer than three recordings instead of refusing.",
)
WORKERS = typer.Option(None, "--workers", min=1, help="Processes (default: one per processor).")

group = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
)
fetch = typer.Typer(help="Get recordings from where they are.", no_args_is_help=True)
group.add_typer(fetch, name="fetch")


def register(app: typer.Typer) -> None:
    """Add this group's commands to the program."""
    app.add_typer(group, name="sounds")


@group.callback()
def about() -> None:
    """Sound libraries: takes of events and ambiences, with licence, loudness and split.

    A library is a folder: sounds/<sound>/<take>, ambiences/<location>/<take>, takes.jsonl (one line a take) and
    library.yaml (the card). The quickest one: earwitness sounds synth --out lib
    """


@group.command("synth")
def synth(
    out: Path | None = typer.Option(None, "--out", "-o", metavar="LIB", help="Folder of the library."),
    seed: int = typer.Option(0, "--seed", help="Another seed makes other takes."),
    takes: int = typer.Option(6, "--takes", min=1, help="Takes of each sound."),
    ambience_takes: int = typer.Option(3, "--ambience-takes", min=1, help="Takes of each ambience, 30 to 40 s."),
    sound: list[str] | None = typer.Option(None, "--sound", metavar="ID", help="Only this sound; may be repeated."),
    bank: Path | None = BANK,
    policy: str | None = POLICY,
    form: str = typer.Option("flac", "--format", metavar="flac|wav"),
    listing: bool = typer.Option(False, "--list", help="List the sounds and locations that can be made, and stop."),
    workers: int | None = WORKERS,
    as_json: bool = JSON,
) -> None:  # fmt: skip
    """Make a library by procedure: 180 sounds and all 13 ambiences of the bank that ships.

    Seeded, the same bytes with any number of workers, marked synthetic, CC0. Run it again to go on after a stop, or
    with more --takes to add to it.
    """
    import json

    from earwitness.errors import UsageError
    from earwitness.scenes.bank import load_bank
    from earwitness.scenes.synth.ambiences import BEDS
    from earwitness.scenes.synth.library import recipes, synthesise_library

    loaded = load_bank(bank)
    if listing:
        sounds = sorted({s.id for s in loaded.sounds} & set(recipes()))
        places = sorted({x.id for x in loaded.locations} & set(BEDS))
        missing = sorted({s.id for s in loaded.sounds} - set(recipes()))
        if as_json:
            typer.echo(json.dumps({"sounds": sounds, "ambiences": places, "without": missing}))
            return
        typer.echo(f"{len(sounds)} of {len(loaded.sounds)} sounds: {', '.join(sounds)}")
        typer.echo(f"{len(places)} of {len(loaded.locations)} ambiences: {', '.join(places)}")
        typer.echo(f"without a recipe: {', '.join(missing) or 'none'}")
        return
    if out is None:
        raise UsageError("--out", "nothing", "the folder of the library")
    if form not in ("flac", "wav"):
        raise UsageError("--format", repr(form), "flac or wav")
    with _progress("making takes") as on_progress:
        library = synthesise_library(
            out, loaded, seed=seed, takes=takes, ambience_takes=ambience_takes, sounds=sound,
            policy=_policy(policy), form=form, workers=workers, on_progress=on_progress,
        )  # fmt: skip
    _print_library(library, as_json)


@group.command("import")
def import_(
    kind: str = typer.Argument(..., metavar="KIND", help="esc50, fsd50k, urbansound8k, folder or freesound."),
    source: Path = typer.Argument(..., metavar="SRC", help="Folder that the collection unpacks to."),
    out: Path = OUT,
    class_map: str | None = typer.Option(
        None, "--map", metavar="FILE",
        help="Class map: whose class is which sound; a YAML file or esc50, fsd50k, urbansound8k "
        "(default: that of the kind).",
    ),
    table: Path | None = typer.Option(None, "--table", metavar="CSV", help="folder: table with file, class, licence, ..."),
    columns: str = typer.Option(
        "", "--columns", metavar="OURS=THEIRS,...",
        help="folder: what the table calls file, class, licence, attribution, author, source, group, kind, synthetic.",
    ),
    licence: str = typer.Option("", "--licence", help="folder: licence of all files that have none in the table."),
    attribution: str = typer.Option("", "--attribution", help="folder: credit for all files without one."),
    source_name: str = typer.Option("", "--source", help="folder: where all files come from, in words."),
    events: str = typer.Option("whole", "--events", metavar="whole|split", help="split: a take of every event of a recording."),
    keep_long: bool = typer.Option(False, "--keep-long", help="Do not cut sounds longer than the bank says they may be."),
    form: str = typer.Option("flac", "--format", metavar="flac|wav|keep", help="keep: copy files as they are."),
    per_class: int | None = typer.Option(None, "--per-class", min=1, help="At most so many recordings of a class."),
    name: str = typer.Option("", "--name", help="Name of a new library."),
    bank: Path | None = BANK,
    policy: str | None = POLICY,
    skip_few: bool = SKIP_FEW,
    workers: int | None = WORKERS,
    as_json: bool = JSON,
) -> None:  # fmt: skip
    """Bring recordings you have into a library.

    [bold]Examples[/]

      earwitness sounds import esc50 ESC-50-master --out lib

      earwitness sounds import folder recordings --table metadata.csv --columns attribution=credit --map map.yaml --out lib

    Converted once to 44.1 kHz mono FLAC; sounds are trimmed. Splits are decided on the way in: parts of one
    recording stay together, and takes that are there already never move.
    """
    from earwitness.errors import UsageError
    from earwitness.scenes.bank import load_bank
    from earwitness.scenes.sound_import import import_sounds
    from earwitness.scenes.sound_maps import identity_map, load_class_map
    from earwitness.scenes.sound_sources import READERS, ReaderOptions

    loaded = load_bank(bank)
    if kind == "freesound":
        from earwitness.scenes.sound_freesound import downloads_listing

        listing, mapped = downloads_listing(source), identity_map("freesound", loaded)
    elif kind in READERS:
        if kind == "folder" and class_map is None:
            raise UsageError("--map", "nothing", "a class map for this folder", "Write one: see docs/sound-libraries.md")  # fmt: skip
        mapped = load_class_map(class_map or kind, loaded)
        options = ReaderOptions(table, _columns(columns), licence, attribution, source_name)
        listing = READERS[kind](source, options)
    else:
        raise UsageError(f"kind {kind!r}", "unknown", ", ".join((*READERS, "freesound")))
    with _progress("converting") as on_progress:
        imported = import_sounds(
            listing, mapped, loaded, out, settings=_settings(form, events, keep_long, per_class),
            policy=_policy(policy), few="skip" if skip_few else "refuse", name=name, workers=workers,
            on_progress=on_progress,
        )  # fmt: skip
    _print_imported(imported, as_json)


@fetch.command("debian")
def fetch_debian(
    out: Path = OUT,
    package: list[str] | None = typer.Option(None, "--package", metavar="NAME", help="Only this package; may be repeated."),
    debs: Path | None = typer.Option(None, "--debs", metavar="DIR", help="Folder with the .deb files, instead of apt."),
    any_version: bool = typer.Option(False, "--any-version", help="Take the versions apt has; their hashes are not compared."),
    cache: Path | None = typer.Option(None, "--cache", metavar="DIR", help="Where packages are kept (default: beside LIB)."),
    bank: Path | None = BANK,
    policy: str | None = POLICY,
    skip_few: bool = SKIP_FEW,
    workers: int | None = WORKERS,
    as_json: bool = JSON,
) -> None:  # fmt: skip
    """Fetch real recordings from Debian packages (75 MB), with the licence of each file.

    minetest-data, scratch, lincity-ng-data and sound-theme-freedesktop: 31 sounds and 5 ambiences, one to nine
    takes each, half of them band-limited. Downloads with apt-get, installs nothing. Most classes have too few takes
    to be divided: use --split-policy shared, or --skip-few.
    """
    from rich.console import Console

    from earwitness.scenes.bank import load_bank
    from earwitness.scenes.sound_debian import fetch_debian as run

    notes = Console(stderr=True, highlight=False)
    with _progress("converting") as on_progress:
        imported = run(
            out, load_bank(bank), cache or out.with_name(out.name + ".packages"), names=package or (), debs=debs,
            any_version=any_version, policy=_policy(policy), few="skip" if skip_few else "refuse", workers=workers,
            on_package=lambda name: notes.print(f"package {name}"), on_progress=on_progress,
        )  # fmt: skip
    _print_imported(imported, as_json)


@fetch.command("freesound")
def fetch_freesound(
    folder: Path = typer.Option(..., "--out", "-o", metavar="DIR", help="Folder of the downloads."),
    sound: list[str] | None = typer.Option(None, "--sound", metavar="ID", help="Only this sound; may be repeated."),
    ambience: list[str] | None = typer.Option(None, "--ambience", metavar="ID", help="Only this location; may be repeated."),
    per_sound: int = typer.Option(30, "--per-sound", min=1),
    per_ambience: int = typer.Option(30, "--per-ambience", min=1),
    allow: str = typer.Option("cc0", "--allow", metavar="cc0|by|any", help="cc0; by: with credit; any: also non-commercial."),
    queries: Path | None = typer.Option(None, "--queries", metavar="YAML", help="What to search for: sounds: {id: query}."),
    originals: bool = typer.Option(False, "--originals", help="Uploads instead of lossy previews; needs FREESOUND_ACCESS_TOKEN."),
    base_url: str = typer.Option("https://freesound.org/apiv2", "--base-url", help="Of the API."),
    per_minute: int = typer.Option(60, "--per-minute", min=1, help="Requests; the service allows 60, and 2,000 a day."),
    bank: Path | None = BANK,
    as_json: bool = JSON,
) -> None:  # fmt: skip
    """Search Freesound for every sound of the bank and download what its licence allows.

    The key is read from FREESOUND_API_KEY. Nothing is fetched twice: run the same command again after a stop or when
    the day's requests are used up. Credits are in ATTRIBUTION.md. Then:
    earwitness sounds import freesound DIR --out LIB
    """
    import json
    import os

    from rich.console import Console

    from earwitness.errors import UsageError
    from earwitness.scenes.bank import load_bank
    from earwitness.scenes.sound_freesound import (
        ALLOWED,
        KEY_VARIABLE,
        TOKEN_VARIABLE,
        Freesound,
        FreesoundSettings,
        load_queries,
    )
    from earwitness.scenes.sound_freesound import fetch_freesound as run

    choices = {name: name for name in ALLOWED}
    if allow not in choices:
        raise UsageError("--allow", repr(allow), ", ".join(choices))
    loaded = load_bank(bank)
    for identifier in sound or ():
        loaded.sound(identifier)
    for identifier in ambience or ():
        loaded.location(identifier)
    settings = FreesoundSettings(
        per_sound, per_ambience, choices[allow], originals, base_url.rstrip("/"), per_minute
    )
    notes = Console(stderr=True, highlight=False)
    with Freesound(settings, os.environ.get(KEY_VARIABLE, ""), os.environ.get(TOKEN_VARIABLE, "")) as client:  # fmt: skip
        fetched = run(
            folder, loaded, client, sounds=sound or (), ambiences=ambience or (),
            queries=load_queries(loaded, queries),
            on_progress=lambda of, n, total: notes.print(f"{n + 1}/{total} {of}"),
        )  # fmt: skip
    if as_json:
        typer.echo(json.dumps({"downloaded": fetched.downloaded, "kept": fetched.kept, "short": fetched.short}))  # fmt: skip
        return
    typer.echo(f"{folder}: {fetched.downloaded} downloaded, {fetched.kept} were there")
    for of, n in sorted(fetched.short.items()):
        typer.echo(f"  {of}: only {n}; try another query (--queries) or --allow")
    typer.echo(f"Next: earwitness sounds import freesound {folder} --out LIB")


@group.command("check")
def check(
    library: Path = typer.Argument(..., metavar="LIB", help="Folder of the library."),
    bank: Path | None = BANK,
    strict: bool = typer.Option(False, "--strict", help="Exit with 1 for warnings too."),
    twins: bool = typer.Option(True, "--twins/--no-twins", help="Look for one recording in two splits."),
    accept_edits: bool = typer.Option(False, "--accept-edits", help="takes.jsonl was changed by hand, and rightly: write the card anew."),
    workers: int | None = WORKERS,
    as_json: bool = JSON,
) -> None:  # fmt: skip
    """Check every take and class of a library, and which locations of the bank it serves.

    Exits with 1 when there is an error. The codes are explained in docs/sound-libraries.md.
    """
    import dataclasses
    import json

    from rich.console import Console
    from rich.markup import escape

    from earwitness.scenes.bank import load_bank
    from earwitness.scenes.sound_check import check_library
    from earwitness.scenes.sounds import accept_edits as accept
    from earwitness.scenes.sounds import load_library

    loaded = accept(library) if accept_edits else load_library(library)
    with _progress("checking") as on_progress:
        report = check_library(
            loaded, load_bank(bank), twins=twins, workers=workers, on_progress=on_progress
        )
    if as_json:
        value = {
            "library": dataclasses.asdict(loaded.card), "errors": len(report.errors),
            "warnings": len(report.warnings), "findings": [dataclasses.asdict(f) for f in report.findings],
        }  # fmt: skip
        typer.echo(json.dumps(value, ensure_ascii=False, indent=2))
    else:
        console = Console(highlight=False, soft_wrap=True)
        for fault in report.findings:
            colour = "red" if fault.severity == "error" else "yellow"
            wanted = f"; wanted {fault.wanted}" if fault.wanted else ""
            step = f". {fault.next_step}" if fault.next_step else ""
            console.print(
                f"[bold {colour}]{fault.code}[/] {escape(fault.where)}: {escape(fault.found + wanted + step)}"
            )
        card = loaded.card
        summary = (
            f"{len(report.errors)} errors, {len(report.warnings)} warnings"
            if report.findings
            else "no faults"
        )
        console.print(
            f"{escape(card.name)} {card.version} ({card.n_takes} takes, {card.split_policy}): {summary}"
        )
    if report.errors or (strict and report.warnings):
        raise typer.Exit(1)


@group.command("show")
def show(
    library: Path = typer.Argument(..., metavar="LIB", help="Folder of the library."),
    as_json: bool = JSON,
) -> None:
    """Print what a library holds: takes of each class by split, loudness, licences."""
    import dataclasses
    import json

    from rich.console import Console
    from rich.table import Table

    from earwitness.scenes.scenario import SPLITS
    from earwitness.scenes.sounds import SHARED, load_library

    loaded = load_library(library)
    splits = (*SPLITS, SHARED)
    rows: list[dict[str, Any]] = []
    for kind in ("sound", "ambience"):
        for of in loaded.ids(kind):
            takes = loaded.sounds(of) if kind == "sound" else loaded.ambiences(of)
            rows.append(
                {
                    "kind": kind, "of": of, **{str(s): sum(t.split == s for t in takes) for s in splits},
                    "seconds": round(sum(t.duration_s for t in takes) / len(takes), 2),
                    "lufs": round(sum(t.loudness_lufs for t in takes) / len(takes), 1),
                    "band_limited": sum(t.band_limited for t in takes),
                    "synthetic": sum(t.synthetic for t in takes),
                }
            )  # fmt: skip
    if as_json:
        typer.echo(json.dumps({"card": dataclasses.asdict(loaded.card), "classes": rows}, indent=2))
        return
    console = Console(highlight=False)
    names = ["of", *splits, "seconds", "lufs", "band_limited", "synthetic"]
    table = Table(*(name.replace("_", "-") for name in names), box=None)
    for row in rows:
        table.add_row(*(str(row[name]) for name in names))
    console.print(table)
    _print_library(loaded, as_json=False)


def _policy(text: str | None) -> SplitPolicy | None:
    from earwitness.errors import UsageError
    from earwitness.scenes.sounds import POLICIES

    chosen = next((policy for policy in POLICIES if policy == text), None)
    if text is not None and chosen is None:
        raise UsageError("--split-policy", repr(text), " or ".join(POLICIES))
    return chosen


def _columns(text: str) -> dict[str, str]:
    from earwitness.errors import UsageError

    pairs = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        ours, equals, theirs = part.partition("=")
        if not equals or not theirs:
            raise UsageError("--columns", repr(part), "ours=theirs")
        pairs[ours.strip()] = theirs.strip()
    return pairs


def _settings(form: str, events: str, keep_long: bool, per_class: int | None) -> ImportSettings:
    from earwitness.errors import UsageError
    from earwitness.scenes.sound_import import ImportSettings

    if form not in ("flac", "wav", "keep"):
        raise UsageError("--format", repr(form), "flac, wav or keep")
    if events not in ("whole", "split"):
        raise UsageError("--events", repr(events), "whole or split")
    if form == "keep" and events == "split":
        raise UsageError("--events split", "files are kept as they are", "--format flac or wav")
    return ImportSettings(
        form="keep" if form == "keep" else "wav" if form == "wav" else "flac",
        events="split" if events == "split" else "whole",
        cut_long=not keep_long,
        per_class=per_class,
    )


def _quiet(done: int, total: int) -> None:
    del done, total


@contextmanager
def _progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error where somebody looks at it; nothing elsewhere."""
    import sys

    if not sys.stderr.isatty():
        yield _quiet
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _print_library(library: SoundLibrary, as_json: bool) -> None:
    import dataclasses
    import json

    card = library.card
    if as_json:
        typer.echo(
            json.dumps({"folder": str(library.folder), **dataclasses.asdict(card)}, indent=2)
        )
        return
    licences = ", ".join(f"{name} ({n})" for name, n in card.licences.items())
    typer.echo(
        f"{card.name} {card.version}: {card.n_takes} takes of {card.n_sounds} sounds and {card.n_ambiences} ambiences, {card.synthetic} synthetic"
    )
    typer.echo(f"split policy {card.split_policy}; licences: {licences}\nhash {card.hash}")


def _print_imported(imported: Imported, as_json: bool) -> None:
    import dataclasses
    import json

    if as_json:
        value: dict[str, Any] = {
            "folder": str(imported.library.folder), "card": dataclasses.asdict(imported.library.card),
            "added": imported.added, "kept": imported.kept, "unmapped": dict(imported.unmapped),
            "left_out": dict(imported.left_out), "refused": imported.refused,
        }  # fmt: skip
        typer.echo(json.dumps(value, ensure_ascii=False, indent=2))
        return
    typer.echo(f"{imported.added} takes added, {imported.kept} were there")
    for title, counts in (
        ("classes the map does not know", imported.unmapped),
        ("left out", imported.left_out),
    ):
        if counts:
            typer.echo(
                f"{title}: " + ", ".join(f"{name} ({n})" for name, n in sorted(counts.items()))
            )
    for path, reason in sorted(imported.refused.items()):
        typer.echo(f"refused {path}: {reason}")
    _print_library(imported.library, as_json=False)
