"""Boards of scenes: which runs stand together, what they are compared with, what incomplete ones may come to."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from earwitness.errors import UsageError
from earwitness.report.published import PublishedRow, cares_table
from earwitness.report.scene_boards import Bounds, SceneBoard, bounds_of, build_boards
from earwitness.report.scene_cells import headline
from earwitness.report.scene_files import (
    scene_predictions_csv,
    scenes_csv,
    scenes_document,
    scenes_json,
    scenes_md,
)
from earwitness.report.scene_table import table_rows
from earwitness.report.scene_views import board_view
from earwitness.runs.outcomes import Outcome
from earwitness.stats.dprime import d_prime
from earwitness.tasks.cares_runs import CaresAnswers
from earwitness.tasks.cares_scores import balanced_accuracy_of
from tests.report.scene_making import always, card, drawn, make_answers, often, right

CHOICES = ("reaction", "location", "sound")


def boards_of(*parts: list[CaresAnswers], **options: Any) -> tuple[SceneBoard, ...]:
    answers = [each for part in parts for each in part]
    return build_boards(answers, **{"resamples": 200, **options})


def board_of(*parts: list[CaresAnswers], **options: Any) -> SceneBoard:
    (found,) = boards_of(*parts, **options)
    return found


@pytest.fixture(scope="module")
def board() -> SceneBoard:
    """Four systems: one that hears, one that draws, one incomplete, and a text-only one."""
    text_only = {"prompt": {"text": "x"}, "limits": {"needs_audio": False}}
    return board_of(
        make_answers("hears", right),
        make_answers("hears", drawn, condition="muted"),
        make_answers("lots", drawn),
        make_answers("lots", drawn, condition="muted"),
        make_answers("unlucky", often(0.5), failed=6),
        make_answers("reader", often(0.3), condition="asr", **text_only),
        make_answers("audio-only", often(0.4), limits={"needs_audio": True}),
    )


# What stands together.


def test_one_board_for_each_corpus() -> None:
    other = {**card("m")["clips"], "name": "talk", "seed": 2}
    found = boards_of(
        make_answers("m", right, tasks=CHOICES, scenes=4),
        make_answers("m", right, tasks=CHOICES, scenes=4, clips=other),
    )
    assert [each.key for each in found] == ["scenes-1", "scenes-2"]
    assert all(each.systems == ("m",) for each in found)


def test_a_part_of_a_corpus_stands_with_the_rest_of_it_and_is_said() -> None:
    part = {**card("m")["clips"], "sha256": "99" * 32, "n": 4}
    found = board_of(
        make_answers("a", right, tasks=["location"], scenes=20),
        make_answers("b", right, tasks=["location"], scenes=4, clips=part),
    )
    assert found.systems == ("a", "b")
    assert found.notes == (
        "Not all runs are about the same recordings (4, 20 scenes). Comparisons pair the items both have.",
    )


def test_runs_of_one_name_are_told_apart() -> None:
    found = board_of(
        make_answers("m", right, tasks=["location"], scenes=4),
        make_answers("m", drawn, tasks=["location"], scenes=4),
    )
    assert found.systems == ("m", "m (2)")
    assert found.scores("location", "m").headline.value == 1  # type: ignore[union-attr]


# The text-only control.


def test_a_reader_that_never_hears_is_the_control(board: SceneBoard) -> None:
    assert board.control == ("reader", "asr")
    assert not board.chosen
    assert table_rows(board)[-1]["name"] == "reader"
    assert [row["name"] for row in table_rows(board)].count("reader") == 1
    mark = {row["name"]: row["marks"]["reaction"] for row in table_rows(board)}
    assert mark["hears"] == "above"
    assert mark["reader"] == ""


def test_without_one_the_best_under_text_is_the_control() -> None:
    found = board_of(
        make_answers("weak", drawn, tasks=["reaction"]),
        make_answers("weak", drawn, tasks=["reaction"], condition="oracle"),
        make_answers("strong", right, tasks=["reaction"]),
        make_answers("strong", right, tasks=["reaction"], condition="oracle"),
    )
    assert found.control == ("strong", "oracle")
    rows = [(row["name"], row["condition"], row["control"]) for row in table_rows(found)]
    assert rows[-1] == ("strong", "oracle", True)
    assert ("strong", "", False) in rows


def test_a_named_control() -> None:
    parts = (
        make_answers("m", right, tasks=["reaction"], scenes=6),
        make_answers("m", drawn, tasks=["reaction"], scenes=6, condition="blind"),
    )
    found = board_of(*parts, control="m:blind")
    assert found.control == ("m", "blind")
    assert found.chosen
    assert board_of(*parts).control is None
    with pytest.raises(UsageError, match=r"--control: 'n' was not asked under 'oracle'"):
        board_of(*parts, control="n")


# Incomplete runs.


def test_bounds_of_an_incomplete_run(board: SceneBoard) -> None:
    assert not board.complete
    keys = {key for key in board.bounds if key[1] == "unlucky"}
    assert keys == set(board.bounds), "no other run is incomplete"
    assert {task for task, _, _ in keys} == {
        "reaction",
        "location",
        "sound",
        "grounding",
        "summary",
    }
    found = board.bounds["location", "unlucky", "audio"]
    scores = board.scores("location", "unlucky")
    right_now = scores.scores.right  # type: ignore[union-attr]
    assert found == Bounds(right_now / 20, (right_now + 6) / 20, 6)
    cell = headline(board, "location", "unlucky", "audio")
    assert cell["incomplete"]
    assert cell["value"] == f"{100 * found.low:.1f} to {100 * found.high:.1f}"


def test_bounds_of_balanced_accuracy_are_of_the_recalls() -> None:
    (run,) = make_answers("m", right, tasks=["reaction"], scenes=4)
    # Two sounds of every reaction; all of the first scene fail: one of two reactions has lost half its items.
    gone = [replace(d, outcome=Outcome("failed")) if d.cluster == "topic.00.00" else d for d in run.decisions]  # fmt: skip
    low, high = bounds_of("reaction", gone, None)  # type: ignore[arg-type]
    assert (low, high) == (0.75, 1.0)


def test_bounds_of_d_prime_take_both_extremes() -> None:
    (run,) = make_answers("m", right, tasks=["grounding"], scenes=10, failed=4)
    low, high = bounds_of("grounding", run.decisions, None)  # type: ignore[arg-type]
    kinds = [d.item_id.rpartition("/")[2] for d in run.decisions if d.outcome.kind == "failed"]
    assert kinds == ["present", "absent", "present", "absent"]
    assert low == pytest.approx(float(d_prime(18, 20, 2, 20).d_prime))
    assert high == pytest.approx(float(d_prime(20, 20, 0, 20).d_prime))


def test_accepted_failures_close_a_run() -> None:
    found = board_of(make_answers("m", right, tasks=CHOICES, failed=2), accept_failed=True)
    assert found.complete
    assert not headline(found, "location", "m", "audio")["incomplete"]


# What does not apply.


def test_why_there_is_no_figure(board: SceneBoard) -> None:
    assert board.not_asked("grounding", "hears", "muted") == "not applicable"
    assert board.not_asked("reaction", "audio-only", "asr") == "not applicable"
    assert board.not_asked("reaction", "hears", "asr") == "not asked"
    assert headline(board, "grounding", "lots", "muted")["none"] == "not applicable"


# Published rows.


@pytest.mark.parametrize("row", cares_table().rows, ids=lambda row: row.name)
def test_published_balanced_accuracies_come_out_of_their_recalls(row: PublishedRow) -> None:
    recalls = [recall for _, recall in row.reactions.values()]
    assert balanced_accuracy_of(recalls) == pytest.approx(row.reaction[0], abs=0.051)
    ignored = [recall for recall in recalls if recall <= 7]
    assert bool(ignored) is not row.text_only, (
        "every audio model ignores one, the text control none"
    )


def test_published_rows_stand_only_where_asked_for(board: SceneBoard) -> None:
    assert board_view(board, None)["published"] == []
    view = board_view(board, cares_table())
    assert [row["name"] for row in view["published"]][1] == "Qwen3-Omni"
    assert view["published"][1]["cells"]["reaction"]["interval"] == "± 2"


# Files.


def test_the_table_has_one_line_a_figure(board: SceneBoard) -> None:
    import csv
    import io

    rows = list(csv.DictReader(io.StringIO(scenes_csv([board]))))
    assert len(rows) == len(board.table.scores)
    by_key = {(row["task"], row["model"], row["condition"]): row for row in rows}
    found = by_key["reaction", "hears", "audio"]
    assert (found["headline"], found["complete"], found["items"], found["scenes"]) == ("1", "yes", "40", "20")  # fmt: skip
    assert found["recall_pivot"] == "1"
    assert float(found["audio_minus_control_p_holm"]) < 0.05
    open_run = by_key["reaction", "unlucky", "audio"]
    assert (open_run["headline"], open_run["complete"], open_run["failed"]) == ("", "no", "6")
    assert float(open_run["bound_low"]) < float(open_run["bound_high"])
    assert "nan" not in scenes_csv([board])


def test_the_document_is_whole_and_plain(board: SceneBoard) -> None:
    document = json.loads(scenes_json([board]))
    assert document == json.loads(json.dumps(scenes_document([board])))
    (found,) = document["boards"]
    assert document["complete"] is False
    assert found["control"] == ["reader", "asr"]
    assert {row["model"] for row in found["bounds"]} == {"unlucky"}
    assert any("Balanced accuracy" in text for _, text in found["findings"]["hears"])
    assert {sign["system"] for sign in found["listening"]} == {"hears", "lots", "unlucky", "audio-only"}  # fmt: skip


def test_the_markdown_table_is_in_the_papers_layout(board: SceneBoard) -> None:
    text = scenes_md([board])
    assert "| model | reaction % | pivot P/R | verbal P/R | behavioral P/R | ambient P/R | location % | sound % | grounding d′ | mentioned % (pivot / verbal / behavioral / ambient) |" in text  # fmt: skip
    assert "| hears | 100.0 ▲" in text
    assert "| reader (asr) **text-only control** |" in text
    assert "(incomplete)" in text


def test_predictions_have_every_answer(board: SceneBoard) -> None:
    lines = scene_predictions_csv([board]).splitlines()
    assert len(lines) == 1 + sum(len(each.decisions) for each in board.answers)


def test_groups_that_a_task_keeps_to_itself_are_never_shown(board: SceneBoard) -> None:
    view = board_view(board, None)
    names = {table["name"] for system in view["systems"] for table in system["groups"]}
    assert names >= {"location", "sound", "margin over the ambience", "register", "what the talk gives away"}  # fmt: skip
    assert not any(name.startswith("_") for name in names)


def test_one_answer_everywhere_is_no_hearing() -> None:
    found = board_of(make_answers("no", always("no"), tasks=["grounding"]))
    (row,) = board_view(found, None)["grounding"]
    assert (row["hits"], row["alarms"], row["pairs"]) == ("0.0", "0.0", ["0", "0", "0", "40", "0"])


def test_summaries_of_a_bank_that_is_not_known_are_left_out_and_said() -> None:
    parts = make_answers("m", right, tasks=["summary", "location"], scenes=4)
    strange = [
        replace(
            each,
            decisions=tuple(
                replace(d, gold=d.gold.replace("thunder_clap", "purring")) for d in each.decisions
            ),
        )
        if each.task == "summary"
        else each
        for each in parts
    ]
    found = board_of(strange)
    assert found.tasks == ("location",)
    assert "has no words for 1 of their sounds (purring)" in found.notes[0]
    assert "--bank DIR" in found.notes[0]
