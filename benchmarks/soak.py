"""A long run through a service that misbehaves, and many kills: nothing lost, nothing doubled, memory flat.

``make soak``: 20,000 items of which a fifth meet scripted faults of every kind end with 20,000 outcomes, each the
scripted one; then 200 times a run is killed with signal 9 at a random moment, alone or beside another process, and
goes on. Exits with 1 when anything is not as it must be. ``python -m benchmarks.soak ITEMS KILLS`` does more or less.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks._fault_server import LABELS, outcome_of

ITEMS = 20_000
KILLS = 200
SHARE = 0.2
MEMORY_MIB = 300
CONCURRENCY = 32
KILL_ITEMS = 200
TIMEOUT_S = 15
"""Of a call: what hangs is waited for so long, and a machine that is busy with other things is not taken for a fault."""
SEED = 11


@contextmanager
def service(share: float, delay_s: float) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The misbehaving server in a process of its own."""
    words = [sys.executable, "-m", "benchmarks._fault_server", str(share), str(delay_s)]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        yield server.stdout.readline().strip(), server
    finally:
        server.terminate()
        server.wait(timeout=10)
        server.stdout.close()


def asked(url: str) -> dict[int, int]:
    """How often each item was asked."""
    with urllib.request.urlopen(url.replace("/v1", "/counts"), timeout=10) as answer:
        return {int(number): count for number, count in json.loads(answer.read()).items()}


def planned(folder: Path, url: str, count: int, stimulus: Path | None) -> Any:
    """A run of the emotion task with one clip for all items."""
    from earwitness.audio.io import file_sha256, inspect_audio
    from earwitness.models.protocols import AudioRef, Prompt
    from earwitness.models.registry import open_model
    from earwitness.runs.items import Item, Question
    from earwitness.tasks.emotion import TASK, TASK_VERSION
    from earwitness.tasks.running import PlannedRun

    audio = None
    if stimulus is not None:
        seen = inspect_audio(stimulus)
        audio = AudioRef(stimulus, file_sha256(stimulus), seen.seconds, seen.rate)
    questions = tuple(
        Question(
            Item(
                f"{number:06d}", TASK, TASK_VERSION, Prompt(f"item {number:06d}: which emotion?", choices=LABELS), audio
            ),
            LABELS[number % 7],
            f"s{number % 50}",
        )
        for number in range(count)
    )  # fmt: skip
    model = open_model("openai/soak", {"base_url": url, "server": "soak", "timeout_s": str(TIMEOUT_S), "rates": "8000"})  # fmt: skip
    card = {
        "name": "soak", "task": TASK, "model": model.name, "settings": dict(model.settings), "conditions": ["audio"],
        "clips": {}, "prompt": {"id": "soak", "text": ""}, "started": "", "n_items": count,
    }  # fmt: skip
    return PlannedRun(folder, "soak", card, questions, model)


def long_run(folder: Path, url: str, count: int, stimulus: Path) -> None:
    """The child that runs all items, and says what it needed."""
    from benchmarks.runner import peak_mib
    from earwitness.models.payload import PayloadStore
    from earwitness.runs.runner import RunnerSettings
    from earwitness.tasks.running import carry_out

    settings = RunnerSettings(
        concurrency=CONCURRENCY, first_wait_s=0.0, longest_wait_s=2.0, call_timeout_s=4.0 * TIMEOUT_S
    )  # fmt: skip
    run = planned(folder, url, count, stimulus)
    before = time.process_time()
    summary = asyncio.run(carry_out(run, settings, payloads=PayloadStore(folder.parent / "kept")))
    print(
        json.dumps(
            {
                "cpu_s": time.process_time() - before,
                "peak_mib": peak_mib(),
                "calls": summary.calls,
                "retries": summary.retries,
                "failed": summary.failed,
                "maybe_paid": summary.maybe_paid,
                "stopped": summary.stopped,
            }
        )
    )


