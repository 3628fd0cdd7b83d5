"""``earwitness scenes build``: a whole corpus, from nothing to mixed, validated and audited, by one command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from earwitness.scenes.build_config import BuildConfig
    from earwitness.scenes.build_report import BuildReport, StageTime


def register_build(group: typer.Typer) -> None:
    """Add ``build`` to the ``scenes`` group."""
    group.command("build")(build)


def build(
    config: Path | None = typer.Argument(
        None,
        metavar="[CONFIG]",
        show_default="the defaults, or those the corpus has",
        help="YAML file with the settings of every stage; see --print-config.",
    ),
    out: Path = typer.Option(
        Path("corpus"),
        "--out",
        "-o",
        metavar="CORPUS",
        help="Folder of the corpus; made if absent.",
    ),
    scenes: int | None = typer.Option(
        None, "--scenes", min=1, show_default="100", help="Accepted scenes to make."
    ),
    seed: int | None = typer.Option(None, "--seed", show_default="0", help="Seed of all draws."),
    workers: int | None = typer.Option(
        None, "--workers", min=1, show_default="one a processor", help="Processes."
    ),
    sounds: Path | None = typer.Option(
        None,
        "--sounds",
        metavar="LIBRARY",
        show_default="synthesised into the corpus",
        help="Folder of a sound library.",
    ),
    cast: str | None = typer.Option(
        None, "--cast", metavar="CAST", show_default="default", help="Who speaks."
    ),
    settings: list[str] = typer.Option(
        [],
        "--set",
        metavar="KEY=VALUE",
        help="Any other setting, such as mix.preset=paper or mix.mute=[]. Repeatable.",
    ),
    print_config: bool = typer.Option(
        False, "--print-config", help="Print all settings with what they mean, and make nothing."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object instead of text."),
) -> None:
    """Make a corpus from nothing: sounds, plan, dialogues, judge, voices, mixes, twins, labels, validation, audit.

    Without options everything runs offline and costs nothing: synthetic sounds, the phrasebook, the embedded reader
    and the default voices. Scenes that the judge turns down are replaced by others with the same allocation, so that
    as many as asked for come out, distributed as planned. Two twins a sound are made beside: without it, and without
    any; add those of other conditions with --set mix.swap_sound=\\[each] and --set mix.speech_only=true.

    Stop it at any moment and run it again: it goes on where it was, and the corpus comes out the same. The settings are
    kept in CORPUS/build.yaml; other ones are refused, but a corpus may get more scenes and more twins.

    Exits with 1 when places stay empty, scenes cannot be mixed, a promise is broken or a group leaks, and with 3 when
    scenes wait for a service.

    Examples:

      earwitness scenes build --scenes 20 --out corpus

      earwitness scenes build --print-config > mine.yaml

      earwitness scenes build mine.yaml --out corpus --workers 8
    """
    import json

    from rich.console import Console

    chosen = _chosen(config, out, scenes, seed, workers, sounds, cast, settings)
    if print_config:
        typer.echo(chosen.to_yaml(), nl=False)
        return
    from earwitness.scenes.building import build_corpus

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    _say_what(console, chosen, out)
    with _Watcher(console) as watcher:
        report = build_corpus(chosen, out, watcher=watcher)
    if as_json:
        typer.echo(json.dumps(report.to_json(), ensure_ascii=False, indent=2))
    else:
        _print_report(report)
    if report.exit_code:
        raise typer.Exit(report.exit_code)


def _chosen(
    config: Path | None,
    out: Path,
    scenes: int | None,
    seed: int | None,
    workers: int | None,
    sounds: Path | None,
    cast: str | None,
    settings: list[str],
) -> BuildConfig:
    """The file's settings, else the corpus's own, else the defaults; options go over them."""
    from earwitness.scenes.build_config import (
        BuildConfig,
        parse_settings,
        read_build_config,
        with_settings,
    )
    from earwitness.scenes.building import stored_config

    if config is not None:
        chosen = read_build_config(config)
    else:
        chosen = stored_config(out) or BuildConfig()
    given: dict[str, Any] = {
        "scenes": scenes,
        "seed": seed,
        "run.workers": workers,
        "sounds.library": None if sounds is None else str(sounds),
        "speak.cast": cast,
    }
    chosen = with_settings(chosen, {k: v for k, v in given.items() if v is not None}, "option")
    return with_settings(chosen, parse_settings(settings), "--set")


def _say_what(console: Console, config: BuildConfig, out: Path) -> None:
    from rich.markup import escape

    more = ""
    if config.places != config.scenes:
        more = f" ({config.scenes} asked for; whole situations are made)"
    console.print(
        f"[bold]{escape(str(out))}[/]: {config.places} scenes{more}, {config.templates} situations of "
        f"{config.per_template}"
    )
    if config.templates < 10:
        console.print(
            "[yellow]note[/] fewer than ten situations: a split may have none; use more --scenes, or "
            "--set plan.per_template=1"
        )


class _Watcher:
    """One line a stage: a bar while it runs, what it did and took when it has ended."""

    def __init__(self, console: Console) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._console = console
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[count]}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[detail]}"),
            console=console,
            transient=True,
        )
        self._line = self._bars.add_task("", visible=False, count="", detail="")

    def __enter__(self) -> _Watcher:
        self._bars.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self._bars.stop()

    def begins(self, stage: str) -> None:
        self._bars.reset(
            self._line, description=stage, total=None, visible=True, count="", detail=""
        )

    def progress(self, done: int, total: int | None, detail: str = "") -> None:
        count = "" if total is None else f"{done}/{total}"
        self._bars.update(self._line, completed=done, total=total, count=count, detail=detail)

    def ended(self, stage: StageTime) -> None:
        from rich.markup import escape

        self._bars.update(self._line, visible=False)
        self._console.print(
            f"{stage.name:<14} {stage.wall_s:7.1f} s {stage.cpu_s:7.1f} CPU-s  {escape(stage.did)}"
        )


def _print_report(report: BuildReport) -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False, soft_wrap=True)
    for name, value in _rows(report):
        console.print(f"{name:<12} {escape(value)}")
    for name, reason in list(report.refused.items())[:10]:
        console.print(f"[bold red]refused[/] {escape(name)}: {escape(reason)}")
    if report.validation is not None:
        for broken in report.validation.findings[:20]:
            colour = "red" if broken.severity == "error" else "yellow"
            console.print(
                f"[bold {colour}]{broken.code}[/] {escape(broken.where)}: {escape(broken.found)}"
            )
    if report.audit is not None and not report.audit.ok:
        from earwitness.cli.scenes_audit import print_audit

        print_audit(report.audit)
    _print_left(console, report)


def _rows(report: BuildReport) -> list[tuple[str, str]]:
    def told(counts: dict[str, int]) -> str:
        return ", ".join(f"{name} {count}" for name, count in counts.items())

    rows = [
        ("scenes", f"{report.accepted} of {report.places} ({told(report.splits)})"),
        ("situations", f"{report.templates} by {report.per_template}"),
        ("sounds", f"{sum(report.reactions.values())} ({told(report.reactions)})"),
        ("replaced", f"{report.abandoned} scenes given up, {report.refills} tried in their place"),
    ]
    if report.cost_usd:
        rows.append(("paid", f"{report.cost_usd:.4f} USD"))
    shared = "takes shared by splits" if report.takes_shared else "no take in two splits"
    rows.append(("library", f"{report.library}, {shared}"))
    if report.cast:
        shared = "voices shared by splits" if report.voices_shared else "no voice in two splits"
        rows.append(("cast", f"{report.cast}, {shared}"))
    if report.mixed:
        twins = sum(report.twins.values())
        size = report.audio_bytes / 1e9
        rows.append(
            ("audio", f"{report.mixed} scenes, {report.audio_s / 3600:.2f} hours; {twins} twins; {size:.2f} GB")
        )  # fmt: skip
    if report.validation is not None:
        rows.append(("validated", _validated(report)))
    if report.audit is not None:
        rows.append(("audited", _audited(report)))
    elif report.audit_left_out:
        rows.append(("not audited", report.audit_left_out))
    wall = sum(stage.wall_s for stage in report.stages)
    cpu = sum(stage.cpu_s for stage in report.stages)
    rows.append(("took", f"{wall:.0f} s, {cpu:.0f} CPU-s"))
    return rows


def _validated(report: BuildReport) -> str:
    assert report.validation is not None
    said = f"{len(report.validation.errors)} broken promises"
    heard = report.validation.audio
    if heard is not None:
        said += f"; {heard.measured} sounds measured in the audio, {heard.twins} twins compared"
        if heard.least_margin_db is not None:
            said += f"; at least {heard.least_margin_db:.2f} dB over the ambience"
    return said


def _audited(report: BuildReport) -> str:
    assert report.audit is not None
    halves = [half for half in (report.audit.words, report.audit.acoustics) if half is not None]
    groups = [group for half in halves for group in half.groups]
    leaks = [group.group for group in groups if group.leaks]
    best = max(groups, key=lambda group: group.balanced_accuracy)
    said = f"leaks: {', '.join(leaks)}" if leaks else f"none of {len(groups)} groups leaks"
    return (
        f"{said}; best guess of the reaction without the conduct {best.balanced_accuracy:.1%} "
        f"({best.low:.1%} to {best.high:.1%}) from {best.group}, chance 25 %"
    )


def _print_left(console: Console, report: BuildReport) -> None:
    from rich.markup import escape

    if report.waiting or report.stopped:
        why = report.stopped or next(iter(report.waiting.values()), "")
        console.print(
            f"[yellow]incomplete[/] {len(report.waiting)} scenes wait ({escape(why)}); run the same command again"
        )
    elif report.lost:
        console.print(
            f"[bold red]error[/] {len(report.lost)} places stay empty, such as {escape(report.lost[0])}; more "
            "tries (--set write.max_refills=30) may fill them"
        )
    elif report.exit_code == 0:
        console.print(f"next: earwitness run cares {escape(report.corpus)} --help")
