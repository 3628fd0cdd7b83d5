"""``earwitness scenes mix``, ``render-one`` and ``labels``: from voices and sounds to scenes one can hear."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from earwitness.scenes.mixing.stage import MixReport

CORPUS = typer.Argument(..., metavar="CORPUS", help="Folder of a corpus with spoken scenes.")
SOUNDS = typer.Option(..., "--sounds", metavar="LIBRARY", help="Folder of a sound library.")
PRESET = typer.Option(
    "balanced", "--preset", metavar="NAME", help="balanced, paper, or a YAML file of your own."
)
BANK = typer.Option(
    None, "--bank", metavar="DIR", show_default="the bank that ships", help="Bank of the corpus."
)
JSON = typer.Option(False, "--json", help="Print one JSON object instead of text.")


def register_mix(group: typer.Typer) -> None:
    """Add ``mix``, ``render-one`` and ``labels`` to the ``scenes`` group."""
    group.command("mix")(mix)
    group.command("render-one")(render_one)
    group.command("labels")(labels)


def mix(
    corpus: Path = CORPUS,
    sounds: Path = SOUNDS,
    preset: str = PRESET,
    workers: int | None = typer.Option(
        None, "--workers", min=1, show_default="one a processor", help="Processes."
    ),
    audio_format: str = typer.Option("wav", "--format", help="wav or flac; both of 16 bits."),
    stems: bool = typer.Option(
        False, "--stems", help="Write every bus as well; their sum is the mix before rounding."
    ),
    mute: list[str] = typer.Option(
        [],
        "--mute",
        metavar="EVENT",
        help="Make twins without a sound: an event such as e1, each (one twin an event), or all (one "
        "twin without any). Repeatable.",
    ),
    swap_sound: list[str] = typer.Option(
        [],
        "--swap-sound",
        metavar="EVENT",
        help="Make twins with another sound of the location at the same moment: an event or each.",
    ),
    speech_only: bool = typer.Option(
        False, "--speech-only", help="Make twins of the voices alone, in their room."
    ),
    allow_overlap: bool = typer.Option(
        False, "--allow-overlap", help="Let two sounds overlap, which is refused otherwise."
    ),
    only: list[str] = typer.Option(
        [], "--only", metavar="ID", help="Mix only this scene. Repeatable, or ids with commas."
    ),
    limit: int | None = typer.Option(None, "--limit", min=1, help="Mix only the first N scenes."),
    shard: str | None = typer.Option(
        None, "--shard", metavar="I/N", help="Mix only this part; afterwards run once without it."
    ),
    bank: Path | None = BANK,
    as_json: bool = JSON,
) -> None:
    """Mix every spoken scene of a corpus: voices in a room, sounds at a distance, an ambience.

    Sounds stand in the gaps between utterances, with their loudest moment clear of speech. With the preset
    balanced, gaps, lengths, levels and ducking are drawn alike for every reaction; with paper they follow the
    CARES paper. Levels are measured and written into a manifest beside each file.

    Scenes that are there and whose inputs have not changed are skipped: interrupt it and run it again. The same
    inputs give the same bytes with any number of workers. Scenes that cannot be mixed are named with the reason
    and leave nothing behind; the command then exits with 1.

    Writes mixes/SCENE.wav with mixes/SCENE.json, twins/VARIANT/..., stems/SCENE/..., and mixes.yaml.

    Examples:

      earwitness scenes mix corpus --sounds library

      earwitness scenes mix corpus --sounds library --mute all --mute each --format flac

      earwitness scenes mix corpus --sounds library --only hosting.01.01 --stems
    """
    import dataclasses
    import json

    from earwitness.errors import UsageError
    from earwitness.scenes.corpus import Corpus
    from earwitness.scenes.mixing.preset import load_mix_preset
    from earwitness.scenes.mixing.stage import FORMATS, mix_corpus
    from earwitness.scenes.mixing.twins import TwinRequest
    from earwitness.scenes.sounds import load_library

    form = next((known for known in FORMATS if known == audio_format), None)
    if form is None:
        raise UsageError("--format", repr(audio_format), ", ".join(FORMATS))
    chosen = load_mix_preset(preset)
    if allow_overlap:
        chosen = chosen.model_copy(update={"allow_overlap": True})
    opened = Corpus(corpus)
    with progress("Mixing") as on_done:
        report = mix_corpus(
            opened,
            opened.bank(bank),
            load_library(sounds),
            chosen,
            twins=TwinRequest(tuple(mute), tuple(swap_sound), speech_only),
            form=form,
            stems=stems,
            workers=workers,
            only=_ids(only),
            limit=limit,
            shard=_shard(shard),
            on_done=on_done,
        )
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(report), indent=2, ensure_ascii=False))
    else:
        _print_report(corpus, report)
    if report.refused:
        raise typer.Exit(1)


def _ids(given: list[str]) -> tuple[str, ...]:
    return tuple(part.strip() for text in given for part in text.split(",") if part.strip())


def _shard(text: str | None) -> tuple[int, int]:
    from earwitness.errors import UsageError

    if text is None:
        return 1, 1
    number, _, count = text.partition("/")
    if number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count):
        return int(number), int(count)
    raise UsageError("--shard", repr(text), "I/N such as 1/4")


@contextmanager
def progress(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on the terminal, if there is one."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _print_report(corpus: Path, report: MixReport) -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    minutes = f", {report.seconds / 60:.1f} minutes of audio" if report.made else ""
    console.print(
        f"[bold]{escape(str(corpus))}[/]: {report.made} scenes mixed{minutes}, {report.found} found unchanged"
    )
    if report.twins:
        shown = ", ".join(f"{name} {count}" for name, count in sorted(report.twins.items()))
        console.print(f"twins: {escape(shown)}")
    if report.peak_limited:
        console.print(
            f"{report.peak_limited} scenes are quieter than the master level, as their peaks allow no more"
        )
    if report.unspoken:
        console.print(f"[yellow]{len(report.unspoken)} scenes have no voices[/] and are left out")
    for scene, reason in list(report.refused.items())[:20]:
        console.print(f"[red]refused[/] {escape(scene)}: {escape(reason)}")
    if len(report.refused) > 20:
        console.print(f"[red]and {len(report.refused) - 20} more[/], see --json")


def render_one(
    corpus: Path = CORPUS,
    scene: str = typer.Argument(..., metavar="SCENE", help="Id of a spoken scene."),
    sounds: Path = SOUNDS,
    preset: str = PRESET,
    out: Path = typer.Option(
        Path(), "--out", metavar="DIR", help="Folder for the page and the audio."
    ),
    page: str = typer.Option("svg", "--page", help="svg or png."),
    bank: Path | None = BANK,
) -> None:
    """Render one scene and show it: waveform, who speaks when, sounds with their levels, spectrogram.

    Writes SCENE.wav, SCENE.json (the manifest) and SCENE.svg into a folder; the corpus is left as it is.

    Example:

      earwitness scenes render-one corpus hosting.01.01 --sounds library --out look
    """
    from earwitness.errors import UsageError
    from earwitness.scenes.corpus import Corpus
    from earwitness.scenes.mixing.picture import render_page
    from earwitness.scenes.mixing.preset import load_mix_preset
    from earwitness.scenes.mixing.stage import plan_one
    from earwitness.scenes.sounds import load_library

    if page not in ("svg", "png"):
        raise UsageError("--page", repr(page), "svg or png")
    opened = Corpus(corpus)
    library = load_library(sounds)
    plan = plan_one(opened, opened.bank(bank), library, load_mix_preset(preset), scene)
    written = render_page(plan, opened.folder, library.folder, out, page)
    for path in written:
        typer.echo(str(path))


def labels(
    corpus: Path = CORPUS,
    form: str = typer.Option("audacity", "--format", help="audacity, rttm or jams."),
    out: Path | None = typer.Option(
        None,
        "--out",
        metavar="DIR",
        show_default="labels in the corpus",
        help="Folder to write to.",
    ),
) -> None:
    """Write who speaks when and which sound occurs when, for other programs: one file a mixed scene.

    audacity: a label track with turns and sounds. rttm: speaker turns (diarisation). jams: turns and sounds with
    reactions and levels.

    Example:

      earwitness scenes labels corpus --format jams --out annotations
    """
    from earwitness.scenes.corpus import Corpus
    from earwitness.scenes.interchange import write_labels

    opened = Corpus(corpus)
    folder = out or opened.path("labels")
    count = write_labels(opened, form, folder)
    typer.echo(f"{count} files in {folder}")
