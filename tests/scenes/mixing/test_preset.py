"""Presets as data, and what is drawn from them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from earwitness.scenes.bank import load_bank
from earwitness.scenes.bank_records import REACTIONS, DistanceProfile, Reaction
from earwitness.scenes.mixing.acoustics import choose_room, rooms_of
from earwitness.scenes.mixing.draws import (
    distance_gain_db,
    distance_lowpass_hz,
    distance_wet,
    draw_event,
    draw_scene,
    lowest,
)
from earwitness.scenes.mixing.preset import (
    Distance,
    MixPresetError,
    load_mix_preset,
    mix_preset_names,
)
from earwitness.scenes.scenario import SPLITS, PlannedEvent

PROFILE = DistanceProfile(id="open", near_m=2, far_m=25, reference_m=6)


def event(reaction: Reaction, number: int = 1) -> PlannedEvent:
    return PlannedEvent(f"e{number}", "dog_bark", reaction, None, "early")


def test_the_presets_that_ship() -> None:
    assert mix_preset_names() == ("balanced", "paper")
    balanced, paper = load_mix_preset("balanced"), load_mix_preset("paper")
    assert balanced.same_for_all
    assert not paper.same_for_all
    assert paper.rule_for("behavioral").duck_db == (4.0, 4.0)
    assert paper.rule_for("ambient").longest_s is None
    assert (paper.gap_s, paper.voice.lufs, paper.events.lufs) == ((0.5, 0.85), -20.0, -20.0)
    assert (paper.ambience.lufs, paper.master.lufs, paper.master.ceiling_dbtp) == (-32.0, -23.0, -1)
    assert balanced.hash != paper.hash


def test_balanced_draws_the_same_whatever_the_reaction() -> None:
    preset = load_mix_preset("balanced")
    for n in range(50):
        drawn = {draw_event(7, f"s{n}", event(reaction), PROFILE, preset) for reaction in REACTIONS}
        assert len(drawn) == 1


def test_draws_follow_the_preset() -> None:
    preset = load_mix_preset("balanced")
    draws = [draw_event(7, f"s{n}", event("verbal"), PROFILE, preset) for n in range(2000)]
    anchors = Counter(draw.anchor for draw in draws)
    assert 0.66 < anchors["gap"] / 2000 < 0.74
    assert 0.31 < sum(draw.set_back for draw in draws) / 2000 < 0.39
    assert all(2.0 <= (draw.longest_s or 0) <= 4.5 for draw in draws)
    assert all(0 <= draw.end_gap_s <= 0.3 and 0 <= draw.duck_db <= 4 for draw in draws)
    assert all(PROFILE.near_m <= draw.distance_m <= PROFILE.far_m for draw in draws)


def test_every_draw_has_a_stream_of_its_own() -> None:
    preset = load_mix_preset("balanced")
    one = draw_event(7, "s1", event("verbal"), PROFILE, preset)
    assert draw_event(7, "s1", event("verbal"), PROFILE, preset) == one
    assert draw_event(8, "s1", event("verbal"), PROFILE, preset) != one
    assert draw_event(7, "s2", event("verbal"), PROFILE, preset) != one
    assert draw_event(7, "s1", event("verbal", 2), PROFILE, preset) != one
    # Another sound in its place is elsewhere, and alike in all else.
    other = draw_event(7, "s1", event("verbal"), PROFILE, preset, " of bell")
    assert other.distance_m != one.distance_m
    assert (other.anchor, other.place, other.duck_db) == (one.anchor, one.place, one.duck_db)
    # A scene with more turns begins with the same gaps.
    assert draw_scene(7, "s1", 9, 4, preset).gaps_s[:5] == draw_scene(7, "s1", 4, 4, preset).gaps_s


def test_another_take_changes_the_choice_only_where_it_wins() -> None:
    takes = {f"sounds/dog/t{k:02d}": k for k in range(5)}
    more = {**takes, "sounds/dog/new": 99}
    changed = 0
    for n in range(600):
        before, after = lowest(7, (f"s{n}", "e1", "take"), takes), lowest(7, (f"s{n}", "e1", "take"), more)  # fmt: skip
        if before != after:
            assert after == 99
            changed += 1
    assert 60 < changed < 140  # one in six
    counts = Counter(lowest(7, (f"s{n}", "e1", "take"), takes) for n in range(1000))
    assert all(150 < count < 250 for count in counts.values())


def test_distance_is_level_room_and_dullness() -> None:
    rule = Distance()
    assert distance_gain_db(6, PROFILE, rule) == 0
    assert distance_gain_db(12, PROFILE, rule) == pytest.approx(-6.02, abs=0.01)
    assert distance_gain_db(1000, PROFILE, rule) == -9
    assert distance_gain_db(0.1, PROFILE, rule) == 4
    assert distance_wet(2.0, 0.06, rule) == pytest.approx(0.10)
    assert distance_wet(1000.0, 0.06, rule) == 0.25
    assert distance_wet(5.0, 0.0, rule) == 0
    assert distance_lowpass_hz(2.0, rule) is None
    assert distance_lowpass_hz(4.0, rule) == pytest.approx(11_876, abs=1)
    assert distance_lowpass_hz(500.0, rule) == 3500


def test_no_room_serves_two_splits() -> None:
    for location in load_bank().locations:
        numbers = [set(rooms_of(location, split)) for split in SPLITS]
        assert sum(len(each) for each in numbers) == len(set().union(*numbers))
        assert all(len(each) >= 2 for each in numbers)
        keys = {choose_room(location, "test", draw, 7, 44_100).key for draw in range(50)}
        assert len(keys) == len(rooms_of(location, "test"))


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("id: x\nversion: '1'\ngap_s: [0.1, 0.8]\nplacing: {any: {anchors: {gap: 1}}}", "clear_window_s"),
        ("id: x\nversion: '1'\ngap_s: [0.5, 0.8]\nplacing: {pivot: {anchors: {gap: 1}}}", "for any, or for each"),
        ("id: x\nversion: '1'\ngap_s: [0.5, 0.8]\nplacing: {any: {anchors: {middle: 1}}}", "placing.any.anchors"),
        ("id: x\nversion: '1'\ngap_s: [0.5, 0.8]\nplacing: {any: {anchors: {gap: 1}, duck_db: [3, 1]}}", "duck_db as"),
        ("id: x\nversion: '1'\nloud: 3\ngap_s: [0.5, 0.8]\nplacing: {any: {anchors: {gap: 1}}}", "loud"),
        ("[1", "not YAML"),
    ],
)  # fmt: skip
def test_what_is_no_preset_is_refused_by_key(tmp_path: Path, text: str, match: str) -> None:
    (tmp_path / "p.yaml").write_text(text)
    with pytest.raises(MixPresetError, match=match):
        load_mix_preset(str(tmp_path / "p.yaml"))


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(MixPresetError, match="no preset 'loud'; wanted balanced, paper or a YAML"):
        load_mix_preset("loud")
