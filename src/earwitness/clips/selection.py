"""A balanced subset of a corpus, drawn with a seed.

Every draw is keyed by the seed and the *name* of what is drawn (a speaker, a clip), so that neither the
order of files in a folder nor the presence of other clips changes it.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from earwitness.errors import DataError, UsageError


@dataclass(frozen=True, slots=True)
class Candidate:
    """A clip that may be chosen. Clips without a speaker count as speakers of their own."""

    id: str
    label: str
    speaker: str = ""

    @property
    def voice(self) -> str:
        """The speaker, or a name of its own that no speaker can have."""
        return self.speaker or f"\x00{self.id}"


def stream(seed: int, name: str) -> np.random.Generator:
    """A generator of its own for every name: Philox keyed by SHA-256 of seed and name.

    >>> stream(0, "clip/a").random() == stream(0, "clip/a").random()
    True
    """
    key = hashlib.sha256(f"{seed}\x00{name}".encode()).digest()
    return np.random.Generator(np.random.Philox(key=np.frombuffer(key[:16], dtype="<u8")))


def draw(seed: int, name: str) -> float:
    """One number in [0, 1) for a name."""
    return float(stream(seed, name).random())


def choose_speakers(candidates: Sequence[Candidate], count: int, *, seed: int) -> frozenset[str]:
    """``count`` speakers, those with the most labels first, ties by draw.

    Raises
    ------
    DataError: speakers are not known, or there are fewer.
    """
    if count < 1:
        raise UsageError("--speakers", f"found {count}", "at least 1")
    unknown = sum(not candidate.speaker for candidate in candidates)
    if unknown:
        raise DataError(
            "--speakers",
            f"the source does not say who speaks in {unknown} of {len(candidates)} clips",
            "a speaker for every clip",
            "Leave --speakers out, or map a column with --map speaker=COLUMN.",
        )
    labels: dict[str, set[str]] = defaultdict(set)
    for candidate in candidates:
        labels[candidate.speaker].add(candidate.label)
    if len(labels) < count:
        raise DataError("--speakers", f"{len(labels)} speakers", f"{count}")
    ranked = sorted(labels, key=lambda s: (-len(labels[s]), draw(seed, f"speaker/{s}"), s))
    return frozenset(ranked[:count])


def choose_clips(candidates: Sequence[Candidate], per_label: int, *, seed: int) -> frozenset[str]:
    """``per_label`` clips of every label, from as many speakers as possible.

    First a maximum matching gives every speaker it can a clip of their own (so no other choice of the
    same size has more speakers), then the labels are filled: speakers that the label does not have yet
    come first, among them those with fewer clips so far, then by draw.

    Returns
    -------
    ids of the chosen clips.

    Raises
    ------
    DataError: a label has fewer clips.
    """
    if per_label < 1:
        raise UsageError("--per-label", f"found {per_label}", "at least 1")
    clips: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for candidate in candidates:
        clips[candidate.label][candidate.voice].append(candidate.id)
    short = {
        label: n
        for label, voices in sorted(clips.items())
        if (n := sum(len(ids) for ids in voices.values())) < per_label
    }
    if short:
        found = ", ".join(f"{label} has {n}" for label, n in short.items())
        raise DataError(
            "--per-label", found, f"{per_label} clips a label", f"Try {min(short.values())}."
        )
    draws = {c.id: draw(seed, f"clip/{c.id}") for c in candidates}
    voice_draws = {
        voice: draw(seed, f"speaker/{voice}") for voices in clips.values() for voice in voices
    }
    for voices in clips.values():
        for ids in voices.values():
            ids.sort(key=lambda i: (draws[i], i), reverse=True)  # the best is popped from the end
    # Labels with few speakers choose first: they have the least choice.
    order = sorted(clips, key=lambda label: (len(clips[label]), label))
    used: Counter[str] = Counter()
    chosen: dict[str, Counter[str]] = {label: Counter() for label in order}
    picked: list[str] = []

    def take(label: str, voice: str) -> None:
        picked.append(clips[label][voice].pop())
        chosen[label][voice] += 1
        used[voice] += 1

    for voice, label in sorted(_matching(clips, per_label, order, voice_draws).items()):
        take(label, voice)
    for label in order:
        while chosen[label].total() < per_label:
            open_voices = [voice for voice, ids in clips[label].items() if ids]
            take(
                label,
                min(
                    open_voices,
                    key=lambda v: (chosen[label][v], used[v], voice_draws[v], v),
                ),
            )
    return frozenset(picked)


def _matching(
    clips: dict[str, dict[str, list[str]]],
    per_label: int,
    order: Iterable[str],
    draws: dict[str, float],
) -> dict[str, str]:
    """A maximum matching of speakers to places in labels (Kuhn's augmenting paths)."""
    labels_of: dict[str, list[str]] = defaultdict(list)
    for label in order:
        for voice in clips[label]:
            labels_of[voice].append(label)
    holders: dict[str, list[str]] = {label: [] for label in clips}

    def place(voice: str, tried: set[str]) -> bool:
        # Emptier labels first, so that the speakers spread evenly before anyone has to move.
        for label in sorted(labels_of[voice], key=lambda name: len(holders[name])):
            if label in tried:
                continue
            tried.add(label)
            if len(holders[label]) < per_label:
                holders[label].append(voice)
                return True
            for index, holder in enumerate(holders[label]):
                if place(holder, tried):
                    holders[label][index] = voice
                    return True
        return False

    for voice in sorted(labels_of, key=lambda v: (draws[v], v)):
        place(voice, set())
    return {voice: label for label, voices in holders.items() for voice in voices}
