"""What OpenAI's prompt cache is told: which calls share their beginning, and where that ends.

Documented form as of November 2026: OpenAI API guide "Prompt caching". Equal beginnings from 1,024 tokens on are kept
without being asked for; ``prompt_cache_key`` brings calls that share one to the same machine. From GPT-5.6 on a write costs
1.25 times the input price, and what is written unless told otherwise ends with the newest message: for a thousand
scenes with the same instructions that is a thousand writes and no read. There ``prompt_cache_options`` with mode
``explicit`` and a ``prompt_cache_breakpoint`` on the instructions keep these alone.
"""

from __future__ import annotations

import hashlib
from typing import Any
from urllib.parse import urlsplit

from earwitness.models.options import Option
from earwitness.models.prices import text_tokens
from earwitness.models.protocols import Prompt

LEAST_CACHED_TOKENS = 1024
_HOST = "api.openai.com"
_KEY_LENGTH = 32
CACHE = Option(
    "cache",
    "text",
    "what OpenAI's prompt cache is told of the instructions that calls share: key (a name for them), explicit (GPT-5.6 "
    "and later: keep nothing else) or off. Unset: key for OpenAI's host, off elsewhere",
    choices=("off", "key", "explicit"),
)


def cache_choice(given: str | None, url: str) -> str:
    """What is done at a server: other servers than OpenAI's need not know the fields.

    >>> cache_choice(None, "http://localhost:8000/v1"), cache_choice(None, "https://api.openai.com/v1")
    ('off', 'key')
    """
    return given or ("key" if urlsplit(url).hostname == _HOST else "off")


def cache_fields(choice: str, system: str | None) -> dict[str, Any]:
    """Fields of a request beside its messages.

    Parameters
    ----------
    system: the words that all calls share.
    """
    fields: dict[str, Any] = {}
    if choice != "off" and _is_worth_it(system):
        fields["prompt_cache_key"] = hashlib.sha256((system or "").encode()).hexdigest()[
            :_KEY_LENGTH
        ]
    if choice == "explicit":
        fields["prompt_cache_options"] = {"mode": "explicit"}
    return fields


def ends_shared_part(choice: str, system: str | None) -> dict[str, Any]:
    """What marks the part of a message that holds the shared words; nothing where they are too short."""
    if choice != "explicit" or not _is_worth_it(system):
        return {}
    return {"prompt_cache_breakpoint": {"mode": "explicit"}}


def _is_worth_it(system: str | None) -> bool:
    return system is not None and text_tokens(Prompt(system)) >= LEAST_CACHED_TOKENS