def check_long(scratch: Path, count: int) -> list[str]:
    """Run all items and compare every outcome with its script."""
    from benchmarks.runner import make_stimulus
    from earwitness.runs.folder import RunFolder
    from earwitness.tasks.emotion import system

    stimulus = make_stimulus(scratch, 1.0)
    folder = scratch / "long"
    with service(SHARE, 0.0) as (url, _):
        words = [sys.executable, "-m", "benchmarks.soak", "--long", str(folder), url, str(count), str(stimulus)]  # fmt: skip
        begun = time.monotonic()
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        took = time.monotonic() - begun
        if done.returncode:
            return [f"the long run ended with {done.returncode}: {done.stderr[-2000:]}"]
        times = asked(url)
    told = json.loads(done.stdout.splitlines()[-1])
    wrong = []
    outcomes: Counter[str] = Counter()
    decisions = {int(d.item_id): d.outcome for d in system(folder).decisions}
    for number in range(count):
        outcome = decisions.get(number)
        found = (outcome.kind, outcome.label) if outcome else ("lost", None)
        outcomes[found[0]] += 1
        if found != outcome_of(number, SHARE):
            detail = outcome.detail if outcome else ""
            wrong.append(
                f"item {number}: {found}, scripted {outcome_of(number, SHARE)} {detail[:200]}"
            )
    counts = RunFolder(folder).counts()
    arrived = sum(times.values())
    # A call over a connection that the service had just closed never arrives; it was made all the same.
    if counts.calls != told["calls"] or not 0 <= told["calls"] - arrived <= told["maybe_paid"]:
        wrong.append(
            f"{arrived} calls arrived, the run tells {told['calls']}, the ledger {counts.calls}"
        )
    if counts.maybe_paid_twice != told["maybe_paid"]:
        wrong.append(f"{told['maybe_paid']} calls may be paid in vain, the ledger has {counts.maybe_paid_twice}")  # fmt: skip
    if counts.replies + counts.failed != count or counts.duplicate_replies or counts.in_flight:
        wrong.append(f"the ledger does not add up: {counts}")
    if told["peak_mib"] > MEMORY_MIB:
        wrong.append(f"peak memory {told['peak_mib']:.0f} MiB is over {MEMORY_MIB}")
    wrong += leaks(folder)
    print(f"{count} items, {SHARE:.0%} with faults: {sum(outcomes.values())} outcomes, {len(wrong)} not as scripted")  # fmt: skip
    print("  " + ", ".join(f"{kind} {n}" for kind, n in outcomes.most_common()))
    print(f"  {told['calls']} calls, {told['retries']} retries, {told['maybe_paid']} that may have been paid in vain")  # fmt: skip
    print(f"  {told['cpu_s']:.0f} CPU-s ({told['cpu_s'] / count * 1000:.1f} ms an item), {took:.0f} s, peak memory {told['peak_mib']:.0f} MiB")  # fmt: skip
    return wrong


def leaks(folder: Path) -> list[str]:
    """Signs of keys, headers or audio in the files of a run."""
    import re

    found = []
    for path in folder.rglob("*"):
        data = path.read_bytes() if path.is_file() else b""
        if re.search(rb"UklGR|[Bb]earer |[A-Za-z0-9+/]{120,}", data):
            found.append(f"{path.name} holds audio or a header")
    return found


def live(folder: Path, url: str) -> None:
    """One child's life: go on with the run until it ends or is killed."""
    from earwitness.runs.runner import RunnerSettings
    from earwitness.tasks.running import carry_out

    settings = RunnerSettings(concurrency=4, max_retries=3, first_wait_s=0.0, longest_wait_s=0.5)
    asyncio.run(carry_out(planned(folder, url, KILL_ITEMS, None), settings))


def born(folder: Path, url: str) -> int:
    """Start a child by forking: nothing is imported anew, so that its life is short and its death soon."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            live(folder, url)
            code = 0
        finally:
            os._exit(code)
    return child


def check_kills(scratch: Path, kills: int) -> list[str]:
    """Kill runs at random moments until it has been done so often; then let each end, and look."""
    import earwitness.tasks.emotion
    import earwitness.tasks.running  # noqa: F401  (imported before the fork)

    drawn = random.Random(SEED)
    wrong: list[str] = []
    done = rounds = twice = maybe = calls = torn = 0
    begun = time.monotonic()
    while done < kills and not wrong:
        folder = scratch / f"killed-{rounds}"
        torn_here = 0
        with service(0.0, 0.01) as (url, _):
            finished = False
            while not finished and done < kills:
                pair = [born(folder, url) for _ in range(drawn.choice((1, 1, 2)))]
                if drawn.random() < 0.8:
                    grown(folder / "ledger.jsonl", drawn.randrange(1, 8_000))
                time.sleep(drawn.uniform(0.0, 0.05))
                os.kill(pair[0], signal.SIGKILL)
                codes = [os.waitpid(child, 0)[1] for child in pair[:1]]
                done += os.WIFSIGNALED(codes[0])
                if len(pair) > 1:
                    # The one beside it goes on for a while, and is killed too or ends by itself.
                    time.sleep(drawn.uniform(0.0, 0.1))
                    os.kill(pair[1], signal.SIGKILL)
                    codes.append(os.waitpid(pair[1], 0)[1])
                    done += os.WIFSIGNALED(codes[1])
                finished = any(os.WIFEXITED(code) and not os.WEXITSTATUS(code) for code in codes)
                if any(os.WIFEXITED(code) and os.WEXITSTATUS(code) for code in codes):
                    wrong.append(f"a child ended with an error in round {rounds}")
                if drawn.random() < 0.1:
                    torn_here += tear(folder / "ledger.jsonl", drawn)
            last = born(folder, url)
            if os.waitpid(last, 0)[1]:
                wrong.append(f"round {rounds} could not be ended")
                break
            times = asked(url)
        torn += torn_here
        more, found = _look(folder, times, torn_here)
        wrong += found
        calls += more["calls"]
        twice += more["twice"]
        maybe += more["maybe"]
        rounds += 1
    print(
        f"{done} kills in {rounds} runs of {KILL_ITEMS} items ({torn} torn ends): {calls} calls, {twice} asked again, "
        f"{maybe} counted as possibly paid in vain; {time.monotonic() - begun:.0f} s"
    )
    return wrong


def grown(ledger: Path, by: int) -> None:
    """Wait until the ledger has grown by so many bytes: most moments that matter are after its first line."""
    size = ledger.stat().st_size if ledger.exists() else 0
    until = time.monotonic() + 5.0
    while time.monotonic() < until:
        if ledger.exists() and ledger.stat().st_size >= size + by:
            return
        time.sleep(0.002)


def tear(ledger: Path, drawn: random.Random) -> int:
    """Cut off the end of the last line, as a crash of the machine can; a call's beginning only, no reply is lost."""
    if not ledger.exists():
        return 0
    data = ledger.read_bytes()
    last = data[data[:-1].rfind(b"\n") + 1 :]
    if b'"kind":"started"' not in last or len(last) < 3:
        return 0
    with ledger.open("r+b") as file:
        file.truncate(len(data) - drawn.randrange(1, len(last) - 1))
    return 1


