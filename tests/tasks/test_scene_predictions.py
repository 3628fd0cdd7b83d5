"""Answers of others about scenes: read beside runs of the same corpus."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from earwitness.errors import DataError
from earwitness.report.scene_boards import build_boards
from earwitness.report.scene_files import scene_predictions_csv
from earwitness.tasks.cares_runs import CaresAnswers
from earwitness.tasks.scene_predictions import (
    is_scene_table,
    origin_of,
    read_scene_predictions,
)
from tests.report.scene_making import drawn, make_answers, right

PEOPLE = "people, n = 3"


@pytest.fixture(scope="module")
def runs() -> list[CaresAnswers]:
    return make_answers("m", right, scenes=6) + make_answers(
        "m", drawn, condition="muted", scenes=6
    )


def write(path: Path, rows: list[dict[str, str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(key for row in rows for key in row)))
        writer.writeheader()
        writer.writerows(rows)
    return path


def row(task: str, item: str, prediction: str, model: str = PEOPLE, **more: str) -> dict[str, str]:
    return {"model": model, "task": task, "id": item, "prediction": prediction, **more}


def test_a_table_about_scenes_is_known_by_its_tasks(tmp_path: Path) -> None:
    ours = write(tmp_path / "a.csv", [row("reaction", "s/e1", "pivot")])
    theirs = write(tmp_path / "b.csv", [{"id": "clip", "gold": "fear", "prediction": "fear"}])
    other = write(tmp_path / "c.csv", [{"id": "clip", "task": "emotion", "prediction": "fear"}])
    assert [is_scene_table(path) for path in (ours, theirs, other)] == [True, False, False]


def test_people_are_told_from_models() -> None:
    assert origin_of("People (n=3)") == "people"
    assert origin_of("human listeners") == "people"
    assert origin_of("humanoid-7b") == "predictions"


def test_labels_letters_and_whole_replies_are_read(
    runs: list[CaresAnswers], tmp_path: Path
) -> None:
    asked = {(run.task, run.condition): run.decisions for run in runs}
    sound = asked["sound", "audio"][0]
    place = asked["location", "audio"][0]
    table = write(
        tmp_path / "people.csv",
        [
            row("sound", sound.item_id, sound.gold),
            row("location", place.item_id, "A"),
            row("reaction", "topic.00.00/e1", "I would say they return to it: verbal"),
            row("reaction", "topic.00.00/e2", ""),
            row("reaction", "topic.00.01/e1", "I'm sorry, but I can't help with that."),
        ],
    )
    found = {each.task: each for each in read_scene_predictions(table, runs)}
    assert set(found) == {"sound", "location", "reaction"}
    (heard,) = found["sound"].decisions
    assert (heard.outcome.label, heard.gold, heard.cluster) == (sound.gold, sound.gold, sound.cluster)  # fmt: skip
    assert heard.outcome.rule == "label"
    assert found["location"].decisions[0].outcome.label == place.gold, "the truth of scene 0 stands at A"  # fmt: skip
    kinds = [d.outcome.kind for d in found["reaction"].decisions]
    assert kinds == ["answered", "empty", "refused"]
    assert found["reaction"].decisions[0].outcome.label == "verbal"
    assert found["reaction"].card["origin"] == "people"
    assert "has answers to 3 of 12 items of reaction" in str(found["reaction"].card["notes"])


def test_they_stand_as_a_row_of_the_same_board(runs: list[CaresAnswers], tmp_path: Path) -> None:
    reaction = next(run for run in runs if (run.task, run.condition) == ("reaction", "audio"))
    table = write(tmp_path / "people.csv", [row("reaction", d.item_id, d.gold) for d in reaction.decisions])  # fmt: skip
    (board,) = build_boards([*runs, *read_scene_predictions(table, runs)], resamples=100)
    assert board.origins[PEOPLE] == "people"
    assert board.scores("reaction", PEOPLE).headline.value == 1  # type: ignore[union-attr]


def test_our_own_table_reads_back_the_same(runs: list[CaresAnswers], tmp_path: Path) -> None:
    (board,) = build_boards(runs, resamples=100)
    table = tmp_path / "scene-predictions.csv"
    table.write_text(scene_predictions_csv([board]), encoding="utf-8")
    (again,) = build_boards(read_scene_predictions(table, runs), resamples=100)
    assert set(again.table.scores) == set(board.table.scores)
    for key, scores in board.table.scores.items():
        assert again.table.scores[key].headline == scores.headline, key


def test_other_conditions_take_truth_from_any_run(runs: list[CaresAnswers], tmp_path: Path) -> None:
    table = write(
        tmp_path / "a.csv", [row("reaction", "topic.00.00/e1", "pivot", condition="oracle")]
    )
    (found,) = read_scene_predictions(table, runs)
    assert (found.condition, found.decisions[0].item_id) == ("oracle", "topic.00.00/e1|oracle")
    swapped = write(tmp_path / "b.csv", [row("sound", "topic.00.00/e1", "x", condition="swapped")])
    with pytest.raises(DataError, match="no run asked the sound item"):
        read_scene_predictions(swapped, runs)


def test_what_one_of_several_lacks_is_failed(runs: list[CaresAnswers], tmp_path: Path) -> None:
    table = write(
        tmp_path / "a.csv",
        [
            row("reaction", "topic.00.00/e1", "pivot", "a"),
            row("reaction", "topic.00.00/e2", "pivot", "a"),
            row("reaction", "topic.00.00/e1", "pivot", "b"),
        ],
    )
    found = {each.name: each for each in read_scene_predictions(table, runs)}
    assert [d.outcome.kind for d in found["b"].decisions] == ["answered", "failed"]
    assert "b has no row for 1 of 2 items" in str(found["b"].card["notes"])


def test_halves_of_pairs_are_left_out_and_said(runs: list[CaresAnswers], tmp_path: Path) -> None:
    rows = [row("grounding", f"topic.00.00/e1/{half}", "yes") for half in ("present", "absent")]
    table = write(tmp_path / "a.csv", [*rows, row("grounding", "topic.00.00/e2/present", "yes")])
    (found,) = read_scene_predictions(table, runs)
    assert [d.item_id for d in found.decisions] == ["topic.00.00/e1/absent", "topic.00.00/e1/present"]  # fmt: skip
    assert "1 halves of grounding pairs" in str(found.card["notes"])
    alone = write(tmp_path / "b.csv", [row("grounding", "topic.00.00/e2/present", "yes")])
    with pytest.raises(DataError, match="has no pair of grounding items"):
        read_scene_predictions(alone, runs)


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        ([row("reaction", "nowhere/e1", "pivot")], "no run asked the reaction item 'nowhere/e1'.*truth and options"),
        ([row("reaction", "topic.00.00/e1", "pivot")] * 2, "has 'topic.00.00/e1' twice in reaction"),
        ([row("smell", "topic.00.00/e1", "pivot")], "the task 'smell'"),
        ([row("reaction", "topic.00.00/e1", "pivot", condition="loud")], "the condition 'loud'"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_with_its_line(
    runs: list[CaresAnswers], tmp_path: Path, rows: list[dict[str, str]], what: str
) -> None:
    with pytest.raises(DataError, match=rf"a\.csv:\d: .*{what}"):
        read_scene_predictions(write(tmp_path / "a.csv", rows), runs)
