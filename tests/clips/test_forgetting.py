"""A person withdraws consent: nothing of theirs is left, whatever happens on the way."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from earwitness.clips.corpus import load_clip_set
from earwitness.clips.exporting import export
from earwitness.clips.exporting_documents import ExportInfo
from earwitness.clips.forgetting import Places, find_traces, forget, resume
from earwitness.clips.forgetting_records import FORGOTTEN, PENDING, read_tombstones
from earwitness.clips.pool import make_pool, read_pool
from earwitness.clips.selecting_record import read_selection
from earwitness.errors import DataError, UsageError
from earwitness.review.project import Project
from earwitness.review.store import connect
from earwitness.runs.folder import ITEMS, LEDGER
from earwitness.tasks.emotion import items
from tests.clips.collecting import reselect, small_collection

WHO = "a002"


@dataclass(frozen=True)
class World:
    """Everything a person's recordings may have got into."""

    root: Path

    @property
    def collection(self) -> Path:
        return self.root / "c"

    @property
    def places(self) -> Places:
        root = self.root
        return Places(
            reviews=(root / "review",), sets=(root / "set", root / "splits"), runs=(root / "runs",),
            derived=(root / "report",),
        )  # fmt: skip

    def files(self) -> dict[str, bytes]:
        """All files, but the tombstone with its random salt."""
        return {
            str(p.relative_to(self.root)): p.read_bytes()
            for p in sorted(self.root.rglob("*"))
            if p.is_file() and p.name not in (FORGOTTEN, "review.db")
        }


def _run_on(clips: Path, folder: Path) -> None:
    """A run folder as the runner leaves it, with a reply for every clip."""
    folder.mkdir(parents=True)
    clip_set = load_clip_set(clips)
    lines, ledger = [], []
    for number, question in enumerate(items(clip_set)):
        item = question.item
        assert item.audio is not None
        key = f"{number:064x}"
        lines.append({
            "id": item.id, "condition": "audio", "key": key, "gold": question.gold, "cluster": question.cluster,
            "groups": {}, "seconds": item.audio.seconds, "audio_path": str(item.audio.path),
            "audio": item.audio.identity,
        })  # fmt: skip
        ledger.append({"kind": "started", "key": key, "item": item.id})
        ledger.append({"kind": "reply", "key": key, "reply": {"text": "fear"}})
    (folder / ITEMS).write_text("".join(json.dumps(x, sort_keys=True) + "\n" for x in lines))
    (folder / LEDGER).write_text("".join(json.dumps(x) + "\n" for x in ledger))
    (folder / "card.json").write_text("{}")


def _review_of(collection: Path, folder: Path) -> None:
    """A folder of the review app: every recording an item, every account a person, all answered."""
    folder.mkdir()
    db = connect(folder, create=True)
    accounts: dict[str, int] = {}
    for number, entry in enumerate(read_pool(collection), start=1):
        person = accounts.setdefault(entry.account, len(accounts) + 1)
        db.execute(
            "INSERT INTO items(id,key,cluster,owner,shown,gold,audio,sha256) VALUES(?,?,?,?,'{}','{}','x',?)",
            (number, entry.id, entry.account, entry.account, entry.sha256),
        )
        db.execute(
            "INSERT OR IGNORE INTO people(id,name,role,token_hash,made_at) VALUES(?,?,'annotator',?,'')",
            (person, entry.account, f"t{person}"),
        )
        db.execute(
            "INSERT INTO answers(person,item,payload,at) VALUES(?,?,'{}','')", (person, number)
        )
        db.execute(
            "INSERT INTO history(person,item,act,payload,at) VALUES(?,?,'','','')", (person, number)
        )
        db.execute(
            "INSERT INTO assignments(person,position,item) VALUES(?,?,?)", (person, number, number)
        )
        db.execute(
            "INSERT OR IGNORE INTO consents(person,version,text_sha256,at) VALUES(?,'1','','')",
            (person,),
        )
    db.commit()
    db.close()
    (folder / "cache").mkdir()
    (folder / "cache" / "00.wav").write_bytes(b"RIFF")


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> World:
    root = tmp_path_factory.mktemp("forget") / "w"
    root.mkdir()
    world = World(root)
    small_collection(world.collection)
    info = ExportInfo("Test voices", "1.0.0")
    export(world.collection, root / "set", info, workers=1)
    export(
        world.collection,
        root / "splits",
        replace(info, use="any", splits={"a": 0.5, "b": 0.5}),
        workers=1,
    )
    _run_on(root / "set", root / "runs" / "one")
    _review_of(world.collection, root / "review")
    report = root / "report"
    (report / "audio").mkdir(parents=True)
    rows = ["id,label"]
    for clip in load_clip_set(root / "set").clips:
        shutil.copy(root / "set" / clip.path, report / "audio" / f"copy-{clip.id[:4]}.wav")
        rows.append(f'{clip.id},"two\nlines"')
    (report / "predictions.csv").write_text("\n".join(rows) + "\n")
    (report / "report.html").write_text("<p>" + " ".join(rows))
    (report / "other.html").write_text("<p>nothing of it")
    return world


