"""``replay/FILE``: ledgers that the runner really wrote, and tables."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from earwitness.errors import DataError, ModelError, UsageError
from earwitness.models.protocols import Reply, Request, Usage
from earwitness.models.registry import open_model
from earwitness.runs.ledger import Ledger
from tests.models.conftest import PROMPT, ask, open_and_ask

ONE, TWO = Request("clip-1", PROMPT), Request("clip-2", PROMPT)


def ledger(path: Path, *replies: tuple[str, str, Reply]) -> Path:
    with Ledger(path) as stored:
        for key, item, reply in replies:
            stored.started(key, item=item, attempt=1)
            stored.attempt_failed(
                key, ModelError("x", kind="server", retryable=True), item=item, attempt=1
            )
            stored.reply(key, reply, item=item, attempts=2, cost_usd=0.1)
        stored.failed(
            "k9", ModelError("x", kind="server", retryable=True), item="clip-9", attempts=1
        )
    return path


def test_a_ledger_answers_again(tmp_path: Path) -> None:
    first = Reply(
        text="anger", finish="length", finish_raw="max", usage=Usage(3, 4, 5.0, 0.1), latency_s=1.5,
        provider_id="p", provider_model="m", raw={"a": [1]},
    )  # fmt: skip
    second = Reply(scores={"joy": 0.5})
    path = ledger(tmp_path / "ledger.jsonl", ("k1", "clip-1", first), ("k2", "clip-2", second))
    unpaid = replace(first, usage=Usage(3, 4, 5.0, None))
    assert open_and_ask(f"replay/{path}", ONE) == unpaid
    assert open_and_ask(f"replay/{tmp_path}", TWO).scores == {"joy": 0.5}
    with pytest.raises(ModelError, match="no answer is stored for item clip-9") as caught:
        open_and_ask(f"replay/{path}", Request("clip-9", PROMPT))
    assert (caught.value.kind, caught.value.retryable) == ("missing", False)


def test_the_same_key_goes_before_the_item(tmp_path: Path) -> None:
    path = ledger(
        tmp_path / "l.jsonl",
        ("k1", "clip-1", Reply(text="anger")),
        ("k2", "clip-1", Reply(text="fear")),
    )
    model = open_model(f"replay/{path}")
    exact = replace(ONE, idempotency_key="k2")
    assert asyncio.run(model.ask(exact)).text == "fear"
    model.preflight([exact])  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="several answers that differ for item clip-1"):
        model.preflight([ONE])  # type: ignore[attr-defined]
    with pytest.raises(ModelError, match="no answer is stored"):
        asyncio.run(model.ask(ONE))


def test_the_same_answer_twice_is_clear(tmp_path: Path) -> None:
    path = ledger(
        tmp_path / "l.jsonl",
        ("k1", "clip-1", Reply(text="fear")),
        ("k2", "clip-1", Reply(text="fear")),
    )
    assert open_and_ask(f"replay/{path}", ONE).text == "fear"


def test_a_torn_ledger(tmp_path: Path) -> None:
    path = ledger(tmp_path / "l.jsonl", ("k1", "clip-1", Reply(text="fear")))
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"kind": "reply", "key": "k')
    assert open_and_ask(f"replay/{path}", ONE).text == "fear"
    path.write_bytes(b"{broken\n" + whole)
    with pytest.raises(DataError, match="line 1: is no entry of a ledger"):
        open_model(f"replay/{path}")


def table(tmp_path: Path, text: str, name: str = "t.csv") -> str:
    (tmp_path / name).write_text(text, "utf-8")
    return f"replay/{tmp_path / name}"


def test_a_table_of_words(tmp_path: Path) -> None:
    name = table(
        tmp_path, 'clip_id,Reply,finish\nclip-1,"I hear, plainly,\nfear",\nclip-2,,length\n'
    )
    assert open_and_ask(name, ONE) == Reply(text="I hear, plainly,\nfear")
    assert open_and_ask(name, TWO, finish_column="finish") == Reply(text="", finish="length")


def test_a_table_of_scores_and_of_several_models(tmp_path: Path) -> None:
    rows = "\ufefffile,model,joy,calm\naudio/clip-1.wav,a,0.5,\naudio/clip-1.wav,b,1,0\nclip-2.wav,a,,\n"
    name = table(tmp_path, rows)
    options = {"score_columns": "joy,calm", "where": '{"model": "b"}'}
    assert open_and_ask(name, ONE, **options).scores == {"joy": 1.0, "calm": 0.0}
    both = open_model(name, {"score_columns": "joy,calm"})
    with pytest.raises(UsageError, match="several answers that differ"):
        both.preflight([ONE])  # type: ignore[attr-defined]
    with pytest.raises(ModelError, match="no answer is stored for item clip-2"):
        ask(open_model(name, {"score_columns": "joy"}), TWO)


def test_tabs(tmp_path: Path) -> None:
    assert open_and_ask(table(tmp_path, "id\tlabel\nclip-1\tfear\n", "t.tsv"), ONE).text == "fear"


def test_a_file_of_other_items_is_refused_before_the_run(tmp_path: Path) -> None:
    model = open_model(table(tmp_path, "id,label\nx-1,fear\n"))
    with pytest.raises(
        UsageError, match=r"answers none of the 2 items \(it has x-1; asked: clip-1\)"
    ):
        model.preflight([ONE, TWO])  # type: ignore[attr-defined]


def test_settings_are_of_the_content(tmp_path: Path) -> None:
    first = open_model(table(tmp_path, "id,label\nclip-1,fear\n"))
    moved = open_model(table(tmp_path, "id,label\nclip-1,fear\n", "other.csv"))
    other = open_model(table(tmp_path, "id,label\nclip-1,anger\n"))
    assert first.settings == moved.settings != other.settings
    json.dumps(dict(first.settings))


@pytest.mark.parametrize(
    ("text", "options", "error", "words"),
    [
        ("a,b\n1,2\n", {}, UsageError, "has none of the columns item, item_id"),
        ("id,b\n1,2\n", {}, UsageError, "has none of the columns text, reply.*It has id, b"),
        ("", {}, UsageError, "It has no columns"),
        ("id,text\n1,2\n", {"id_column": "x"}, UsageError, "there is no column 'x'; wanted one of id, text"),
        ("id,text\n1,2\n", {"where": '{"model": "a"}'}, UsageError, "there is no column 'model'"),
        ("id,text\n,2\n", {}, DataError, "line 2: has no id in column 'id'"),
        ("id,s\n1,x\n", {"score_columns": "s"}, DataError, "line 2: has 'x' in column 's'; wanted a number"),
        ("id,s\n1,nan\n", {"score_columns": "s"}, DataError, "a finite number"),
        ("id,text,f\n1,x,done\n", {"finish_column": "f"}, DataError, "has the finish 'done'; wanted one of stop"),
        ('id,text\n1,"x\n', {}, DataError, "is no CSV"),
    ],
)  # fmt: skip
def test_tables_that_are_none(
    tmp_path: Path, text: str, options: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        open_model(table(tmp_path, text), options)


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        open_model(f"replay/{tmp_path}/nothing.jsonl")
    (tmp_path / "b.csv").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="is no UTF-8 text"):
        open_model(f"replay/{tmp_path}/b.csv")
    path = ledger(tmp_path / "l.jsonl")
    with pytest.raises(UsageError, match="option id_column, which is for tables"):
        open_model(f"replay/{path}", {"id_column": "id"})
