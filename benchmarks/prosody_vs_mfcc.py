"""Prosody baseline beside MFCC statistics with a support vector machine, on RAVDESS, by speaker.

Run by ``make bench`` or ``python -m benchmarks prosody_vs_mfcc``. Needs RAVDESS speech (WAV or FLAC) in the
folder that EARWITNESS_RAVDESS names; without it, and without the test recordings, it says so and ends.

The first table is what ``earwitness baseline evaluate`` prints. Below it, the same answers of the prosody
baseline are compared with stronger references: 13 coefficients, and C and gamma chosen by nested folds
over speakers (which the plain reference does not do). The last lines restrict the first comparison to
actors 09 and up, whom nobody looked at while features and classifier were designed.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console

if TYPE_CHECKING:
    from earwitness.clips.corpus import ClipSet
    from earwitness.clips.training import Evaluation

FOLDS = 8
FIRST_UNSEEN_ACTOR = 9
TIMED_CLIPS = 30


def ravdess_folder() -> Path | None:
    """Where the recordings are, if anywhere."""
    named = os.environ.get("EARWITNESS_RAVDESS")
    data = os.environ.get("EARWITNESS_TEST_DATA")
    base = Path(data) if data else Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(named) if named else base / "emotional_speech" / "ravdess_flac"
    return folder if folder.is_dir() else None


def tuned(
    vectors: np.ndarray, labels: Sequence[str], speakers: Sequence[str], held_out: np.ndarray
) -> list[str]:
    """The reference with its C and gamma chosen inside the training speakers."""
    from sklearn.model_selection import GridSearchCV, GroupKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    grid = {
        "svc__C": [0.3, 1, 3, 10, 30],
        "svc__gamma": [f / vectors.shape[1] for f in (0.1, 0.3, 1, 3)],
    }
    search = GridSearchCV(
        make_pipeline(StandardScaler(), SVC(class_weight="balanced")), grid, cv=GroupKFold(5)
    )
    y, groups = np.asarray(labels), np.asarray(speakers)
    search.fit(vectors[~held_out], y[~held_out], groups=groups[~held_out])
    return [str(label) for label in search.predict(vectors[held_out])]


def main() -> None:
    source = ravdess_folder()
    if source is None:
        print("skipped: no RAVDESS recordings; set EARWITNESS_RAVDESS to their folder")
        return
    from earwitness.cli.baseline import print_evaluation
    from earwitness.clips.corpus import load_clip_set
    from earwitness.clips.importing import import_clips
    from earwitness.clips.training import evaluate_prosody

    with tempfile.TemporaryDirectory() as folder:
        import_clips("ravdess", source, Path(folder) / "ravdess")
        clip_set = load_clip_set(Path(folder) / "ravdess")
        print(f"earwitness baseline evaluate --clips ravdess --folds {FOLDS} --against mfcc-svm")
        found = evaluate_prosody([clip_set], folds=FOLDS)
        print_evaluation(Console(file=sys.stdout, width=110), found)
        _beside_stronger_references(clip_set, found)
        _cost(clip_set)


def _beside_stronger_references(clip_set: ClipSet, found: Evaluation) -> None:
    from earwitness.clips.corpus import clip_path
    from earwitness.models.prosody.evaluation import Predictions, gain, predict_mfcc_svm
    from earwitness.models.prosody.mfcc import mfcc_statistics
    from earwitness.models.prosody.reading import Source, mono_16k

    gold = [row.gold for row in found.answered]
    speakers = [row.speaker for row in found.answered]
    prosody = Predictions(tuple(row.answers[0] for row in found.answered))
    paths = {clip.id: clip_path(clip_set, clip) for clip in clip_set.clips}
    sounds = [mono_16k(Source(paths[row.id], "")) for row in found.answered]
    masks = [np.asarray([speaker in group for speaker in speakers]) for group in found.held_out]

    def line(name: str, other: Predictions, keep: Sequence[bool]) -> None:
        rows = [i for i, kept in enumerate(keep) if kept]

        def part(values: Sequence[str]) -> list[str]:
            return [values[i] for i in rows]

        g = gain(
            ("prosody", name),
            part(gold),
            (Predictions(tuple(part(prosody.labels))), Predictions(tuple(part(other.labels)))),
            part(speakers),
        )
        right = np.mean([a == b for a, b in zip(part(other.labels), part(gold), strict=True)])
        ours = np.mean([a == b for a, b in zip(part(prosody.labels), part(gold), strict=True)])
        d = g.difference
        print(
            f"{name:<42} {right:6.1%}   prosody {ours:6.1%}   gain {100 * d.value:+5.1f} "
            f"[{100 * d.low:+5.1f}, {100 * d.high:+5.1f}] points, sign-flip p = {g.p_sign_flip:.1e}"
        )

    everyone = [True] * len(gold)
    for coefficients in (13, 20):
        vectors = np.stack([mfcc_statistics(sound, coefficients) for sound in sounds]).astype(float)
        plain, chosen = [""] * len(gold), [""] * len(gold)
        for mask in masks:
            places = np.flatnonzero(mask)
            for into, answers in (
                (plain, predict_mfcc_svm(vectors, gold, mask).labels),
                (chosen, tuned(vectors, gold, speakers, mask)),
            ):
                for place, answer in zip(places, answers, strict=True):
                    into[place] = answer
        line(f"mfcc-svm, {coefficients} coefficients", Predictions(tuple(plain)), everyone)
        line(f"mfcc-svm, {coefficients}, C and gamma chosen", Predictions(tuple(chosen)), everyone)
    late = [int(speaker[-2:]) >= FIRST_UNSEEN_ACTOR for speaker in speakers]
    if any(late):
        reference = Predictions(tuple(row.answers[1] for row in found.answered))
        line(f"mfcc-svm, actors {FIRST_UNSEEN_ACTOR:02d} and up only", reference, late)


def _cost(clip_set: ClipSet) -> None:
    from earwitness.clips.corpus import clip_path
    from earwitness.models.prosody.features import extract, feature_names
    from earwitness.models.prosody.reading import Source, mono_16k

    few = clip_set.clips[:: max(1, len(clip_set.clips) // TIMED_CLIPS)]
    sounds = [mono_16k(Source(clip_path(clip_set, clip), "")) for clip in few]
    seconds = sum(len(sound) for sound in sounds) / 16_000
    best = np.inf
    for _ in range(3):
        started = time.process_time()
        for sound in sounds:
            extract(sound)
        best = min(best, time.process_time() - started)
    print(
        f"features: {len(feature_names())} in {1000 * best / seconds:.1f} CPU-ms a second of audio"
    )


if __name__ == "__main__":
    main()
