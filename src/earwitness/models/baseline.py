"""``baseline/...``: what a score must beat.

``baseline/majority`` always gives the commonest label, ``baseline/neutral`` always ``neutral``,
``baseline/uniform`` draws one of the allowed labels, ``baseline/prosody`` listens to pitch, energy and rhythm of a
voice, and ``baseline/listener`` to bands and levels of a scene. The first three never open the audio.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from earwitness.errors import DataError, LicenceError, ModelError, UsageError
from earwitness.models.adapter import AdapterInfo
from earwitness.models.listener.model import open_listener
from earwitness.models.options import Option, read_options
from earwitness.models.prosody.model import OPTIONS as PROSODY_OPTIONS
from earwitness.models.prosody.model import open_prosody
from earwitness.models.protocols import AudioModel, Limits, Reply, Request

LIMITS = Limits(formats=("wav", "flac", "mp3", "ogg", "aiff"), needs_choices=True)
_USED_BY = {"weights": "prosody, listener"}
EMOTION_LIMITS = replace(LIMITS, tasks=("emotion",))
INFO = AdapterInfo(
    name="baseline",
    form="baseline/majority | uniform | neutral | prosody | listener",
    summary="Floors to beat: one label always, chance, and the plain signal without words",
    options=(
        Option("train", "text", "majority: folder of the clip set whose labels are counted"),
        Option("seed", "integer", "uniform: seed of the draws", 0, least=0),
        *(
            replace(option, help=f"{_USED_BY.get(option.name, 'prosody')}: {option.help}")
            for option in PROSODY_OPTIONS
        ),
    ),
    limits=LIMITS,
    examples=("baseline/majority -M train=sets/train", "baseline/uniform -M seed=1"),
)
NAMES = ("majority", "uniform", "neutral", "prosody", "listener")
NEUTRAL = "neutral"


@dataclass(frozen=True)
class Majority:
    """Always the same label: the commonest of a training set, or the first of the alphabet without one."""

    counts: Mapping[str, int]
    trained_on: str
    training_audio: frozenset[str]
    name: str = "baseline/majority"
    limits: Limits = LIMITS

    @property
    def settings(self) -> Mapping[str, Any]:
        if not self.trained_on:
            return {"label": "first in alphabetical order"}
        return {
            "label": "commonest in training",
            "clips_sha256": self.trained_on,
            "counts": dict(self.counts),
        }

    def preflight(self, requests: Sequence[Request]) -> None:
        """Refuse to be scored on the clips whose labels were counted.

        Raises
        ------
        UsageError: a clip is in both sets.
        """
        shared = [
            request.item_id
            for request in requests
            if request.audio is not None and request.audio.sha256 in self.training_audio
        ]
        if shared:
            raise UsageError(
                self.name,
                f"{len(shared)} of the clips to be scored are in the training set (the first: {shared[0]})",
                "a training set of other clips",
                "Choose another set with -M train=DIR.",
            )

    async def ask(self, request: Request) -> Reply:
        choices = _choices(self.name, request)
        # Ties go to the first in alphabetical order, whatever order the prompt has.
        label = min(choices, key=lambda choice: (-self.counts.get(choice, 0), choice))
        return Reply(text=label)

    async def aclose(self) -> None:
        """Nothing to close."""


@dataclass(frozen=True)
class Uniform:
    """One of the allowed labels by chance, the same for an item whatever is asked before it."""

    seed: int
    name: str = "baseline/uniform"
    limits: Limits = LIMITS

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"seed": self.seed}

    async def ask(self, request: Request) -> Reply:
        import numpy as np

        choices = sorted(_choices(self.name, request))
        digest = hashlib.sha256(f"{self.seed}\0{request.item_id}".encode()).digest()
        generator = np.random.Generator(np.random.Philox(key=int.from_bytes(digest[:16], "little")))
        return Reply(text=choices[int(generator.integers(len(choices)))])

    async def aclose(self) -> None:
        """Nothing to close."""


@dataclass(frozen=True)
class Neutral:
    """Always ``neutral``."""

    name: str = "baseline/neutral"
    limits: Limits = EMOTION_LIMITS

    @property
    def settings(self) -> Mapping[str, Any]:
        return {}

    async def ask(self, request: Request) -> Reply:
        choices = _choices(self.name, request)
        if NEUTRAL not in choices:
            raise ModelError(
                f"{self.name}: the prompt does not allow {NEUTRAL!r} (it allows {', '.join(choices)})",
                kind="bad_request",
                retryable=False,
            )
        return Reply(text=NEUTRAL)

    async def aclose(self) -> None:
        """Nothing to close."""


def open(name: str, options: Mapping[str, Any]) -> AudioModel:  # noqa: A001
    """Open ``baseline/NAME``.

    Raises
    ------
    UsageError: no such baseline or option.
    DataError, LicenceError: the training set cannot be read, or may only be evaluated on.
    """
    full = f"baseline/{name}"
    if name == "prosody":
        return open_prosody(options)
    if name == "listener":
        return open_listener(options)
    by_name = {option.name: option for option in INFO.options}
    if name == "majority":
        train = read_options(full, options, (by_name["train"],))["train"]
        return _trained_majority(Path(train)) if train else Majority({}, "", frozenset())
    if name == "uniform":
        return Uniform(read_options(full, options, (by_name["seed"],))["seed"])
    if name == "neutral":
        read_options(full, options, ())
        return Neutral()
    raise UsageError(f"model {full!r}", "there is no such baseline", f"one of {', '.join(NAMES)}")


def _trained_majority(folder: Path) -> Majority:
    """Count the labels of a clip set, read as plain JSON lines: models know nothing of clip sets."""
    _refuse_evaluation_only(folder)
    path = folder / "clips.jsonl"
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(
            str(path),
            f"cannot be read ({error.strerror})",
            "a clip set",
            "Give its folder as train=DIR.",
        ) from None
    counts: Counter[str] = Counter()
    audio = set()
    for number, line in enumerate(data.decode("utf-8", errors="replace").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            clip = json.loads(line)
            counts[str(clip["emotion"])] += 1
            audio.add(str(clip["sha256"]))
        except (ValueError, KeyError, TypeError):
            raise DataError(
                f"{path}, line {number}", "is no clip", "JSON with emotion and sha256"
            ) from None
    if not counts:
        raise DataError(str(path), "holds no clips", "at least one labelled clip")
    return Majority(
        dict(sorted(counts.items())), hashlib.sha256(data).hexdigest(), frozenset(audio)
    )


def _refuse_evaluation_only(folder: Path) -> None:
    import yaml

    card = folder / "card.yaml"
    try:
        content = yaml.safe_load(card.read_text("utf-8"))
    except OSError:
        return
    except (UnicodeDecodeError, yaml.YAMLError):
        raise DataError(str(card), "cannot be read", "the card of a clip set") from None
    if isinstance(content, dict) and content.get("use") == "evaluation-only":
        raise LicenceError(
            str(folder),
            "this set may only be evaluated on",
            "a set that may be trained on",
            "Choose another set with -M train=DIR.",
        )


def _choices(name: str, request: Request) -> tuple[str, ...]:
    if not request.prompt.choices:
        raise ModelError(
            f"{name}: the prompt names no choices to pick from", kind="bad_request", retryable=False
        )
    return request.prompt.choices
