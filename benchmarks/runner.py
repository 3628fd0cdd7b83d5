"""CPU and memory of the runner, beside a bare httpx loop that sends the same bytes to the same server.

Each measurement is a process of its own; the server is another, so that its work is not counted.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

RATE = 16_000
ROUNDS = 3


def make_stimulus(folder: Path, seconds: float, rate: int = RATE, number: int = 1) -> Path:
    """A mono WAV of noise; noise, so that nothing can compress it away."""
    import numpy as np

    from earwitness.audio.io import Audio, write_audio

    noise = np.random.Generator(np.random.Philox(number)).normal(0, 0.1, int(rate * seconds))
    path = folder / f"noise-{seconds:g}-{rate}-{number}.wav"
    write_audio(path, Audio(noise.astype(np.float32), rate))
    return path


async def ask_with_runner(
    url: str, stimulus: Path, count: int, concurrency: int, kept: Path | None = None
) -> None:
    from earwitness.audio.io import file_sha256, inspect_audio
    from earwitness.models.payload import PayloadStore
    from earwitness.models.protocols import AudioRef, Prompt
    from earwitness.models.registry import open_model
    from earwitness.runs.items import Item
    from earwitness.runs.ledger import Ledger
    from earwitness.runs.runner import Runner, RunnerSettings

    model = open_model("openai/bench", {"base_url": url, "rates": str(RATE)})
    files = sorted(stimulus.iterdir()) if stimulus.is_dir() else [stimulus]
    refs = []
    for path in files:
        seen = inspect_audio(path)
        refs.append(AudioRef(path, file_sha256(path), seen.seconds, seen.rate))
    prompt = Prompt(user="Which emotion?", choices=("anger", "neutral"))
    items = [Item(f"clip-{n}", "bench", "1", prompt, refs[n % len(refs)]) for n in range(count)]
    with (
        tempfile.TemporaryDirectory() as folder,
        Ledger(Path(folder) / "ledger.jsonl", shared=True) as ledger,
    ):
        settings = RunnerSettings(concurrency=concurrency)
        runner = Runner(model, ledger, settings, payloads=PayloadStore(kept))
        summary = await runner.run(items)
        assert summary.complete, summary
    await model.aclose()


async def ask_with_bare_httpx(url: str, stimulus: Path, count: int, concurrency: int) -> None:
    import httpx

    left = iter(range(count))

    async def work(client: httpx.AsyncClient) -> None:
        for _ in left:
            audio = base64.b64encode(stimulus.read_bytes()).decode()
            body = {
                "model": "bench",
                "messages": [
                    {
                        "role": "user",
                        "content": [
                            {"type": "text", "text": "Which emotion?"},
                            {
                                "type": "input_audio",
                                "input_audio": {"data": audio, "format": "wav"},
                            },
                        ],
                    }
                ],
            }
            reply = await client.post(f"{url}/chat/completions", json=body)
            assert reply.json()["choices"][0]["message"]["content"] == "neutral"

    limits = httpx.Limits(max_connections=concurrency)
    async with httpx.AsyncClient(timeout=60, limits=limits) as client:
        await asyncio.gather(*(work(client) for _ in range(concurrency)))


def child(how: str, url: str, stimulus: str, count: str, concurrency: str) -> None:
    """Measure this process: CPU seconds of the asking itself, and its peak memory."""
    from earwitness.models.payload_store import release_large_blocks

    # As earwitness run does.
    release_large_blocks()
    if how == "encoding":
        # Measured as a user meets it, from the first scene on.
        with tempfile.TemporaryDirectory() as kept:
            asking = ask_with_runner(url, Path(stimulus), int(count), int(concurrency), Path(kept))
            before = time.process_time()
            asyncio.run(asking)
            tell(time.process_time() - before)
        return
    ask = {"runner": ask_with_runner, "httpx": ask_with_bare_httpx}[how]
    asyncio.run(ask(url, Path(stimulus), 2, 2))
    before = time.process_time()
    asyncio.run(ask(url, Path(stimulus), int(count), int(concurrency)))
    tell(time.process_time() - before)


def tell(cpu_s: float) -> None:
    """Hand the figures of this process to the one that measures."""
    print(json.dumps({"cpu_s": cpu_s, "peak_mib": peak_mib()}))


def peak_mib() -> float:
    """Most memory this program has had. What getrusage tells begins with the memory of whoever started it."""
    status = Path("/proc/self/status")
    if status.exists():
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
        if found:
            return int(found[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(how: str, url: str, stimulus: Path, count: int, concurrency: int) -> dict[str, Any]:
    """Best CPU and smallest peak of several processes."""
    seen = []
    for _ in range(ROUNDS):
        words = [how, url, str(stimulus), str(count), str(concurrency)]
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.runner", *words],
            capture_output=True,
            text=True,
            check=True,
        )
        seen.append(json.loads(done.stdout.splitlines()[-1]))
    return {
        "cpu_ms_per_item": min(row["cpu_s"] for row in seen) / count * 1000,
        "peak_mib": min(row["peak_mib"] for row in seen),
    }


def report_encoding(url: str, folder: Path) -> None:
    """Scenes at a rate the model does not listen at: encoded once each, asked five times, 32 at a time."""
    scenes = folder / "scenes"
    scenes.mkdir()
    for number in range(24):
        make_stimulus(scenes, 120.0, 44_100, number)
    seen = measure("encoding", url, scenes, 120, 32)
    print(
        f"{'24 scenes at 44.1 kHz, 5 times':34} {120:6d} {seen['cpu_ms_per_item']:10.2f} "
        f"{'':>10} {'':>10} {seen['peak_mib']:10.0f}"
    )


def main() -> None:
    server = subprocess.Popen(
        [sys.executable, "-m", "benchmarks._chat_server"], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    url = server.stdout.readline().strip()
    cases = [
        ("3 s clips, concurrency 8", 3.0, 1000, 8),
        ("3 s clips, four times as many", 3.0, 4000, 8),
        ("2 min scenes, concurrency 32", 120.0, 96, 32),
        ("2 min scenes, four times as many", 120.0, 384, 32),
    ]
    print(
        f"{'case':34} {'items':>6} {'runner':>10} {'httpx':>10} {'overhead':>10} {'peak memory':>22}"
    )
    print(f"{'':34} {'':>6} {'CPU-ms/item':>10} {'':>10} {'CPU-ms':>10} {'runner / httpx MiB':>22}")
    try:
        with tempfile.TemporaryDirectory() as folder:
            for label, seconds, count, concurrency in cases:
                stimulus = make_stimulus(Path(folder), seconds)
                ours = measure("runner", url, stimulus, count, concurrency)
                bare = measure("httpx", url, stimulus, count, concurrency)
                overhead = ours["cpu_ms_per_item"] - bare["cpu_ms_per_item"]
                print(
                    f"{label:34} {count:6d} {ours['cpu_ms_per_item']:10.2f} "
                    f"{bare['cpu_ms_per_item']:10.2f} {overhead:10.2f} "
                    f"{ours['peak_mib']:10.0f} / {bare['peak_mib']:.0f}"
                )
            report_encoding(url, Path(folder))
    finally:
        server.terminate()
        server.wait(timeout=10)
        server.stdout.close()


if __name__ == "__main__":
    child(*sys.argv[1:]) if len(sys.argv) > 1 else main()
