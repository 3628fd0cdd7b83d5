"""The plan: exact quotas, independence by construction, growth without change."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from earwitness.errors import DataError, UsageError
from earwitness.scenes.bank import REACTIONS, Bank, load_bank
from earwitness.scenes.plan import (
    InfeasiblePlanError,
    PlanRequest,
    load_preset,
    plan,
    template_order,
)
from earwitness.scenes.scenario import Scenario, scenario_from_json, scenario_to_json, to_lines


@pytest.fixture(scope="module")
def bank() -> Bank:
    return load_bank()


def request(templates: int, preset: str = "balanced", **more: object) -> PlanRequest:
    values = {"per_template": 10, "seed": 42, **more}
    return PlanRequest(templates, preset=load_preset(preset), **values)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def balanced(bank: Bank) -> tuple[Scenario, ...]:
    return plan(bank, request(1000))


@pytest.fixture(scope="module")
def paper(bank: Bank) -> tuple[Scenario, ...]:
    return plan(bank, request(1000, "paper"))


def spread(counts: Counter[object]) -> int:
    return max(counts.values()) - min(counts.values())


def events(scenarios: tuple[Scenario, ...]) -> list[tuple[Scenario, object]]:
    return [(scenario, event) for scenario in scenarios for event in scenario.events]


@pytest.mark.parametrize("preset", ["balanced", "paper"])
def test_a_longer_plan_begins_with_the_shorter_one(bank: Bank, preset: str) -> None:
    short = plan(bank, request(37, preset))
    long = plan(bank, request(90, preset))
    assert long[: len(short)] == short


def test_the_same_request_gives_the_same_bytes_and_another_seed_others(bank: Bank) -> None:
    assert to_lines(plan(bank, request(20))) == to_lines(plan(bank, request(20)))
    assert plan(bank, request(20)) != plan(bank, request(20, seed=43))


def test_splits_are_by_template_eight_one_one_in_every_ten(
    bank: Bank, balanced: tuple[Scenario, ...]
) -> None:
    by_template = {scenario.template: scenario.split for scenario in balanced}
    assert all(by_template[scenario.template] == scenario.split for scenario in balanced)
    assert Counter(by_template.values()) == {"train": 800, "validation": 100, "test": 100}
    order = list(itertools.islice(template_order(bank, 42), 1000))
    for start in range(0, 1000, 10):
        block = Counter(split for _, _, split in order[start : start + 10])
        assert block == {"train": 8, "validation": 1, "test": 1}
    for theme in {theme for _, theme, _ in order}:
        seen = Counter(split for _, other, split in order if other == theme)
        assert seen == {"train": 8, "validation": 1, "test": 1}


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_balanced_marginals_are_exact_in_every_split(
    balanced: tuple[Scenario, ...], split: str
) -> None:
    scenes = [scenario for scenario in balanced if scenario.split == split]
    assert spread(Counter(len(scene.events) for scene in scenes)) <= 1
    assert spread(Counter(scene.location for scene in scenes)) <= 1
    assert spread(Counter(scene.roles for scene in scenes)) <= 1
    assert spread(Counter((scene.gender_a, scene.gender_b) for scene in scenes)) <= 1
    for reaction in ("pivot", "verbal", "behavioral"):
        registers = Counter(
            event.register
            for scene in scenes
            for event in scene.events
            if event.reaction == reaction
        )
        assert spread(registers) <= 1


@pytest.mark.parametrize("split", ["train", "test"])
def test_balanced_reactions_are_even_by_count_order_location_band_and_rarity(
    balanced: tuple[Scenario, ...], split: str
) -> None:
    scenes = [scenario for scenario in balanced if scenario.split == split]
    for count in (1, 2, 3):
        of_count = [scene for scene in scenes if len(scene.events) == count]
        pivots = sum(scene.count("pivot") for scene in of_count)
        assert pivots / len(of_count) == pytest.approx(count / 4, abs=0.01)
        for place in range(count):
            assert spread(
                Counter(scene.events[place].reaction for scene in of_count)
            ) <= 0.08 * len(of_count)
    for location in {scene.location for scene in scenes}:
        seen = Counter(
            event.reaction
            for scene in scenes
            if scene.location == location
            for event in scene.events
        )
        assert spread(seen) <= 6
    bands = Counter((event.band, event.reaction) for scene in scenes for event in scene.events)
    assert len(bands) == 12
    assert spread(bands) <= 4
    rare = Counter(event.reaction for scene in scenes for event in scene.events if event.rare)
    assert set(rare) == set(REACTIONS)
    assert spread(rare) <= 1


def test_balanced_sounds_are_used_evenly_with_every_reaction(
    bank: Bank, balanced: tuple[Scenario, ...]
) -> None:
    train = [scenario for scenario in balanced if scenario.split == "train"]
    for location in bank.locations:
        ordinary = [
            event
            for scene in train
            if scene.location == location.id
            for event in scene.events
            if not event.rare
        ]
        uses = Counter(event.sound for event in ordinary)
        assert set(uses) == set(bank.sounds_at(location.id))
        assert spread(uses) <= 2
    by_reaction = Counter(
        (event.sound, event.reaction) for scene in train for event in scene.events if not event.rare
    )
    # Pearson's statistic per degree of freedom: 1 for independent draws, below it for an even design.
    statistic = freedom = 0.0
    for sound in {sound for sound, _ in by_reaction}:
        seen = [by_reaction[sound, reaction] for reaction in REACTIONS]
        expected = sum(seen) / len(seen)
        statistic += sum((count - expected) ** 2 for count in seen) / expected
        freedom += len(seen) - 1
    assert statistic / freedom < 0.5


def test_no_sound_twice_in_a_scene_and_bands_in_order(balanced: tuple[Scenario, ...]) -> None:
    order = {"early": 0, "middle": 1, "late": 2}
    for scenario in balanced:
        sounds = [event.sound for event in scenario.events]
        assert len(set(sounds)) == len(sounds)
        bands = [order[event.band] for event in scenario.events]
        assert bands == sorted(set(bands))
        assert all(
            (event.register is None) == (event.reaction == "ambient") for event in scenario.events
        )


def test_the_paper_plan_has_the_papers_numbers(paper: tuple[Scenario, ...]) -> None:
    assert len(paper) == 10_000
    # Exact in every split at multiples of 30; 8,000 and 1,000 leave a remainder of at most one a cell.
    for split, cells in (("train", 8000 / 30), ("test", 1000 / 30)):
        seen = Counter(scenario.composition for scenario in paper if scenario.split == split)
        assert len(seen) == 30
        assert all(abs(count - cells) < 1 for count in seen.values())
    by_count = Counter(len(scenario.events) for scenario in paper)
    shares = [by_count[count] / 10_000 for count in range(4)]
    assert shares == pytest.approx([1 / 30, 4 / 30, 9 / 30, 16 / 30], abs=0.001)
    placed = Counter(event.reaction for scenario in paper for event in scenario.events)
    assert placed.total() / 10_000 == pytest.approx(70 / 30, abs=0.002)
    assert placed["pivot"] / placed.total() == pytest.approx(1 / 7, abs=0.001)
    for reaction in ("verbal", "behavioral", "ambient"):
        assert placed[reaction] / placed.total() == pytest.approx(2 / 7, abs=0.001)
    with_pivot = sum(scenario.count("pivot") for scenario in paper)
    assert with_pivot / 10_000 == pytest.approx(1 / 3, abs=0.001)
    rare = [event for scenario in paper for event in scenario.events if event.rare]
    assert len(rare) / 10_000 == pytest.approx(0.05, abs=0.0005)
    assert all(event.reaction == "pivot" for event in rare)
    pivots = Counter(
        event.band for scenario in paper for event in scenario.events if event.reaction == "pivot"
    )
    assert pivots["late"] == 0
    assert pivots["early"] / pivots.total() == pytest.approx(0.62, abs=0.02)


def test_a_library_limits_what_is_drawn(bank: Bank) -> None:
    takes = {
        split: {sound.id: 3 for sound in bank.sounds if sound.id != "dog_bark"}
        for split in ("train", "validation", "test")
    }
    drawn = {
        event.sound
        for scenario in plan(bank, request(50, takes=takes))
        for event in scenario.events
    }
    assert "dog_bark" not in drawn


def test_an_infeasible_plan_says_all_that_is_missing(bank: Bank) -> None:
    takes = {"train": {"dog_bark": 5}, "validation": {}, "test": {}}
    with pytest.raises(InfeasiblePlanError, match=r"drawable sounds in train, 5 needed") as caught:
        plan(bank, request(10, takes=takes))
    assert "Add takes to the library" in str(caught.value)
    assert str(caught.value).count("has no rare sound") >= 13


def test_a_cast_without_tags_gets_only_what_shows_in_words_and_pauses(bank: Bank) -> None:
    tagged = {register.id for register in bank.registers if register.tags}
    assert tagged
    used = {
        event.register
        for scenario in plan(bank, request(100, tags=frozenset()))
        for event in scenario.events
    }
    assert not used & tagged


def test_wrong_requests_are_refused(bank: Bank) -> None:
    with pytest.raises(UsageError, match="--templates and --per-template of 1 or more"):
        plan(bank, request(0))
    with pytest.raises(DataError, match=r"no preset 'nope'; wanted balanced, paper or a YAML file"):
        load_preset("nope")


def test_a_scenario_survives_its_json(balanced: tuple[Scenario, ...]) -> None:
    for scenario in balanced[:200]:
        assert scenario_from_json(scenario_to_json(scenario)) == scenario
