"""A process that asks in batch jobs, for tests with several of them and with kills.

``python -m tests.runs.batch_process FOLDER URL ITEMS REQUESTS_A_JOB [google|mistral]`` prints its summary as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import asdict
from pathlib import Path

from earwitness.models.registry import open_model
from earwitness.runs.batch_jobs import JobBook
from earwitness.runs.batches import BatchOptions, BatchRunner
from earwitness.runs.items import Item
from earwitness.runs.ledger import Ledger
from earwitness.runs.runner import RunnerSettings
from tests.runs.scripted import make_audio, make_items


def items_in(folder: Path, count: int) -> list[Item]:
    """The same items for every process of a folder."""
    clips = folder.with_name(folder.name + "-clips")
    clips.mkdir(exist_ok=True)
    return make_items(count, make_audio(clips, 0.2))


async def work(folder: Path, url: str, count: int, size: int, service: str) -> dict[str, object]:
    settings = RunnerSettings(first_wait_s=0.0, longest_wait_s=0.1)
    model = open_model(f"{service}/m", {"base_url": url, "server": "stand-in"})
    options = BatchOptions(max_requests=size, look_every_s=0.02)
    with Ledger(folder / "ledger.jsonl", shared=True) as ledger, JobBook(folder) as jobs:
        runner = BatchRunner(model, ledger, settings, jobs=jobs, options=options)
        summary = await runner.run(items_in(folder, count))
    await model.aclose()
    return asdict(summary)


def main() -> None:
    folder, url, count, size, *rest = sys.argv[1:]
    service = rest[0] if rest else "google"
    done = asyncio.run(work(Path(folder), url, int(count), int(size), service))
    sys.stdout.write(json.dumps(done) + "\n")


if __name__ == "__main__":
    main()
