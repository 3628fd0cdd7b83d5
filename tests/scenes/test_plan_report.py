"""The tables of a plan: they count right, find what is leaky, and the page holds them all."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from earwitness.scenes.bank import Bank, load_bank
from earwitness.scenes.plan import PlanRequest, load_preset, plan
from earwitness.scenes.plan_page import plan_page
from earwitness.scenes.plan_report import PlanReport, plan_report
from earwitness.scenes.scenario import Scenario


@pytest.fixture(scope="module")
def bank() -> Bank:
    return load_bank()


@pytest.fixture(scope="module")
def scenarios(bank: Bank) -> tuple[Scenario, ...]:
    return plan(bank, PlanRequest(200, 10, 4, load_preset("balanced")))


@pytest.fixture(scope="module")
def report(bank: Bank, scenarios: tuple[Scenario, ...]) -> PlanReport:
    return plan_report(scenarios, bank)


def test_every_table_counts_every_scene_or_event(report: PlanReport) -> None:
    assert (report.scenarios, report.templates) == (2000, 200)
    for table in report.joints:
        assert table.total == report.events
        assert table.columns == ("pivot", "verbal", "behavioral", "ambient")
    for name in ("events", "composition", "location", "roles", "genders", "category"):
        assert report.table(name).total == report.scenarios
        assert report.table(name).columns == ("train", "validation", "test")


def test_figures_are_those_of_the_plan(
    report: PlanReport, scenarios: tuple[Scenario, ...], bank: Bank
) -> None:
    table = report.table("reaction_by_band")
    for row, band in enumerate(table.rows):
        for column, reaction in enumerate(table.columns):
            assert table.counts[row][column] == sum(
                event.band == band and event.reaction == reaction
                for scenario in scenarios
                for event in scenario.events
            )
    park = report.table("sounds_per_location").rows.index("park")
    seen = [
        event.sound
        for s in scenarios
        if s.location == "park" and s.split == "train"
        for event in s.events
        if not event.rare
    ]
    uses = [seen.count(sound) for sound in set(seen)]
    assert report.table("sounds_per_location").counts[park][:3] == (
        len(set(seen)),
        min(uses),
        max(uses),
    )


def test_a_balanced_plan_gives_nothing_away(report: PlanReport) -> None:
    for table in report.joints:
        assert table.guess is not None
        assert table.chance is not None
        assert table.guess <= table.chance + 0.002, table.name


def test_a_leaky_plan_shows_where_it_leaks(bank: Bank, scenarios: tuple[Scenario, ...]) -> None:
    leaky = [
        replace(s, events=tuple(replace(e, rare=e.reaction == "pivot") for e in s.events))
        for s in scenarios
    ]
    table = plan_report(leaky, bank).table("reaction_by_rarity")
    assert table.guess == pytest.approx(0.5)
    assert table.chance is not None
    assert table.chance < 0.27


def test_a_plan_without_events_has_tables_too(bank: Bank, scenarios: tuple[Scenario, ...]) -> None:
    quiet = [scenario for scenario in scenarios if not scenario.events]
    report = plan_report(quiet, bank)
    assert report.events == 0
    assert report.table("reaction_by_band").guess is None
    assert "0 events" in plan_page(report, "Quiet")


def test_the_page_holds_every_table_and_needs_nothing_from_elsewhere(report: PlanReport) -> None:
    page = plan_page(report, "Plan of <corpus>")
    assert "Plan of &lt;corpus&gt;" in page
    for table in report.tables:
        assert f'id="{table.name}"' in page
    assert "<script" not in page
    assert not re.findall(r'(?:src|href)="', page)
    assert page.count("<svg") >= 6
    assert page == plan_page(report, "Plan of <corpus>")