@pytest.fixture
def world(original: World, tmp_path: Path) -> World:
    shutil.copytree(original.root, tmp_path / "w")
    return World(tmp_path / "w")


def left_of(world: World, traces) -> list[str]:
    """Files in which something of the person is still found."""
    found = []
    needles = [*(f'"{name}"' for name in traces.names), *traces.needles]
    for path in sorted(world.root.rglob("*")):
        if not path.is_file() or path.name == FORGOTTEN:
            continue
        data = path.read_bytes()
        if any(needle.encode() in data or needle in path.name for needle in needles):
            found.append(str(path))
    return found


def test_a_dry_run_changes_nothing_and_says_what_would_go(world: World) -> None:
    before = world.files()
    found = forget(world.collection, WHO, world.places)
    assert not found.done
    assert world.files() == before
    whats = {effect.what for effect in found.effects}
    assert whats == {
        "audio file", "clips of the set", "training material", "data card, tables, Croissant file and hashes",
        "items and replies of the run", "rows of the review database", "cached audio of the review app",
        "rows of recordings", "copy of audio", "rows", "file that names recordings",
        "selection that names them", "reviews", "rows of the pool", "assignments", "rows of speakers",
    }  # fmt: skip
    done = forget(world.collection, WHO, world.places, do=True)
    assert done.effects == found.effects


def test_nothing_is_left_and_the_rest_is_whole(world: World) -> None:
    clips_before = len(load_clip_set(world.root / "set").clips)
    traces = find_traces(world.collection, WHO)
    theirs = {
        clip.id
        for clip in load_clip_set(world.root / "set").clips
        if clip.metadata["source_sha256"] in traces.audio
    }
    assert theirs
    traces.clips |= theirs
    found = forget(world.collection, WHO, world.places, do=True)
    assert found.done
    assert left_of(world, traces) == []
    # What is left can be used.
    assert len(load_clip_set(world.root / "set").clips) == clips_before - len(theirs)
    for split in ("a", "b"):
        load_clip_set(world.root / "splits" / split)
    assert (world.root / "report" / "other.html").exists()
    assert not (world.root / "report" / "report.html").exists()
    items_left = (world.root / "runs" / "one" / ITEMS).read_text().splitlines()
    assert len(items_left) == clips_before - len(theirs)
    assert len((world.root / "runs" / "one" / LEDGER).read_text().splitlines()) == 2 * len(
        items_left
    )
    db = sqlite3.connect(world.root / "review" / "review.db")
    counts = {
        table: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        for table in ("items", "answers", "history", "assignments", "people", "consents")
    }
    db.close()
    assert counts == {
        "items": 36, "answers": 36, "history": 36, "assignments": 36, "people": 4, "consents": 4,
    }  # fmt: skip
    assert f"earwitness clips select {world.collection}" in found.rebuild
    assert any("train them again" in each for each in found.rebuild)
    with pytest.raises(DataError, match=r"has no selection\.json"):
        read_selection(world.collection)
    reselect(world.collection, 1)


def test_nothing_comes_back_under_any_name(original: World, world: World) -> None:
    forget(world.collection, WHO, world.places, do=True)
    old = original.collection / "recordings" / WHO
    shutil.copytree(old, world.collection / "recordings" / WHO)
    shutil.copytree(old, world.collection / "recordings" / "somebody")
    pool = make_pool(world.collection, workers=1)
    assert pool.refused == 18
    assert {entry.account for entry in pool.entries} == {"a001", "a003", "a004", "a005"}
    text = (world.collection / FORGOTTEN).read_text()
    assert WHO not in text
    assert read_tombstones(world.collection).has_name(WHO.upper())
    shutil.rmtree(world.collection / "recordings" / WHO)
    with pytest.raises(DataError, match="was forgotten already"):
        forget(world.collection, WHO, do=True)


