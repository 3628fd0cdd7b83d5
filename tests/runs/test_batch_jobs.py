"""The record of batch jobs: what a kill at any moment leaves of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from earwitness.errors import DataError
from earwitness.runs.batch_jobs import Asked, JobBook


def written(folder: Path) -> bytes:
    """A record of two jobs, the first of which is closed."""
    with JobBook(folder) as book:
        for name in ("one", "two"):
            book.begin(name, server="s")
            for number in range(2):
                book.ask(
                    name, Asked(f"{name}-{number}", f"i{number}", 1, 1.5, 0.25, {"format": "wav"})
                )
            book.sending(name, f"files/{name}", ["files/clip"])
            book.submitted(name, f"batches/{name}")
        book.close_job("one", "succeeded", replies=2)
    return (folder / "batches.jsonl").read_bytes()


def test_everything_is_read_back(tmp_path: Path) -> None:
    written(tmp_path)
    with JobBook(tmp_path) as book:
        [job] = book.open_jobs()
        assert (job.name, job.id, job.source, job.uploads) == (
            "two", "batches/two", "files/two", ("files/clip",),
        )  # fmt: skip
        assert job.asked["two-1"] == Asked("two-1", "i1", 1, 1.5, 0.25, {"format": "wav"})
        assert (book.holder("two-0"), book.holder("one-0")) == ("two", None)
        assert (book.counts.closed, book.counts.replies) == ({"succeeded": 1}, 2)


def test_cut_at_any_byte_it_opens_and_goes_on(tmp_path: Path) -> None:
    whole = written(tmp_path)
    ends = [at + 1 for at, byte in enumerate(whole) if byte == 10]
    path = tmp_path / "batches.jsonl"
    for cut in range(0, len(whole) + 1, 7):
        path.write_bytes(whole[:cut])
        with JobBook(tmp_path) as book:
            kept = sum(end <= cut or end == cut + 1 for end in ends)
            jobs = {job.name: job for job in book.open_jobs()}
            assert ("one" in jobs) == (1 <= kept < 11)
            assert ("two" in jobs) == (kept >= 6)
            if kept >= 10:
                assert jobs["two"].id == "batches/two"
            book.begin("three", server="s")
        with JobBook(tmp_path, read_only=True) as book:
            assert book.open_jobs()[-1].name == "three"


def test_damage_before_the_last_line_is_an_error(tmp_path: Path) -> None:
    whole = written(tmp_path)
    (tmp_path / "batches.jsonl").write_bytes(
        whole.replace(b'"kind":"sending"', b'"kind":"sendin', 1)
    )
    with pytest.raises(DataError, match=r"a line that is not a line about a batch job"):
        JobBook(tmp_path)


def test_a_line_that_lacks_what_its_kind_needs_is_damage(tmp_path: Path) -> None:
    whole = written(tmp_path)
    (tmp_path / "batches.jsonl").write_bytes(whole.replace(b'"id":"batches/one"', b'"id":7', 1))
    with pytest.raises(DataError):
        JobBook(tmp_path)


def test_nothing_is_made_where_no_job_is(tmp_path: Path) -> None:
    with JobBook(tmp_path) as book:
        assert not book.open_jobs()
        assert not book.asks("key")
    assert list(tmp_path.iterdir()) == []


def test_one_sees_what_another_writes(tmp_path: Path) -> None:
    with JobBook(tmp_path) as one, JobBook(tmp_path) as other:
        one.begin("job", server="s")
        one.ask("job", Asked("key", "i", 1))
        assert other.asks("key")
        assert one.claim("job")
        assert not other.claim("job")
        one.release("job")
        assert other.claim("job")
        other.close_job("job", "unsent")
        assert not one.asks("key")
