"""Acoustics of balanced mixes tell nothing of the reaction; those of paper mixes do, and the audit finds it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from earwitness.cli import build_app
from earwitness.errors import DataError, UsageError
from earwitness.scenes.audit_acoustic import (
    GROUPS,
    AcousticCase,
    acoustic_cases,
    acoustic_floors,
    audit_acoustics,
    features_of,
    spectrum_of,
)
from earwitness.scenes.bank import REACTIONS, load_bank
from earwitness.scenes.corpus import Corpus
from earwitness.scenes.mixing.manifest import read_manifest
from earwitness.scenes.mixing.preset import load_mix_preset
from earwitness.scenes.mixing.stage import manifest_file, mix_corpus
from earwitness.scenes.mixing.twins import TwinRequest
from tests.scenes.mixing.made import make_corpus, make_library, park_sounds, scenario_of

SCENES = {"balanced": 12, "paper": 28}
TURN_S = (0.9, 1.2, 1.1, 1.4)


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Corpus]:
    """Scenes of three sounds, each of a template of its own; every reaction equally often."""
    folder = tmp_path_factory.mktemp("acoustic")
    sounds = park_sounds()
    library = make_library(folder / "library", sounds, ["park"], takes=4)
    made = {}
    for name, count in SCENES.items():
        order = np.random.default_rng(5).permutation(np.repeat(np.arange(4), 3 * count // 4))
        scenes = []
        for n in range(count):
            told = [(sounds[(n + k) % 6], REACTIONS[order[3 * n + k]]) for k in range(3)]
            scenario = replace(
                scenario_of(f"s.{n:02d}", told, number=2 * (n > 9)), template=f"t.{n:02d}"
            )
            scenes.append((scenario, (1, 2, 3), TURN_S))
        corpus = make_corpus(folder / name, scenes, pause=True)
        twins = TwinRequest(("all",) if name == "balanced" else ())
        report = mix_corpus(
            corpus, load_bank(), library, load_mix_preset(name), twins=twins, workers=1
        )
        assert report.made + len(report.refused) == count
        assert report.made >= count - 2
        made[name] = corpus
    return made


@pytest.fixture(scope="module")
def cases(corpora: dict[str, Corpus]) -> dict[str, tuple[AcousticCase, ...]]:
    return {name: acoustic_cases(corpus, workers=1) for name, corpus in corpora.items()}


def test_balanced_mixes_hold(cases: dict[str, tuple[AcousticCase, ...]]) -> None:
    assert set(cases["balanced"][0].features) == set(GROUPS)
    found = audit_acoustics(cases["balanced"], only=("acoustics",))
    assert [group.group for group in found.groups] == ["acoustics"]
    assert found.ok
    assert found.control.group == "shuffled control"


def test_paper_mixes_are_found_out(
    corpora: dict[str, Corpus], cases: dict[str, tuple[AcousticCase, ...]]
) -> None:
    """Behavioral sounds end just before speech, are cut, and duck the voice."""
    asked = ("ducking", "distance")
    found = audit_acoustics(cases["paper"], only=asked)
    assert {group.group for group in found.leaks} == {"ducking"}
    assert not found.control.leaks
    # The preset says so itself, and promises the rest.
    floors = acoustic_floors(corpora["paper"])
    assert set(floors) == {"margin", "duration", "gaps", "truncation", "ducking", "acoustics"}
    assert all(floors[group.group] is None for group in found.leaks)
    assert acoustic_floors(corpora["balanced"]) == {}


def test_what_is_measured_is_the_sound_alone(corpora: dict[str, Corpus]) -> None:
    """With twins the spectrum is of the sound without voices and ambience; without, of its clear window."""
    corpus = corpora["balanced"]
    with_twins = acoustic_cases(corpus, split="test", workers=1)
    assert {case.split for case in with_twins} == {"test"}
    manifest = read_manifest(manifest_file(corpus.folder, with_twins[0].scene))
    hidden = corpus.folder / "twins"
    hidden.rename(corpus.folder / "away")
    try:
        without = acoustic_cases(corpus, split="test", workers=1)
    finally:
        (corpus.folder / "away").rename(hidden)
    one, other = with_twins[0].features, without[0].features
    assert one["spectrum"] != other["spectrum"]
    assert {k: v for k, v in one.items() if k not in ("spectrum", "level")} == {
        k: v for k, v in other.items() if k not in ("spectrum", "level")
    }
    event = manifest.events[0]
    assert one["duration"]["seconds"] == pytest.approx(event.end_s - event.start_s)
    assert one["margin"]["over ambience"] == event.over_ambience_db
    assert one["gaps"]["left of the gap"] == pytest.approx(event.clear[1] - event.salient_s)


def test_speech_around_a_sound(corpora: dict[str, Corpus]) -> None:
    manifest = read_manifest(manifest_file(corpora["balanced"].folder, "s.00"))
    event = manifest.events[0]
    before, after = manifest.turns[event.before - 1], manifest.turns[event.before]
    silence = np.zeros(100, np.float32)
    gaps = features_of(manifest, event, silence)["gaps"]
    assert gaps["since speech"] == pytest.approx(event.start_s - before.end_s)
    assert gaps["until speech"] == pytest.approx(after.start_s - event.end_s)
    under = max(before.end_s - event.start_s, 0) + max(event.end_s - after.start_s, 0)
    assert gaps["speech under it"] == pytest.approx(under)
    assert features_of(manifest, event, silence)["spectrum"]["bandwidth"] == 0


@pytest.mark.parametrize("hz", [400, 3200])
def test_the_spectrum_of_a_tone(hz: int) -> None:
    wave = np.sin(np.arange(44_100) * 2 * np.pi * hz / 44_100).astype(np.float32)
    found = spectrum_of(wave, 44_100)
    assert found["centroid"] == pytest.approx(np.log2(hz / 100), abs=0.02)
    assert found["rolloff"] == pytest.approx(np.log2(hz / 100), abs=0.05)
    assert found["bandwidth"] * 1000 == pytest.approx(hz, abs=450)
    noise = np.random.default_rng(1).standard_normal(44_100).astype(np.float32)
    assert spectrum_of(noise, 44_100)["flatness"] > -1 > found["flatness"]
    assert spectrum_of(noise, 44_100)["bandwidth"] == pytest.approx(22.05, abs=0.2)


def _leaky(cases: Sequence[AcousticCase]) -> list[AcousticCase]:
    """Pivots are further away."""
    told = []
    for case in cases:
        distance = dict(case.features["distance"])
        distance["metres"] += 100.0 * (case.reaction == "pivot")
        told.append(replace(case, features={**case.features, "distance": distance}))
    return told


def test_a_leak_is_named(cases: dict[str, tuple[AcousticCase, ...]]) -> None:
    found = audit_acoustics(_leaky(cases["paper"]), only=("distance",))
    assert [(group.group, group.leaks) for group in found.groups] == [("distance", True)]
    assert not found.ok


def test_what_cannot_be_audited_is_refused(cases: dict[str, tuple[AcousticCase, ...]]) -> None:
    with pytest.raises(DataError, match="no mixed sounds; wanted a mixed corpus"):
        audit_acoustics(())
    with pytest.raises(UsageError, match="no group 'words'; wanted level, margin"):
        audit_acoustics(cases["paper"], only=("words",))


def test_the_command_audits_what_is_mixed(corpora: dict[str, Corpus]) -> None:
    runner, app = CliRunner(), build_app()
    paper = str(corpora["paper"].folder)
    strict = [
        "scenes",
        "audit",
        paper,
        "--group",
        "ducking",
        "--strict",
        "--workers",
        "1",
        "--json",
    ]
    told = runner.invoke(app, strict)
    assert told.exit_code == 1, told.output
    values = json.loads(told.stdout)
    assert values["acoustics"]["groups"][0]["group"] == "ducking"
    assert values["acoustics"]["groups"][0]["leaks"] is True
    assert values["groups"] == []
    with pytest.raises(UsageError, match="no group 'mood'"):
        runner.invoke(app, ["scenes", "audit", paper, "--group", "mood"], catch_exceptions=False)
