"""Labels of mixed scenes for other programs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from earwitness.cli import build_app
from earwitness.errors import DataError, UsageError
from earwitness.scenes.corpus import Corpus
from earwitness.scenes.interchange import (
    audacity_labels,
    jams_document,
    rttm_lines,
    write_labels,
)
from earwitness.scenes.mixing.manifest import Manifest, read_manifest
from earwitness.scenes.mixing.preset import load_mix_preset
from earwitness.scenes.mixing.stage import mix_corpus
from tests.scenes.mixing.conftest import Made, make


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    made: Made = make(tmp_path_factory.mktemp("labels"))
    mix_corpus(
        made.corpus, made.bank, made.library, load_mix_preset("balanced"), workers=1, limit=2
    )
    return made.corpus


@pytest.fixture
def manifest(mixed: Corpus) -> Manifest:
    return read_manifest(mixed.path("mixes/s.01.json"))


def test_audacity_labels_are_in_order_with_turns_and_sounds(manifest: Manifest) -> None:
    rows = [line.split("\t") for line in audacity_labels(manifest).splitlines()]
    assert len(rows) == len(manifest.turns) + len(manifest.events)
    assert [float(row[0]) for row in rows] == sorted(float(row[0]) for row in rows)
    event = manifest.events[0]
    row = [f"{event.start_s:.6f}", f"{event.end_s:.6f}", f"{event.sound} (e1, ambient)"]
    assert row in rows
    muted = replace(manifest, events=(replace(event, heard=None), *manifest.events[1:]))
    assert row not in [line.split("\t") for line in audacity_labels(muted).splitlines()]


def test_rttm_has_ten_fields_a_turn(manifest: Manifest) -> None:
    lines = rttm_lines(manifest).splitlines()
    assert len(lines) == len(manifest.turns)
    fields = lines[1].split(" ")
    turn = manifest.turns[1]
    assert len(fields) == 10
    assert fields[0] == "SPEAKER"
    assert (fields[1], fields[2], fields[7]) == ("s.01", "1", "B")
    assert float(fields[3]) == pytest.approx(turn.start_s, abs=0.001)
    assert float(fields[4]) == pytest.approx(turn.end_s - turn.start_s, abs=0.001)


def test_jams_has_turns_and_sounds(manifest: Manifest) -> None:
    document = jams_document(manifest)
    assert set(document) == {"file_metadata", "annotations", "sandbox"}
    assert document["file_metadata"]["duration"] == round(manifest.audio.duration_s, 6)
    talk, sounds = document["annotations"]
    assert (talk["namespace"], sounds["namespace"]) == ("segment_open", "tag_open")
    assert len(talk["data"]) == len(manifest.turns)
    first = sounds["data"][0]
    assert set(first) == {"time", "duration", "value", "confidence"}
    assert first["value"] == manifest.events[0].sound
    assert first["time"] == round(manifest.events[0].start_s, 6)
    assert sounds["sandbox"]["events"][0]["reaction"] == "ambient"
    json.dumps(document)


def test_one_file_a_scene(mixed: Corpus, tmp_path: Path) -> None:
    for form, suffix in (("audacity", "txt"), ("rttm", "rttm"), ("jams", "jams")):
        assert write_labels(mixed, form, tmp_path) == 2
        assert (tmp_path / f"s.02.{suffix}").stat().st_size > 0
    with pytest.raises(UsageError, match="--format: 'elan'; wanted audacity, rttm, jams"):
        write_labels(mixed, "elan", tmp_path)
    done = CliRunner().invoke(build_app(), ["scenes", "labels", str(mixed.folder)])
    assert done.exit_code == 0
    assert (mixed.folder / "labels/s.01.txt").exists()


def test_nothing_mixed_is_said(tmp_path: Path) -> None:
    for name in ("corpus.yaml", "scenarios.jsonl"):
        (tmp_path / name).write_text("")
    with pytest.raises(DataError, match=r"has no mixed scenes; wanted mixes\. Run: earwitness scenes mix"):  # fmt: skip
        write_labels(Corpus(tmp_path), "rttm", tmp_path / "out")
