"""A corpus from nothing by one call: complete, the same however it is run, and refused when asked for another."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from earwitness.audio import file_sha256
from earwitness.cli import build_app
from earwitness.errors import DataError, UsageError
from earwitness.scenes.bank import load_bank
from earwitness.scenes.build_config import BuildConfig, with_settings
from earwitness.scenes.build_report import BuildReport, StageTime
from earwitness.scenes.building import build_corpus, stored_config
from earwitness.scenes.corpus import Corpus
from tests.scenes.mixing.made import make_library

LOGS = (
    "build.jsonl", "build_run.yaml", "candidates.jsonl", "attempts.jsonl", "verdicts.jsonl", ".lock", ".build.lock",
)  # fmt: skip
STAGES = ["sounds", "plan", "write", "speak", "mix", "labels", "validate", "audit"]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> BuildConfig:
    """Two scenes in two places, with robotic voices and no judge: quick, and every stage is there."""
    bank = load_bank()
    places = ("park", "kitchen")
    sounds = sorted(
        {s for place in places for s in (*bank.sounds_at(place)[:7], *bank.rare_at(place)[:1])}
    )
    library = make_library(tmp_path_factory.mktemp("library") / "sounds", sounds, places, takes=1)
    return with_settings(
        BuildConfig(scenes=2, seed=4),
        {
            "sounds.library": str(library.folder), "speak.cast": "espeak", "filter.judge": None,
            "mix.mute": ["all"], "labels.formats": ["audacity", "jams"], "run.workers": 1,
        },
        "test",
    )  # fmt: skip


class Watcher:
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.done: list[StageTime] = []
        self.told: list[tuple[str, int, int | None]] = []

    def begins(self, stage: str) -> None:
        self.begun.append(stage)

    def progress(self, done: int, total: int | None, detail: str = "") -> None:
        self.told.append((self.begun[-1], done, total))

    def ended(self, stage: StageTime) -> None:
        self.done.append(stage)


@pytest.fixture(scope="module")
def built(
    settings: BuildConfig, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, BuildReport, Watcher]:
    """Built once, in this process; do not write into it."""
    folder, watcher = tmp_path_factory.mktemp("built") / "corpus", Watcher()
    return folder, build_corpus(settings, folder, watcher=watcher), watcher


def hashes(folder: Path) -> dict[str, str]:
    """Everything but logs."""
    return {
        str(path.relative_to(folder)): file_sha256(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in LOGS
    }


def test_everything_is_made_and_told(built: tuple[Path, BuildReport, Watcher]) -> None:
    folder, report, watcher = built
    assert report.exit_code == 0
    assert (report.asked, report.places, report.accepted, report.mixed) == (2, 2, 2, 2)
    assert sum(report.splits.values()) == 2
    assert watcher.begun == STAGES == [stage.name for stage in watcher.done]
    assert ("mix", 2, 2) in watcher.told
    assert ("validate", 2, 2) in watcher.told
    events = sum(report.reactions.values())
    assert report.validation is not None
    assert report.validation.audio is not None
    assert report.validation.audio.measured == events > 0
    assert not report.validation.errors
    assert report.audit is None
    assert "too few" in report.audit_left_out
    assert len(list(folder.glob("mixes/*.wav"))) == 2
    assert len(list(folder.glob("labels/*"))) == 4
    assert report.audio_s == pytest.approx(
        sum(json.loads(p.read_text())["audio"]["duration_s"] for p in folder.glob("mixes/*.json"))
    )
    assert report.audio_bytes == sum(p.stat().st_size for p in folder.rglob("*s/**/*.wav") if "voices" not in p.parts)  # fmt: skip
    (line,) = map(json.loads, (folder / "build.jsonl").read_text().splitlines())
    assert [stage[0] for stage in line["stages"]] == STAGES
    values = report.to_json()
    assert json.loads(json.dumps(values))["stages"][4]["name"] == "mix"


def test_the_settings_stay_with_the_corpus(
    built: tuple[Path, BuildReport, Watcher], settings: BuildConfig
) -> None:
    folder, _, _ = built
    assert stored_config(folder) == settings.resolved()
    kept = yaml.safe_load((folder / "build.yaml").read_text())
    assert kept["plan"]["per_template"] == 1
    # How the work was done is no part of what the corpus is.
    assert kept["run"]["workers"] is None
    assert yaml.safe_load((folder / "build_run.yaml").read_text())["workers"] == 1


def test_killed_and_with_two_workers_it_comes_out_the_same(
    built: tuple[Path, BuildReport, Watcher], settings: BuildConfig, tmp_path: Path
) -> None:
    folder = tmp_path / "corpus"
    (tmp_path / "settings.yaml").write_text(settings.to_yaml())
    command = [
        sys.executable, "-c", "from earwitness.cli import main; main()", "scenes", "build",
        str(tmp_path / "settings.yaml"), "--out", str(folder), "--json",
    ]  # fmt: skip
    # The settings say one process.
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not any(folder.glob("mixes/*.wav")):
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    ended = subprocess.run(
        [*command, "--workers", "2"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["accepted"] == 2
    assert hashes(folder) == hashes(built[0])


def test_more_scenes_and_twins_leave_what_is_there_as_it_is(
    built: tuple[Path, BuildReport, Watcher], tmp_path: Path
) -> None:
    folder = tmp_path / "corpus"
    shutil.copytree(built[0], folder)
    before = hashes(folder)
    times = {p: p.stat().st_mtime_ns for p in (*folder.glob("mixes/*"), *folder.glob("voices/*/*"))}
    # What is not said is as the corpus has it.
    command = ["scenes", "build", "--out", str(folder), "--scenes", "3", "--set", "mix.speech_only=true"]  # fmt: skip
    told = CliRunner().invoke(build_app(), command)
    assert told.exit_code == 0, told.output
    assert "3 of 3" in told.output
    assert "0 broken promises" in told.output
    assert times == {path: path.stat().st_mtime_ns for path in times}
    now = hashes(folder)
    kept = {n: h for n, h in before.items() if n.startswith(("mixes/", "voices/", "twins/"))}
    assert kept.items() <= now.items()
    assert len(list(folder.glob("mixes/*.wav"))) == 3
    assert len(list(folder.glob("twins/speech-only/*.wav"))) == 3
    assert stored_config(folder).scenes == 3  # type: ignore[union-attr]


def test_other_settings_and_other_folders_are_refused(
    built: tuple[Path, BuildReport, Watcher], settings: BuildConfig, tmp_path: Path
) -> None:
    folder, _, _ = built
    before = hashes(folder)
    with pytest.raises(
        UsageError, match=r"other settings: mix\.preset was balanced and is paper; wanted"
    ):
        build_corpus(with_settings(settings, {"mix.preset": "paper"}, "x"), folder)
    with pytest.raises(UsageError, match="scenes was 2 and is 1"):
        build_corpus(with_settings(settings, {"scenes": 1}, "x"), folder)
    assert hashes(folder) == before
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="has files and was not made by scenes build"):
        build_corpus(settings, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".build.lock", "notes.txt"]


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("mix.preset", "loud", "no preset 'loud'"),
        ("plan.preset", "fair", "no preset 'fair'"),
        ("speak.cast", "choir", "'choir' is no file and no cast that ships"),
        ("sounds.library", "nowhere", "nowhere"),
        ("run.price", "much", "price"),
    ],
)
def test_what_a_late_stage_cannot_use_is_refused_at_once(
    settings: BuildConfig, tmp_path: Path, name: str, value: str, match: str
) -> None:
    with pytest.raises((UsageError, DataError), match=match):
        build_corpus(with_settings(settings, {name: value}, "x"), tmp_path / "corpus")
    assert [path.name for path in (tmp_path / "corpus").iterdir()] == [".build.lock"]


def test_while_scenes_wait_for_a_service_nothing_is_spoken(
    settings: BuildConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    waiting = with_settings(
        settings,
        {
            "write.writer": "openai/nobody",
            "write.options": {"base_url": "http://127.0.0.1:9/v1", "family": "none"},
            "run.max_retries": 0,
        },
        "x",
    )  # fmt: skip
    report = build_corpus(waiting, tmp_path / "corpus")
    assert report.exit_code == 3
    assert len(report.waiting) == 2
    assert [stage.name for stage in report.stages] == ["sounds", "plan", "write"]
    assert not Corpus(tmp_path / "corpus").dialogues()


def test_settings_are_printed_and_mistakes_are_one_line(tmp_path: Path) -> None:
    runner, app = CliRunner(), build_app()
    out = str(tmp_path / "corpus")
    told = runner.invoke(app, ["scenes", "build", "--print-config", "--scenes", "30", "--out", out])
    assert told.exit_code == 0
    (tmp_path / "mine.yaml").write_text(told.stdout)
    again = runner.invoke(
        app, ["scenes", "build", str(tmp_path / "mine.yaml"), "--print-config", "--set", "seed=9", "--out", out]
    )  # fmt: skip
    assert yaml.safe_load(again.stdout)["scenes"] == 30
    assert yaml.safe_load(again.stdout)["seed"] == 9
    with pytest.raises(UsageError, match=r"--set mix\.tempo: there is no such setting"):
        runner.invoke(
            app, ["scenes", "build", "--set", "mix.tempo=3", "--out", out], catch_exceptions=False
        )
    assert not (tmp_path / "corpus").exists()
