"""The audit can pass and can fail: even plans hold, shuffled labels hold, leaky plans are found out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from earwitness.errors import DataError, UsageError
from earwitness.scenes.audit import audit, audit_features, cases_of
from earwitness.scenes.bank import REACTIONS, Bank, load_bank
from earwitness.scenes.dialogue import Dialogue, EventMark, Utterance
from earwitness.scenes.plan import PlanRequest, load_preset, plan
from earwitness.scenes.scenario import PlannedEvent, Scenario
from earwitness.stats.streams import stream


@pytest.fixture(scope="module")
def bank() -> Bank:
    return load_bank()


@pytest.fixture(scope="module")
def scenarios(bank: Bank) -> tuple[Scenario, ...]:
    return plan(bank, PlanRequest(40, 10, seed=11, preset=load_preset("balanced")))


def without_words(scenarios: tuple[Scenario, ...]) -> list[tuple[Scenario, Dialogue | None]]:
    return [(scenario, None) for scenario in scenarios]


def with_events(scenario: Scenario, change: object) -> Scenario:
    events = tuple(change(number, event) for number, event in enumerate(scenario.events))  # type: ignore[operator]
    return replace(scenario, events=events)


def test_a_balanced_plan_and_its_shuffled_control_hold(scenarios: tuple[Scenario, ...]) -> None:
    found = audit(without_words(scenarios))
    assert found.ok
    assert [group.group for group in found.groups] == [
        "sound", "location", "position", "count", "people", "together",
    ]  # fmt: skip
    assert all(group.low <= group.balanced_accuracy <= group.high for group in found.groups)
    # What decides is an interval for all groups together, so a wider one.
    assert all(
        group.balanced_accuracy - group.low_for_all > 1.3 * (group.balanced_accuracy - group.low)
        for group in found.groups
    )
    assert found.control.low - 0.01 <= 0.25 <= found.control.high + 0.01


def test_the_paper_plan_leaks_where_its_preset_makes_no_promise(bank: Bank) -> None:
    preset = load_preset("paper")
    made = without_words(plan(bank, PlanRequest(120, 10, seed=3, preset=preset)))
    strict = audit(made, only=("position", "count"))
    assert {group.group for group in strict.leaks} == {"position"}
    assert audit(made, only=("position", "count"), floors=preset.floors).ok


@pytest.mark.parametrize("leak", ["position", "location"])
def test_a_deliberately_leaky_plan_is_found_out(scenarios: tuple[Scenario, ...], leak: str) -> None:
    draw = stream(1, "leak")

    def leaky(scenario: Scenario) -> Scenario:
        def change(number: int, event: PlannedEvent) -> PlannedEvent:
            if draw.random() > 0.4:
                return event
            told = {
                "sound": sum(event.sound.encode()),
                "position": ("early", "middle", "late").index(event.band),
                "count": len(scenario.events),
                "location": sum(scenario.location.encode()),
            }[leak]
            return replace(event, reaction=REACTIONS[told % 4])

        return with_events(scenario, change)

    found = audit(without_words(tuple(leaky(s) for s in scenarios)), only=(leak,))
    assert leak in {group.group for group in found.leaks}
    assert not found.ok
    assert not found.control.leaks


def spoken(scenario: Scenario, *, tells: bool) -> Dialogue:
    """Twelve utterances; with ``tells`` the first says which reaction the last event will have."""
    names = ["well", "so", "right", "okay"]
    told = names[REACTIONS.index(scenario.events[-1].reaction)] if tells else "hm"
    talk = [Utterance("AB"[n % 2], f"Sentence {n} of it.") for n in range(12)]
    talk[0] = Utterance("A", f"And {told}, there it is.")
    timeline: list[Utterance | EventMark] = []
    places = {f"e{n + 1}": 3 + 2 * n for n in range(len(scenario.events))}
    for number, utterance in enumerate(talk):
        timeline.append(utterance)
        timeline += [EventMark(event) for event, place in places.items() if place == number]
    return Dialogue(scenario.id, "what they talk about", tuple(timeline))


@pytest.mark.parametrize("tells", [False, True])
def test_words_before_the_first_sound_may_not_tell(
    scenarios: tuple[Scenario, ...], tells: bool
) -> None:
    scenes = [(s, spoken(s, tells=tells)) for s in scenarios if len(s.events) == 1]
    found = audit(scenes, only=("words", "turns"))
    leaking = {group.group for group in found.leaks}
    assert leaking == ({"words"} if tells else set())


def test_words_after_the_sound_are_conduct_and_not_used(scenarios: tuple[Scenario, ...]) -> None:
    def reacting(scenario: Scenario) -> Dialogue:
        dialogue = spoken(scenario, tells=False)
        last = Utterance("B", f"A clear {scenario.events[0].reaction} reaction.")
        return replace(dialogue, timeline=(*dialogue.timeline[:-1], last))

    scenes = [(s, reacting(s)) for s in scenarios if len(s.events) == 1]
    assert audit(scenes, only=("words",)).ok


def test_any_features_can_be_audited() -> None:
    draw = stream(2, "features")
    reactions = draw.integers(0, 4, 800)
    templates = np.repeat(np.arange(80), 10)
    noise = [{"level": float(x)} for x in draw.normal(size=800)]
    telling = [
        {"level": float(r + x)} for r, x in zip(reactions, draw.normal(size=800), strict=True)
    ]
    assert not audit_features("level", noise, reactions, templates).leaks
    assert audit_features("level", telling, reactions, templates).leaks
    assert not audit_features("level", telling, reactions, templates, floor=None).leaks


def test_the_same_corpus_gives_the_same_figures(scenarios: tuple[Scenario, ...]) -> None:
    some = without_words(scenarios[:100])
    assert audit(some, only=("sound",), seed=4) == audit(some, only=("sound",), seed=4)


def test_nothing_to_audit_is_refused(scenarios: tuple[Scenario, ...]) -> None:
    with pytest.raises(UsageError, match="no group 'colour'; wanted sound, location"):
        audit(without_words(scenarios), only=("colour",))
    with pytest.raises(DataError, match="no events"):
        audit([(scenario, None) for scenario in scenarios if not scenario.events])
    one = [scenario for scenario in scenarios if scenario.template == scenarios[0].template]
    with pytest.raises(DataError, match="one template; wanted at least two"):
        audit(without_words(tuple(one)))
    assert len(cases_of(without_words(scenarios))) == sum(len(s.events) for s in scenarios)
