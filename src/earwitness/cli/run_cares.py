"""``earwitness run cares``: ask models about mixed scenes, with the controls that make the answers mean something."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from earwitness.cli.run_batch import (
    UNDER_WAY,
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
    from earwitness.runs.runner import RunnerSettings, RunSummary
    from earwitness.tasks.cares_runs import CaresAnswers
    from earwitness.tasks.running import PlannedRun
    from earwitness.tasks.scene_items import MixedCorpus
    from earwitness.tasks.summary import Judge


def register_cares(group: typer.Typer) -> None:
    """Add ``cares`` to the ``run`` group."""
    group.command("cares")(cares)


def cares(
    corpus: Path = typer.Argument(
        ..., metavar="CORPUS", help="Folder of a corpus with mixed scenes."
    ),
    model: list[str] = typer.Option(
        ..., "--model", "-m", help="adapter/name or an entry of models.yaml; may be repeated."
    ),
    out: Path = typer.Option(..., "--out", "-o", help="Folder for the runs; made if absent."),
    tasks: str = typer.Option(
        "all", help="Comma-separated: reaction, location, sound, grounding, summary; or all."
    ),
    conditions: str = typer.Option(
        "audio",
        help="Comma-separated: audio, muted, swapped, speech-only, asr, oracle, oracle-tags, blind, "
        "silence.",
    ),
    split: str | None = typer.Option(
        None, help="Only train, validation or test; several with commas."
    ),
    limit: int | None = typer.Option(
        None, min=1, help="Only N scenes, drawn by a hash of their ids."
    ),
    rotations: int = typer.Option(
        1, min=1, max=4, help="Ask every choice K times, options shifted by one place each time."
    ),
    prompt_set: str = typer.Option(
        "",
        help="Comma-separated prompts, PROMPT or TASK=PROMPT (p1, reaction=none, reaction=time-sound, "
        "or a YAML file) (default: each task's own).",
    ),
    control: str | None = typer.Option(
        None,
        metavar="MODEL[:CONDITION]",
        help="Compare every model's audio with this text control (default condition: oracle).",
    ),
    cluster: str = typer.Option("scene", help="What intervals and tests draw: scene or template."),
    asr: str = typer.Option(
        "whisper/base", help="Transcriber of the condition asr; see: earwitness asr list."
    ),
    asr_option: list[str] = typer.Option([], "-A", help="key=value for the transcriber."),
    judge: str = typer.Option(
        "naming",
        help="Judge of summaries: naming (the bank's words, offline) or a text model, adapter/name.",
    ),
    judge_option: list[str] = typer.Option(
        [], "-J", help="key=value for the judge, such as base_url=http://localhost:8000/v1."
    ),
    option: list[str] = typer.Option(
        [], "-M", help="key=value for the models, such as base_url=http://localhost:8000/v1."
    ),
    models_file: Path | None = typer.Option(
        None, help="File of named models (default: models.yaml)."
    ),
    bank: Path | None = typer.Option(
        None, metavar="DIR", help="Bank of the corpus (default: the one that ships)."
    ),
    dry_run: bool = typer.Option(False, help="Show prompts, payload sizes and calls; ask nothing."),
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
    as_json: bool = typer.Option(
        False, "--json", help="Print the scores as JSON on standard output."
    ),
) -> None:
    """Ask what is heard in mixed scenes: how speakers react to a sound, where they are, which sound it was,
    whether there was one at all, and what of it a free summary mentions.

    One run folder for every task, model and prompt; the table shows the headline of each task (balanced accuracy
    for reaction, accuracy for location and sound, d' for grounding, recall of sounds for summary) under each condition, and whether it differs
    from audio.

    grounding, muted, swapped and speech-only need twins of the mixes; what is missing is said before any call. The exit
    code is 3 while an item was never answered: run the same command again to ask only those.

    Examples:

      earwitness run cares corpus --model openai/gpt-audio --out runs --split test --limit 50

      earwitness run cares corpus --tasks reaction,sound --conditions audio,muted,silence,blind,oracle \\
          --model openai/Qwen/Qwen3-Omni-30B-A3B-Instruct -M base_url=http://localhost:8000/v1 --out runs

      earwitness run cares corpus --tasks reaction --prompt-set none,time,time-sound --model M --out runs --dry-run
    """
    import json

    from rich.console import Console

    from earwitness.cli.run import _carry_out, _show_forecast, _words
    from earwitness.errors import UsageError
    from earwitness.models.registry import parse_options
    from earwitness.runs.budgets import MEBIBYTE, parse_price
    from earwitness.runs.runner import RunnerSettings
    from earwitness.tasks.cares_runs import answers_of, chosen_tasks, plan_runs
    from earwitness.tasks.cares_table import build_table, print_table, table_to_json
    from earwitness.tasks.scene_items import load_mixed

    if cluster not in ("scene", "template"):
        raise UsageError("--cluster", repr(cluster), "scene or template")
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
    mixed = load_mixed(corpus, bank=bank, split=split, limit=limit)
    if mixed.unmixed:
        console.print(
            f"[yellow]note[/] {mixed.unmixed} accepted scenes have no mix and are left out.",
            highlight=False,
        )
    wanted = _words(conditions)
    transcriber = None
    if "asr" in wanted:
        mixed, transcriber = _transcribed(mixed, asr, parse_options(asr_option), out, console)
    plan = plan_runs(
        mixed,
        tasks=chosen_tasks(_words(tasks)),
        conditions=wanted,
        models=model,
        options=parse_options(option),
        models_file=models_file,
        prompt_sets=_words(prompt_set),
        out=out,
        rotations=rotations,
        transcriber=transcriber,
    )
    runs = limits.prepared(plan.runs)
    jobs.check(runs)
    if dry_run:
        _show_forecast(tuple(map(_forecast_run, runs)), limits, as_json=as_json)
        return
    summaries = carry_out_all(
        runs, limits, lambda run, given: _carry_out(_shown_run(run), settings, console, given)
    )
    if only_under_way(summaries) and not as_json:
        raise typer.Exit(UNDER_WAY)
    answers = answers_of([run.folder for run in runs])
    judging = _judge(
        mixed, judge, parse_options(judge_option), models_file, out, answers, console, settings, limits
    )  # fmt: skip
    table = build_table(
        answers,
        not_applicable=plan.not_applicable,
        control=control,
        cluster=cluster,
        accept_failed=accept_failed,
        judge=judging,
    )
    if as_json:
        typer.echo(json.dumps(table_to_json(table), indent=2, ensure_ascii=False))
    else:
        print_table(Console(), table)
    if any(summary.under_way for summary in summaries):
        raise typer.Exit(UNDER_WAY)
    if not accept_failed and not _complete(summaries):
        raise typer.Exit(3)


def _transcribed(
    mixed: MixedCorpus, name: str, options: dict[str, Any], out: Path, console: Console
) -> tuple[MixedCorpus, dict[str, Any]]:
    """The corpus with transcripts of its mixes, and what cards say of the transcriber."""
    from dataclasses import replace

    from earwitness.cli.run import _transcripts

    refs = [mixed.audio(scene.manifest) for scene in mixed.scenes]
    found, transcriber = _transcripts(refs, name, options, out, console)
    return replace(mixed, transcripts=found), transcriber


def _complete(summaries: list[RunSummary]) -> bool:
    return all(summary.complete for summary in summaries)


def _shown_run(run: PlannedRun) -> PlannedRun:
    """The run named by task and model, as several tasks of one model are carried out together."""
    from dataclasses import replace

    return replace(run, name=f"{run.card['task']} {run.name}")


def _forecast_run(run: PlannedRun) -> PlannedRun:
    """The same for showing only: prompts of different tasks have the same ids."""
    from dataclasses import replace

    prompt = run.card["prompt"]
    card = {**run.card, "prompt": {**prompt, "id": f"{run.card['task']}/{prompt['id']}"}}
    return replace(_shown_run(run), card=card)


def _judge(
    mixed: MixedCorpus,
    name: str,
    options: dict[str, Any],
    models_file: Path | None,
    out: Path,
    answers: tuple[CaresAnswers, ...],
    console: Console,
    settings: RunnerSettings,
    limits: RunLimits,
) -> Judge:
    """The judge of summaries, all of which it has judged."""
    from earwitness.errors import IncompleteRunError
    from earwitness.models.registry import open_text_model
    from earwitness.runs.folder import slug
    from earwitness.runs.text_calls import Meter
    from earwitness.tasks.summary import NamingJudge
    from earwitness.tasks.summary_judge import ChatJudge

    if name == "naming":
        return NamingJudge(mixed.bank)
    model = open_text_model(name, options, models_file=models_file)
    chat = ChatJudge(model, mixed.bank, out / f"judge--{slug(name)}.jsonl")
    summaries = [d for each in answers if each.task == "summary" for d in each.decisions]
    meter = Meter()
    with console.status(f"{name} judges summaries") as status:
        failed = chat.prepare(
            summaries,
            limits.judge_settings(model, settings),
            meter=meter,
            on_done=lambda done, total: status.update(f"{name} judges summaries: {done}/{total}"),
        )
    if meter.calls and meter.cost_usd:
        console.print(
            f"judge {name}: {meter.cost_usd:.4f} USD for {meter.calls} calls",
            highlight=False, markup=False,
        )  # fmt: skip
    if failed:
        why = f": {meter.stopped}" if meter.stopped else ""
        raise IncompleteRunError(
            f"judge {name}",
            f"{failed} summaries could not be judged{why}",
            next_step="Run the same command again to ask only for those, or use --judge naming.",
        )
    return chat
