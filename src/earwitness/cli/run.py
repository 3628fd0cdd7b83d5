"""``earwitness run``: ask models, keep every reply, score."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from earwitness.cli.run_batch import (
    UNDER_WAY,
    Batching,
    BatchOption,
    CancelOption,
    LookOption,
    NoWaitOption,
    SizeOption,
    batching,
    carry_out_all,
    only_under_way,
)
from earwitness.cli.run_limits import (
    AudioOption,
    LongAudioOption,
    PayloadCacheOption,
    PayloadCacheSizeOption,
    PricesOption,
    ShardOption,
    TokensOption,
    run_limits,
)

if TYPE_CHECKING:
    from rich.console import Console

    from earwitness.cli.run_limits import RunLimits
    from earwitness.models.protocols import AudioRef
    from earwitness.runs.runner import Progress, RunSummary
    from earwitness.tasks.running import PlannedRun

group = typer.Typer(
    help="Ask models, keep every reply, score.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


def register(app: typer.Typer) -> None:
    """Add this group's commands to the program."""
    from earwitness.cli.run_cares import register_cares
    from earwitness.cli.run_merge import register_merge

    register_cares(group)
    register_merge(group)
    app.add_typer(group, name="run")


@group.callback()
def about() -> None:
    """Ask models, keep every reply, score.

    A run can be stopped and started again at any moment: the same command goes on where it was, and
    nothing that was answered is asked or paid twice.
    """


