from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from earwitness.audio import file_sha256
from earwitness.cli import build_app
from earwitness.clips.corpus import EMOTIONS, Clip, SetCard, load_clip_set, write_clip_set
from earwitness.errors import DataError, EarwitnessError, LicenceError, ModelError, UsageError
from earwitness.models.protocols import Reply
from earwitness.runs.folder import RunFolder
from earwitness.runs.items import reply_key
from earwitness.runs.ledger import Ledger
from earwitness.tasks.emotion_runs import plan_runs
from tests.report.making import write_clips
from tests.report.reading import read

N_ITEMS = 28


def invoke(*arguments: object) -> Result:
    result = CliRunner().invoke(build_app(), ["report", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def clip_set(tmp_path: Path) -> Path:
    folder = tmp_path / "set"
    write_clips(folder, N_ITEMS)
    card = SetCard("Tones", "1", "CC-BY-4.0", "any", redistribute=True)
    clips = [
        Clip(
            id=f"tone-{number:02d}",
            path=f"audio/{number:05d}.wav",
            sha256=file_sha256(folder / "audio" / f"{number:05d}.wav"),
            emotion=EMOTIONS[number % 7],
            speaker=f"speaker-{number // 7}",
            language="en",
            seconds=0.5,
            rate=8000,
            channels=1,
            source_label="tone",
            licence="CC-BY-4.0",
        )
        for number in range(N_ITEMS)
    ]
    write_clip_set(folder, card, clips)
    return folder


def answer(
    clip_set: Path, runs: Path, model: str, replies: dict[int, str], *, failed: int = 0
) -> Path:
    """A run as the runner leaves it: every question answered ``neutral`` unless ``replies`` says otherwise."""
    (planned,) = plan_runs(
        load_clip_set(clip_set),
        models=[model],
        options={},
        models_file=None,
        prompt_sets=["vab"],
        conditions=["audio", "silence"],
        out=runs,
    )
    settings = planned.card["settings"]
    RunFolder(planned.folder).write(planned.card, planned.questions, planned.model.name, settings)
    with Ledger(planned.folder / "ledger.jsonl") as ledger:
        for number, question in enumerate(planned.questions):
            key = reply_key(question.item, planned.model.name, settings)
            ledger.started(key, item=question.item.id, attempt=1)
            if number < failed:
                timeout = ModelError("no reply in 60 s", kind="timeout", retryable=True)
                ledger.failed(key, timeout, item=question.item.id, attempts=1)
            else:
                text = replies.get(number, "neutral")
                ledger.reply(
                    key, Reply(text=text, latency_s=0.25), item=question.item.id, attempts=1
                )
    return planned.folder


@pytest.fixture
def runs(clip_set: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    answer(clip_set, folder, "baseline/neutral", {})
    answer(clip_set, folder, "baseline/uniform", {n: EMOTIONS[n % 7] for n in range(0, N_ITEMS, 2)})
    return folder


def test_runs_become_a_page_and_tables(runs: Path, tmp_path: Path) -> None:
    result = invoke(runs, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "baseline/neutral" in result.output
    assert "report.html" in result.output
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {
        "report.html",
        "leaderboard.csv",
        "leaderboard.json",
        "leaderboard.md",
        "predictions.csv",
        "figures",
    }
    text = read((tmp_path / "out" / "report.html").read_text("utf-8")).text
    assert "Tones 1" in text
    assert "Does the sound matter?" in text
    assert "silence changes nothing" in text
    assert str(tmp_path) not in (tmp_path / "out" / "report.html").read_text("utf-8")


def test_same_runs_same_bytes(runs: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        invoke(runs, "--out", tmp_path / name)
    files = sorted(
        p.relative_to(tmp_path / "a") for p in (tmp_path / "a").rglob("*") if p.is_file()
    )
    assert len(files) >= 10
    for file in files:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes(), file


def test_json_on_standard_output(runs: Path, tmp_path: Path) -> None:
    document = json.loads(invoke(runs, "--out", tmp_path / "out", "--json").stdout)
    assert document["complete"] is True
    assert [board["condition"] for board in document["boards"]] == ["audio", "silence"]
    best = document["boards"][0]["systems"][0]
    assert (best["name"], best["n"]) == ("baseline/uniform", N_ITEMS)
    assert Path(document["paths"]["html"]).exists()


def test_incomplete_run_exits_with_3_until_accepted(clip_set: Path, tmp_path: Path) -> None:
    run = answer(clip_set, tmp_path / "runs", "baseline/neutral", {}, failed=2)
    result = invoke(run, "--out", tmp_path / "out")
    assert result.exit_code == 3
    assert "INCOMPLETE: baseline/neutral." in " ".join(result.output.split())
    assert (tmp_path / "out" / "report.html").exists()
    assert invoke(run, "--out", tmp_path / "out", "--accept-failed").exit_code == 0


def test_bundle_and_embedding(runs: Path, tmp_path: Path) -> None:
    result = invoke(runs, "--out", tmp_path / "out", "--bundle")
    assert result.exit_code == 0
    assert f"with {N_ITEMS} clips" in result.output
    assert len(list((tmp_path / "out" / "report" / "clips").iterdir())) == N_ITEMS
    invoke(runs, "--out", tmp_path / "one", "--embed-audio")
    assert "data:audio/wav;base64," in (tmp_path / "one" / "report.html").read_text("utf-8")
    with pytest.raises(UsageError, match="both --bundle and --embed-audio"):
        invoke(runs, "--out", tmp_path / "no", "--bundle", "--embed-audio")


def test_licence_that_forbids_copies(clip_set: Path, tmp_path: Path) -> None:
    found = load_clip_set(clip_set)
    write_clip_set(clip_set, replace(found.card, redistribute=False), found.clips)
    run = answer(clip_set, tmp_path / "runs", "baseline/neutral", {})
    with pytest.raises(
        LicenceError, match=r"clip set 'Tones 1': its licence \(CC-BY-4\.0\) is not marked"
    ):
        invoke(run, "--out", tmp_path / "out", "--bundle")
    assert invoke(run, "--out", tmp_path / "out").exit_code == 0


def test_predictions_stand_beside_runs(runs: Path, tmp_path: Path) -> None:
    table = tmp_path / "theirs.csv"
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["model", "id", "speaker", "label", "mapped_label"])
        for number in range(N_ITEMS):
            writer.writerow(
                [
                    "theirs",
                    f"tone-{number:02d}",
                    f"speaker-{number // 7}",
                    EMOTIONS[number % 7],
                    "fear",
                ]
            )
    document = json.loads(invoke(runs, table, "--out", tmp_path / "out", "--json").stdout)
    assert [system["name"] for system in document["boards"][0]["systems"]] == [
        "baseline/uniform",
        "baseline/neutral",
        "theirs",
    ]


def test_own_predictions_read_back_to_the_same_figures(runs: Path, tmp_path: Path) -> None:
    first = json.loads(invoke(runs, "--out", tmp_path / "a", "--json").stdout)
    again = json.loads(
        invoke(tmp_path / "a" / "predictions.csv", "--out", tmp_path / "b", "--json").stdout
    )
    for before, after in zip(first["boards"], again["boards"], strict=True):
        for left, right in zip(before["systems"], after["systems"], strict=True):
            for key in (
                "name",
                "n",
                "right",
                "accuracy",
                "accuracy_clustered",
                "outcomes",
                "confusion",
            ):
                assert left[key] == right[key]


def test_priors(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "priors.yaml").write_text("neutral: 9\nfear: 1\n")
    document = json.loads(
        invoke(
            runs, "--out", tmp_path / "out", "--json", "--priors", tmp_path / "priors.yaml"
        ).stdout
    )
    neutral = next(s for s in document["boards"][0]["systems"] if s["name"] == "baseline/neutral")
    assert neutral["prior_weighted"]["value"] == pytest.approx(0.9)


def test_a_folder_without_runs(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"holds no run .*earwitness run emotion"):
        invoke(tmp_path, "--out", tmp_path / "out")
    with pytest.raises(EarwitnessError):
        invoke(tmp_path / "absent", "--out", tmp_path / "out")


def test_help_teaches() -> None:
    text = " ".join(invoke("--help").output.split())
    for words in (
        "--bundle",
        "--embed-audio",
        "--priors",
        "Exits with 3",
        "Asks no model anything",
    ):
        assert words in text
