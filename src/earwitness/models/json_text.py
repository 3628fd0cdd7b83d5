"""JSON in what a model said: alone, between fences, inside prose, after thinking aloud."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_THINKING = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"```[\w-]*\s*\n(.*?)```", re.DOTALL)
_OPENING = re.compile(r"[{\[]")


def without_thinking(text: str) -> str:
    """A text without what its writer thought aloud between tags.

    >>> without_thinking("<think>hm</think> yes")
    'yes'
    """
    return _THINKING.sub("", text).strip()


def json_values(text: str) -> Iterator[Any]:
    """Every JSON object or list in a text: the whole, then fenced blocks, then wherever one begins.

    >>> list(json_values('Here: {"a": 1}, as asked.'))
    [{'a': 1}]
    """
    for part in (text, *_FENCE.findall(text)):
        try:
            yield json.loads(part)
        except (ValueError, RecursionError):
            continue
    decoder = json.JSONDecoder()
    at = 0
    while (match := _OPENING.search(text, at)) is not None:
        try:
            value, at = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            at = match.start() + 1
            continue
        yield value
