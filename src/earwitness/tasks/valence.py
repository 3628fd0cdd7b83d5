"""Valence: the coarse direction of an emotion.

Four emotions are negative, happiness is positive, neutral is neutral; surprise can be either and is left
out, as VocalAffectBench does (T. Baumgartner and B. Tai, "VocalAffectBench", arXiv:2608.28932, "Metrics").
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

NEGATIVE: Final = "negative"
NEUTRAL: Final = "neutral"
POSITIVE: Final = "positive"
DIRECTIONS: Final = (NEGATIVE, NEUTRAL, POSITIVE)
NO_VALENCE: Final = "none"
"""Share of outputs whose label has no valence (surprise)."""

VALENCE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "anger": NEGATIVE,
        "disgust": NEGATIVE,
        "fear": NEGATIVE,
        "happiness": POSITIVE,
        "neutral": NEUTRAL,
        "sadness": NEGATIVE,
    }
)
