"""A selection becomes a public clip set."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from earwitness.audio import read_audio, resample
from earwitness.clips.corpus import EMOTIONS, load_clip_set
from earwitness.clips.exporting import clip_id, export, split_speakers
from earwitness.clips.exporting_documents import ExportInfo
from earwitness.clips.pool import make_pool, read_pool, write_pool
from earwitness.clips.validate import validate
from earwitness.errors import DataError, LicenceError, UsageError
from earwitness.tasks.emotion import items
from tests.clips.collecting import assigned as assign_all
from tests.clips.collecting import reselect, simulated_pool, small_collection

INFO = ExportInfo("Test voices", "1.0.0")


@pytest.fixture(scope="module")
def collection(tmp_path_factory) -> Path:
    return small_collection(tmp_path_factory.mktemp("export") / "c")


@pytest.fixture(scope="module")
def made(collection: Path, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("exported") / "set"
    export(collection, out, replace(INFO, published="2026-11-30"), workers=1)
    return out


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_the_set_is_a_clip_set_like_any_other(made: Path) -> None:
    clip_set = load_clip_set(made)
    assert clip_set.card.counts == dict.fromkeys(EMOTIONS, 2)
    assert (clip_set.card.use, clip_set.card.redistribute) == ("evaluation-only", True)
    assert {(c.rate, c.channels) for c in clip_set.clips} == {(16_000, 1)}
    assert validate(made, workers=1).findings == ()
    assert len(items(clip_set)) == 14


def test_audio_is_resampled_and_nothing_else(collection: Path, made: Path) -> None:
    pool = {entry.sha256: entry for entry in read_pool(collection)}
    for clip in load_clip_set(made).clips:
        entry = pool[clip.metadata["source_sha256"]]
        source = read_audio(entry.file(collection))
        assert clip.metadata["source_rate"] == str(source.rate) == "24000"
        expected = resample(source, 16_000).samples
        found = read_audio(made / clip.path).samples
        assert np.abs(found - np.clip(expected, -1, 1)).max() <= 0.5 / 32768 + 1e-7
        assert clip.emotion == entry.emotion


def test_nothing_in_the_set_tells_who_or_what_before_it_is_heard(
    collection: Path, made: Path
) -> None:
    accounts = {entry.account for entry in read_pool(collection)}
    for name, data in files(made).items():
        for account in accounts:
            assert account not in name
            if not name.endswith(".wav"):
                assert f'"{account}' not in data.decode()
        assert not any(label in name for label in EMOTIONS)
    ids = [clip.id for clip in load_clip_set(made).clips]
    assert all(len(one) == 20 and one.isalnum() for one in ids)
    assert len({clip_id("a", f"{n:064x}") for n in range(1000)}) == 1000


def test_documents_agree_with_the_clips(made: Path) -> None:
    text = (made / "README.md").read_text(encoding="utf-8")
    front = yaml.safe_load(text.split("---")[1])
    assert front["license"] == "other"
    assert front["license_link"] == "LICENSE.txt"
    assert front["configs"][0]["data_files"] == [
        {"split": "test", "path": ["metadata.jsonl", "audio/*.wav"]}
    ]
    assert "| test | 14 |" in text
    assert "Not denoised, not normalised, not augmented" in text
    rows = [json.loads(line) for line in (made / "metadata.jsonl").read_text().splitlines()]
    assert {(row["file_name"], row["emotion"]) for row in rows} == {
        (clip.path, clip.emotion) for clip in load_clip_set(made).clips
    }
    assert "may not use the recordings" in (made / "LICENSE.txt").read_text()
    sums = dict(
        reversed(line.split("  ")) for line in (made / "SHA256SUMS").read_text().splitlines()
    )
    every = files(made)
    del every["SHA256SUMS"]
    assert sums == {name: hashlib.sha256(data).hexdigest() for name, data in every.items()}


def test_a_test_set_carries_a_canary_and_another_does_not(
    collection: Path, made: Path, tmp_path: Path
) -> None:
    rows = [json.loads(line) for line in (made / "metadata.jsonl").read_text().splitlines()]
    canaries = {row["canary"] for row in rows}
    assert len(canaries) == 1
    canary = canaries.pop()
    assert canary.startswith("TEST DATA, DO NOT TRAIN ON IT. Test voices canary GUID ")
    assert canary in (made / "README.md").read_text()
    assert canary in json.loads((made / "croissant.json").read_text())["description"]
    info = replace(INFO, use="any", splits={"train": 0.6, "test": 0.4})
    export(collection, tmp_path / "open", info, workers=1)
    for name, data in files(tmp_path / "open").items():
        assert name.endswith(".wav") or b"canary" not in data


def test_croissant_is_valid_and_reads_the_records(
    made: Path, collection: Path, tmp_path: Path
) -> None:
    split = tmp_path / "split"
    export(collection, split, replace(INFO, splits={"dev": 0.4, "test": 0.6}), workers=1)
    code = (
        "import json, sys, mlcroissant\n"
        "for folder in sys.argv[1:]:\n"
        "    made = mlcroissant.Dataset(jsonld=folder + '/croissant.json')\n"
        "    issues = made.metadata.ctx.issues\n"
        "    for name in (s.uuid for s in made.metadata.record_sets):\n"
        "        rows = list(made.records(name))\n"
        "        ids = [row[name + '/id'].decode() for row in rows]\n"
        "        print(json.dumps([folder, name, sorted(issues.errors), ids]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(made), str(split)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "not standard" not in done.stderr
    for line in done.stdout.splitlines():
        folder, name, errors, ids = json.loads(line)
        assert errors == []
        place = Path(folder) / (name if folder == str(split) else "")
        assert ids == [clip.id for clip in load_clip_set(place).clips]
    assert len(done.stdout.splitlines()) == 3


def test_splits_share_no_speaker_and_come_near_their_shares() -> None:
    entries = [e for e in simulated_pool(assign_all(68, 100), 49) if e.accepted]
    found = split_speakers(entries, {"dev": 0.25, "test": 0.75}, 0)
    counts = Counter((found[e.speaker], e.emotion) for e in entries)
    for label in EMOTIONS:
        every = counts["dev", label] + counts["test", label]
        assert counts["dev", label] / every == pytest.approx(0.25, abs=0.03)
    assert found == split_speakers(entries[::-1], {"dev": 0.25, "test": 0.75}, 0)


def test_the_same_bytes_again_and_after_a_kill(
    collection: Path, made: Path, tmp_path: Path, monkeypatch
) -> None:
    info = replace(INFO, published="2026-11-30")

    def stop(done: int, total: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export(collection, tmp_path / "set", info, workers=1, on_done=stop)
    again = export(collection, tmp_path / "set", info, workers=1)
    assert again.kept >= 4
    assert files(tmp_path / "set") == files(made)
    once_more = export(collection, tmp_path / "set", info, workers=1)
    assert (once_more.converted, once_more.kept) == (0, 14)
    assert files(tmp_path / "set") == files(made)


def test_what_must_not_be_published_is_refused(collection: Path, tmp_path: Path) -> None:
    with pytest.raises(LicenceError, match="for evaluation only; wanted dev and test"):
        export(collection, tmp_path / "a", replace(INFO, splits={"train": 1.0, "test": 1.0}))
    with pytest.raises(UsageError, match="holds the collection"):
        export(collection, collection, INFO)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    with pytest.raises(UsageError, match="is not empty and no export"):
        export(collection, tmp_path / "full", INFO)
    export(collection, tmp_path / "own", INFO, workers=1)
    with pytest.raises(UsageError, match="with other options"):
        export(collection, tmp_path / "own", replace(INFO, version="2.0.0"), workers=1)
    export(collection, tmp_path / "own", replace(INFO, version="2.0.0"), workers=1, overwrite=True)


def test_consent_and_files_are_checked(tmp_path: Path) -> None:
    folder = small_collection(tmp_path / "c", accounts=4, per_label=1)
    before = read_pool(folder)
    write_pool(folder, [replace(entry, consent_version="") for entry in before])
    with pytest.raises(DataError, match="its pool has changed since the selection"):
        export(folder, tmp_path / "out", INFO, workers=1)
    reselect(folder, 1)
    with pytest.raises(LicenceError, match="7 of 7 chosen recordings have no consent on record"):
        export(folder, tmp_path / "out", INFO, workers=1)
    make_pool(folder, workers=1)
    reselect(folder, 1)
    from earwitness.clips.selecting_record import read_selection

    by_id = {entry.id: entry for entry in before}
    victim = by_id[read_selection(folder).chosen[0]].file(folder)
    other = by_id[read_selection(folder).chosen[1]].file(folder)
    victim.write_bytes(other.read_bytes())
    with pytest.raises(DataError, match="is another file than was reviewed"):
        export(folder, tmp_path / "out", INFO, workers=1)
