"""Recordings and reviews become a pool."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from earwitness.clips.assignment import Design, add_accounts
from earwitness.clips.pool import Pool, make_pool, read_pool, verdict
from earwitness.clips.pool_reading import Review, read_reviews
from earwitness.errors import DataError
from tests.clips.collecting import names, scripts
from tests.clips.making import record


def collection(folder: Path, accounts: int = 1) -> Path:
    """Assignments, and a file for each of them."""
    made = add_accounts(folder, names(accounts), scripts(4), Design())
    for number, a in enumerate(made):
        record(folder / "recordings" / a.account / f"{a.script_id}--{a.emotion}.wav", number)
    return folder


def ids(folder: Path) -> list[str]:
    return sorted(
        f"{path.parent.name}/{path.stem}" for path in (folder / "recordings").rglob("*.wav")
    )


def review(path: Path, *rows: tuple) -> Path:
    keys = ("recording", "reviewer", "audio_quality", "match", "perceived_emotion")
    lines = [json.dumps(dict(zip(keys, row, strict=True)) | {"note": "", "at": f"{n:02}"}) for n, row in enumerate(rows)]  # fmt: skip
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def statuses(pool: Pool) -> dict[str, str]:
    return {entry.id: entry.status for entry in pool.entries}


def test_files_become_recordings_with_text_and_speaker(tmp_path: Path) -> None:
    folder = collection(tmp_path)
    (folder / "speakers.csv").write_text("account,speaker,sex,language\na001,anna,female,en-US\n")
    pool = make_pool(folder, consent="v1", workers=1)
    assert len(pool.entries) == 9
    entry = pool.entries[0]
    assert (entry.speaker, entry.sex, entry.language, entry.consent_version) == (
        "anna", "female", "en-US", "v1",
    )  # fmt: skip
    assert entry.text in {script.text for script in scripts(4)}
    assert entry.seconds == pytest.approx(0.3)
    assert not Path(entry.path).is_absolute()
    assert {e.status for e in pool.entries} == {"unreviewed"}
    assert read_pool(folder) == pool.entries


def test_reviews_decide_and_the_last_word_counts(tmp_path: Path) -> None:
    folder = collection(tmp_path)
    a, b, c, d, e, *_ = ids(folder)
    asked = e.partition("--")[2]
    other = "fear" if asked != "fear" else "anger"
    review(
        folder / "reviews.jsonl",
        (a, "r", "poor", "yes", None), (b, "r", "good", "no", None), (c, "r", "good", "unclear", None),
        (d, "r", "good", None, d.partition("--")[2]), (e, "r", "good", None, other),
        (b, "r", "good", "yes", None),
    )  # fmt: skip
    pool = make_pool(folder, workers=1)
    found = statuses(pool)
    assert [found[x] for x in (a, b, c, d, e)] == [
        "poor_audio", "accepted", "unclear", "accepted", "no_match",
    ]  # fmt: skip
    assert next(x.reason for x in pool.entries if x.id == e) == f"r: no, heard {other}"


def test_several_reviewers_must_agree_or_be_outvoted() -> None:
    yes = [Review("x", name, True, "yes") for name in "ab"]
    no = Review("x", "c", True, "no")
    assert verdict("fear", [*yes, no])[0] == "no_match"
    assert verdict("fear", [*yes, no], "majority")[0] == "accepted"
    assert verdict("fear", [yes[0], no], "majority")[0] == "no_match"
    assert verdict("fear", []) == ("unreviewed", "")


def test_files_that_are_not_what_they_should_be_are_told_apart(tmp_path: Path) -> None:
    folder = collection(tmp_path)
    made = ids(folder)
    root = folder / "recordings"
    shutil.copy(root / f"{made[0]}.wav", root / f"{made[1]}.wav")
    (root / f"{made[2]}.wav").write_bytes(b"not audio")
    record(root / "a001" / "s9999--fear.wav", 50)
    row = {
        "id": made[3], "path": f"recordings/{made[3]}.wav", "sha256": "0" * 64, "account": "a001",
        "speaker": "a001", "script_id": made[3][5:10], "text": "x", "emotion": made[3].partition("--")[2],
        "seconds": 0.3, "consent_version": "1", "recorded_at": "",
    }  # fmt: skip
    gone = {**row, "id": "a001/x", "path": "recordings/a001/x.wav", "sha256": "1" * 64}
    (folder / "recordings.jsonl").write_text(json.dumps(row) + "\n" + json.dumps(gone) + "\n")
    pool = make_pool(folder, workers=1)
    found = statuses(pool)
    assert found[made[1]] == "duplicate"
    assert found[made[2]] == "unusable"
    assert found["a001/s9999--fear"] == "unassigned"
    assert found[made[3]] == "changed"
    assert found["a001/x"] == "missing"
    assert {name: row.total() for name, row in pool.counts().items()} == {
        "unreviewed": 6, "unassigned": 1, "duplicate": 1, "missing": 1, "changed": 1, "unusable": 1,
    }  # fmt: skip


def test_recordings_of_another_folder_are_kept_by_their_whole_path(tmp_path: Path) -> None:
    folder = collection(tmp_path / "c")
    shutil.move(folder / "recordings", tmp_path / "app" / "recordings") if (
        tmp_path / "app"
    ).mkdir() is None else None
    pool = make_pool(folder, recordings=[tmp_path / "app"], workers=1)
    assert all(entry.file(folder).is_file() for entry in pool.entries)
    assert all(Path(entry.path).is_absolute() for entry in pool.entries)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"audio_quality": "ok"},
            r"reviews.jsonl:1: audio_quality: found 'ok'; wanted good or poor",
        ),
        ({"match": "maybe"}, "match: found 'maybe'"),
        ({"match": None}, "perceived_emotion: found None"),
        ({"reviewer": ""}, "reviewer: found ''"),
    ],
)
def test_a_review_that_is_none_is_named(tmp_path: Path, row: dict, message: str) -> None:
    good = {"recording": "x", "reviewer": "r", "audio_quality": "good", "match": "yes"}
    (tmp_path / "reviews.jsonl").write_text(json.dumps({**good, **row}) + "\n")
    with pytest.raises(DataError, match=message):
        read_reviews(tmp_path / "reviews.jsonl")


def test_what_cannot_be_a_pool_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has no recordings"):
        make_pool(tmp_path, workers=1)
    folder = collection(tmp_path / "c")
    review(folder / "reviews.jsonl", ("strange", "r", "good", "yes", None))
    with pytest.raises(DataError, match="none of its 1 reviews is of a recording here"):
        make_pool(folder, workers=1)
    record(folder / "recordings" / "a001" / "take2.wav", 9)
    with pytest.raises(DataError, match="its name does not say what it is"):
        make_pool(folder, workers=1)
    row = {
        "id": "x", "path": "../x.wav", "account": "a", "script_id": "s", "text": "t", "emotion": "fear",
        "consent_version": "1",
    }  # fmt: skip
    (folder / "recordings.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(DataError, match="a path inside the folder"):
        make_pool(folder, workers=1)


def test_a_later_take_of_the_same_takes_its_place(tmp_path: Path) -> None:
    folder = collection(tmp_path)
    first = ids(folder)[0]
    record(folder / "takes" / "2.wav", 77)
    row = {
        "id": f"{first}/2", "path": "takes/2.wav", "account": "a001", "script_id": first[5:10], "text": "x",
        "emotion": first.partition("--")[2], "consent_version": "1", "recorded_at": "2026-05-20T10:00:00Z",
    }  # fmt: skip
    (folder / "recordings.jsonl").write_text(json.dumps(row) + "\n")
    pool = make_pool(folder, workers=1)
    assert statuses(pool)[first] == "superseded"
    assert statuses(pool)[f"{first}/2"] == "unreviewed"
    assert next(e.reason for e in pool.entries if e.id == first) == f"{first}/2 is later"
