"""One small corpus with a library, made once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from earwitness.scenes.bank import Bank, load_bank
from earwitness.scenes.corpus import Corpus
from earwitness.scenes.sounds import SoundLibrary
from tests.scenes.mixing.made import make_corpus, make_library, park_sounds, scenario_of

TURN_S = (1.4, 1.9, 1.2, 2.2, 1.5, 1.8, 1.3)


@dataclass(frozen=True)
class Made:
    corpus: Corpus
    library: SoundLibrary
    bank: Bank


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Four scenes of 7 turns with 3, 2, 1 and 0 events; do not write into it."""
    folder = tmp_path_factory.mktemp("mixing")
    return make(folder)


def make(folder: Path) -> Made:
    sounds = park_sounds()
    library = make_library(folder / "library", sounds, ["park", "kitchen"])
    scenes = [
        (scenario_of("s.01", [(sounds[0], "ambient"), (sounds[1], "behavioral"), (sounds[2], "pivot")]), (1, 3, 6)),
        (scenario_of("s.02", [(sounds[3], "verbal"), (sounds[0], "ambient")], "kitchen", 1), (2, 5)),
        (scenario_of("s.03", [(sounds[4], "behavioral")], "park", 2), (4,)),
        (scenario_of("s.04", []), ()),
    ]  # fmt: skip
    corpus = make_corpus(folder / "corpus", [(s, places, TURN_S) for s, places in scenes], pause=True)  # fmt: skip
    return Made(corpus, library, load_bank())