def _look(folder: Path, times: dict[int, int], torn: int) -> tuple[dict[str, int], list[str]]:
    from earwitness.runs.folder import RunFolder
    from earwitness.runs.ledger import Ledger

    run = RunFolder(folder)
    wrong = []
    with Ledger(run.ledger_path, read_only=True) as ledger:
        counts = ledger.counts
        missing = [q.id for q in run.questions() if not ledger.has_reply(q.key)]
    if missing:
        wrong.append(f"{folder.name}: {len(missing)} items without a reply")
    if counts.replies != KILL_ITEMS or counts.duplicate_replies or counts.in_flight:
        wrong.append(f"{folder.name}: {counts}")
    if run.card()["finished"] is None:
        wrong.append(f"{folder.name}: the card does not say that it is finished")
    twice = sum(count - 1 for count in times.values())
    # A call that arrived twice was cut off by a kill, and is counted unless its very line was torn off.
    if twice > counts.maybe_paid_twice + torn:
        wrong.append(f"{folder.name}: {twice} asked again, {counts.maybe_paid_twice} counted")
    return {"calls": sum(times.values()), "twice": twice, "maybe": counts.maybe_paid_twice}, wrong


def check_full_disk(scratch: Path) -> list[str]:
    """A ledger on a real file system of 64 KiB, where this process may make one."""
    place = scratch / "small"
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if os.geteuid() or subprocess.run(words, capture_output=True, check=False).returncode:
        print("a full disk: not tried, no file system can be mounted here (the tests limit a file's size instead)")  # fmt: skip
        return []
    try:
        return _fill(place)
    finally:
        subprocess.run(["umount", str(place)], check=False)


def _fill(place: Path) -> list[str]:
    from earwitness.errors import DataError
    from earwitness.models.protocols import Reply
    from earwitness.runs.ledger import Ledger

    path, stored = place / "ledger.jsonl", 0
    with Ledger(path, shared=True) as ledger:
        try:
            for number in range(10_000):
                ledger.reply(f"k{number}", Reply(text="x" * 200), item="i", attempts=1)
                stored = number + 1
        except DataError as error:
            said = str(error)
        else:
            return ["a disk of 64 KiB was never full"]
    with Ledger(path, read_only=True) as ledger:
        kept, torn = ledger.counts.replies, ledger.repaired_bytes
    print(f"a full disk: after {stored} replies: {said.partition(': ')[2]}")
    return [] if (kept, torn) == (stored, 0) and "No space left" in said else [f"{kept} of {stored} kept, {torn} torn"]  # fmt: skip


def run(count: int, kills: int) -> int:
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        wrong += check_long(scratch, count)
        wrong += check_kills(scratch, kills)
        wrong += check_full_disk(scratch)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(f"in all {sum(each.ru_utime + each.ru_stime for each in used):.0f} CPU-s")
    for line in wrong[:20]:
        print("WRONG:", line)
    print("soak: " + ("failed" if wrong else "passed"))
    return 1 if wrong else 0


def main() -> None:
    """A small one beside the other benchmarks."""
    if run(2_000, 20):
        raise SystemExit(1)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--long"]:
        folder, url, count, stimulus = sys.argv[2:]
        long_run(Path(folder), url, int(count), Path(stimulus))
    else:
        given = [int(word) for word in sys.argv[1:]]
        sys.exit(run(*(given or [ITEMS, KILLS])))
