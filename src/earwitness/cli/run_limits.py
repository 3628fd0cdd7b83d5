"""Options of every command that asks models: shards, long recordings, prices, budgets, encoded stimuli."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from earwitness.models.payload import PayloadStore
    from earwitness.models.prices import Price, PriceTable
    from earwitness.models.registry import DeclaredTextModel
    from earwitness.runs.batches import BatchOptions
    from earwitness.runs.budgets import Spending
    from earwitness.runs.runner import RunnerSettings, RunSummary
    from earwitness.tasks.running import Forecast, PlannedRun

ShardOption = Annotated[
    str | None,
    typer.Option(
        "--shard",
        metavar="I/N",
        help="Only every N-th item, in a folder of its own; join the parts with: earwitness run merge.",
    ),
]
LongAudioOption = Annotated[
    str,
    typer.Option(
        help="Recordings longer than the model takes: refuse, crop (around the moment asked about) or "
        "chunk (other questions chunk by chunk, answers merged)."
    ),
]
PricesOption = Annotated[
    Path | None, typer.Option(help="Price table of yours (YAML), before the one that ships.")
]
PayloadCacheOption = Annotated[
    str,
    typer.Option(
        metavar="DIR",
        help="Where stimuli that had to be encoded are kept for further calls (default: payloads in "
        "~/.cache/earwitness); none: nowhere.",
    ),
]
PayloadCacheSizeOption = Annotated[
    int, typer.Option("--payload-cache-mib", min=1, help="Most MiB kept there.")
]
TokensOption = Annotated[
    float | None, typer.Option("--tokens-per-minute", min=1, help="Tokens a minute at most.")
]
AudioOption = Annotated[
    float | None,
    typer.Option("--audio-per-minute", min=0.1, help="Seconds of audio a minute at most."),
]


@dataclass(frozen=True)
class RunLimits:
    """What these options amount to, for all runs of a command. ``price`` is that of ``--price``."""

    table: PriceTable
    price: Price | None
    spending: Spending
    payloads: PayloadStore
    shard: str | None
    long_audio: str
    tokens_per_minute: float | None
    audio_per_minute: float | None
    batch: BatchOptions | None = None

    def prepared(self, runs: tuple[PlannedRun, ...]) -> tuple[PlannedRun, ...]:
        """The runs with a shard's items only and with too long recordings cut."""
        from earwitness.runs.long_audio import check_policy
        from earwitness.runs.shards import parse_shard
        from earwitness.tasks.running import prepared

        shard = parse_shard(self.shard) if self.shard else None
        policy = check_policy(self.long_audio)
        return tuple(prepared(run, shard=shard, long_audio=policy) for run in runs)

    def price_of(self, run: PlannedRun) -> Price | None:
        """``--price``, or what the tables say of the run's model; of batch jobs where they are asked for."""
        from earwitness.tasks.running import price_of

        price = self.price or price_of(run, self.table)
        return price if price is None or self.batch is None else price.batched()

    def settings_of(self, run: PlannedRun, settings: RunnerSettings) -> RunnerSettings:
        """Settings of one run."""
        from dataclasses import replace

        from earwitness.models.pace import Pace

        pace = Pace(None, self.tokens_per_minute, self.audio_per_minute)
        return replace(settings, price=self.price_of(run), pace=pace)

    def judge_settings(self, model: DeclaredTextModel, settings: RunnerSettings) -> RunnerSettings:
        """Settings of a text model asked after the runs: its own price, and what they left of calls and money."""
        from dataclasses import replace

        spent = self.spending
        calls, cost = spent.max_calls, spent.max_cost_usd
        return replace(
            settings,
            price=self.table.price_of(model.name, model.settings),
            max_calls=None if calls is None else max(calls - spent.calls, 0),
            max_cost_usd=None
            if cost is None
            else max(cost - spent.cost_usd - spent.maybe_usd, 0.0),
        )

    def announce(self, run: PlannedRun, console: Console) -> None:
        """Say before the first call what it will cost and what is done with long recordings."""
        from earwitness.tasks.running import forecast

        seen = forecast(run, self.price_of(run))
        if seen.calls and (seen.cost_usd or self.spending.max_cost_usd is not None):
            console.print(f"cost of {run.name}: {cost_words(seen)}", highlight=False, markup=False)
        told = long_audio_words(seen)
        if told:
            console.print(f"note {run.name}: {told}", highlight=False, markup=False)

    def conclude(self, run: PlannedRun, summary: RunSummary, console: Console) -> None:
        """Say afterwards what was spent, and what may have been charged besides."""
        price = self.price_of(run)
        told = []
        ended = summary.calls - summary.under_way
        if summary.cost_usd or (price is not None and not price.is_free and ended > 0):
            told.append(f"{summary.cost_usd:.4f} USD for {max(ended, 0)} calls")
        if summary.unpriced and told:
            told.append(f"{summary.unpriced} replies of unknown cost")
        if summary.maybe_paid:
            more = f", about {summary.maybe_cost_usd:.4f} USD" if summary.maybe_cost_usd else ""
            told.append(
                f"{summary.maybe_paid} calls ended without a reply and may have been charged{more}"
            )
        if summary.elsewhere:
            told.append(f"{summary.elsewhere} replies came from another process")
        if told:
            console.print(f"{run.name}: {'; '.join(told)}", highlight=False, markup=False)


def run_limits(
    *,
    price: Price | None,
    prices: Path | None,
    max_calls: int | None,
    max_cost_usd: float | None,
    shard: str | None,
    long_audio: str,
    payload_cache: str,
    payload_cache_mib: int,
    tokens_per_minute: float | None,
    audio_per_minute: float | None,
    batch: BatchOptions | None = None,
) -> RunLimits:
    """Read the options. The limits on calls and money hold for the whole command.

    Raises
    ------
    UsageError, DataError: an option or the price table is not what it should be.
    """
    from earwitness.models.payload_store import PayloadStore, default_folder, release_large_blocks
    from earwitness.models.prices import load_prices
    from earwitness.runs.budgets import MEBIBYTE, Spending

    release_large_blocks()
    named = payload_cache.strip()
    folder = None if named == "none" else (Path(named) if named else default_folder())
    return RunLimits(
        table=load_prices(prices),
        price=price,
        spending=Spending(max_calls, max_cost_usd),
        payloads=PayloadStore(folder, limit_bytes=payload_cache_mib * MEBIBYTE),
        shard=shard,
        long_audio=long_audio,
        tokens_per_minute=tokens_per_minute,
        audio_per_minute=audio_per_minute,
        batch=batch,
    )


def cost_words(seen: Forecast) -> str:
    """The estimated cost of what is left to ask."""
    if seen.cost_usd is None:
        return "unknown (give --price or --prices)"
    if not seen.cost_usd:
        return "nothing"
    return f"about {seen.cost_usd:.4f} USD for {seen.calls} calls ({seen.price})"


def long_audio_words(seen: Forecast) -> str:
    """What is done with recordings that are too long; empty where nothing is."""
    told = seen.long_audio
    if not told:
        return ""
    parts = []
    if told["cropped"]:
        parts.append(
            f"{told['cropped']} questions over {told['longest_s']:g} s around their moment"
        )
    if told["chunked"]:
        parts.append(f"{told['chunked']} questions in {told['chunks']} chunks")
    return f"recordings are too long for the model: {', '.join(parts)}"
