"""What befalls a run from outside: full and read-only disks, wrong clocks, ledgers cut anywhere, services that leak."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from email.utils import formatdate
from pathlib import Path

import pytest

from earwitness.errors import DataError
from earwitness.models.protocols import Reply
from earwitness.models.registry import open_model
from earwitness.runs.items import Item
from earwitness.runs.ledger import Ledger
from earwitness.runs.runner import Runner, RunnerSettings, RunSummary
from tests.runs.processes import items_of
from tests.runs.scripted import ScriptedModel, make_items
from tests.standins.loopback import Act, Call, LoopbackServer, error, json_act
from tests.standins.openai_server import completion

FAST = RunnerSettings(first_wait_s=0.0, longest_wait_s=30.0)
KEY = "sk-fault-0123456789abcdefghij"
BASE64 = "UklGRiQAAABXQVZFZm10IBAAAAABAAEA" * 40


class Replying(LoopbackServer):
    """``anger`` to everything that no act says otherwise."""

    prefix = "/v1"

    def respond(self, call: Call) -> Act:
        return json_act(completion("anger"))


def ask(server: LoopbackServer, ledger: Path, items: list[Item]) -> RunSummary:
    async def go() -> RunSummary:
        model = open_model("openai/m", {"base_url": server.url, "server": "x", "timeout_s": "5"})
        with Ledger(ledger, shared=True) as book:
            summary = await Runner(model, book, FAST).run(items)
        await model.aclose()
        return summary

    return asyncio.run(go())


# --- disks


def limited(bytes_: int) -> None:
    """In the child: no file may grow beyond so many bytes, as on a disk that is full."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_, bytes_))


def test_a_disk_that_fills_up_ends_the_run_with_its_reason_and_the_rest_is_asked_later(
    tmp_path: Path,
) -> None:
    ledger = tmp_path / "ledger.jsonl"
    with Replying() as server:
        words = [sys.executable, "-m", "tests.runs.processes", str(ledger), server.url, "60"]
        full = subprocess.run(
            words, capture_output=True, text=True, check=False, preexec_fn=lambda: limited(6_000)
        )
        assert full.returncode == 1
        assert "ledger.jsonl: cannot be written: " in full.stderr
        assert "every reply stored so far is kept" in full.stderr
        assert ledger.read_bytes().endswith(b"\n")
        with Ledger(ledger, read_only=True) as book:
            stored = book.counts.replies
        assert 0 < stored < 60
        done = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    assert (done["already_stored"], done["replied"]) == (stored, 60 - stored)
    with Ledger(ledger, read_only=True) as book:
        assert (book.counts.replies, book.counts.duplicate_replies) == (60, 0)


READ_ONLY = """
import asyncio, os, sys
from pathlib import Path
from earwitness.errors import DataError
from earwitness.runs.ledger import Ledger
from earwitness.runs.items import Question
from earwitness.runs.runner import RunnerSettings
from earwitness.tasks.running import PlannedRun, carry_out
from tests.runs.scripted import ScriptedModel, make_items
import earwitness.models.payload_store
folder = Path(sys.argv[1])
if os.geteuid() == 0:
    # Nothing is read-only for root.
    os.setgid(65534)
    os.setuid(65534)
run = PlannedRun(folder / "run", "m", {"task": "t"}, tuple(Question(i, "anger", "c") for i in make_items(3)), ScriptedModel())
for attempt in (lambda: asyncio.run(carry_out(run, RunnerSettings())), lambda: Ledger(folder / "l.jsonl")):
    try:
        attempt()
    except DataError as error:
        print(error)
print(sorted(p.name for p in folder.rglob("*")))
"""


def test_a_folder_that_cannot_be_written_is_said_before_any_call(tmp_path: Path) -> None:
    folder = tmp_path / "shut"
    folder.mkdir()
    for parent in (folder, *folder.parents):
        # The child is nobody in particular; it must get as far as the folder.
        if parent.stat().st_uid == os.geteuid() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o055)
    folder.chmod(0o555)
    done = subprocess.run(
        [sys.executable, "-c", READ_ONLY, str(folder)], capture_output=True, text=True, check=False
    )
    folder.chmod(0o755)
    assert done.returncode == 0, done.stderr
    first, second, left = done.stdout.splitlines()
    for line in (first, second):
        assert "Permission denied" in line
        assert "Choose another --out folder or fix its permissions." in line
    assert left == "[]"


