from __future__ import annotations

from dataclasses import replace

import pytest

from earwitness.clips.corpus import EMOTIONS
from earwitness.errors import UsageError
from earwitness.report.boards import ReportData, base_id, build, grouped, listening_signs
from earwitness.runs.outcomes import Outcome
from earwitness.tasks.records import Decision, System
from tests.report.making import make_system


def answers(name: str, replies: list[str], condition: str = "audio") -> System:
    return System(
        name,
        tuple(
            Decision(f"c{k}", "fear", Outcome("answered", "fear"), f"s{k}", condition, reply=reply)
            for k, reply in enumerate(replies)
        ),
    )


def test_one_board_for_each_condition_sound_first(data: ReportData) -> None:
    assert [board.condition for board in data.boards] == ["audio", "silence"]
    assert [board.key for board in data.boards] == ["board-1", "board-2"]
    for board in data.boards:
        assert [s.name for s in board.systems] == [s.name for s in board.leaderboard.systems]


def test_sets_are_not_mixed() -> None:
    systems = [
        make_system("a", n_items=14),
        make_system("a", n_items=14, sha256="ef" * 32, version="2.0"),
    ]
    assert [title for title, _, _ in grouped(systems)] == ["Voices 1.0", "Voices 2.0"]


def test_predictions_join_the_set_whose_items_they_share() -> None:
    run = make_system("run", n_items=28)
    table = make_system("table", n_items=28, origin="predictions")
    strange = replace(
        table,
        name="strange",
        decisions=tuple(replace(d, item_id=f"x{d.item_id}") for d in table.decisions),
    )
    found = grouped([table, run, strange])
    assert [[member.name for member in members] for _, _, members in found] == [
        ["table", "run"],
        ["strange"],
    ]


def test_one_system_under_two_conditions_falls_apart() -> None:
    audio = make_system("m", n_items=14)
    quiet = make_system("m", n_items=14, condition="silence")
    both = replace(audio, decisions=audio.decisions + quiet.decisions)
    assert [(condition, len(members)) for _, condition, members in grouped([both])] == [
        ("audio", 1),
        ("silence", 1),
    ]


def test_equal_names_are_told_apart_by_prompt_then_number() -> None:
    first = make_system("m", n_items=14)
    other = replace(first, card={**first.card, "prompt": {"id": "own"}})
    ((_, _, members),) = grouped([first, other, first])
    assert [member.name for member in members] == ["m [vab]", "m [own]", "m [vab] (2)"]


def test_nothing_to_report() -> None:
    with pytest.raises(
        UsageError, match=r"there is nothing to report: no system has an item.*Name run folders"
    ):
        build([System("m", ())], EMOTIONS)


def test_conditions_are_paired_and_corrected_together(data: ReportData) -> None:
    found = {row.system: row for row in data.differences}
    assert set(found) == {"gpt-audio-large", "deaf"}
    assert found["deaf"].comparison.difference.value == 0
    heard = found["gpt-audio-large"].comparison
    assert heard.difference.low > 0
    assert heard.n_items == 140
    assert heard.p_holm == pytest.approx(min(1, 2 * heard.p_sign_flip))
    assert heard.family == "sound against controls, 2 pairs"


@pytest.mark.parametrize("suffix", ["@silence", "#silence", ":silence", "/silence", ""])
def test_item_ids_pair_with_or_without_their_condition(suffix: str) -> None:
    assert base_id(Decision(f"clip-1{suffix}", "fear", Outcome("refused"), "s")) == "clip-1"


def test_a_system_that_listens_is_not_flagged() -> None:
    signs = listening_signs(answers("m", ["fear", "anger", "fear", "joy"]), None)
    assert (signs.replies, signs.distinct, signs.top_reply, signs.top_count) == (4, 3, "fear", 2)
    assert not signs.flagged


def test_one_reply_to_everything() -> None:
    assert listening_signs(answers("m", ["fear"] * 9 + ["joy"]), None).stuck
    assert not listening_signs(answers("m", ["fear"] * 8 + ["joy"] * 2), None).stuck


def test_long_replies_and_scores_that_repeat_are_copies() -> None:
    long = "The speaker sounds tense, with a trembling voice and long pauses, so: fear."
    signs = listening_signs(
        answers("m", [long, long, '{"fear": 0.7}', '{"fear": 0.7}', "fear", "fear"]), None
    )
    assert signs.copied == 4


def test_silence_that_changes_nothing() -> None:
    signs = listening_signs(answers("m", ["fear"] * 6), answers("m", ["x"] * 6, "silence"))
    silence = signs.unchanged_under("silence")
    assert silence is not None
    assert (silence.both, silence.same, silence.by_chance, signs.deaf) == (6, 6, 1.0, True)
    assert not listening_signs(answers("m", ["fear"] * 4), None).deaf


def test_no_reply_at_all() -> None:
    empty = System("m", (Decision("a", "fear", Outcome("failed"), "s"),))
    signs = listening_signs(empty, None)
    assert (signs.replies, signs.top_reply, signs.flagged) == (0, "", False)
