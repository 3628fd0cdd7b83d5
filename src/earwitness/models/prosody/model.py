"""``baseline/prosody``: the classifier of a model file as an :class:`AudioModel`.

It answers a clip only with a classifier that never heard the clip's speaker, and refuses the whole run
before the first clip where there is none.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earwitness.errors import EarwitnessError, ModelError, UsageError
from earwitness.models.adapter import AdapterInfo
from earwitness.models.options import Option, read_options
from earwitness.models.prosody.features import FEATURE_VERSION, feature_names
from earwitness.models.prosody.modelfile import Fitted, ProsodyModel, read_model
from earwitness.models.prosody.reading import features_of_stimulus
from earwitness.models.protocols import Limits, Reply, Request

NAME = "baseline/prosody"
SAME_RECORDING = 0.08
"""Median distance, in standard deviations of the features that do not depend on the gain, below which two
clips are one recording. Measured on 280 RAVDESS and 40 EmoDB clips: copies at another rate, gain or sample
format lie within 0.008, MP3 copies within 0.12 (nine in ten within 0.073), and no other clip is nearer
than 0.21."""

OPTIONS = (
    Option("weights", "text", "model file made by `earwitness baseline train`"),
    Option(
        "unknown_speakers",
        "text",
        "allow scores clips without a speaker, which you vouch are of nobody it was trained on",
        default="refuse",
        choices=("refuse", "allow"),
    ),
)

INFO = AdapterInfo(
    name="baseline",
    form=NAME,
    summary="pitch, energy, rhythm, spectrum and voice quality; no words, no neural network",
    options=OPTIONS,
    limits=Limits(formats=("wav", "flac"), needs_audio=True, tasks=("emotion",)),
    examples=(f"{NAME} -M weights=prosody.model",),
)

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class _Heard:
    """What a classifier was trained on: rows of the training matrix, and the hashes of their files."""

    rows: NDArray[np.intp]
    hashes: frozenset[str]


@dataclass(frozen=True, slots=True)
class Prosody:
    """An opened model file. ``heard`` is by name of classifier."""

    model: ProsodyModel
    weights_sha256: str
    heard: Mapping[str, _Heard]
    allow_unknown: bool = False

    @property
    def name(self) -> str:
        return NAME

    @property
    def limits(self) -> Limits:
        return INFO.limits

    @property
    def settings(self) -> Mapping[str, Any]:
        return {
            "weights_sha256": self.weights_sha256,
            "feature_version": FEATURE_VERSION,
            "folds": self.model.n_folds,
            "trained_on": [
                f"{source.name} {source.version}".strip() for source in self.model.sources
            ],
            "training_clips": len(self.model.examples),
            "synthetic": self.model.synthetic,
            "unknown_speakers": "allow" if self.allow_unknown else "refuse",
        }

    def preflight(self, requests: Sequence[Request]) -> None:
        """Refuse a run in which some clip would be scored by a classifier that knows it or its speaker.

        Raises
        ------
        UsageError: speakers or recordings overlap with the training clips, or a clip has no speaker.
        """
        nameless = [r.item_id for r in requests if not r.metadata.get("speaker")]
        if nameless and not self.allow_unknown:
            raise UsageError(
                NAME,
                f"{len(nameless)} of {len(requests)} clips have no speaker: {_some(nameless)}",
                "the speaker of every clip, to keep training and scoring apart",
                "Name them when importing the set, or, if nobody in it was trained on, "
                "add -M unknown_speakers=allow.",
            )
        known = sorted(
            {
                speaker
                for r in requests
                if (speaker := r.metadata.get("speaker", ""))
                and self.model.for_speaker(speaker) is None
            }
        )
        if known:
            raise UsageError(
                NAME,
                f"was trained on {len(known)} of the speakers it would be scored on: {_some(known)}",
                "clips of speakers it has never heard",
                "Train it on other speakers, or with --folds on this set, so that each clip "
                "is scored by a classifier that never heard its speaker.",
            )
        same = [
            r.item_id
            for r in requests
            if r.audio is not None and r.audio.sha256 in self.heard[self._fitted(r).name].hashes
        ]
        if same:
            raise UsageError(
                NAME,
                f"was trained on {len(same)} of the recordings it would be scored on, "
                f"under another speaker's name: {_some(same)}",
                "recordings it has never heard",
                "Give a speaker the same name in every set, or train on another set.",
            )

    async def ask(self, request: Request) -> Reply:
        """Probabilities of the labels it was trained on.

        Raises
        ------
        ModelError: no audio, no usable speaker, an unreadable clip, or a recording it was trained on.
        """
        started = time.perf_counter()
        if request.audio is None:
            raise ModelError(f"{NAME}: needs audio", kind="bad_request", retryable=False)
        try:
            self.preflight([request])
        except EarwitnessError as error:
            raise ModelError(str(error), kind="bad_request", retryable=False) from error
        scores, fitted = await asyncio.to_thread(self._scores, request)
        return Reply(
            scores=scores,
            latency_s=time.perf_counter() - started,
            provider_model=f"{NAME}@{self.weights_sha256[:12]}",
            raw={"classifier": fitted.name},
        )

    async def aclose(self) -> None:
        return None

    def _fitted(self, request: Request) -> Fitted:
        fitted = self.model.for_speaker(request.metadata.get("speaker", ""))
        assert fitted is not None  # preflight has refused what has none
        return fitted

    def _scores(self, request: Request) -> tuple[dict[str, float], Fitted]:
        assert request.audio is not None
        fitted = self._fitted(request)
        classifier = fitted.classifier
        try:
            vector = features_of_stimulus(request.audio)
        except EarwitnessError as error:
            raise ModelError(f"{NAME}: {error}", kind="audio", retryable=False) from error
        if request.audio.transform is None:
            self._refuse_copies(request.item_id, fitted, vector)
        probabilities = classifier.probabilities(vector[None, :])[0]
        return {
            label: round(float(p), 6)
            for label, p in zip(classifier.labels, probabilities, strict=True)
        }, fitted

    def _refuse_copies(self, item_id: str, fitted: Fitted, vector: NDArray[np.float32]) -> None:
        """A recording under another hash and name (converted, copied) is still one it has heard."""
        rows = self.heard[fitted.name].rows
        difference = np.abs(self.model.vectors[rows] - vector) / fitted.classifier.scale
        distance = np.median(difference[:, _gain_free()], axis=1)
        nearest = int(distance.argmin())
        if distance[nearest] < SAME_RECORDING:
            twin = self.model.examples[int(rows[nearest])]
            raise ModelError(
                f"{NAME}: {item_id} is a recording it was trained on: {twin.id} of "
                f"{twin.clip_set}, by {twin.speaker}",
                kind="bad_request",
                retryable=False,
            )


@lru_cache(maxsize=1)
def _gain_free() -> NDArray[np.bool_]:
    return np.asarray([not name.startswith("level_") for name in feature_names()])


def open_prosody(options: Mapping[str, Any]) -> Prosody:
    """Open ``baseline/prosody``.

    Parameters
    ----------
    options: see :data:`OPTIONS`; ``weights`` is required.

    Raises
    ------
    UsageError: no weights, or an unknown option.
    DataError: the weights are not a model file of this version.
    """
    values = read_options(NAME, options, OPTIONS)
    if not values["weights"]:
        raise UsageError(
            NAME,
            "no weights given",
            "-M weights=FILE",
            "Make the file with: earwitness baseline train --clips DIR --folds 8 --out FILE",
        )
    model, sha256 = read_model(values["weights"])
    heard = {}
    for fitted in model.fitted:
        rows = model.rows_heard_by(fitted)
        heard[fitted.name] = _Heard(rows, frozenset(model.examples[i].sha256 for i in rows))
    return Prosody(model, sha256, heard, values["unknown_speakers"] == "allow")


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return shown + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
