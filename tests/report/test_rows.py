from __future__ import annotations

import json

from earwitness.clips.corpus import EMOTIONS
from earwitness.report.boards import build
from earwitness.report.page import render_page
from earwitness.report.players import Players
from earwitness.report.rows import REPLY_LIMITS, pack, reply_limit, script_json
from earwitness.runs.outcomes import Outcome
from earwitness.tasks.records import Decision, System
from tests.report.making import make_system
from tests.report.reading import read


def test_script_json_reads_back_and_closes_nothing() -> None:
    value = {"a": "</script><!-- & \u2028\u2029"}
    text = script_json(value)
    assert json.loads(text) == value
    assert not set("<>&\u2028\u2029") & set(text)


def test_equal_texts_are_stored_once() -> None:
    rows = pack(build([make_system("m", n_items=700)], EMOTIONS), Players())
    assert len(rows["texts"]) == 8


def test_long_replies_are_cut_to_the_budget_and_said_to_be() -> None:
    assert reply_limit(["x" * 5000] * 10, budget=20_000) == REPLY_LIMITS[0]
    assert reply_limit(["x" * 5000] * 10, budget=19_999) == REPLY_LIMITS[1]
    assert reply_limit(["x" * 5000] * 10, budget=1) == REPLY_LIMITS[-1]
    decisions = tuple(
        Decision(f"c{k}", label, Outcome("unmapped"), "s", reply=f"{k}" + "x" * 5000)
        for k, label in enumerate(EMOTIONS)
    )
    data = build([System("m", decisions)], EMOTIONS)
    page = read(render_page(data, Players()))
    assert page.rows["limit"] == 2000
    assert page.rows["cut"] == 7
    assert {len(text) for text in page.rows["texts"]} == {2001}
    assert "7 long texts are cut to 2,000 characters here" in page.text


def test_rows_stay_compact() -> None:
    systems = [make_system(f"m{k}", n_items=2000, n_speakers=50) for k in range(2)]
    rows = script_json(pack(build(systems, EMOTIONS), Players()))
    assert len(rows.encode()) < 40 * 4000
