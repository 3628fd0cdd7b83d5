"""Keeping keys and audio out of messages, ledgers and reports.

Services echo what they were sent: a key in a 401, a whole request in a 400. Nothing they say is stored
before it has been through here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

EXCERPT_CHARACTERS = 500
SHORT_RUN = 80
"""Characters of base64 without a break that are taken for data in an error message."""
LONG_RUN = 1000
"""The same in a model's answer, where long unbroken text is unlikely but must not be lost lightly."""

_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}")
_KEY_LIKE = re.compile(r"\b(?:sk|pk|rk|hf|gsk|xai)[-_][A-Za-z0-9_-]{12,}")
_AUDIO_URI = re.compile(r"data:[\w.+-]*/?[\w.+-]*;base64,[A-Za-z0-9+/=\\_-]*")


def _run(length: int) -> re.Pattern[str]:
    return re.compile(rf"(?:[A-Za-z0-9+/_-]|\\/|%2[BbFf]){{{length},}}={{0,2}}")


_RUNS = {SHORT_RUN: _run(SHORT_RUN), LONG_RUN: _run(LONG_RUN)}


class Redactor:
    """Removes given secrets, anything that looks like one, and long runs of base64.

    Examples
    --------
    >>> Redactor(["s3cret-key"])("Incorrect key s3cret-key")
    'Incorrect key [key removed]'
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        # The longest first, so that a secret containing another leaves no tail behind.
        self._secrets = sorted({secret for secret in secrets if secret}, key=len, reverse=True)

    def __repr__(self) -> str:
        return f"Redactor({len(self._secrets)} secrets)"

    def __call__(self, text: str, *, run: int = SHORT_RUN) -> str:
        """The text without secrets; ``run`` is :data:`SHORT_RUN` or :data:`LONG_RUN`."""
        for secret in self._secrets:
            text = text.replace(secret, "[key removed]")
        text = _BEARER.sub(r"\1 [key removed]", text)
        text = _KEY_LIKE.sub("[key removed]", text)
        text = _AUDIO_URI.sub("[audio removed]", text)
        return _RUNS[run].sub(
            lambda match: f"[{len(match.group())} characters of data removed]", text
        )

    def excerpt(self, text: str, limit: int = EXCERPT_CHARACTERS) -> str:
        """One line of at most ``limit`` characters, redacted before it is cut."""
        line = " ".join(self(text).split())
        return line if len(line) <= limit else line[: limit - 1] + "…"

    def tree(self, value: Any, *, run: int = SHORT_RUN) -> Any:
        """The same for every text inside lists and dictionaries."""
        if isinstance(value, str):
            return self(value, run=run)
        if isinstance(value, dict):
            return {self(str(key)): self.tree(item, run=run) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.tree(item, run=run) for item in value]
        return value
