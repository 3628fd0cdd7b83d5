"""Simulated people give the agreement they must; tables, predictions and the report say the same."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from statsmodels.stats.inter_rater import aggregate_raters
from statsmodels.stats.inter_rater import fleiss_kappa as their_fleiss
from typer.testing import CliRunner

from earwitness.cli import build_app
from earwitness.errors import UsageError
from earwitness.report.boards import build
from earwitness.review import people
from earwitness.review.export import export, predictions, safe_cell, tables, to_csv, to_jsonl
from earwitness.review.project import read_project
from earwitness.review.report import write_report
from earwitness.review.results import findings, studies
from earwitness.review.state import state_of
from earwitness.review.store import opened, rows, save_answer, transaction
from earwitness.scenes.bank_records import REACTIONS
from earwitness.stats.streams import stream
from earwitness.tasks.predictions import load_predictions
from tests.review.making import label_folder, record_folder, review_folder


def answer_all(folder: Path, right: float, number: int, *, seed: int = 1) -> None:
    """People who are right with a chance and guess otherwise, as the app would have saved it."""
    project = read_project(folder)
    people.add_people(folder, number)
    from earwitness.clips.corpus import EMOTIONS

    with opened(folder) as db, transaction(db):
        table = rows(
            db,
            "SELECT a.person, p.name, i.id, i.key, i.gold FROM assignments a JOIN items i ON i.id=a.item"
            " JOIN people p ON p.id=a.person",
        )
        labels = REACTIONS if project.kind == "label" else EMOTIONS
        for person, name, item, key, gold in table:
            rng = stream(seed, name, key)

            def say(label: str, rng: np.random.Generator = rng) -> str:
                return label if rng.random() < right else labels[rng.integers(len(labels))]

            said = {question: say(label) for question, label in json.loads(gold).items()}
            payload: dict[str, object] = (
                {"labels": said, "note": ""}
                if project.kind == "label"
                else {
                    "audio_quality": "good",
                    "match": None,
                    "perceived_emotion": said["clip"],
                    "note": "",
                }
            )
            save_answer(db, person, item, payload, 4.0)


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = label_folder(tmp_path_factory.mktemp("label"), 200, per_item=3)
    answer_all(folder, 0.8, 3)
    return folder


@pytest.fixture(scope="module")
def heard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = review_folder(tmp_path_factory.mktemp("blind"), 140, per_item=3, blind=True)
    answer_all(folder, 0.7, 3)
    return folder


def test_known_error_rates_give_the_expected_kappa(labelled: Path) -> None:
    """Right with 0.8, else one of four at random: with the labels kappa 0.8, between two people 0.64."""
    with opened(labelled) as db:
        (study,) = studies(db, read_project(labelled))
    finding = findings(study, resamples=500)
    assert finding.with_labels is not None
    assert finding.between is not None
    n = finding.counts["ratings"]
    assert n == 3 * finding.counts["items"] > 700
    assert finding.with_labels.mean_cohen.value == pytest.approx(0.8, abs=0.03)
    assert finding.with_labels.percent.value == pytest.approx(0.85, abs=0.03)
    assert finding.between.mean_cohen.value == pytest.approx(0.64, abs=0.05)
    assert finding.between.krippendorff.value == pytest.approx(0.64, abs=0.05)
    # Three who vote are right more often than one.
    assert finding.with_labels.majority_percent.value > finding.with_labels.percent.value
    for figure in (finding.with_labels.mean_cohen, finding.between.mean_cohen):
        assert figure.low < figure.value < figure.high
        assert figure.n == finding.counts["clusters"] < finding.counts["items"]
    assert finding.confusion is not None
    assert finding.confusion.sum() == finding.counts["items"] * 3
    assert np.allclose(finding.confusion, finding.confusion.T)


def test_figures_equal_an_independent_library(labelled: Path) -> None:
    with opened(labelled) as db:
        (study,) = studies(db, read_project(labelled))
    found = findings(study, resamples=10).between
    assert found is not None
    assert found.fleiss is not None
    theirs = their_fleiss(aggregate_raters(study.ratings.codes, n_cat=4)[0])
    assert found.fleiss.value == pytest.approx(theirs, abs=1e-9)


def test_people_are_a_row_of_the_leaderboard(heard: Path, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text(to_csv(predictions(heard)["people"]), encoding="utf-8")
    (system,) = load_predictions(path, clips=heard.parent / "set").systems
    assert system.name == "people, n = 3"
    assert len(system.decisions) == 140
    with opened(heard) as db:
        study = next(s for s in studies(db, read_project(heard)) if s.question == "emotion")
    finding = findings(study, resamples=10)
    assert finding.with_labels is not None
    right = np.mean([d.outcome.label == d.gold for d in system.decisions])
    assert right == pytest.approx(finding.with_labels.majority_percent.value)
    board = build([system], study.ratings.labels).boards[0]
    assert board.systems[0].name == "people, n = 3"
    kinds = {d.outcome.kind for d in system.decisions}
    assert kinds == {"answered", "ambiguous"}
    assert sum(d.outcome.kind == "ambiguous" for d in system.decisions) == finding.with_labels.ties


def test_unanswered_items_are_failed_and_never_left_out(tmp_path: Path) -> None:
    folder = review_folder(tmp_path, 8, per_item=2, blind=True)
    with pytest.raises(UsageError, match="nobody has answered yet"):
        predictions(folder)
    answer_all(folder, 1.0, 2)
    with opened(folder) as db, transaction(db):
        db.execute("DELETE FROM answers WHERE item=1")
    found = predictions(folder, each=True)
    kinds = [row["outcome"] for row in found["people"].rows]
    assert sorted(kinds) == ["answered"] * 7 + ["failed"]
    path = tmp_path / "p.csv"
    path.write_text(to_csv(found["people"]), encoding="utf-8")
    (system,) = load_predictions(path).systems
    assert [d.outcome.kind for d in system.decisions].count("failed") == 1
    assert [row["model"] for row in found["ann-01"].rows] == ["person ann-01"] * 7


def test_reactions_of_people_can_be_read_with_their_labels(labelled: Path, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text(to_csv(predictions(labelled)["people"]), encoding="utf-8")
    (system,) = load_predictions(path, labels=REACTIONS).systems
    assert {d.gold for d in system.decisions} == set(REACTIONS)
    assert len({d.cluster for d in system.decisions}) < len(system.decisions)


def test_only_labels_become_predictions(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="made with --blind"):
        predictions(review_folder(tmp_path / "a", 4))
    with pytest.raises(UsageError, match="these are recordings"):
        predictions(record_folder(tmp_path / "b"))


FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("x","y")', "  =1", "\n=1"]


@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_is_a_formula(text: str) -> None:
    assert safe_cell(text) == f"'{text}"


def test_exports_hold_everything_and_run_nothing(tmp_path: Path) -> None:
    folder = review_folder(tmp_path, 9)
    people.add_people(folder, 0, ["=cmd|' /C calc'!A0"])
    with opened(folder) as db, transaction(db):
        for item, note in enumerate([*FORMULAS], start=1):
            payload = {
                "audio_quality": "poor",
                "match": "unclear",
                "perceived_emotion": None,
                "note": note,
            }
            save_answer(db, 1, item, payload, None)
    written = export(folder)
    assert {path.name for path in written} == {
        "reviews.jsonl",
        "reviews.csv",
        "history.jsonl",
        "history.csv",
    }
    for path in written:
        if path.suffix == ".csv":
            for row in csv.reader(io.StringIO(path.read_text(encoding="utf-8"), newline="")):
                for cell in row:
                    assert not cell.lstrip().startswith(("=", "+", "-", "@")), cell
    lines = [
        json.loads(line) for line in (folder / "export" / "reviews.jsonl").read_text().splitlines()
    ]
    assert sorted(line["note"] for line in lines) == sorted(FORMULAS)
    assert list(lines[0])[:7] == [
        "recording", "reviewer", "audio_quality", "match", "perceived_emotion", "note", "at",
    ]  # fmt: skip
    assert {line["recording"] for line in lines} == {
        json.loads(line)["id"]
        for line in (tmp_path / "set" / "clips.jsonl").read_text().splitlines()
    }


def test_labels_export_has_the_data_sets_own_beside(labelled: Path) -> None:
    table = tables(labelled)["labels"]
    assert len(to_jsonl(table).splitlines()) == len(table.rows)
    right = np.mean([row["label"] == row["reaction"] for row in table.rows])
    assert right == pytest.approx(0.85, abs=0.03)


def test_the_report_says_so_in_words_and_needs_nothing_else(labelled: Path, tmp_path: Path) -> None:
    page, data = write_report(labelled, tmp_path)
    text = page.read_text(encoding="utf-8")
    figures = json.loads(data.read_text(encoding="utf-8"))["agreement"][0]
    kappa = figures["with_labels"]["mean_cohen"]
    assert (
        f"3 people agree with the labels at κ = {kappa['value']:.2f} ({kappa['low']:.2f} to {kappa['high']:.2f})"
        in text
    )
    for word in (
        "Krippendorff",
        "Fleiss",
        "ann-01 – ann-03",
        "whole scenes drawn 10,000 times",
        "0.86",
        "0.81",
    ):
        assert word in text
    assert "http" not in text.replace("http-equiv", "")
    assert "<script" not in text
    assert "nan" not in text.lower().replace("and", "")


def test_a_report_before_anything_is_known(tmp_path: Path) -> None:
    folder = label_folder(tmp_path, 3)
    page, _ = write_report(folder)
    again, _ = write_report(folder, tmp_path / "again")
    assert again.read_bytes() == page.read_bytes()
    assert "Nothing can be said about agreement yet" in page.read_text(encoding="utf-8")
    people.add_people(folder, 2)
    answer_all_but_one = state_of(folder, 10)
    assert answer_all_but_one["agreement"] == []
    assert [p["name"] for p in answer_all_but_one["people"]] == ["ann-01", "ann-02"]


def run(*words: str | Path, code: int = 0) -> str:
    result = CliRunner().invoke(build_app(), [str(word) for word in words])
    assert result.exit_code == code, (result.output, result.exception)
    return result.stdout


def test_the_commands_from_folder_to_figure(tmp_path: Path) -> None:
    from tests.review.making import clip_set

    clip_set(tmp_path / "set", 14)
    work = tmp_path / "work"
    out = run(
        "review",
        "create",
        "review",
        tmp_path / "set",
        "--out",
        work,
        "--blind",
        "-n",
        "2",
        "--limit",
        "10",
    )
    assert "10 items to review" in out
    links = json.loads(
        run("review", "links", work, "--names", "ann,bob", "--json", "--base-url", "https://x:1/")
    )
    assert links["ann"].startswith("https://x:1/a/")
    assert "ann" in run("review", "status", work)
    again = run("review", "links", work, "--renew", "ann")
    assert again.split("\t")[0] == "ann"
    assert links["ann"].rsplit("/", 1)[1] not in again
    answer_all(work, 1.0, 2)
    with opened(work) as db, transaction(db):
        for person, item in rows(db, "SELECT person, item FROM assignments"):
            save_answer(
                db,
                person,
                item,
                {"audio_quality": "good", "match": None, "perceived_emotion": "fear", "note": ""},
                1.0,
            )
    state = json.loads(run("review", "status", work, "--json"))
    assert state["items"] == state["full"] == 10
    assert "κ between people" not in run("review", "export", work)
    people_csv = tmp_path / "people.csv"
    assert str(people_csv) in run("review", "export", work, "--predictions", people_csv, "--each")
    assert (tmp_path / "people--ann-01.csv").is_file() or (tmp_path / "people--ann.csv").is_file()
    assert "people, n = 2" in run("score", "--predictions", people_csv, "--clips", tmp_path / "set")
    assert "report.html" in run("review", "report", work)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["links", "W"], "nobody named"),
        (["links", "W", "--annotators", "1", "--renew", "x"], "too much at once"),
        (["export", "W", "--each"], "goes with --predictions"),
        (["status", "nowhere"], "is no review folder"),
        (["serve", "W", "--tls-cert", "x.pem"], "goes with --tls-key"),
        (["create", "label", "nowhere", "--out", "o", "--show", "film"], "transcript, audio, both"),
        (["create", "record", "a", "--out", "o", "--seconds", "9-3"], "MIN-MAX"),
        (["create", "review", "W/set", "--out", "o", "--limit", "99"], "99 of 4 clips"),
    ],
)
def test_mistakes_are_told_in_one_line(tmp_path: Path, words: list[str], error: str) -> None:
    from earwitness.errors import EarwitnessError
    from tests.review.making import clip_set

    clip_set(tmp_path / "set", 4)
    run("review", "create", "review", tmp_path / "set", "--out", tmp_path / "W")
    named = [
        str(tmp_path / word.replace("W/set", "set"))
        if word in ("W", "W/set", "nowhere", "o")
        else word
        for word in words
    ]
    result = CliRunner().invoke(build_app(), ["review", *named])
    assert isinstance(result.exception, EarwitnessError)
    assert error in str(result.exception)
