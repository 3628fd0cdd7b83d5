"""The same inputs sound the same until ``planning.FORM`` is raised: what is mixed already would not be made again.

``tests/golden/mixing.json`` holds what small scenes sounded like at the present form. After raising it, write the file
anew: ``python -m tests.scenes.mixing.test_form``.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest

from earwitness.audio import read_audio
from earwitness.scenes.corpus import Corpus
from earwitness.scenes.mixing import acoustics, planning
from earwitness.scenes.mixing.preset import load_mix_preset
from earwitness.scenes.mixing.stage import mix_corpus
from earwitness.scenes.mixing.twins import TwinRequest
from tests.scenes.mixing.conftest import Made, make

GOLDEN = Path(__file__).parents[2] / "golden" / "mixing.json"
BLOCK = 8192
NEAR = 16.0
"""Steps of 16 bits by which a block's sum may differ: rounding on another processor, but not 0.01 dB."""
PRESETS = ("balanced", "paper")


def fingerprint(file: Path) -> list[float]:
    """Of every block of samples, their sum under signs drawn by a seed: one figure that any change of sound moves."""
    samples = np.rint(read_audio(file).samples.astype(np.float64) * 32768)
    signs = np.where(np.random.default_rng(1).integers(0, 2, len(samples)), 1.0, -1.0)
    signed = np.pad(samples * signs, (0, -len(samples) % BLOCK)).reshape(-1, BLOCK)
    return [float(total) for total in signed.sum(axis=1)]


def sounded(folder: Path) -> dict[str, list[float]]:
    """Fingerprints of every mix and twin of the small corpus, by preset and file."""
    found = {}
    for name in PRESETS:
        made = make(folder / name)
        report = mix_corpus(
            made.corpus, made.bank, made.library, load_mix_preset(name), workers=1,
            twins=TwinRequest(("all", "e1"), ("e1",), speech_only=True),
        )  # fmt: skip
        assert not report.refused
        for file in sorted(made.corpus.folder.rglob("*.wav")):
            path = file.relative_to(made.corpus.folder)
            if path.parts[0] in ("mixes", "twins"):
                found[f"{name}/{path.as_posix()}"] = fingerprint(file)
    return found


def differences(found: dict[str, list[float]], golden: dict[str, list[float]]) -> list[str]:
    """Files that sound otherwise than they did."""
    return sorted(
        name
        for name in found.keys() | golden.keys()
        if len(found.get(name, [])) != len(golden.get(name, [1]))
        or not np.allclose(found[name], golden[name], rtol=0, atol=NEAR)
    )


def forms() -> dict[str, int]:
    return {"planning": planning.FORM, "acoustics": acoustics.FORM}


def test_what_sounds_otherwise_has_another_form(tmp_path: Path) -> None:
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert golden["forms"] == forms(), (
        "FORM was raised: python -m tests.scenes.mixing.test_form writes tests/golden/mixing.json anew"
    )
    assert differences(sounded(tmp_path), golden["sounded"]) == [], (
        "the same inputs sound otherwise: raise FORM of scenes/mixing/planning.py (of acoustics.py for rooms), else "
        "corpora that exist would keep their old mixes; then python -m tests.scenes.mixing.test_form"
    )


def test_a_hundredth_of_a_decibel_is_seen() -> None:
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))["sounded"]
    louder = {name: [x * 10 ** (0.01 / 20) for x in found] for name, found in golden.items()}
    assert differences(louder, golden) == sorted(golden)
    assert differences(golden, golden) == []


def test_the_form_is_part_of_the_inputs(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    from earwitness.scenes.mixing.stage import plan_corpus_mix

    plans, _ = plan_corpus_mix(
        Corpus(made.corpus.folder), made.bank, made.library, load_mix_preset("balanced"), TwinRequest()
    )  # fmt: skip
    before = plans[0].inputs
    monkeypatch.setattr(planning, "FORM", planning.FORM + 1)
    assert plans[0].inputs != before


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = sounded(Path(folder))
    golden = {"forms": forms(), "sounded": found}
    GOLDEN.write_text(json.dumps(golden, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