@group.command()
def emotion(
    clips: Path = typer.Option(
        ..., "--clips", help="Folder of a clip set (see: earwitness clips)."
    ),
    model: list[str] = typer.Option(
        ..., "--model", "-m", help="adapter/name or an entry of models.yaml; may be repeated."
    ),
    out: Path = typer.Option(..., "--out", "-o", help="Folder for the runs; made if absent."),
    option: list[str] = typer.Option(
        [], "-M", help="key=value for the models, such as base_url=http://localhost:8000/v1."
    ),
    models_file: Path | None = typer.Option(
        None, help="File of named models (default: models.yaml)."
    ),
    prompt_set: str = typer.Option(
        "vab", help="Prompts, comma-separated: vab, own, p1 ... or a YAML file of yours."
    ),
    conditions: str = typer.Option("audio", help="What is sent: audio, silence, blind, asr."),
    asr: str = typer.Option(
        "whisper/base", help="Transcriber of the condition asr; see: earwitness asr list."
    ),
    asr_option: list[str] = typer.Option([], "-A", help="key=value for the transcriber."),
    limit: int | None = typer.Option(None, min=1, help="Only the first N clips, label by label."),
    label_map: str | None = typer.Option(
        None, help="Map (name or YAML file) for a vendor's own labels; see earwitness clips labels."
    ),
    dry_run: bool = typer.Option(False, help="Show prompt, payload sizes and calls; ask nothing."),
    concurrency: int = typer.Option(8, min=1, help="Calls at the same time."),
    max_retries: int = typer.Option(
        5, min=0, help="Further attempts after one that may be retried."
    ),
    rate: float | None = typer.Option(None, min=0.01, help="Calls a minute at most."),
    timeout: float = typer.Option(600.0, min=0.1, help="Seconds to wait for one reply."),
    megabytes_in_flight: int = typer.Option(128, min=1, help="MiB of audio held at the same time."),
    stop_after: int = typer.Option(
        5, min=0, help="Stop after N hard failures in a row for one reason; 0 never."
    ),
    max_calls: int | None = typer.Option(None, min=1, help="Stop before more calls than this."),
    max_cost: float | None = typer.Option(
        None, min=0, help="Stop before more US dollars than this."
    ),
    price: str | None = typer.Option(
        None, help="input=2.5,output=10 (USD per million tokens), audio_minute=..., call=..."
    ),
    prices: PricesOption = None,
    tokens_per_minute: TokensOption = None,
    audio_per_minute: AudioOption = None,
    long_audio: LongAudioOption = "refuse",
    shard: ShardOption = None,
    payload_cache: PayloadCacheOption = "",
    payload_cache_mib: PayloadCacheSizeOption = 1024,
    batch: BatchOption = False,
    batch_no_wait: NoWaitOption = False,
    batch_cancel: CancelOption = False,
    batch_size: SizeOption = None,
    batch_look: LookOption = 30.0,
    accept_failed: bool = typer.Option(
        False, help="Close the run although items failed; they stay wrong in the denominator."
    ),
    report: bool = typer.Option(True, help="Write report.html and tables beside the runs."),
    as_json: bool = typer.Option(
        False, "--json", help="Print a summary as JSON on standard output."
    ),
) -> None:
    """Ask which of seven emotions each clip's voice expresses.

    Examples:

      earwitness run emotion --clips sets/ravdess --model baseline/majority --out runs

      earwitness run emotion --clips sets/vab --model openai/gpt-audio --conditions audio,silence --out runs

      earwitness run emotion --clips sets/vab --model openai/Qwen/Qwen3-Omni-30B-A3B-Instruct \\
          -M base_url=http://localhost:8000/v1 --dry-run --out runs
    """
    from rich.console import Console

    from earwitness.clips.corpus import load_clip_set
    from earwitness.models.registry import parse_options
    from earwitness.runs.budgets import MEBIBYTE, parse_price
    from earwitness.runs.runner import RunnerSettings
    from earwitness.tasks.emotion_runs import plan_runs

    console = Console(stderr=True)
    settings = RunnerSettings(
        concurrency=concurrency,
        max_retries=max_retries,
        bytes_in_flight=megabytes_in_flight * MEBIBYTE,
        calls_per_minute=rate,
        call_timeout_s=timeout,
        stop_after_identical=stop_after,
        max_calls=max_calls,
        max_cost_usd=max_cost,
        price=parse_price(price) if price else None,
    )
    jobs = batching(
        batch=batch,
        no_wait=batch_no_wait,
        cancel=batch_cancel,
        size=batch_size,
        look_every_s=batch_look,
    )
    limits = run_limits(
        batch=jobs.options,
        price=settings.price,
        prices=prices,
        max_calls=max_calls,
        max_cost_usd=max_cost,
        shard=shard,
        long_audio=long_audio,
        payload_cache=payload_cache,
        payload_cache_mib=payload_cache_mib,
        tokens_per_minute=tokens_per_minute,
        audio_per_minute=audio_per_minute,
    )
    clip_set = load_clip_set(clips)
    transcripts, transcriber = None, None
    if "asr" in _words(conditions):
        from earwitness.clips.corpus import audio_ref
        from earwitness.tasks.emotion import chosen_clips

        refs = [audio_ref(clip_set, clip, None) for clip in chosen_clips(clip_set, limit)]
        transcripts, transcriber = _transcripts(refs, asr, parse_options(asr_option), out, console)
    runs = plan_runs(
        clip_set,
        models=model,
        options=parse_options(option),
        models_file=models_file,
        prompt_sets=_words(prompt_set),
        conditions=_words(conditions),
        out=out,
        limit=limit,
        label_map=label_map,
        transcripts=transcripts,
        transcriber=transcriber,
    )
    for run in runs:
        for left_out, why in run.card.get("not_applicable", {}).items():
            console.print(
                f"not applicable: {run.name}, {left_out}: {why}", highlight=False, markup=False
            )
    runs = limits.prepared(runs)
    jobs.check(runs)
    if dry_run:
        _show_forecast(runs, limits, as_json=as_json)
        return
    done = carry_out_all(runs, limits, lambda run, given: _carry_out(run, settings, console, given))
    summaries = {run.name: summary for run, summary in zip(runs, done, strict=True)}
    complete = all(summary.complete for summary in summaries.values())
    paths: dict[str, str] = {}
    if not only_under_way(summaries.values()):
        paths = _score(runs, out, accept_failed=accept_failed, report=report, quiet=as_json)
    if as_json:
        _print_summaries(runs, summaries, paths)
    if any(summary.under_way for summary in summaries.values()):
        raise typer.Exit(UNDER_WAY)
    if not complete and not accept_failed:
        raise typer.Exit(3)


