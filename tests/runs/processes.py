"""A process that works on a run, for tests with several of them: asks a stand-in over real HTTP.

``python -m tests.runs.processes LEDGER URL ITEMS [key=value ...]`` prints its summary as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import asdict
from pathlib import Path

from earwitness.models.registry import open_model
from earwitness.runs.items import Item
from earwitness.runs.ledger import Ledger
from earwitness.runs.runner import Runner, RunnerSettings
from tests.runs.scripted import make_items


def items_of(count: int) -> list[Item]:
    """Items whose prompts name them, so that a stand-in can count who was asked."""
    from dataclasses import replace

    return [
        replace(item, prompt=replace(item.prompt, user=f"item {item.id}: anger or fear?"))
        for item in make_items(count)
    ]


async def work(ledger: Path, url: str, count: int, options: dict[str, str]) -> dict[str, object]:
    settings = RunnerSettings(
        concurrency=int(options.get("concurrency", "4")),
        max_calls=int(options["max_calls"]) if "max_calls" in options else None,
        first_wait_s=0.0,
        longest_wait_s=0.1,
    )
    pace = {name: value for name, value in options.items() if name.endswith("_per_minute")}
    model = open_model("openai/stand-in", {"base_url": url, "server": "stand-in", **pace})
    with Ledger(ledger, shared=True) as book:
        summary = await Runner(model, book, settings).run(items_of(count))
    await model.aclose()
    return asdict(summary)


def main() -> None:
    ledger, url, count, *rest = sys.argv[1:]
    options = dict(pair.split("=", 1) for pair in rest)
    sys.stdout.write(json.dumps(asyncio.run(work(Path(ledger), url, int(count), options))) + "\n")


if __name__ == "__main__":
    main()