def test_a_disk_that_fills_up_under_the_card_is_a_named_error(tmp_path: Path) -> None:
    from earwitness.runs.folder import RunFolder

    script = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from earwitness.runs.folder import RunFolder\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (50, 50))\n"
        "try:\n    RunFolder(Path(sys.argv[1])).write_card({'a': 'x' * 100})\n"
        "except OSError as error:\n    sys.exit(str(error))\n"
    )
    RunFolder(tmp_path).write_card({"a": 1})
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert "File too large" in done.stderr
    # The old one stands, and no half of the new one lies about.
    assert [path.name for path in tmp_path.iterdir()] == ["card.json"]
    assert RunFolder(tmp_path).card() == {"a": 1}


# --- ledgers


def test_a_shared_ledger_cut_anywhere_is_gone_on_with(tmp_path: Path) -> None:
    whole = tmp_path / "whole.jsonl"
    items = make_items(2)
    with Ledger(whole, shared=True) as ledger:
        asyncio.run(Runner(ScriptedModel(), ledger, FAST).run(items))
    data = whole.read_bytes()
    path = tmp_path / "cut.jsonl"
    for length in range(0, len(data) + 1, 11):
        path.write_bytes(data[:length])
        model = ScriptedModel()
        with Ledger(path, shared=True) as ledger:
            stored = ledger.counts.replies
            summary = asyncio.run(Runner(model, ledger, FAST).run(items))
            counts = ledger.counts
        assert summary.complete
        assert sum(model.asked.values()) == 2 - stored
        assert (counts.replies, counts.duplicate_replies, counts.in_flight) == (2, 0, 0)
        # Every call is an answered one, or counted as possibly paid for.
        assert counts.calls == 2 + counts.maybe_paid_twice


def test_a_ledger_cut_while_others_have_it_open_is_mended_by_whoever_writes_next(
    tmp_path: Path,
) -> None:
    path = tmp_path / "ledger.jsonl"
    drawn = random.Random(3)
    with Ledger(path, shared=True) as one, Ledger(path, shared=True) as other:
        for number in range(60):
            with path.open("ab") as torn:
                line = json.dumps({"kind": "reply", "key": f"torn-{number}", "reply": {}}).encode()
                torn.write(line[: drawn.randrange(1, len(line))])
            writer = one if number % 2 else other
            writer.reply(f"k{number}", Reply(text="x"), item="i", attempts=1)
        one.sync()
        other.sync()
        assert one.counts.replies == other.counts.replies == 60
    assert all(json.loads(line)["key"].startswith("k") for line in path.read_text().splitlines())


# --- clocks


@pytest.mark.parametrize("skew_s", [-7_200.0, 7_200.0, 86_400.0 * 365])
def test_a_retry_after_date_is_read_by_the_service_s_own_clock(
    tmp_path: Path, skew_s: float
) -> None:
    """The service's clock is hours off; it asks for one second."""

    class Skewed(Replying):
        def _head(self, act: Act, length: int) -> bytes:
            head = super()._head(act, length)
            told = formatdate(time.time() + skew_s, usegmt=True).encode()
            return re.sub(rb"Date: [^\r]+", b"Date: " + told, head)

    date = formatdate(time.time() + skew_s + 1.0, usegmt=True)
    with Skewed(error(429, "slow down", **{"Retry-After": date})) as server:
        begun = time.monotonic()
        summary = ask(server, tmp_path / "ledger.jsonl", items_of(1))
        took = time.monotonic() - begun
    assert summary.complete
    assert (summary.calls, summary.retries) == (2, 1)
    assert took < 15.0


def test_a_clock_set_back_between_sittings_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with Ledger(path) as ledger:
        ledger.reply("a", Reply(text="first"), item="i", attempts=1)
    later = path.read_text().replace('"at":"20', '"at":"29')
    path.write_text(later)
    with Ledger(path) as ledger:
        ledger.reply("a", Reply(text="second"), item="i", attempts=1)
        reply = ledger.get_reply("a")
    assert reply is not None
    assert reply.text == "first"


# --- secrets


LEAKS = [
    error(401, f"Incorrect API key provided: {KEY}"),
    error(400, f"cannot decode data:audio/wav;base64,{BASE64}"),
    error(500, f"Authorization: Bearer {KEY} {BASE64}"),
    Act(body=f"<html>{KEY} {BASE64}</html>".encode(), media_type="text/html"),
    Act("truncate", body=f'{{"{KEY}": "{BASE64}"}}'.encode()),
    json_act(completion(f"anger {KEY} {BASE64}")),
    json_act(completion("", refusal=f"no: {KEY} {BASE64}")),
]


