"""A balanced set out of a reviewed pool, by integer optimisation."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import combinations, product

import pytest

from earwitness.clips.corpus import EMOTIONS
from earwitness.clips.pool import PoolEntry
from earwitness.clips.selecting import (
    SelectionSettings,
    ShortageError,
    duration_thirds,
    select,
    third_of,
)
from earwitness.clips.selecting_record import report_of
from earwitness.errors import UsageError
from earwitness.stats.streams import stream
from tests.clips.collecting import assigned, simulated_pool


@pytest.fixture(scope="module")
def pool() -> tuple[PoolEntry, ...]:
    """68 speakers, 612 recordings, 563 of them accepted: the shape of the published pool."""
    entries = simulated_pool(assigned(68, 100), turned_down=49)
    assert sum(e.accepted for e in entries) == 563
    return entries


def test_280_of_563_have_every_speaker_and_are_even(pool) -> None:
    settings = SelectionSettings()
    found = select(pool, settings)
    inside = [e for e in pool if e.id in set(found.chosen)]
    assert len(inside) == 280
    assert Counter(e.emotion for e in inside) == dict.fromkeys(EMOTIONS, 40)
    assert len({e.speaker for e in inside}) == 68
    assert all(goal.proven for goal in found.goals)
    assert [goal.value for goal in found.goals[:-1]] == [68, 0, 0, 0, 0]
    cuts = duration_thirds([e for e in pool if e.accepted])
    for label in EMOTIONS:
        mine = [e for e in inside if e.emotion == label]
        assert len({e.speaker for e in mine}) == 40
        assert len({e.script_id for e in mine}) == 40
        assert Counter(e.sex for e in mine) == {"female": 20, "male": 20}
        assert max(Counter(third_of(e.seconds, cuts) for e in mine).values()) <= 14
    assert max(Counter(e.speaker for e in inside).values()) <= 5
    report = report_of(pool, found, settings)
    out = {reason: sum(row.values()) for reason, row in report["left_out"].items()}
    assert out == {"poor_audio": 49, "label_full": 283}
    assert 280 + sum(out.values()) == 612
    assert report["accepted"] == 563


def test_the_same_pool_gives_the_same_set_in_any_order(pool) -> None:
    first = select(pool, SelectionSettings(per_label=4, seed=4))
    mixed = list(pool)
    random.Random(1).shuffle(mixed)
    again = select(mixed, SelectionSettings(per_label=4, seed=4))
    assert first == again
    assert select(pool, SelectionSettings(per_label=4, seed=5)).chosen != first.chosen


def tiny(number: int, size: int = 9) -> list[PoolEntry]:
    """A small crooked pool with two labels."""
    rng = random.Random(number)
    return [
        PoolEntry(
            f"r{n}", "", f"{n:064x}", "", rng.choice("xxyz"), rng.choice("pqq"), "t",
            ("anger", "fear")[n % 2], 18 + 19 * rng.random(), rng.choice(("female", "male", "male")),
            "en", "1", "", 1, "accepted",
        )
        for n in range(size)
    ]  # fmt: skip


@pytest.mark.parametrize("number", range(8))
def test_no_other_choice_is_better(number: int) -> None:
    """Against every choice there is, by the goals as the documentation states them."""
    entries = tiny(number)
    each, labels = 2, ("anger", "fear")
    settings = SelectionSettings(per_label=each, labels=labels, seed=number)
    kinds = {
        "speaker": len({e.speaker for e in entries}),
        "script_id": len({e.script_id for e in entries}),
        "sex": len({e.sex for e in entries}),
    }
    cuts = duration_thirds(entries)

    def beyond(counts: Counter, total: int, of: int) -> int:
        return sum(max(0, n - -(-total // of)) for n in counts.values())

    def worth(choice) -> tuple[float, ...]:
        goals: list[float] = [-len({e.speaker for e in choice})]
        for name in ("speaker", "sex", "script_id"):
            cost = beyond(Counter((getattr(e, name), e.emotion) for e in choice), each, kinds[name])
            if name != "sex":
                cost += beyond(Counter(getattr(e, name) for e in choice), each * 2, kinds[name])
            goals.append(cost)
        thirds = Counter((third_of(e.seconds, cuts), e.emotion) for e in choice)
        goals.append(beyond(thirds, each, 3))
        goals.append(sum(float(stream(number, "select", e.id).random()) for e in choice))
        return tuple(goals)

    every = [
        (*a, *b)
        for a, b in product(
            *(combinations([e for e in entries if e.emotion == label], each) for label in labels)
        )
    ]
    best = min(every, key=worth)
    found = select(entries, settings)
    assert found.chosen == tuple(sorted(e.id for e in best))
    assert [abs(value) for value in worth(best)] == pytest.approx([g.value for g in found.goals])


def test_a_pool_that_is_short_is_refused_with_every_shortage(pool) -> None:
    few = [
        replace(e, status="unreviewed") if e.emotion in ("fear", "disgust") and n % 2 else e
        for n, e in enumerate(pool)
    ]
    have = Counter(e.emotion for e in few if e.accepted)
    with pytest.raises(ShortageError) as caught:
        select(few, SelectionSettings(per_label=60))
    short = {label: n for label, n in caught.value.shortage.items() if n}
    assert short == {label: 60 - have[label] for label in ("disgust", "fear")}
    assert f"short of: disgust {short['disgust']}, fear {short['fear']}" in str(caught.value)
    assert "are not reviewed yet" in str(caught.value)
    assert f"--per-label {min(have.values())}" in str(caught.value)


def test_limits_that_leave_no_solution_say_by_how_much() -> None:
    entries = [replace(e, speaker="one" if e.emotion == "anger" else f"s{n}") for n, e in enumerate(tiny(1, 12))]  # fmt: skip
    settings = SelectionSettings(per_label=3, labels=("anger", "fear"), max_per_speaker=2)
    with pytest.raises(ShortageError, match="has at most 2 of a speaker") as caught:
        select(entries, settings)
    assert caught.value.shortage == {"anger": 1, "fear": 0}
    with pytest.raises(ShortageError, match="0 of 2 accepted a label"):
        select(entries, SelectionSettings(per_label=2, labels=("anger",), seconds=(90.0, None)))
    with pytest.raises(UsageError, match="--per-label"):
        select(entries, SelectionSettings(per_label=0))


def test_limits_are_kept_and_reasons_say_so(pool) -> None:
    settings = SelectionSettings(
        per_label=20, max_per_speaker=3, seconds=(20.0, 35.0), labels=EMOTIONS[:6]
    )
    found = select(pool, settings)
    inside = [e for e in pool if e.id in set(found.chosen)]
    assert len(inside) == 120
    assert max(Counter(e.speaker for e in inside).values()) <= 3
    assert all(20 <= e.seconds <= 35 for e in inside)
    reasons = Counter(found.left_out.values())
    assert set(reasons) == {"duration", "label_full", "label_not_wanted", "poor_audio"}
    assert reasons["duration"] == sum(
        e.accepted and e.emotion != "surprise" and not 20 <= e.seconds <= 35 for e in pool
    )


def test_without_sexes_nothing_is_asked_of_them(pool) -> None:
    bare = [replace(e, sex="") for e in pool]
    found = select(bare, SelectionSettings(per_label=5))
    assert len(found.chosen) == 35
