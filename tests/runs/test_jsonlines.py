"""Append-only JSON lines: what is written stays, torn ends are cut, damage is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from earwitness.errors import DataError, UsageError
from earwitness.runs.jsonlines import JsonLines, read_lines


def test_lines_come_back_by_offset_and_are_noted(tmp_path: Path) -> None:
    seen: list[str] = []
    path = tmp_path / "log.jsonl"
    with JsonLines(path, note=lambda line, _: seen.append(line["name"])) as log:
        offsets = [log.append({"name": name}) for name in ("one", "zwei", "ü")]
        assert [log.read(offset)["name"] for offset in offsets] == ["one", "zwei", "ü"]
    with JsonLines(path, note=lambda line, _: seen.append(line["name"])):
        pass
    assert seen == ["one", "zwei", "ü"] * 2


def test_a_torn_last_line_is_cut_and_damage_before_it_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"a":1}\n{"a":2}\n{"a"')
    with JsonLines(path) as log:
        assert log.repaired_bytes == 4
        log.append({"a": 3})
    assert path.read_bytes() == b'{"a":1}\n{"a":2}\n{"a":3}\n'
    path.write_bytes(b'{"a":1}\nxx\n{"a":2}\n')
    with pytest.raises(DataError, match=r"log\.jsonl:2: a line that is not a cat.*wanted one JSON"):
        JsonLines(path, entry="a cat")


def test_a_line_without_its_keys_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"b":1}\n{"a":1}\n')
    with pytest.raises(DataError, match="one JSON object with a"):
        JsonLines(path, keys=("a",))


def test_one_writer_at_a_time_and_readers_write_nothing(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with JsonLines(path) as log:
        log.append({"a": 1})
        with pytest.raises(UsageError, match="another process is writing to it"):
            JsonLines(path)
        with JsonLines(path, read_only=True) as reader, pytest.raises(UsageError, match="reading"):
            reader.append({"a": 2})


def test_reading_a_finished_file_names_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "done.jsonl"
    path.write_text('{"a":1}\n[1]\n')
    with pytest.raises(DataError, match=r"done\.jsonl:2: is no JSON object; wanted a dog"):
        list(read_lines(path, "a dog"))
    path.write_text('{"a":1}\n{"a"\n')
    with pytest.raises(DataError, match=r"done\.jsonl:2: is not JSON"):
        list(read_lines(path))
    with pytest.raises(DataError, match=r"gone\.jsonl: is missing"):
        list(read_lines(tmp_path / "gone.jsonl"))