def test_no_key_header_or_audio_is_in_any_file_log_or_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_KEY", KEY)
    (tmp_path / "models.yaml").write_text(
        "leaky:\n  model: openai/m\n  options: {base_url: BASE, api_key_env: THE_KEY, timeout_s: 5}\n"
    )
    met: Counter[str] = Counter()

    def choose(call: Call) -> Act | None:
        assert call.headers["authorization"] == f"Bearer {KEY}"
        found = re.search(r"item clip-(\d+)", call.body.decode())
        assert found is not None
        met[found[1]] += 1
        return LEAKS[int(found[1]) % len(LEAKS)] if met[found[1]] == 1 else None

    with Replying(choose=choose) as server:
        text = (tmp_path / "models.yaml").read_text().replace("BASE", server.url)
        (tmp_path / "models.yaml").write_text(text)
        script = (
            "import asyncio, logging, sys; from pathlib import Path\n"
            "logging.basicConfig(level=logging.DEBUG)\n"
            "from earwitness.models.registry import open_model\n"
            "from earwitness.runs.ledger import Ledger\n"
            "from earwitness.runs.runner import Runner, RunnerSettings\n"
            "from tests.runs.processes import items_of\n"
            "async def go():\n"
            "    model = open_model('leaky', models_file=Path(sys.argv[1]) / 'models.yaml')\n"
            "    print(model, repr(vars(model)), dict(model.settings))\n"
            "    with Ledger(Path(sys.argv[1]) / 'ledger.jsonl', shared=True) as book:\n"
            "        settings = RunnerSettings(first_wait_s=0.0, stop_after_identical=0, max_retries=1)\n"
            "        print(await Runner(model, book, settings).run(items_of(21)))\n"
            "    raise RuntimeError(model)\n"
            "asyncio.run(go())\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", script, str(tmp_path)],
            capture_output=True,
            text=True,
            check=False,
        )
    assert "RuntimeError" in done.stderr
    assert "total=21" in done.stdout
    everything = done.stdout + done.stderr
    everything += "".join(p.read_text() for p in tmp_path.iterdir() if p.name != "models.yaml")
    assert KEY not in everything
    assert not re.search(r"[A-Za-z0-9+/]{80,}", everything.replace("/", " / "))
    assert "Bearer sk" not in everything
    with Ledger(tmp_path / "ledger.jsonl", read_only=True) as book:
        counts = book.counts
    # Keys that are refused and requests that are wrong fail; all else was asked again or answered.
    assert (counts.replies, counts.failed, counts.in_flight) == (15, 6, 0)


def test_a_file_gone_in_the_middle_of_a_run_fails_its_items_alone(tmp_path: Path) -> None:
    from tests.runs.scripted import make_audio

    audio = make_audio(tmp_path)
    items = make_items(3, audio)
    gone = make_items(4, make_audio(tmp_path, seconds=0.5))[3]
    assert gone.audio is not None
    gone.audio.path.unlink()
    with Ledger(tmp_path / "l.jsonl", shared=True) as ledger:
        summary = asyncio.run(Runner(ScriptedModel(), ledger, FAST).run([*items, gone]))
        _, failure, _ = ledger.get_entry(next(iter(ledger._index.failures)))
    assert (summary.replied, summary.failed) == (3, 1)
    assert failure is not None
    assert failure.kind == "audio"
    assert "cannot be read" in failure.message


def test_a_line_too_many_is_not_skipped(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(b'{"kind":"started","key":"a"}\n\n{"kind":"started","key":"b"}\n')
    with pytest.raises(DataError, match=r"ledger\.jsonl:2"):
        Ledger(path, shared=True)


@pytest.mark.parametrize(
    "line",
    [
        {"kind": "reply", "key": "a"},
        {"kind": "reply", "key": "a", "reply": {"text": "x"}},
        {"kind": "failed", "key": "a", "error": "x"},
        {"kind": ["reply"], "key": "a"},
        {"kind": "started", "key": {"a": 1}},
    ],
)
def test_an_entry_that_could_not_be_read_back_is_damage_found_on_opening(
    tmp_path: Path, line: dict[str, object]
) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_text(json.dumps(line) + '\n{"kind":"started","key":"b"}\n')
    with pytest.raises(DataError, match=r"ledger\.jsonl:1: a line that is not a ledger entry"):
        Ledger(path, read_only=True)


def test_nesting_without_end_is_damage_and_no_crash(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(b"[" * 200_000 + b'\n{"kind":"started","key":"b"}\n')
    with pytest.raises(DataError, match=r"ledger\.jsonl:1"):
        Ledger(path, read_only=True)


def test_what_a_later_version_writes_besides_is_let_be(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with Ledger(path) as ledger:
        ledger.reply("a", Reply(text="anger"), item="i", attempts=1)
    text = path.read_text().replace('"input_tokens"', '"video_tokens":7,"input_tokens"')
    path.write_text(text + '{"kind":"something new","key":"a"}\n')
    with Ledger(path, read_only=True) as ledger:
        reply = ledger.get_reply("a")
    assert reply is not None
    assert reply.text == "anger"
