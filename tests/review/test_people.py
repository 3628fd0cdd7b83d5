"""Items dealt out: evenly, the same each time, and without taking anybody's work away."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earwitness.errors import UsageError
from earwitness.review import people
from earwitness.review.people import BLOCK, deal
from earwitness.review.store import opened, rows
from tests.review.making import always, label_folder, record_folder, served


@settings(max_examples=40, deadline=None)
@given(
    items=st.integers(1, 60),
    number=st.integers(1, 8),
    per_item=st.integers(1, 5),
    seed=st.integers(0, 3),
)
def test_every_item_gets_its_people_and_loads_differ_by_one(
    items: int, number: int, per_item: int, seed: int
) -> None:
    keys = [f"i{n}" for n in range(items)]
    names = [f"p{n}" for n in range(number)]
    dealt = deal(keys, names, per_item, seed)
    holders = Counter(item for own in dealt.values() for item in own)
    assert holders == Counter(dict.fromkeys(keys, min(per_item, number)))
    loads = [len(own) for own in dealt.values()]
    assert max(loads) - min(loads) <= 1
    assert all(len(set(own)) == len(own) for own in dealt.values())
    assert deal(keys[::-1], names, per_item, seed) == dealt


def test_pairs_of_people_meet_about_equally_often() -> None:
    dealt = deal([f"i{n}" for n in range(300)], [f"p{n}" for n in range(6)], 3, 0)
    meets = [len(set(dealt[a]) & set(dealt[b])) for a, b in combinations(dealt, 2)]
    # 300 items x 3 pairs over 15 pairs of people: 60 each.
    assert min(meets) > 45
    assert max(meets) < 75


def test_lists_share_their_blocks_and_differ_within() -> None:
    dealt = deal([f"i{n}" for n in range(100)], ["a", "b", "c"], 3, 1)
    for start in range(0, 100, BLOCK):
        blocks = [own[start : start + BLOCK] for own in dealt.values()]
        assert set(blocks[0]) == set(blocks[1]) == set(blocks[2])
        assert blocks[0] != blocks[1]
    other = deal([f"i{n}" for n in range(100)], ["a", "b", "c"], 3, 2)
    assert other["a"] != dealt["a"]


def test_links_are_stored_as_hashes_only(tmp_path: Path) -> None:
    folder = label_folder(tmp_path)
    tokens = people.add_people(folder, 3)
    assert list(tokens) == ["ann-01", "ann-02", "ann-03"]
    assert len(set(tokens.values())) == 3
    assert all(len(token) >= 43 for token in tokens.values())
    stored = b"".join(path.read_bytes() for path in folder.glob("review.db*"))
    assert not any(token.encode() in stored for token in tokens.values())


def test_names_once_and_sensible(tmp_path: Path) -> None:
    folder = label_folder(tmp_path)
    assert list(people.add_people(folder, 0, ["Zoë", "bob"])) == ["Zoë", "bob"]
    with pytest.raises(UsageError, match=r"somebody named 'bob' already.*--renew bob"):
        people.add_people(folder, 0, ["bob"])
    with pytest.raises(UsageError, match="short printable names"):
        people.add_people(folder, 0, ["a\nb"])
    with pytest.raises(UsageError, match="nobody is named 'cem'; wanted one of Zoë, bob"):
        people.renew(folder, "cem")
    with pytest.raises(UsageError, match="--annotators 0"):
        people.add_people(folder, 0)
    assert list(people.add_people(folder, 1)) == ["ann-01"]


def test_accounts_decide_in_a_record_folder(tmp_path: Path) -> None:
    folder = record_folder(tmp_path)
    assert list(people.add_people(folder, 0)) == ["spk-01", "spk-02"]
    assert people.add_people(folder, 0) == {}
    with opened(folder) as db:
        table = rows(
            db,
            "SELECT p.name, i.owner FROM assignments a JOIN people p ON p.id=a.person JOIN items i ON i.id=a.item",
        )
    assert len(table) == 6
    assert all(name == owner for name, owner in table)
    with pytest.raises(UsageError, match="one link for each account"):
        people.add_people(folder, 2)


def test_work_goes_on_when_people_come_and_go(tmp_path: Path) -> None:
    folder = label_folder(tmp_path, 16, per_item=2)
    with opened(folder) as db:
        (items,) = rows(db, "SELECT count(*) FROM items")[0]
    with served(folder) as site:
        first = site.annotators(2)
        for visitor in first.values():
            for _ in range(3):
                assert visitor.answer_label(always("verbal"))
        # What is on a screen now must still be accepted after the list was dealt out anew.
        _, on_screen = first["ann-02"].page("/work/next")
        more = site.annotators(3)
        labels = {name.removeprefix("label."): "pivot" for name in on_screen.names}
        assert first["ann-02"].post(on_screen.action, labels=labels).status_code == 200
        with opened(folder) as db:
            loads = dict(
                rows(
                    db,
                    "SELECT p.name, count(*) FROM assignments a JOIN people p ON p.id=a.person GROUP BY p.name",
                )
            )
        assert sum(loads.values()) == 2 * items
        assert loads["ann-05"] >= 1
        people.revoke(folder, "ann-01")
        assert first["ann-01"].page("/work")[0].status_code == 401
        for visitor in [first["ann-02"], *more.values()]:
            while visitor.answer_label(always("verbal")):
                pass
    with opened(folder) as db:
        answered = rows(db, "SELECT count(*) FROM answers GROUP BY item")
        assert answered == [(2,)] * items
        # The one who left keeps what was answered, and nothing open.
        left = rows(
            db,
            "SELECT count(*) FROM assignments a JOIN people p ON p.id=a.person WHERE p.name='ann-01'",
        )
    assert left == [(3,)]


def test_a_renewed_link_ends_the_old_one_and_keeps_the_work(tmp_path: Path) -> None:
    folder = label_folder(tmp_path, per_item=1)
    with served(folder) as site:
        (visitor,) = site.annotators(1).values()
        visitor.answer_label(always("ambient"))
        again = site.visitor(people.renew(folder, "ann-01"))
        assert visitor.page("/work")[0].status_code == 401
        response, _ = again.page("/work")
        assert "1 of 6 are done" in response.text
