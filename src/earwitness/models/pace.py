"""How fast a model may be asked: its rate limits, as options of the model.

``-M requests_per_minute=60`` on the command line or under ``options:`` of a ``models.yaml`` entry. They belong to no
adapter, enter no reply's key and are kept by whoever asks (:mod:`earwitness.runs`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from earwitness.models.options import Option, read_options

PACE_OPTIONS: tuple[Option, ...] = (
    Option("requests_per_minute", "number", "calls a minute at most", least=0.001),
    Option("tokens_per_minute", "number", "tokens a minute at most, in and out", least=1.0),
    Option("audio_seconds_per_minute", "number", "seconds of audio a minute at most", least=0.1),
)


@dataclass(frozen=True, slots=True)
class Pace:
    """Limits of a service, each per minute; None where there is none."""

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    audio_seconds_per_minute: float | None = None

    def tightened(self, other: Pace) -> Pace:
        """The smaller of each limit.

        >>> Pace(60.0).tightened(Pace(30.0, 1000.0))
        Pace(requests_per_minute=30.0, tokens_per_minute=1000.0, audio_seconds_per_minute=None)
        """
        return Pace(
            _smaller(self.requests_per_minute, other.requests_per_minute),
            _smaller(self.tokens_per_minute, other.tokens_per_minute),
            _smaller(self.audio_seconds_per_minute, other.audio_seconds_per_minute),
        )


def _smaller(one: float | None, other: float | None) -> float | None:
    given = [each for each in (one, other) if each is not None]
    return min(given, default=None)


def split_pace(where: str, options: Mapping[str, Any]) -> tuple[Pace | None, dict[str, Any]]:
    """The pace among a model's options (None where there is none) and the options of its adapter.

    Raises
    ------
    UsageError: a limit that is not a positive number.
    """
    names = {option.name for option in PACE_OPTIONS}
    given = {key: value for key, value in options.items() if key in names}
    rest = {key: value for key, value in options.items() if key not in names}
    if not given:
        return None, rest
    return Pace(**read_options(where, given, PACE_OPTIONS)), rest


def pace_of(model: object) -> Pace:
    """The pace a model was opened with; no limits where it says nothing."""
    found = getattr(model, "pace", None)
    return found if isinstance(found, Pace) else Pace()
