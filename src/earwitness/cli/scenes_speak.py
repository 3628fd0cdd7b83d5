"""``earwitness scenes speak`` and ``intelligibility``: from accepted dialogues to voices that are understood."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from earwitness.scenes.corpus import Corpus
    from earwitness.scenes.intelligibility import Intelligibility
    from earwitness.scenes.voices import SpeakReport

CORPUS = typer.Argument(..., metavar="CORPUS", help="Folder of a corpus with dialogues.")
BANK = typer.Option(
    None, "--bank", metavar="DIR", show_default="the bank that ships", help="Bank of the corpus."
)
JSON = typer.Option(False, "--json", help="Print one JSON object instead of text.")


def register_speak(group: typer.Typer) -> None:
    """Add ``speak`` and ``intelligibility`` to the ``scenes`` group."""
    group.command("speak")(speak)
    group.command("intelligibility")(intelligibility)


def speak(
    corpus: Path = CORPUS,
    cast: str = typer.Option(
        "default", "--cast", metavar="FILE", help="A cast file, or default, kokoro, espeak."
    ),
    workers: int | None = typer.Option(
        None, "--workers", min=1, show_default="one a processor", help="Processes of local engines."
    ),
    concurrency: int = typer.Option(4, "--concurrency", min=1, help="Calls at once of services."),
    cache: Path | None = typer.Option(
        None,
        "--cache",
        metavar="DIR",
        help="Voice files shared by corpora: looked up and added to.",
    ),
    leave_out_refused: bool = typer.Option(
        False,
        "--leave-out-refused",
        help="Go on without scenes whose reaction rests on a tag no voice of the cast can render.",
    ),
    dry_run: bool = typer.Option(
        False, "--dry-run", help="Say what would be made and how much is paid for; make nothing."
    ),
    max_characters: int | None = typer.Option(
        None, "--max-characters", min=0, help="Most characters sent to paid services."
    ),
    limit: int | None = typer.Option(
        None, "--limit", min=1, help="Speak only the first N scenes; the others another time."
    ),
    shard: str | None = typer.Option(
        None, "--shard", metavar="I/N", help="Make only this part; afterwards run once without it."
    ),
    bank: Path | None = BANK,
    as_json: bool = JSON,
) -> None:
    """Speak every turn of a corpus, each into a file of its own.

    Voices are chosen by gender and split, two different ones for a scene. Files are kept by what they were
    made from, so that nothing is synthesised or bought twice: interrupt it and run it again. A pause is always
    rendered as silence; a delivery tag the voice cannot render is removed and counted; where the scene's label
    rests on it, the scene is refused.

    Writes voices.jsonl (which turn is which file, words with times) and voices.yaml into the corpus.

    Examples:

      earwitness scenes speak corpus

      earwitness scenes speak corpus --cast my-cast.yaml --dry-run

      earwitness scenes speak corpus --cast kokoro --limit 5
    """
    import dataclasses
    import json

    from earwitness.scenes.corpus import Corpus
    from earwitness.scenes.voices import speak_corpus
    from earwitness.scenes.voices_cast import open_cast

    part = _shard(shard)
    opened_corpus = Corpus(corpus)
    used = opened_corpus.bank(bank)
    chosen, voices = open_cast(cast)
    try:
        if dry_run:
            _forecast(opened_corpus, chosen, voices, used, cache, limit, as_json=as_json)
            return
        with _progress("Speaking") as on_done:
            report = speak_corpus(
                opened_corpus,
                chosen,
                voices,
                used,
                workers=workers,
                concurrency=concurrency,
                cache=cache,
                leave_out_refused=leave_out_refused,
                max_characters=max_characters,
                limit=limit,
                shard=part,
                on_done=on_done,
            )
    finally:
        for voice in voices.values():
            voice.close()
    if as_json:
        fields = {"cast": chosen.name, "split_policy": chosen.policy, **dataclasses.asdict(report)}
        typer.echo(json.dumps(fields, indent=2, ensure_ascii=False))
    else:
        _print_report(corpus, chosen.name, chosen.policy, report)


def intelligibility(
    corpus: Path = CORPUS,
    sample: int | None = typer.Option(
        None, "--sample", min=1, help="Scenes to transcribe, drawn by seed; all if not given."
    ),
    transcriber: str = typer.Option(
        "whisper/base", "--transcriber", help="engine/name; see: earwitness asr list"
    ),
    option: list[str] = typer.Option([], "-M", help="key=value for the transcriber."),
    condition: list[str] = typer.Option(
        [], "--condition", help="clean, mix; both if not given, mixes as far as there are any."
    ),
    workers: int | None = typer.Option(
        None, "--workers", min=1, show_default="one a processor", help="Processes."
    ),
    seed: int = typer.Option(0, help="Draws the sample and the intervals."),
    as_json: bool = JSON,
) -> None:
    """Word error rates of mixes against clean speech, with intervals over scenes, by location and voice.

    Transcripts are kept in the corpus and never made twice. Intervals are 95 %, drawing whole scenes.

    Examples:

      earwitness scenes intelligibility corpus --sample 30

      earwitness scenes intelligibility corpus --condition clean --json
    """
    import dataclasses
    import json

    from earwitness.errors import UsageError
    from earwitness.models.options import parse_options
    from earwitness.scenes.corpus import Corpus
    from earwitness.scenes.intelligibility import CONDITIONS, measure

    unknown = sorted(set(condition) - set(CONDITIONS))
    if unknown:
        raise UsageError("--condition", ", ".join(unknown), ", ".join(CONDITIONS))
    wanted = [each for each in CONDITIONS if not condition or each in condition]
    with _progress("Transcribing") as on_done:
        found = measure(
            Corpus(corpus),
            transcriber=transcriber,
            options=parse_options(option),
            conditions=wanted,
            sample=sample,
            workers=workers,
            seed=seed,
            on_done=on_done,
        )
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(found), indent=2, ensure_ascii=False))
    else:
        _print_intelligibility(found)


def _shard(text: str | None) -> tuple[int, int]:
    from earwitness.errors import UsageError

    if text is None:
        return 1, 1
    number, _, count = text.partition("/")
    if number.isdigit() and count.isdigit() and 1 <= int(number) <= int(count):
        return int(number), int(count)
    raise UsageError("--shard", repr(text), "I/N such as 1/4")


@contextmanager
def _progress(title: str) -> Iterator[Callable[[int, int], None]]:
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


def _forecast(
    corpus: Corpus,
    cast: Any,
    voices: Any,
    bank: Any,
    cache: Path | None,
    limit: int | None,
    *,
    as_json: bool,
) -> None:
    import json

    from earwitness.scenes.voices import forecast

    found = forecast(corpus, cast, voices, bank, cache=cache, limit=limit)
    if as_json:
        typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
        return
    typer.echo(
        f"{found['turns']} turns of {found['scenes']} scenes: {found['stored']} files are stored, "
        f"{found['to_make']} to make"
    )
    typer.echo(
        f"paid services: {found['paid_files']} files, {found['paid_characters']:,} characters"
    )
    for scene, reason in found["refused"].items():
        typer.echo(f"refused {scene}: {reason}")
    if found["removed_tags"]:
        shown = ", ".join(f"{tag} {count}" for tag, count in found["removed_tags"].items())
        typer.echo(f"tags left out: {shown}")


def _print_report(corpus: Path, cast: str, policy: str, report: SpeakReport) -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    if not report.complete:
        console.print(f"{report.made} files made, {report.found} found; run once without --shard")
        return
    console.print(
        f"[bold]{escape(str(corpus))}[/]: {report.turns} turns of {report.scenes} scenes, "
        f"{report.seconds / 60:.1f} minutes of speech; {report.made} files made, {report.found} found"
    )
    if report.waiting:
        console.print(f"{report.waiting} scenes wait: run it without --limit")
    shared = "no voice is in two splits" if policy == "disjoint" else "voices are shared by splits"
    console.print(f"cast {escape(cast)}: {shared}")
    if report.removed:
        shown = ", ".join(f"{tag} {count}" for tag, count in report.removed.items())
        console.print(f"delivery tags left out, as their voices cannot render them: {shown}")
    if report.refused:
        console.print(f"[yellow]left out: {len(report.refused)} scenes[/], see voices.yaml")
    if report.in_flight:
        console.print(f"[yellow]{report.in_flight} calls may have been paid for twice[/]")


def _print_intelligibility(found: Intelligibility) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    table = Table("", "words", "scenes", "word errors", "95 % interval", box=None)

    def span(interval: Any, few: bool) -> str:
        if interval is None:
            return "one scene"
        low, high = interval
        return f"{100 * low:.1f} to {100 * high:.1f} %" + (" (few scenes)" if few else "")

    def row(name: str, errors: Any) -> None:
        table.add_row(
            Text(name),
            f"{errors.words:,}",
            str(errors.scenes),
            f"{100 * errors.wer:.1f} %",
            span(errors.interval, errors.few),
        )

    for condition, errors in found.overall.items():
        row({"clean": "clean speech", "mix": "mixes"}[condition], errors)
        for title, parts in (("at", found.by_location), ("by", found.by_voice)):
            for name, part in parts[condition].items():
                row(f"  {title} {name}", part)
    console.print(f"{found.transcriber}, {found.scenes} scenes")
    console.print(table)
    if found.loss is not None:
        value, interval = found.loss
        console.print(f"mixing costs {100 * value:+.1f} points ({span(interval, False)})")