class Killed(BaseException):
    pass


def test_it_is_finished_after_a_kill_at_any_moment(
    original: World, tmp_path: Path, monkeypatch
) -> None:
    """Killed at the n-th change of a file and resumed: the same in the end."""
    # What reaches the disk is not looked at here; without it the test takes seconds, not minutes.
    monkeypatch.setattr(os, "fsync", lambda _: None)
    whole = World(tmp_path / "whole" / "w")
    shutil.copytree(original.root, whole.root)
    forget(whole.collection, WHO, whole.places, do=True)
    expected = whole.files()
    replace_file, unlink = Path.replace, Path.unlink
    left = 0

    def counted(function):
        def call(self, *more, **named):
            nonlocal left
            left -= 1
            if left == 0:
                raise Killed
            return function(self, *more, **named)

        return call

    kills = 0
    for number in range(1, 200, 5):
        # The same path each time: run folders and traces hold whole paths.
        place = World(whole.root)
        shutil.rmtree(place.root)
        shutil.copytree(original.root, place.root)
        left = number
        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", counted(replace_file))
            patch.setattr(Path, "unlink", counted(unlink))
            try:
                forget(place.collection, WHO, place.places, do=True)
            except Killed:
                kills += 1
            else:
                break
        pending = (place.collection / PENDING).exists()
        if pending:
            with pytest.raises(DataError, match="--resume --yes"):
                make_pool(place.collection, workers=1)
            resume(place.collection, do=True)
        else:
            forget(place.collection, WHO, place.places, do=True)
        found = place.files()
        torn = [name for name in found if ".earwitness-" in name]
        assert not torn
        assert found.keys() == expected.keys(), number
        assert found == expected, number
    assert kills > 9


def test_a_set_with_nobody_else_in_it_goes_whole(original: World, world: World) -> None:
    for number in (1, 3, 4, 5):
        forget(world.collection, f"a{number:03}", world.places, do=True)
    assert len(load_clip_set(world.root / "set").clips) > 0
    forget(world.collection, WHO, world.places, do=True)
    for name in ("set", "splits"):
        assert [path for path in (world.root / name).rglob("*") if path.is_file()] == []


def test_all_accounts_of_a_speaker_go(world: World) -> None:
    path = world.collection / "speakers.csv"
    path.write_text(
        path.read_text().replace("a002,a002", "a002,anna").replace("a004,a004", "a004,anna")
    )
    make_pool(world.collection, workers=1)
    forget(world.collection, "Anna", do=True)
    assert {entry.account for entry in read_pool(world.collection)} == {"a001", "a003", "a005"}
    assert read_tombstones(world.collection).has_name("a004")


def test_who_is_not_there_and_what_is_half_done_is_said(world: World) -> None:
    with pytest.raises(DataError, match="is neither a speaker nor an account"):
        forget(world.collection, "nobody", do=True)
    with pytest.raises(UsageError, match="has no interrupted withdrawal"):
        resume(world.collection)
    with pytest.raises(DataError, match="a folder to look in"):
        forget(world.collection, WHO, Places(sets=(world.root / "none",)))
    (world.collection / PENDING).write_text(
        json.dumps(
            {
                "speaker": "a001",
                "traces": find_traces(world.collection, "a001").to_json(),
                "places": {},
            }
        )
    )
    with pytest.raises(UsageError, match="the withdrawal of somebody else was interrupted"):
        forget(world.collection, WHO, do=True)
    assert Project("review", "").kind == "review"


@pytest.mark.parametrize(("name", "nth"), [("card.yaml", 1), ("card.yaml", 2), ("clips.jsonl", 2)])
def test_a_set_is_never_left_unreadable(world: World, monkeypatch, name: str, nth: int) -> None:
    """Killed between card and table, whichever of them is written."""
    replace_file = Path.replace
    left = nth

    def killing(self, target):
        nonlocal left
        if Path(target).name == name and Path(target).parent.name == "set":
            left -= 1
            if left == 0:
                raise Killed
        return replace_file(self, target)

    places = Places(sets=(world.root / "set",))
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", killing)
        with pytest.raises(Killed):
            forget(world.collection, WHO, places, do=True)
    load_clip_set(world.root / "set", check_files=False)
    resume(world.collection, do=True)
    clip_set = load_clip_set(world.root / "set")
    assert clip_set.card.counts
    assert not (world.collection / PENDING).exists()
