"""``earwitness clips script``: texts that fit several emotions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from earwitness.clips.scripts import Written
    from earwitness.runs.text_calls import Meter


def register_script(group: typer.Typer) -> None:
    """Add ``script`` to the ``clips`` group."""
    group.command("script")(script)


def script(
    folder: Path = typer.Argument(..., metavar="COLLECTION", help="Folder; made if absent."),
    number: int = typer.Option(100, "--number", "-n", min=1, help="Scripts in all."),
    writer: str = typer.Option(
        "offline/phrasebook",
        "--writer",
        "-w",
        help="offline/phrasebook, adapter/NAME, or an entry of models.yaml.",
    ),
    option: list[str] = typer.Option(
        [], "-M", help="key=value for the model: base_url, temperature, seed, ..."
    ),
    language: str = typer.Option("en", help="Language of the scripts; en and de have a lexicon."),
    seed: int = typer.Option(0, help="Seed of situations and sentences."),
    words: str = typer.Option("45-85", help="Fewest and most words; 45 to 85 last 18 to 37 s."),
    max_attempts: int = typer.Option(6, min=1, help="Drafts of a script before it is given up."),
    lexicon: Path | None = typer.Option(
        None, metavar="FILE", help="Words that give an emotion away (default: that of --language)."
    ),
    phrasebook: Path | None = typer.Option(
        None, metavar="FILE", help="Situations and sentences (default: those of --language)."
    ),
    prompt: Path | None = typer.Option(None, metavar="FILE", help="A prompt of yours, as YAML."),
    models_file: Path | None = typer.Option(
        None, help="File of named models (default: models.yaml)."
    ),
    concurrency: int = typer.Option(8, min=1, help="Calls at the same time."),
    max_retries: int = typer.Option(5, min=0, help="Further tries of a call that failed."),
    rate: float | None = typer.Option(None, min=0.01, help="Calls a minute at most."),
    timeout: float = typer.Option(600.0, min=0.1, help="Seconds to wait for one reply."),
    max_calls: int | None = typer.Option(None, min=1, help="Stop before more calls than this."),
    max_cost: float | None = typer.Option(
        None, min=0, help="Stop before more US dollars than this."
    ),
    price: str | None = typer.Option(
        None, help="input=2.5,output=10 (USD per million tokens), call=..."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object instead of text."),
) -> None:
    """Write short scripts whose words do not tell the emotion.

    Each is about something ordinary that may be welcome or not, and is checked: no word that names or hints at an
    emotion (inflected or after "not" as well), none that is strongly valenced, no exclamation, no mark or capitals
    that say how to speak, as many words as make a clip of the wanted length, and not nearly another script. What
    breaks a rule goes back to the writer with the reasons. Asking for more keeps what is there. The command can be
    stopped and repeated: no reply is bought twice.

    Exits with 3 while calls have failed and with 1 when places stay empty.

    [bold]Examples:[/]

      earwitness clips script collection --number 100

      earwitness clips script collection -n 200 --writer openai/gpt-5 -M temperature=1 --max-cost 2

      earwitness clips script collection --language de --writer openai/qwen3 -M base_url=http://localhost:8000/v1
    """
    import asyncio

    from rich.console import Console

    from earwitness.clips.scripts import PHRASEBOOK, OfflineWriter, make_scripts
    from earwitness.clips.scripts_checks import Limits
    from earwitness.clips.scripts_lexicon import load_lexicon
    from earwitness.clips.scripts_offline import load_phrasebook
    from earwitness.errors import UsageError
    from earwitness.models.options import parse_options
    from earwitness.runs.budgets import parse_price
    from earwitness.runs.runner import RunnerSettings
    from earwitness.runs.text_calls import Meter

    low, high = _words(words)
    limits = Limits(low, high)
    giveaways = load_lexicon(lexicon or language)
    meter = Meter()
    console = Console(stderr=True)
    calls = RunnerSettings(
        concurrency=concurrency,
        max_retries=max_retries,
        calls_per_minute=rate,
        call_timeout_s=timeout,
        max_calls=max_calls,
        max_cost_usd=max_cost,
        price=parse_price(price) if price else None,
    )

    async def work() -> Written:
        from earwitness.cli.clips_progress import steps

        with steps(console, "writing") as on_progress:
            if writer == PHRASEBOOK:
                if option:
                    raise UsageError("-M", "the phrasebook has no options", "a model with --writer")
                book = load_phrasebook(phrasebook or language)
                return await make_scripts(
                    folder, number, OfflineWriter(book, seed), giveaways, limits=limits,
                    max_attempts=max_attempts, on_progress=on_progress,
                )  # fmt: skip
            return await _by_model(on_progress)

    async def _by_model(on_progress: Any) -> Written:
        from earwitness.clips.scripts import CALLS
        from earwitness.clips.scripts_chat import ChatWriter, load_prompt
        from earwitness.models.registry import open_text_model
        from earwitness.runs.ledger import Ledger
        from earwitness.runs.text_calls import TextCaller

        model = open_text_model(writer, parse_options(option), models_file=models_file)
        # Situations in English serve a writer in any language; it is told which to write in.
        book = load_phrasebook(phrasebook or "en")
        folder.mkdir(parents=True, exist_ok=True)
        with Ledger(folder / CALLS) as ledger:
            caller = TextCaller(model, ledger, calls, meter=meter)
            by = ChatWriter(caller, book, seed, giveaways.language, limits, load_prompt(prompt))
            try:
                return await make_scripts(
                    folder, number, by, giveaways, limits=limits, max_attempts=max_attempts,
                    on_progress=on_progress,
                )  # fmt: skip
            finally:
                await by.aclose()

    written = asyncio.run(work())
    if as_json:
        _print_json(folder, written, meter)
    else:
        _print(folder, written, meter)
    if written.failed:
        name, reason = next(iter(written.failed.items()))
        console.print(
            f"[yellow]incomplete[/] {len(written.failed)} scripts wait; {name}: {reason}",
            highlight=False,
            soft_wrap=True,
        )
        raise typer.Exit(3)
    if written.empty:
        console.print(
            f"[bold red]error[/] {len(written.empty)} places stay empty, such as {written.empty[0]}; more "
            "attempts (--max-attempts) or another writer may fill them.",
            highlight=False,
            soft_wrap=True,
        )
        raise typer.Exit(1)


def _words(text: str) -> tuple[int, int]:
    from earwitness.errors import UsageError

    low, dash, high = text.partition("-")
    if not dash or not low.isdigit() or not high.isdigit() or not 1 <= int(low) <= int(high):
        raise UsageError("--words", f"found {text!r}", "FEWEST-MOST, such as 45-85")
    return int(low), int(high)


def _print_json(folder: Path, written: Written, meter: Meter) -> None:
    import json

    summary = {
        "collection": str(folder),
        "scripts": len(written.scripts),
        "new": written.new,
        "drafts": written.drafts,
        "rejected": dict(written.rejected),
        "empty": list(written.empty),
        "failed": written.failed,
        "stopped": meter.stopped,
        "calls": meter.calls,
        "cost_usd": round(meter.cost_usd, 6),
    }
    typer.echo(json.dumps(summary, ensure_ascii=False, indent=2))


def _print(folder: Path, written: Written, meter: Meter) -> None:
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    words = [len(script.text.split()) for script in written.scripts]
    console.print(
        f"{folder}: {len(written.scripts)} scripts, {written.new} of them new, from {written.drafts} drafts"
        + (f"; {min(words)} to {max(words)} words" if words else ""),
        markup=False,
    )
    if written.rejected:
        told = ", ".join(f"{code} {count}" for code, count in written.rejected.most_common())
        console.print(f"turned down for: {told}", markup=False)
    if meter.calls:
        console.print(f"calls: {meter.calls}, {meter.cost_usd:.4f} USD", markup=False)
    if written.scripts:
        console.print(
            f"{written.scripts[-1].id}: {written.scripts[-1].text}", markup=False, style="dim"
        )
