"""The listener: figures of signals, classes as clouds, its file, and what it refuses."""

from __future__ import annotations

import asyncio
import json
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from earwitness.audio.io import Audio, file_sha256, write_audio
from earwitness.errors import DataError, ModelError, UsageError
from earwitness.models.listener.classifier import train_clouds
from earwitness.models.listener.features import (
    RATE_HZ,
    conduct,
    levels_of,
    place,
    presence,
    spectrum,
)
from earwitness.models.listener.model import NO_MOMENT, open_listener, scene_key, vector_of
from earwitness.models.listener.modelfile import ListenerModel, TrainedOn, model_bytes, read_model
from earwitness.models.protocols import AudioRef, Prompt, Request
from earwitness.models.registry import open_model
from earwitness.stats.streams import stream

AT = 2.0
"""Where the sound of a made scene is."""


def scene(seed, tone_hz=None, hum_hz=120.0, seconds=4.0):
    """Hum and noise for an ambience, and a short tone where one is asked for."""
    rng = stream(seed, "scene")
    t = np.arange(round(seconds * RATE_HZ)) / RATE_HZ
    samples = 0.002 * rng.normal(size=t.size) + 0.01 * np.sin(2 * np.pi * hum_hz * t)
    if tone_hz is not None:
        samples += 0.1 * np.sin(2 * np.pi * tone_hz * t) * np.exp(-(((t - AT) / 0.05) ** 2))
    return samples.astype(np.float32)


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """A listener trained on tones of three pitches over two hums."""
    rows = {"sound": [], "grounding": [], "location": [], "reaction": []}
    for seed in range(24):
        tone, hum = (600.0, 1500.0, 4000.0)[seed % 3], (120.0, 900.0)[seed % 2]
        levels = levels_of(scene(seed, tone, hum))
        rows["sound"].append((spectrum(levels, AT), str(tone)))
        rows["grounding"] += [(presence(levels, AT), "yes"), (presence(levels, 0.8), "no")]
        rows["location"].append((place(levels), str(hum)))
        rows["reaction"].append((conduct(levels, AT), ("pivot", "ambient")[seed % 2]))
    clouds = {
        task: train_clouds(np.array([v for v, _ in found]), [label for _, label in found])
        for task, found in rows.items()
    }
    on = TrainedOn(
        "made", 7, "train", "", (scene_key({"corpus_seed": "7", "scene": "s0"}),), ("ab" * 32,)
    )
    path = tmp_path_factory.mktemp("listener") / "listener.model"
    path.write_bytes(model_bytes(ListenerModel(clouds, on, {"python": "3"})))
    return path


def ask(weights, folder, task, samples, *, options=None, known=None, **more):
    path = Path(folder) / "scene.wav"
    write_audio(path, Audio(samples, RATE_HZ))
    ref = AudioRef(path, file_sha256(path), len(samples) / RATE_HZ, RATE_HZ)
    metadata = {"task": task, "t": str(AT), "scene": "s9", "corpus_seed": "7", **(known or {})}
    if options:
        metadata["options"] = json.dumps([[o, o] for o in options])
    request = Request(
        "s9/e1", Prompt("?", choices=("yes", "no")), replace(ref, **more), metadata=metadata
    )
    model = open_listener({"weights": str(weights)})
    model.preflight([request])
    return asyncio.run(model.ask(request))


# --- figures


@pytest.mark.parametrize(
    "samples",
    [
        np.zeros(0), np.zeros(1), np.zeros(RATE_HZ), np.ones(50),
        stream(1, "noise").normal(size=3 * RATE_HZ), np.sin(np.arange(5 * RATE_HZ)),
    ],
    ids=["empty", "one sample", "silence", "constant", "noise", "tone"],
)  # fmt: skip
def test_every_figure_is_finite_for_every_input(samples):
    levels = levels_of(samples.astype(np.float32))
    sizes = set()
    for moment in (-1.0, 0.0, 0.5, 99.0):
        for task in ("grounding", "sound", "location", "reaction"):
            vector = vector_of(task, levels, moment)
            assert np.isfinite(vector).all(), task
            sizes.add((task, vector.size))
    assert len(sizes) == 4


def test_a_burst_stands_over_the_floor_where_it_is():
    levels = levels_of(scene(1, 1500.0))
    assert presence(levels, AT)[-1] > 10
    assert presence(levels, 0.8)[-1] < 5


def test_what_a_sound_is_does_not_depend_on_how_loud_it_is():
    one, two = scene(1, 1500.0), scene(1, 1500.0)
    loud = spectrum(levels_of(one), AT)
    soft = spectrum(levels_of(0.25 * two), AT)
    assert np.abs(loud - soft).max() < 0.5


# --- clouds


def test_classes_are_told_apart_and_one_never_met_is_recognised_as_such():
    rng = stream(2, "clouds")
    means = rng.normal(0, 5, (6, 10))
    x = np.concatenate([m + rng.normal(0, 1, (5, 10)) for m in means[:5]])
    model = train_clouds(x, [f"c{k}" for k in range(5) for _ in range(5)])
    labels = [f"c{k}" for k in range(6)]
    for k in range(6):
        found = [
            labels[int(model.scores(means[k] + rng.normal(0, 1, 10), labels).argmax())]
            for _ in range(20)
        ]
        assert found.count(f"c{k}") >= 18, k


