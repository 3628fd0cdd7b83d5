"""Rooms of scenes: which there are for a location and split, made once and kept as files in the corpus.

A location has as many rooms as its bank entry says, divided among the splits: number n serves split n modulo 3, so
that no split hears a room of another. Each is a box like the location's, with other sides, another distance and
other places to stand (:func:`earwitness.audio.rooms.varied`), drawn from a stream keyed by location and number.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from earwitness.audio.files import atomic_write_bytes, file_sha256
from earwitness.audio.rooms import RoomSpec, impulse_response, varied
from earwitness.errors import DataError, UsageError
from earwitness.runs.items import digest
from earwitness.scenes.bank_records import Location, Room
from earwitness.scenes.scenario import SPLITS, Split
from earwitness.stats.streams import stream

if TYPE_CHECKING:
    from earwitness.audio.types import Samples

FOLDER = "rooms"
FORM = 1
"""Of how a response is made; raised when the same room would sound different."""

EAR_HEIGHT_M = 1.2
"""Of somebody who sits; the voice comes from a little higher. Lower rooms take a share of their height."""
VOICE_HEIGHT_M = 1.35


@dataclass(frozen=True, slots=True)
class RoomChoice:
    """One room: what it is made from, and the file that holds its response."""

    location: str
    room: Room
    number: int
    seed: int
    rate: int

    @property
    def key(self) -> str:
        """Hash of everything the response depends on."""
        return digest(
            {
                "form": FORM,
                "location": self.location,
                "room": self.room.model_dump(mode="json"),
                "number": self.number,
                "seed": self.seed,
                "rate": self.rate,
            }
        )

    @property
    def file(self) -> str:
        """Below the corpus folder."""
        return f"{FOLDER}/{self.location}-{self.number:02d}-{self.key[:12]}.npy"


def rooms_of(location: Location, split: Split) -> tuple[int, ...]:
    """Numbers of the rooms a split has at a location; all of them where there are fewer than splits."""
    count = location.room.variations
    if count < len(SPLITS):
        return tuple(range(count))
    return tuple(range(SPLITS.index(split), count, len(SPLITS)))


def choose_room(location: Location, split: Split, draw: int, seed: int, rate: int) -> RoomChoice:
    """A room of a split by a drawn number."""
    numbers = rooms_of(location, split)
    return RoomChoice(location.id, location.room, numbers[draw % len(numbers)], seed, rate)


def spec_of(room: Room) -> RoomSpec:
    """A bank's room as a box with somebody speaking in its middle."""
    length, width, height = room.size_m
    flat = room.mic_distance_m / 2
    ear = min(EAR_HEIGHT_M, 0.45 * height)
    voice = min(VOICE_HEIGHT_M, 0.55 * height)
    if flat >= length / 2:
        raise UsageError(
            "room", f"mic_distance_m {room.mic_distance_m:g} in a length of {length:g} m", "less than the length"
        )  # fmt: skip
    return RoomSpec(
        room.size_m,
        source_m=(length / 2 + flat, width / 2, voice),
        mic_m=(length / 2 - flat, width / 2, ear),
        rt60_s=room.rt60_s,
    )


def make_room(choice: RoomChoice) -> Samples:
    """The response of a room, a function of the choice alone.

    Rooms whose walls swallow so much that no reverberation time can be fitted (open spaces) are made from their
    absorption.
    """
    from dataclasses import replace

    def rng(purpose: str) -> np.random.Generator:
        return stream(choice.seed, "mix", "room", choice.location, str(choice.number), purpose)

    room = choice.room
    spec = varied(
        spec_of(room), rng("shape"), size_share=room.size_jitter, distance_share=room.mic_jitter
    )
    try:
        return impulse_response(spec, choice.rate, rng("images"))
    except UsageError:
        absorbing = replace(spec, rt60_s=None, absorption=room.absorption)
        return impulse_response(absorbing, choice.rate, rng("images"))


def store_room(folder: Path, choice: RoomChoice) -> str:
    """Make a room's file where it is not there yet; returns the hash of the file."""
    path = folder / choice.file
    if not path.is_file():
        out = io.BytesIO()
        np.save(out, make_room(choice), allow_pickle=False)
        atomic_write_bytes(path, out.getvalue())
    return file_sha256(path)


@lru_cache(maxsize=4)
def load_room(path: Path, sha256: str) -> Samples:
    """A stored response.

    Raises
    ------
    DataError: the file is missing or not the one that was planned with.
    """
    if not path.is_file() or file_sha256(path) != sha256:
        raise DataError(
            str(path), "is missing or was changed", "the room's response", "Run the same command again."
        )  # fmt: skip
    made: Samples = np.load(path, allow_pickle=False)
    made.flags.writeable = False
    return made
