"""Shards on several machines, and one run made of them again, with every check."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from earwitness.errors import DataError, UsageError
from earwitness.models.protocols import Limits, Reply
from earwitness.runs.folder import RunFolder
from earwitness.runs.items import Question
from earwitness.runs.ledger import Ledger
from earwitness.runs.runner import RunnerSettings
from earwitness.runs.shards import Shard, merge_runs, parse_shard
from earwitness.tasks.running import PlannedRun, carry_out, prepared
from tests.runs.scripted import ScriptedModel, failure, make_audio, make_items

FAST = RunnerSettings(first_wait_s=0.0, max_retries=0)


def planned(
    out: Path,
    count: int = 11,
    *,
    seconds: float | None = None,
    model: ScriptedModel | None = None,
    folder_of_set: str = "set",
) -> PlannedRun:
    audio = None
    if seconds is not None:
        out.mkdir(parents=True, exist_ok=True)
        audio = make_audio(out.parent, seconds=seconds)
    questions = tuple(Question(item, "anger", f"s{n % 3}") for n, item in enumerate(make_items(count, audio)))  # fmt: skip
    card = {
        "name": "m", "task": "t", "model": "scripted/model", "settings": {}, "n_items": count, "finished": None,
        "started": "2026-11-29T10:00:00+00:00", "clips": {"sha256": "x", "folder": folder_of_set},
    }  # fmt: skip
    return PlannedRun(out / "t--m--p", "m", card, questions, model or ScriptedModel())


def carried(run: PlannedRun) -> PlannedRun:
    asyncio.run(carry_out(run, FAST))
    return run


def sharded(base: Path, of: int, **options: object) -> list[Path]:
    """Shards as so many machines would make them."""
    outs = [base / f"machine-{index}" for index in range(1, of + 1)]
    for index, out in enumerate(outs, start=1):
        run = planned(out, folder_of_set=f"/data{index}/set", **options)  # type: ignore[arg-type]
        carried(prepared(run, shard=Shard(index, of)))
    return outs


def test_shards_make_up_the_very_run_that_one_machine_makes(tmp_path: Path) -> None:
    whole = carried(planned(tmp_path / "one"))
    outs = sharded(tmp_path, 3)
    folders = [folder.name for out in outs for folder in out.iterdir() if folder.is_dir()]
    assert folders == [f"t--m--p--shard-{n}-of-3" for n in (1, 2, 3)]
    [merged] = merge_runs(outs, tmp_path / "joined")
    assert (merged.parts, merged.items, merged.replies, merged.failed) == (3, 11, 11, 0)
    joined = RunFolder(merged.folder)
    assert merged.folder.name == "t--m--p"
    assert (merged.folder / "items.jsonl").read_bytes() == (whole.folder / "items.jsonl").read_bytes()  # fmt: skip
    card = joined.card()
    assert card["n_items"] == 11
    assert card["finished"] is not None
    assert "shard" not in card
    assert card["merged_from"] == folders
    assert joined.counts() == RunFolder(whole.folder).counts()
    # Nothing is left to ask.
    again = replace(planned(tmp_path / "joined"), folder=merged.folder)
    assert asyncio.run(carry_out(again, FAST)).already_stored == 11


def test_chunks_of_one_question_stay_together(tmp_path: Path) -> None:
    limited = {"seconds": 5.0, "model": ScriptedModel(limits=Limits(max_seconds=2.0))}
    whole = carried(prepared(planned(tmp_path / "one", **limited), long_audio="chunk"))  # type: ignore[arg-type]
    for index in (1, 2):
        run = planned(tmp_path / f"machine-{index}", **limited)  # type: ignore[arg-type]
        carried(prepared(run, shard=Shard(index, 2), long_audio="chunk"))
    [merged] = merge_runs([tmp_path / "machine-1", tmp_path / "machine-2"], tmp_path / "joined")
    ids = [[q.id for q in RunFolder(f).questions()] for f in (whole.folder, merged.folder)]
    assert ids[0] == ids[1]
    assert len(ids[0]) == 33
    card = RunFolder(merged.folder).card()
    assert card["long_audio"] == RunFolder(whole.folder).card()["long_audio"]
    assert card["n_items"] == 11


def test_a_missing_or_foreign_shard_is_refused(tmp_path: Path) -> None:
    outs = sharded(tmp_path, 3)
    with pytest.raises(DataError, match="shard 2 is missing; wanted each of 3 once"):
        merge_runs([outs[0], outs[2]], tmp_path / "joined")
    other = prepared(planned(tmp_path / "other"), shard=Shard(2, 4))
    carried(other)
    with pytest.raises(DataError, match="was divided in another way"):
        merge_runs([outs[0], other.folder], tmp_path / "joined")
    longer = prepared(planned(tmp_path / "longer", 14), shard=Shard(2, 3))
    carried(longer)
    with pytest.raises(DataError, match="parts of different item lists"):
        merge_runs([outs[0], longer.folder, outs[2]], tmp_path / "joined")
    assert not (tmp_path / "joined").exists()


def test_parts_with_other_cards_are_refused_by_the_field_that_differs(tmp_path: Path) -> None:
    one = carried(planned(tmp_path / "a"))
    run = planned(tmp_path / "b")
    other = carried(replace(run, card={**run.card, "settings": {"temperature": 1}}))
    with pytest.raises(DataError, match=r"differs from .* in settings; wanted parts of one run"):
        merge_runs([one.folder, other.folder], tmp_path / "joined")


def test_an_item_asked_in_two_ways_is_refused(tmp_path: Path) -> None:
    one = carried(planned(tmp_path / "a"))
    run = planned(tmp_path / "b")
    changed = tuple(
        replace(q, item=replace(q.item, task_version="2")) if n == 3 else q
        for n, q in enumerate(run.questions)
    )
    other = carried(replace(run, questions=changed))
    with pytest.raises(
        DataError, match=r"item clip-003 \(audio\): differs between the parts in key"
    ):
        merge_runs([one.folder, other.folder], tmp_path / "joined")


def test_runs_that_overlap_are_joined_and_the_first_reply_stands(tmp_path: Path) -> None:
    one = carried(planned(tmp_path / "a", 6))
    steps = {f"clip-{n:03d}": [Reply(text="fear")] for n in range(9)}
    other = carried(planned(tmp_path / "b", 9, model=ScriptedModel(steps)))
    [merged] = merge_runs([one.folder, other.folder], tmp_path / "joined")
    assert (merged.items, merged.replies, merged.duplicates) == (9, 9, 6)
    texts = [answer.reply.text for answer in RunFolder(merged.folder).answers() if answer.reply]
    assert texts == ["anger"] * 6 + ["fear"] * 3


def test_what_failed_in_a_part_is_open_in_the_whole(tmp_path: Path) -> None:
    model = ScriptedModel({"clip-002": [failure(retryable=False)]})
    outs = sharded(tmp_path, 2, model=model)
    [merged] = merge_runs(outs, tmp_path / "joined")
    assert (merged.items, merged.replies, merged.failed) == (11, 10, 1)
    assert RunFolder(merged.folder).card()["finished"] is None


def test_a_torn_ledger_of_a_part_gives_its_whole_lines(tmp_path: Path) -> None:
    outs = sharded(tmp_path, 2)
    [folder] = [path for path in outs[1].iterdir() if path.is_dir()]
    ledger = folder / "ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes()[:-9])
    [merged] = merge_runs(outs, tmp_path / "joined")
    assert merged.replies == 10
    with Ledger(merged.folder / "ledger.jsonl") as book:
        assert book.repaired_bytes == 0


def test_a_run_is_not_written_over(tmp_path: Path) -> None:
    outs = sharded(tmp_path, 2)
    merge_runs(outs, tmp_path / "joined")
    with pytest.raises(UsageError, match="is already a run"):
        merge_runs(outs, tmp_path / "joined")


@pytest.mark.parametrize("text", ["0/4", "5/4", "1", "a/b", "1/0", "-1/2", ""])
def test_a_shard_is_one_of_so_many(text: str) -> None:
    with pytest.raises(UsageError, match="I/N, such as 1/4"):
        parse_shard(text)
    assert parse_shard(" 2/4 ") == Shard(2, 4)


def test_more_shards_than_items_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has none of the 3 items"):
        prepared(planned(tmp_path, 3), shard=Shard(4, 4))


def test_the_command_prints_what_it_joined(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from earwitness.cli import build_app

    outs = sharded(tmp_path, 2)
    words = ["run", "merge", *map(str, outs), "--out", str(tmp_path / "joined")]
    done = CliRunner().invoke(build_app(), [*words, "--json"])
    assert done.exit_code == 0, done.output
    [row] = json.loads(done.stdout)["runs"]
    assert (row["items"], row["replies"], row["duplicates"]) == (11, 11, 0)