def test_training_does_not_depend_on_the_order_of_examples():
    rng = stream(3, "order")
    x, y = rng.normal(size=(30, 4)), ["abc"[k % 3] for k in range(30)]
    order = rng.permutation(30)
    first = train_clouds(x, y)
    second = train_clouds(x[order], [y[k] for k in order])
    vector = rng.normal(size=4)
    assert first.scores(vector, "abc") == pytest.approx(second.scores(vector, "abc"))


@pytest.mark.parametrize(
    ("x", "labels", "message"),
    [
        (np.zeros((3, 2)), "aaa", "examples of 1 classes"),
        (np.full((2, 2), np.nan), "ab", "a finite one an example"),
        (np.zeros((3, 2)), "ab", "a finite one an example"),
    ],
)
def test_what_cannot_be_learned_is_an_error(x, labels, message):
    with pytest.raises(DataError, match=message):
        train_clouds(x, list(labels))


# --- answers


def test_it_hears_whether_there_is_a_sound_which_one_and_where(weights, tmp_path):
    assert ask(weights, tmp_path, "grounding", scene(90, 1500.0)).text == "yes"
    assert ask(weights, tmp_path, "grounding", scene(91)).text == "no"
    tones = ["600.0", "4000.0", "1500.0", "never met"]
    assert ask(weights, tmp_path, "sound", scene(92, 1500.0), options=tones).text == "C"
    assert ask(weights, tmp_path, "sound", scene(93, 4000.0), options=tones).text == "B"
    assert (
        ask(weights, tmp_path, "location", scene(94, None, 900.0), options=["120.0", "900.0"]).text
        == "B"
    )
    reply = ask(weights, tmp_path, "reaction", scene(95, 1500.0), options=["pivot", "ambient"])
    assert reply.text in ("A", "B")
    assert set(reply.raw["scores"]) == {"pivot", "ambient"}


def test_silence_and_a_question_without_a_moment(weights, tmp_path):
    assert ask(weights, tmp_path, "grounding", scene(1, 1500.0), transform="silence").text == "no"
    reply = ask(
        weights, tmp_path, "sound", scene(1, 1500.0), options=["a", "b"], known={"t": "1.0"}
    )
    assert reply.text in ("A", "B")
    path = tmp_path / "scene.wav"
    ref = AudioRef(path, file_sha256(path), 4.0, RATE_HZ)
    request = Request(
        "i", Prompt("?"), ref, metadata={"task": "reaction", "options": '[["a", "a"]]'}
    )
    assert asyncio.run(open_listener({"weights": str(weights)}).ask(request)).text == NO_MOMENT


# --- refusals


def test_it_is_not_scored_on_what_it_was_trained_on(weights, tmp_path):
    with pytest.raises(UsageError, match=r"trained on 1 of the scenes .* s0.*--split test"):
        ask(weights, tmp_path, "grounding", scene(1), known={"scene": "s0"})
    assert ask(weights, tmp_path, "grounding", scene(1), known={"scene": "s0", "corpus_seed": "8"})
    with pytest.raises(UsageError, match="trained on 1 of the scenes"):
        ask(weights, tmp_path, "grounding", scene(1), sha256="ab" * 32)


def test_other_tasks_and_items_without_audio_are_refused(weights, tmp_path):
    with pytest.raises(UsageError, match="was not trained for summary"):
        ask(weights, tmp_path, "summary", scene(1))
    model = open_listener({"weights": str(weights)})
    with pytest.raises(ModelError, match="needs audio"):
        asyncio.run(model.ask(Request("i", Prompt("?"), None, metadata={"task": "sound"})))
    gone = AudioRef(tmp_path / "gone.wav", "cd" * 32, 1.0, RATE_HZ)
    with pytest.raises(ModelError, match=r"gone\.wav"):
        asyncio.run(
            model.ask(
                Request("i", Prompt("?"), gone, metadata={"task": "location", "options": "[]"})
            )
        )


def test_without_a_model_file_the_error_says_how_to_make_one():
    with pytest.raises(UsageError, match="train-listener CORPUS --out FILE"):
        open_model("baseline/listener")


# --- the file


def test_the_same_model_gives_the_same_bytes_and_comes_back(weights, tmp_path):
    model, sha256 = read_model(weights)
    assert model_bytes(model) == weights.read_bytes()
    assert file_sha256(weights) == sha256
    assert model.trained_on.recordings == ("ab" * 32,)
    assert (
        open_model("baseline/listener", {"weights": str(weights)}).settings["weights_sha256"]
        == sha256
    )


def rewritten(weights, path, change):
    with zipfile.ZipFile(weights) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            data = change(name, old.read(name))
            if data is not None:
                new.writestr(name, data)
    return path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda _n, d: d.replace(b"listener-1", b"listener-0"), "trained on features 'listener-0'"),
        (lambda _n, d: d.replace(b"earwitness-listener/1", b"else"), "format 'else'"),
        (lambda n, d: None if n.endswith("basis.npy") else d, "not a model file, or a damaged one"),
        (
            lambda n, d: d[:-40] if n.endswith("means.npy") else d,
            "not a model file, or a damaged one",
        ),
    ],
)
def test_other_and_damaged_files_are_refused(weights, tmp_path, change, message):
    with pytest.raises(DataError, match=message):
        read_model(rewritten(weights, tmp_path / "m", change))


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        read_model(tmp_path / "none")
    (tmp_path / "text").write_text("no zip")
    with pytest.raises(DataError, match="not a model file"):
        read_model(tmp_path / "text")