def _transcripts(
    refs: list[AudioRef], name: str, options: dict[str, Any], out: Path, console: Console
) -> tuple[dict[str, str], dict[str, Any]]:
    """Transcripts by hash of the recording, and what cards say of the transcriber."""
    from earwitness.models.transcribers.registry import open_transcriber
    from earwitness.runs.folder import slug
    from earwitness.tasks.scene_transcripts import transcribe

    transcriber = open_transcriber(name, options)
    with console.status(f"{name} transcribes") as status:
        found = transcribe(
            refs,
            transcriber,
            out / f"transcripts--{slug(name)}.jsonl",
            lambda done, total: status.update(f"{name} transcribes: {done}/{total}"),
        )
    return found, {"name": transcriber.name, "settings": dict(transcriber.settings)}


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _carry_out(run: PlannedRun, settings: Any, console: Console, limits: RunLimits) -> RunSummary:
    import asyncio

    from rich.markup import escape
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as ProgressBar

    from earwitness.tasks.running import carry_out, unused_replies

    # Names hold brackets (a prompt that is not the default), which are no markup.
    name = escape(run.name)
    unused = unused_replies(run)
    if unused:
        console.print(
            f"[yellow]note[/] {name}: {unused} stored replies answer other settings, prompts or "
            "audio; they are kept and not used.",
            highlight=False,
        )
    limits.announce(run, console)
    Batching(limits.batch).announce(run, console)
    bar = ProgressBar(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[detail]}"),
        TimeRemainingColumn(),
        console=console,
    )
    with bar:
        line = bar.add_task(name, total=len(run.questions), detail="")

        def show(progress: Progress) -> None:
            detail = f"{progress.per_second:.1f}/s, {progress.failed} failed"
            if progress.retries:
                detail += f", {progress.retries} retries"
            if progress.cost_usd:
                detail += f", {progress.cost_usd:.4f} USD"
            if progress.maybe_paid:
                detail += f", {progress.maybe_paid} maybe paid in vain"
            if progress.waiting:
                detail += f", {progress.waiting}"
            bar.update(line, completed=progress.stored + progress.done, detail=detail)

        summary = asyncio.run(
            carry_out(
                run,
                limits.settings_of(run, settings),
                show,
                spending=limits.spending,
                payloads=limits.payloads,
                batch=limits.batch,
            )
        )
    limits.conclude(run, summary, console)
    if summary.stopped:
        console.print(f"[bold red]stopped[/] {name}:", summary.stopped, highlight=False)
    Batching(limits.batch).conclude(run, summary, console)
    not_asked = summary.not_asked - summary.under_way
    if summary.failed or not_asked > 0:
        console.print(
            f"[yellow]incomplete[/] {name}: {summary.failed} items failed, {not_asked} "
            "were not asked. Run the same command again to ask only those.",
            highlight=False,
        )
    return summary


def _show_forecast(runs: tuple[PlannedRun, ...], limits: RunLimits, *, as_json: bool) -> None:
    import json
    from dataclasses import asdict

    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from earwitness.cli.run_limits import cost_words, long_audio_words
    from earwitness.tasks.running import forecast

    forecasts = {run.name: forecast(run, limits.price_of(run)) for run in runs}
    if as_json:
        typer.echo(json.dumps({name: asdict(seen) for name, seen in forecasts.items()}, indent=2))
        return
    console = Console()
    prompts = {run.card["prompt"]["id"]: run.card["prompt"] for run in runs}
    for prompt in prompts.values():
        console.print(f"[bold]prompt {prompt['id']}[/] ({prompt['hash'][:12]})")
        console.print(prompt["text"], markup=False, highlight=False)
    table = Table("model", "items", "stored", "calls", "audio", "payload", "largest", "cost")
    for name, seen in forecasts.items():
        cost = "unknown" if seen.cost_usd is None else f"~{seen.cost_usd:.4f} USD"
        table.add_row(
            escape(name),
            str(seen.items),
            str(seen.stored),
            str(seen.calls),
            f"{seen.audio_seconds / 60:.1f} min",
            f"{seen.payload_bytes / 2**20:.1f} MiB",
            f"{seen.largest_payload_bytes / 2**20:.2f} MiB",
            cost,
        )
    console.print(table)
    for name, seen in forecasts.items():
        console.print(
            f"cost of {name}: {cost_words(seen)}", highlight=False, markup=False, soft_wrap=True
        )
        told = long_audio_words(seen)
        if told:
            console.print(f"{name}: {told}", highlight=False, markup=False, soft_wrap=True)
    console.print("Nothing was asked.")


def _score(
    runs: tuple[PlannedRun, ...], out: Path, *, accept_failed: bool, report: bool, quiet: bool
) -> dict[str, str]:
    from rich.console import Console

    from earwitness.clips.corpus import EMOTIONS
    from earwitness.report.boards import build
    from earwitness.report.build import write_data
    from earwitness.report.terminal import print_boards
    from earwitness.tasks.emotion_runs import systems_of

    folders = [run.folder for run in runs]
    data = build(systems_of(folders, accept_failed=accept_failed), EMOTIONS)
    if not quiet:
        print_boards(Console(), data)
    if not report:
        return {}
    paths = write_data(data, out)
    if not quiet:
        Console().print(f"report: {paths.html}", highlight=False, markup=False, soft_wrap=True)
    names = ("html", "csv", "json", "md", "predictions")
    return {name: str(getattr(paths, name)) for name in names}


def _print_summaries(
    runs: tuple[PlannedRun, ...], summaries: dict[str, RunSummary], paths: dict[str, str]
) -> None:
    import json
    from dataclasses import asdict

    rows = {
        run.name: {
            **asdict(summaries[run.name]),
            "complete": summaries[run.name].complete,
            "folder": str(run.folder),
        }
        for run in runs
    }
    typer.echo(json.dumps({"runs": rows, "report": paths}, indent=2))
