"""The loop: rules and gate send drafts back, quotas are refilled, and the order of work does not matter."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from earwitness.scenes import writing_loop
from earwitness.scenes.bank import Bank, load_bank
from earwitness.scenes.corpus_config import LoopUsed
from earwitness.scenes.dialogue_records import Dialogue
from earwitness.scenes.plan import PlanRequest, load_preset, plan
from earwitness.scenes.refill import original_of, same_allocation
from earwitness.scenes.scenario import Scenario
from earwitness.scenes.writing import Assignment, Draft, FunctionGate, Ruling, Violation
from earwitness.scenes.writing_report import acceptance
from tests.scenes.writing_cases import SEED, ComposingWriter, MemoryJournal, run_loop

BAD = Violation("X1", "It is not what was planned.", "dialogue")


@pytest.fixture(scope="module")
def bank() -> Bank:
    return load_bank()


@pytest.fixture(scope="module")
def scenarios(bank: Bank) -> tuple[Scenario, ...]:
    return plan(bank, PlanRequest(3, 2, SEED, load_preset("balanced")))


def shorter(draft: Draft) -> Draft:
    assert draft.dialogue is not None
    return Draft(replace(draft.dialogue, timeline=draft.dialogue.timeline[:3]))


def test_a_good_writer_is_asked_once_a_scene(bank: Bank, scenarios: tuple[Scenario, ...]) -> None:
    writer = ComposingWriter(bank)
    result = run_loop(scenarios, bank, writer)
    assert result.complete
    assert [dialogue.scenario for dialogue in result.dialogues] == [s.id for s in scenarios]
    assert len(writer.assignments) == len(scenarios)
    assert result.refills == result.abandoned == result.lost == ()


def test_a_rejected_draft_goes_back_with_every_broken_rule(
    bank: Bank, scenarios: tuple[Scenario, ...]
) -> None:
    def answer(assignment: Assignment, draft: Draft) -> Draft:
        return shorter(draft) if assignment.attempt == 1 else draft

    writer = ComposingWriter(bank, answer)
    journal = MemoryJournal()
    result = run_loop(scenarios[:1], bank, writer, journal=journal)
    assert result.complete
    second = writer.assignments[1]
    assert (second.attempt, second.scenario) == (2, scenarios[0])
    assert second.previous is not None
    assert len(second.previous.timeline) == 3
    codes = [reason.code for reason in second.reasons]
    assert "D201-utterances" in codes
    assert "D205-scene-length" in codes
    assert all(reason.message and reason.where for reason in second.reasons)
    assert [line[1:3] for line in journal.lines] == [(1, "rejected"), (2, "accepted")]


def test_the_gate_sends_back_and_its_reasons_arrive(
    bank: Bank, scenarios: tuple[Scenario, ...]
) -> None:
    seen: Counter[str] = Counter()

    def judge(dialogue: Dialogue, scenario: Scenario) -> tuple[bool, tuple[Violation, ...]]:
        seen[scenario.id] += 1
        return seen[scenario.id] > 1, (BAD,)

    writer = ComposingWriter(bank)
    result = run_loop(scenarios, bank, writer, gate=FunctionGate(judge))
    assert result.complete
    again = [each for each in writer.assignments if each.attempt == 2]
    assert len(again) == len(scenarios)
    assert all(each.reasons == (BAD,) for each in again)


def test_what_is_abandoned_is_refilled_with_the_same_allocation(
    bank: Bank, scenarios: tuple[Scenario, ...]
) -> None:
    hard = {scenarios[1].id, f"{scenarios[1].id}.r1", scenarios[4].id}

    def judge(dialogue: Dialogue, scenario: Scenario) -> tuple[bool, tuple[Violation, ...]]:
        return scenario.id not in hard, (BAD,)

    result = run_loop(scenarios, bank, ComposingWriter(bank), gate=FunctionGate(judge))
    assert result.complete
    names = [dialogue.scenario for dialogue in result.dialogues]
    assert names[1] == f"{scenarios[1].id}.r2"
    assert names[4] == f"{scenarios[4].id}.r1"
    assert [original_of(name) for name in names] == [s.id for s in scenarios]
    for place in result.places:
        assert same_allocation(place.planned, place.scenario)
    assert [(entry.scenario, entry.refill) for entry in result.abandoned] == [
        (scenarios[1].id, f"{scenarios[1].id}.r1"),
        (f"{scenarios[1].id}.r1", f"{scenarios[1].id}.r2"),
        (scenarios[4].id, f"{scenarios[4].id}.r1"),
    ]
    assert all(entry.reasons == (("X1",),) * 3 for entry in result.abandoned)
    assert len({s.template for s in result.refills} | {scenarios[1].template}) == 4
    table = acceptance(result)
    assert all(row.filled == row.places for row in table.rows)
    assert (table.total.abandoned, table.attempts) == (3, 4 + 3 * 3 + 2)
    assert table.reasons == {"X1": 9}


def test_a_place_stays_empty_when_every_refill_fails(
    bank: Bank, scenarios: tuple[Scenario, ...]
) -> None:
    def judge(dialogue: Dialogue, scenario: Scenario) -> tuple[bool, tuple[Violation, ...]]:
        return original_of(scenario.id) != scenarios[2].id, (BAD,)

    loop = LoopUsed(max_attempts=2, max_refills=1)
    result = run_loop(scenarios, bank, ComposingWriter(bank), gate=FunctionGate(judge), loop=loop)
    assert result.lost == (scenarios[2].id,)
    assert not result.complete
    assert result.failed == {}
    assert result.abandoned[-1].refill is None
    assert len(result.dialogues) == len(scenarios) - 1


def test_a_call_that_failed_leaves_the_scene_waiting(
    bank: Bank, scenarios: tuple[Scenario, ...]
) -> None:
    def answer(assignment: Assignment, draft: Draft) -> Draft:
        down = assignment.scenario.id == scenarios[0].id
        return Draft(failed="connection: no network") if down else draft

    result = run_loop(scenarios, bank, ComposingWriter(bank, answer))
    assert result.failed == {scenarios[0].id: "connection: no network"}
    assert len(result.dialogues) == len(scenarios) - 1
    assert result.abandoned == ()


def test_a_judge_that_cannot_be_asked_leaves_the_scene_waiting(
    bank: Bank, scenarios: tuple[Scenario, ...]
) -> None:
    class Down(FunctionGate):
        async def rule(self, cases, on_done=None):  # type: ignore[no-untyped-def]
            return [Ruling(False, failed="timeout: no reply") for _ in cases]

    gate = Down(lambda *_: (True, ()))
    result = run_loop(scenarios, bank, ComposingWriter(bank), gate=gate)
    assert set(result.failed.values()) == {"timeout: no reply"}
    assert result.dialogues == ()


def test_a_hopeless_writer_is_given_up_before_it_costs_much(bank: Bank) -> None:
    many = plan(bank, PlanRequest(20, 10, SEED, load_preset("balanced")))
    writer = ComposingWriter(bank, lambda *_: Draft(problems=(BAD,)))
    writer.dialogue = lambda _: Dialogue("x", "", ())  # type: ignore[method-assign]
    result = run_loop(many, bank, writer)
    assert len(writer.assignments) == writing_loop.PILOT * 3
    assert result.dialogues == ()
    assert len(result.failed) == len(many)
    assert "no draft was acceptable (most often X1)" in next(iter(result.failed.values()))


def copying(copies: dict[str, str]) -> ComposingWriter:
    """A writer whose first draft of some scenes repeats the dialogue of another."""
    texts: dict[str, Dialogue] = {}

    def answer(assignment: Assignment, draft: Draft) -> Draft:
        name = assignment.scenario.id
        assert draft.dialogue is not None
        texts[f"{name}#{assignment.attempt}"] = draft.dialogue
        model = copies.get(f"{name}#{assignment.attempt}")
        return draft if model is None else Draft(replace(texts[model], scenario=name))

    return ComposingWriter(load_bank(), answer)


@pytest.fixture(scope="module")
def quiet(bank: Bank) -> tuple[Scenario, ...]:
    """Scenes without events, whose dialogues can stand for each other."""
    many = plan(bank, PlanRequest(20, 2, SEED, load_preset("balanced")))
    return tuple(scenario for scenario in many if not scenario.events)[:6]


def test_a_near_duplicate_of_an_earlier_scene_is_written_anew(
    bank: Bank, quiet: tuple[Scenario, ...]
) -> None:
    writer = copying({f"{quiet[3].id}#1": f"{quiet[1].id}#1"})
    journal = MemoryJournal()
    result = run_loop(quiet, bank, writer, journal=journal)
    assert result.complete
    again = [each for each in writer.assignments if each.attempt == 2]
    assert [each.scenario.id for each in again] == [quiet[3].id]
    assert again[0].reasons[0].code == "D801-shared-sentences"
    assert (quiet[3].id, 1, "rejected", ("D801-shared-sentences",)) in journal.lines


def test_every_copy_goes_and_the_first_stays(bank: Bank, quiet: tuple[Scenario, ...]) -> None:
    names = [scenario.id for scenario in quiet]
    writer = copying(
        {
            f"{names[3]}#1": f"{names[1]}#1",
            f"{names[4]}#1": f"{names[1]}#1",
        }
    )
    result = run_loop(quiet, bank, writer)
    attempts = Counter(each.scenario.id for each in writer.assignments)
    assert result.complete
    assert attempts == {**dict.fromkeys(names, 1), names[3]: 2, names[4]: 2}


def test_what_is_too_close_to_an_unsettled_draft_waits_for_it(
    bank: Bank, quiet: tuple[Scenario, ...]
) -> None:
    names = [scenario.id for scenario in quiet]
    # 2 copies 0 and must go; 4 is a copy of 3, 3 comes after 2 and is settled only with it.
    writer = copying({f"{names[2]}#1": f"{names[0]}#1", f"{names[4]}#1": f"{names[3]}#1"})
    journal = MemoryJournal()
    result = run_loop(quiet, bank, writer, journal=journal)
    assert result.complete
    rejected = [line[0] for line in journal.lines if line[2] == "rejected"]
    assert rejected == [names[2], names[4]]


def test_what_is_too_close_to_a_draft_that_goes_may_stay(
    bank: Bank, quiet: tuple[Scenario, ...]
) -> None:
    names = [scenario.id for scenario in quiet]
    drafts: dict[str, Dialogue] = {}

    def taking(draft: Draft, start: int) -> Draft:
        """A draft with five utterances of scene 3's first one."""
        assert draft.dialogue is not None
        timeline = list(draft.dialogue.timeline)
        timeline[start : start + 5] = drafts[names[3]].timeline[start : start + 5]
        return Draft(replace(draft.dialogue, timeline=tuple(timeline)))

    def answer(assignment: Assignment, draft: Draft) -> Draft:
        name, attempt = assignment.scenario.id, assignment.attempt
        assert draft.dialogue is not None
        drafts.setdefault(name, draft.dialogue)
        if (name, attempt) == (names[2], 1):
            return Draft(replace(drafts[names[0]], scenario=name))
        if (name, attempt) == (names[2], 2):
            return taking(draft, 5)
        return taking(draft, 0) if name == names[4] else draft

    # 2 copies 0 and is written anew, with words of 3, which goes for them; so nothing is left that 4 is close to.
    writer = ComposingWriter(bank, answer)
    result = run_loop(quiet, bank, writer)
    attempts = Counter(each.scenario.id for each in writer.assignments)
    assert result.complete
    assert attempts == {**dict.fromkeys(names, 1), names[2]: 2, names[3]: 2}


@pytest.mark.parametrize(("pilot", "lot"), [(1, 1), (2, 3), (100, 100)])
def test_how_much_is_worked_on_at_a_time_changes_nothing(
    bank: Bank,
    quiet: tuple[Scenario, ...],
    monkeypatch: pytest.MonkeyPatch,
    pilot: int,
    lot: int,
) -> None:
    names = [scenario.id for scenario in quiet]
    copies = {
        f"{names[1]}#1": f"{names[0]}#1",
        f"{names[2]}#1": f"{names[0]}#1",
        f"{names[4]}#1": f"{names[3]}#1",
        f"{names[5]}#1": f"{names[4]}#1",
    }
    usual = run_loop(quiet, bank, copying(copies))
    monkeypatch.setattr(writing_loop, "PILOT", pilot)
    monkeypatch.setattr(writing_loop, "LOT", lot)
    other = run_loop(quiet, bank, copying(copies))
    assert other.dialogues == usual.dialogues
    assert other.abandoned == usual.abandoned
    # And fewer places give the beginning of what more places give.
    assert run_loop(quiet[:4], bank, copying(copies)).dialogues == usual.dialogues[:4]
