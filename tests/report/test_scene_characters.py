"""What the report says of listeners whose character is known: read back from their run folders."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from earwitness.report.page import ScenePart, render_page
from earwitness.report.players import Players
from earwitness.report.published import cares_table
from earwitness.report.scene_audio import outlines, scene_audio
from earwitness.report.scene_boards import SceneBoard, build_boards
from earwitness.report.scene_corpora import Finder
from earwitness.report.scene_models import findings, grounding_lines
from earwitness.runs.folder import find_runs
from earwitness.tasks.cares_runs import answers_of
from earwitness.tasks.grounding import GroundingScores
from tests.report.reading import read


@pytest.fixture(scope="module")
def board(scene_runs: Path) -> SceneBoard:
    (found,) = build_boards(answers_of(find_runs([scene_runs])), finder=Finder(), resamples=400)
    return found


def said_of(board: SceneBoard, character: str, task: str) -> str:
    found = findings(board, f"openai/{character}")
    return " ".join(row["text"] for row in found if row["task"] == task)


def flags(board: SceneBoard, character: str, task: str) -> tuple[str, ...]:
    (found,) = [s for s in board.signs if (s.system, s.task) == (f"openai/{character}", task)]
    return found.flags


def test_the_perfect_listener_is_right_and_loses_when_muted(board: SceneBoard) -> None:
    words = said_of(board, "perfect", "reaction")
    assert "Balanced accuracy 100.0%" in words
    assert "With the sound taken away its balanced accuracy" in words
    change = board.against_condition("reaction", "openai/perfect", "muted")
    assert change is not None
    assert change.difference.value == 0.75
    assert change.p_sign_flip < 0.05
    assert said_of(board, "perfect", "grounding").startswith("Hears whether there is a sound: yes to 100% of sounds")  # fmt: skip
    assert "mention 100.0% of the sounds" in said_of(board, "perfect", "summary")
    assert all(flags(board, "perfect", task) == () for task in board.tasks)


def test_the_deaf_listener_does_not_change_when_muted(board: SceneBoard) -> None:
    assert flags(board, "deaf", "reaction") == ("muting changes nothing",)
    words = said_of(board, "deaf", "reaction")
    assert "the same answer to 16 of 16 (100%) items, 25% to be expected by chance" in words
    assert "does not change significantly: 0.0 points" in words
    assert "Does not tell whether there is a sound: yes to 0% of sounds and to 0% of the same moments without them" in said_of(board, "deaf", "grounding")  # fmt: skip
    assert "no more than of sounds that are not there" in said_of(board, "deaf", "summary")
    assert "muting changes nothing" in flags(board, "deaf", "grounding")


def test_the_one_who_always_says_pivot_ignores_three(board: SceneBoard) -> None:
    words = said_of(board, "always-pivot", "reaction")
    assert "Ignores three of four reactions (recall at most 7%): verbal, behavioral, ambient." in words  # fmt: skip
    assert "16 of 16 (100%) answers are “pivot”." in words
    assert "not distinguishable from chance (25.0%)" in words
    assert "Chooses place A in 100% of its answers" in said_of(board, "always-pivot", "sound")


def test_the_one_who_draws_is_at_chance_and_not_called_deaf(board: SceneBoard) -> None:
    for task in ("reaction", "sound"):
        assert "not distinguishable from chance (25.0%)" in said_of(board, "random", task)
        assert flags(board, "random", task) == ()
    assert said_of(board, "random", "grounding").startswith("Does not tell")


def test_the_one_who_repeats_the_question_is_found_out(board: SceneBoard) -> None:
    for task, n in (("reaction", 16), ("location", 8)):
        words = said_of(board, "echo", task)
        assert f"{n} of {n} (100%) replies repeat the prompt." in words
        assert f"{n} of {n} items have no label" in words
        assert "chance" not in words, "there is no answer that could be at chance"
        assert "repeats the prompt" in flags(board, "echo", task)


def test_the_one_who_refuses_is_said_to_decline(board: SceneBoard) -> None:
    words = said_of(board, "refuse", "reaction")
    assert "It declined 16 of 16 (100%) items." in words
    assert "(16 refused); they count as not right." in words
    assert "39 of 39 items have no yes or no." in said_of(board, "refuse", "grounding")


def test_the_text_only_control_is_found(board: SceneBoard) -> None:
    assert board.control == ("openai/deaf", "oracle")
    assert board.mixed is not None
    assert [scene.id for scene in board.mixed.scenes] == [f"hosting.01.{n:02d}" for n in range(8)]
    found = board.against_control("grounding", "openai/perfect")
    assert found is not None
    assert found.above


def test_the_whole_page(board: SceneBoard, tmp_path: Path) -> None:
    assert board.mixed is not None
    corpora = {board.key: board.mixed}
    path = tmp_path / "page.html"
    part = ScenePart(
        (board,),
        scene_audio(corpora, "link", path),
        {(board.key, scene): text for scene, text in outlines(board.mixed).items()},
        cares_table(),
    )
    html = render_page(None, Players(), scenes=part)
    assert render_page(None, Players(), scenes=part) == html
    page = read(html)
    ids = [e.attributes["id"] for e in page.elements if "id" in e.attributes]
    assert len(ids) == len(set(ids))
    regions = [e.attributes["aria-label"] for e in page.elements if e.attributes.get("role") == "region"]  # fmt: skip
    assert len(regions) == len(set(regions)), "regions need names of their own"
    assert len(page.all("table")) == len(page.all("caption"))
    text = page.text
    for words in (
        "What did the model hear, and did hearing help?",
        "6 systems asked about 8 scenes of corpus in 5 tasks",
        "openai/deaf oracle text-only control",
        "Qwen3-Omni published",
        "Rows marked published are those of CARES, arXiv 2610.10208, Table 1.",
        "Signs of not listening",
        "Listen to the scenes",
        "earwitness run cares corpus --tasks reaction",
        "not applicable",
    ):
        assert words in text, words
    for word in (" nan ", "None", "undefined", "Infinity"):
        assert word not in text
    assert str(board.mixed.folder) not in text


def test_with_few_scenes_nobody_is_called_deaf(board: SceneBoard) -> None:
    scores = board.scores("grounding", "openai/perfect", "audio")
    assert isinstance(scores, GroundingScores)
    few = replace(scores, n_clusters=4, p_sign_flip=0.125)
    assert grounding_lines(few)[0] == (
        "Too few scenes to tell whether it hears them: yes to 100% of sounds and to 0% of the same moments without them"
        " (p 0.125; 4 scenes can give no less than 0.125).",
        False,
    )
    enough = replace(scores, n_clusters=6, p_sign_flip=0.2)
    assert grounding_lines(enough)[0][0].startswith("Does not tell")
