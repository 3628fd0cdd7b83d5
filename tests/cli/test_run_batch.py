"""``--batch`` through the command itself: exit codes, what is printed, refusals, the report."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from earwitness.cli import build_app
from earwitness.errors import EarwitnessError, UsageError
from earwitness.runs.folder import RunFolder
from earwitness.runs.ledger import Ledger
from earwitness.runs.shards import merge_runs
from tests.clips.hums import make_hums
from tests.standins.batch_plans import Plan
from tests.standins.google_batches import GoogleBatchServer
from tests.standins.loopback import LoopbackServer
from tests.standins.mistral_batches import MistralBatchServer
from tests.standins.openai_server import OpenAIServer

CLIPS = 7
PRICES = """
as_of: 2026-11-30
prices:
- {models: google/m, source: our contract, call: 0.02, batch: 0.5}
"""


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_hums(tmp_path_factory.mktemp("hums"), CLIPS, seconds=0.25, step_hz=30)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EARWITNESS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def words_of(
    clips: Path, server: LoopbackServer, out: Path, *words: object, model: str = "google/m"
) -> list[str]:
    given: list[object] = ["run", "emotion", "--clips", clips, "--model", model, "--out", out]
    given += ["-M", f"base_url={server.url}", "-M", "server=here", "--batch-look", 0.05, *words]
    # The page takes longer than everything else.
    given += [] if "--report" in words else ["--no-report"]
    return [str(word) for word in given]


def emotion(
    clips: Path, server: LoopbackServer, out: Path, *words: object, code: int = 0, **more: str
) -> Result:
    result = CliRunner().invoke(build_app(), words_of(clips, server, out, *words, **more))
    if isinstance(result.exception, EarwitnessError):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def said(result: Result) -> str:
    return " ".join(result.output.split())


def test_a_run_by_batch_is_scored_and_reported_as_any_other(clips: Path, tmp_path: Path) -> None:
    with MistralBatchServer(character="energy") as server:
        emotion(clips, server, tmp_path, "--batch", "--report", model="mistral/m")
        assert len(server.jobs) == 1
    folder = tmp_path / "emotion--mistral_m--vab"
    card = RunFolder(folder).card()
    assert card["batch"] == {"jobs": 1, "replies": CLIPS}
    assert card["finished"]
    page = (tmp_path / "report.html").read_text()
    assert "Answers by the service&#39;s batch API (mistral/m: 7 in 1 job)." in page
    assert "answers by batch jobs" in page
    rows = list(csv.DictReader((tmp_path / "predictions.csv").read_text().splitlines()))
    assert {row["latency_s"] for row in rows} == {""}


def test_leave_and_come_back(clips: Path, tmp_path: Path) -> None:
    with GoogleBatchServer(plans=(Plan(looks=2), Plan(looks=2))) as server:
        words = ("--batch", "--batch-size", 4)
        left = emotion(clips, server, tmp_path, *words, "--batch-no-wait", "--json", code=4)
        assert "under way google/m: 7 items in 2 batch jobs (batches/b0, batches/b1)" in said(left)
        assert "Run the same command again to fetch the answers." in said(left)
        assert "incomplete" not in left.output
        [row] = json.loads(left.stdout)["runs"].values()
        assert (row["under_way"], row["batch_jobs"]) == (7, ["batches/b0", "batches/b1"])
        # Asked call by call now, all would be paid twice.
        calls = len(server.calls)
        with pytest.raises(
            UsageError, match=r"7 requests are in batch jobs.*--batch to fetch them"
        ):
            emotion(clips, server, tmp_path)
        assert len(server.calls) == calls
        again = emotion(clips, server, tmp_path, *words)
        assert "7 requests are in 2 batch jobs that are under way" in said(again)
        assert "under way google" not in again.output
        assert len(server.jobs) == 2


def test_cancelling(clips: Path, tmp_path: Path) -> None:
    with GoogleBatchServer(plans=(Plan(looks=99, answered=3),)) as server:
        emotion(clips, server, tmp_path, "--batch", "--batch-no-wait", code=4)
        ended = emotion(clips, server, tmp_path, "--batch", "--batch-cancel", code=3)
        assert "0 items failed, 4 were not asked" in said(ended)
        emotion(clips, server, tmp_path)
        assert sum("generateContent" in call.path for call in server.calls) == 4


def test_the_price_of_a_batch_and_the_limit_before_it(clips: Path, tmp_path: Path) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text(PRICES)
    with GoogleBatchServer() as server:
        words = ("--batch", "--prices", prices)
        dry = emotion(clips, server, tmp_path / "r", *words, "--dry-run", "--json")
        [seen] = json.loads(dry.stdout).values()
        assert seen["cost_usd"] == pytest.approx(CLIPS * 0.01)
        assert not server.calls
        left = emotion(
            clips, server, tmp_path / "r", *words, "--max-cost", 0.0301, "--batch-no-wait", code=4
        )
        assert "reckoned with 0.0300 USD" in said(left)
        assert " USD for " not in said(left).partition("under way")[0].rpartition("cost of")[0]
        assert "right of" not in left.output
        emotion(clips, server, tmp_path / "r", *words, "--max-cost", 0.0301, code=3)
        assert [len(job.lines) for job in server.jobs.values()] == [3]
    with Ledger(
        tmp_path / "r" / "emotion--google_m--vab" / "ledger.jsonl", read_only=True
    ) as ledger:
        assert ledger.counts.cost_usd == pytest.approx(0.03)


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("openai/gpt-audio", "lists v1/batch as not supported for gpt-audio-mini"),
        ("baseline/majority", "its adapter knows no batch API"),
    ],
)
def test_a_model_without_batches_is_refused_before_any_call(
    clips: Path, tmp_path: Path, model: str, why: str
) -> None:
    with OpenAIServer() as server, GoogleBatchServer() as google:
        options = ["-M", f"base_url={server.url}"] if model.startswith("openai") else []
        file = tmp_path / "models.yaml"
        file.write_text(
            f"g: {{model: google/m, options: {{base_url: '{google.url}', server: here}}}}\n"
        )
        words = ["run", "emotion", "--clips", str(clips), "--model", "g", "--model", model]
        words += [*options, "--batch", "--models-file", str(file), "--out", str(tmp_path / "r")]
        if options:
            words.remove("g")
            words.remove("--model")
        result = CliRunner().invoke(build_app(), words)
        assert isinstance(result.exception, UsageError)
        assert why in str(result.exception)
        assert "Nothing was asked" in str(result.exception)
        assert not server.calls
        assert not google.calls
    assert not (tmp_path / "r").exists()


def test_a_named_model_has_the_batches_of_the_model_behind_it(clips: Path, tmp_path: Path) -> None:
    with GoogleBatchServer() as server:
        file = tmp_path / "models.yaml"
        file.write_text(
            f"lab: {{model: google/m, options: {{base_url: '{server.url}', server: here}}}}\n"
        )
        words = ["run", "emotion", "--clips", clips, "--model", "lab", "--models-file", file]
        words += ["--batch", "--batch-look", 0.05, "--no-report", "--out", tmp_path / "r"]
        result = CliRunner().invoke(build_app(), [str(word) for word in words])
        assert result.exit_code == 0, result.output
        assert len(server.jobs) == 1


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--batch-no-wait",), "--batch-no-wait: is given without --batch"),
        (("--batch-size", 3), "--batch-size: is given without --batch"),
        (("--batch", "--batch-no-wait", "--batch-cancel"), "waits until the jobs have ended"),
    ],
)
def test_options_that_do_not_fit(
    clips: Path, tmp_path: Path, words: tuple[object, ...], why: str
) -> None:
    with GoogleBatchServer() as server, pytest.raises(UsageError, match=why):
        emotion(clips, server, tmp_path, *words)


def test_control_c_leaves_the_job_and_the_same_command_fetches_it(
    clips: Path, tmp_path: Path
) -> None:
    with GoogleBatchServer(plans=(Plan(looks=100_000),)) as server:
        words = words_of(clips, server, tmp_path, "--batch")
        child = subprocess.Popen(
            [sys.executable, "-m", "earwitness", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "COLUMNS": "300"},
        )
        while not any(call.path.endswith("/batches/b0") for call in server.calls):
            assert child.poll() is None
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=60)
        assert child.returncode == 4, err
        assert "interrupted; run the same command again to go on" in " ".join(err.split())
        assert "under way google/m: 7 items in 1 batch job (batches/b0)" in " ".join(err.split())
        assert "Traceback" not in err
        [job] = server.jobs.values()
        job.plan = Plan(looks=0)
        emotion(clips, server, tmp_path, "--batch")
        assert len(server.jobs) == 1


def test_shards_by_batch_are_joined(clips: Path, tmp_path: Path) -> None:
    with GoogleBatchServer() as server:
        for shard in ("1/2", "2/2"):
            emotion(clips, server, tmp_path / "parts", "--batch", "--shard", shard)
    [joined] = merge_runs([tmp_path / "parts"], tmp_path / "whole")
    assert RunFolder(joined.folder).card()["batch"] == {"jobs": 2, "replies": CLIPS}


def test_questions_about_scenes_by_batch(mixed_folder: Path, tmp_path: Path) -> None:
    with GoogleBatchServer(plans=(Plan(looks=1), Plan(looks=1))) as server:
        given = ["run", "cares", mixed_folder, "--model", "google/m", "--tasks", "location,sound"]
        given += ["-M", f"base_url={server.url}", "--out", tmp_path, "--limit", 2, "--batch"]
        words = [str(word) for word in (*given, "--batch-look", 0.05)]
        left = CliRunner().invoke(build_app(), [*words, "--batch-no-wait"])
        assert left.exit_code == 4, left.output
        assert "under way location google/m" in said(left)
        done = CliRunner().invoke(build_app(), words)
        assert done.exit_code == 0, done.output
        assert len(server.jobs) == 2
    cards = [RunFolder(path).card() for path in tmp_path.iterdir() if path.is_dir()]
    assert {card["task"]: card["batch"]["jobs"] for card in cards if "batch" in card} == {
        "location": 1, "sound": 1,
    }  # fmt: skip


def test_what_a_job_may_hold_is_told() -> None:
    words = ["models", "show", "mistral/m", "--json"]
    shown = json.loads(CliRunner().invoke(build_app(), words).stdout)
    assert shown["batch_jobs"] == {
        "max_requests": 100_000, "max_bytes": 500_000_000, "max_jobs": 100,
    }  # fmt: skip
    words[2] = "openai/m"
    assert "batch_jobs" not in json.loads(CliRunner().invoke(build_app(), words).stdout)


def test_all_runs_are_submitted_before_any_is_waited_for(clips: Path, tmp_path: Path) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text(PRICES.replace("google/m", "google/*"))
    with GoogleBatchServer(plans=(Plan(looks=2), Plan(looks=2))) as server:
        words = ("--batch", "--model", "google/n", "--prices", prices)
        # The limit holds for both together, and is touched once by each request.
        result = emotion(
            clips, server, tmp_path / "r", *words, "--max-cost", 0.1401, "--max-calls", 14, "--json"
        )
        rows = json.loads(result.stdout)["runs"]
        assert {name: row["calls"] for name, row in rows.items()} == {"google/m": 7, "google/n": 7}
        assert sum(row["cost_usd"] for row in rows.values()) == pytest.approx(0.14)
        paths = [call.path for call in server.calls]
        last = max(n for n, path in enumerate(paths) if path.endswith(":batchGenerateContent"))
        assert min(n for n, path in enumerate(paths) if "/batches/" in path) > last
        assert len(server.jobs) == 2
        over = emotion(clips, server, tmp_path / "s", *words, "--max-calls", 10, "--json", code=3)
        rows = json.loads(over.stdout)["runs"]
        assert [row["replied"] for row in rows.values()] == [7, 3]
