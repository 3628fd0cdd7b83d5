"""``earwitness report`` with runs about scenes, and ``earwitness scenes listen``."""

from __future__ import annotations

import csv
import json
import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from earwitness.cli import build_app
from earwitness.errors import DataError, LicenceError, ModelError, UsageError
from earwitness.runs.folder import RunFolder
from earwitness.runs.ledger import Ledger
from tests.report.making import make_system
from tests.report.reading import read

LOCATION = "location--openai_perfect--own"
SCENE_FILES = {"report.html", "scenes.csv", "scenes.json", "scenes.md", "scene-predictions.csv", "figures"}  # fmt: skip


def invoke(*arguments: object) -> Result:
    result = CliRunner().invoke(build_app(), [*map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture(scope="module")
def few(scene_runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some of the runs, so that a report is quick."""
    folder = tmp_path_factory.mktemp("few")
    for name in ("reaction--openai_perfect--time", "reaction--openai_deaf--time", LOCATION):  # fmt: skip
        shutil.copytree(scene_runs / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def one(few: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A single run."""
    folder = tmp_path_factory.mktemp("one")
    shutil.copytree(few / LOCATION, folder / LOCATION)
    return folder


def test_runs_about_scenes_become_a_page_and_tables(few: Path, tmp_path: Path) -> None:
    result = invoke("report", few, "--out", tmp_path / "out", "--published")
    assert result.exit_code == 0, result.output
    assert {path.name for path in (tmp_path / "out").iterdir()} == SCENE_FILES
    assert "scenes of corpus" in result.output
    assert "muting changes nothing (reaction)" in " ".join(result.output.split())
    html = (tmp_path / "out" / "report.html").read_text("utf-8")
    text = read(html).text
    assert "Qwen3-Omni published" in text
    assert "Text-only control: openai/deaf under oracle" in text
    assert "Which emotion" not in text
    assert "Make it again with --link-audio" in html
    assert "hosting.01.00.wav" not in html, "without a way for the sound the page refers to none"
    again = tmp_path / "again"
    invoke("report", few, "--out", again, "--published")
    for file in ("report.html", "scenes.csv", "scenes.json", "scenes.md", "scene-predictions.csv"):
        assert (again / file).read_bytes() == (tmp_path / "out" / file).read_bytes(), file


def test_a_page_alone(one: Path, tmp_path: Path) -> None:
    page = tmp_path / "deep" / "page.html"
    result = invoke("report", one, "--out", page, "--link-audio", "--json")
    document = json.loads(result.stdout)
    assert document["paths"] == {"html": str(page)}
    assert [path.name for path in page.parent.iterdir()] == ["page.html"]
    assert document["scenes"]["boards"][0]["systems"] == ["openai/perfect"]
    rows = read(page.read_text("utf-8")).rows_of("scene-data")
    assert [name for name, _ in rows["scenes"][0]["sounds"]][:2] == ["audible", "mute-e1"]
    with pytest.raises(UsageError, match=r"--bundle: --out .*page\.html is a page"):
        invoke("report", one, "--out", page, "--bundle")


def test_both_families_on_one_page(one: Path, tmp_path: Path) -> None:
    table = tmp_path / "clips.csv"
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["model", "id", "speaker", "label", "mapped_label"])
        for d in make_system("people, n = 3", n_items=28).decisions:
            writer.writerow(["people, n = 3", d.item_id, d.cluster, d.gold, d.outcome.label or ""])
    result = invoke("report", one, table, "--out", tmp_path / "out", "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["boards"][0]["systems"][0]["origin"] == "people"
    assert document["scenes"]["boards"][0]["systems"] == ["openai/perfect"]
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert files == SCENE_FILES | {"leaderboard.csv", "leaderboard.json", "leaderboard.md", "predictions.csv"}  # fmt: skip
    page = read((tmp_path / "out" / "report.html").read_text("utf-8"))
    assert "What do models hear beyond the words?" in page.text
    assert "from people" in page.text
    ids = [e.attributes["id"] for e in page.elements if "id" in e.attributes]
    assert len(ids) == len(set(ids))
    levels = [int(e.tag[1]) for e in page.elements if re.fullmatch(r"h[1-6]", e.tag)]
    assert levels.count(1) == 1
    targets = [e.attributes["href"] for e in page.all("a")]
    assert all(target[1:] in ids for target in targets)


def test_people_stand_beside_runs_about_scenes(one: Path, tmp_path: Path) -> None:
    questions = RunFolder(one / LOCATION).questions()
    table = tmp_path / "people.csv"
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["model", "task", "id", "prediction"])
        for question in questions:
            if question.condition == "audio":
                writer.writerow(["people, n = 3", "location", question.id, question.gold])
    result = invoke("report", one, table, "--out", tmp_path / "out", "--json")
    board = json.loads(result.stdout)["scenes"]["boards"][0]
    assert "people, n = 3" in board["systems"]
    assert board["origins"]["people, n = 3"] == "people"
    page = read((tmp_path / "out" / "report.html").read_text("utf-8"))
    assert "people, n = 3 people" in page.text
    with pytest.raises(DataError, match="no run about the same corpus is reported"):
        invoke("report", table, "--out", tmp_path / "no")


def test_an_incomplete_run_has_bounds_and_exits_with_3(one: Path, tmp_path: Path) -> None:
    source = one / LOCATION
    run = tmp_path / "runs" / source.name
    run.mkdir(parents=True)
    for name in ("card.json", "items.jsonl"):
        shutil.copy(source / name, run / name)
    answers = list(RunFolder(source).answers())
    with Ledger(run / "ledger.jsonl") as ledger:
        for number, answer in enumerate(answers):
            key, item = answer.question.key, answer.question.id
            ledger.started(key, item=item, attempt=1)
            if number < 2:
                ledger.failed(key, ModelError("slow", kind="timeout", retryable=True), item=item, attempts=1)  # fmt: skip
            else:
                assert answer.reply is not None
                ledger.reply(key, answer.reply, item=item, attempts=1)
    result = invoke("report", run, "--out", tmp_path / "out")
    assert result.exit_code == 3
    assert "INCOMPLETE" in result.output
    text = read((tmp_path / "out" / "report.html").read_text("utf-8")).text
    assert "location (audio): 2 items never answered, 75.0 to 100.0" in text
    assert invoke("report", run, "--out", tmp_path / "out", "--accept-failed").exit_code == 0


def test_a_corpus_that_has_moved(one: Path, scene_folder: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    shutil.copytree(one / LOCATION, runs / LOCATION)
    card = runs / LOCATION / "card.json"
    card.write_text(card.read_text("utf-8").replace(str(scene_folder), "/gone/corpus"), "utf-8")
    invoke("report", runs, "--out", tmp_path / "a")
    page = read((tmp_path / "a" / "report.html").read_text("utf-8"))
    assert "The corpus “corpus” was not found" in page.text
    assert page.rows_of("scene-data")["scenes"][0]["turns"] == []
    invoke("report", runs, "--out", tmp_path / "b", "--corpus", scene_folder)
    page = read((tmp_path / "b" / "report.html").read_text("utf-8"))
    assert len(page.rows_of("scene-data")["scenes"][0]["turns"]) == 8
    with pytest.raises(UsageError, match="holds no corpus"):
        invoke("report", runs, "--out", tmp_path / "c", "--corpus", tmp_path)


def test_options_that_do_not_fit(one: Path, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "out")
    with pytest.raises(UsageError, match="both --bundle and --link-audio are given"):
        invoke("report", one, *out, "--bundle", "--link-audio")
    with pytest.raises(UsageError, match="--cluster: 'speaker'; wanted scene or template"):
        invoke("report", one, *out, "--cluster", "speaker")
    with pytest.raises(UsageError, match=r"no judge--openai_judge\.jsonl beside the runs"):
        invoke("report", one, *out, "--judge", "openai/judge")
    with pytest.raises(UsageError, match="--control: 'nobody' was not asked"):
        invoke("report", one, *out, "--control", "nobody")
    with pytest.raises(LicenceError, match="not marked as allowing copies"):
        invoke("report", one, *out, "--bundle")
    assert not (tmp_path / "out").exists()


def test_listening_to_a_corpus(scene_folder: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    shutil.copytree(scene_folder, corpus)
    result = invoke("scenes", "listen", corpus)
    assert result.stdout.strip() == str(corpus / "listen.html")
    rows = read((corpus / "listen.html").read_text("utf-8")).rows_of("scene-data")
    assert len(rows["scenes"]) == 8
    assert rows["scenes"][0]["sounds"][0] == ["audible", "mixes/hosting.01.00.wav"]
    result = invoke("scenes", "listen", corpus, "--limit", 3, "--out", tmp_path / "three.html")
    rows = read((tmp_path / "three.html").read_text("utf-8")).rows_of("scene-data")
    assert len(rows["scenes"]) == 3
    with pytest.raises(LicenceError):
        invoke("scenes", "listen", corpus, "--bundle", "--out", tmp_path / "send")
    (corpus / "licence.yaml").write_text(
        "licence: CC0\nredistribute: true\ncredit: Tones by nobody.\n"
    )
    invoke("scenes", "listen", corpus, "--bundle", "--out", tmp_path / "send")
    assert len(list((tmp_path / "send" / "scenes" / "listen").iterdir())) == 8
    assert "Tones by nobody." in read((tmp_path / "send" / "listen.html").read_text("utf-8")).text
    with pytest.raises(UsageError, match="--split"):
        invoke("scenes", "listen", corpus, "--split", "tests")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("report",), ("--published", "--control", "--link-audio", "ending in .html", "CARES", "Exits with 3")),
        (("scenes", "listen"), ("--open", "--bundle", "Twins", "No server, no network")),
    ],
)  # fmt: skip
def test_help_teaches(command: tuple[str, ...], words: tuple[str, ...]) -> None:
    text = " ".join(invoke(*command, "--help").output.replace("│", " ").split())
    for each in words:
        assert each in text, each
