"""What the adapters of chat services have in common: key, address, price, the schema of a choice, the stimulus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from earwitness.errors import ModelError, UsageError
from earwitness.models.http import checked_url, is_loopback, read_key
from earwitness.models.options import Option
from earwitness.models.payload import Payload
from earwitness.models.prices import Price
from earwitness.models.protocols import Prompt, Reply, Request

TIMEOUT = Option(
    "timeout_s", "number", "longest wait for one complete answer, in seconds", 300.0, least=0.05
)
PRICES = (
    Option("price_in", "number", "USD per million input tokens, to count the cost", least=0.0),
    Option("price_out", "number", "USD per million output tokens", least=0.0),
)
EXTRA = Option("extra", "json", "further fields of the request, as a JSON object")
SERVER = Option(
    "server", "text", "name of the server in the run card, instead of base_url (a port may change)"
)
SAMPLING = (
    Option("temperature", "number", "sampling temperature", least=0.0),
    Option("top_p", "number", "nucleus sampling", least=0.0),
)
SAMPLING_IF_TAKEN = (
    Option("temperature", "number", "sampling temperature, for models that take one", least=0.0),
    Option("top_p", "number", "nucleus sampling, for models that take it", least=0.0),
)
AUDIO_FIRST = Option("audio_first", "yes/no", "put the audio before the words of the prompt", False)
PREFER = Option(
    "prefer", "text", "format for clips that must be converted", "wav", choices=("wav", "flac")
)
STRUCTURED = Option(
    "structured",
    "text",
    "ask the service to force the answer's form",
    "none",
    choices=("none", "json_schema", "json_object"),
)
CACHE_WRITE, CACHE_WRITE_1H = 1.25, 2.0
"""What a token written to a prompt cache costs, for minutes and for an hour, as parts of the input price.

Anthropic, "Prompt caching", and OpenAI, "Prompt caching" (GPT-5.6 and later; older models report no writes), November 2026.
"""
LONGEST = Option("max_seconds", "number", "longest clip the model takes, in seconds", least=0.0)


def service_options(
    url: str, variable: str, owner: str, *, upto: str = "/v1"
) -> tuple[Option, ...]:
    """Where a service is and what its key is called: ``base_url``, ``api_key_env``, ``server``.

    Parameters
    ----------
    url: address unless another is given.
    variable: holds the key that goes to that address's host alone.
    owner: whose host that is, for the help.
    upto: what the address ends with, for the help.
    """
    return (
        Option("base_url", "text", f"address of the service, up to and with {upto}", url),
        Option(
            "api_key_env",
            "text",
            f"environment variable that holds the key; empty: send none. Unset: {variable} for {owner}'s "
            "host, none for other hosts",
        ),
        SERVER,
    )


def service_address(full: str, url: str, *, ends: str = "") -> str:
    """A base URL without a trailing slash, query or the path of the call itself.

    Raises
    ------
    UsageError: it is no such address.
    """
    where = f"{full}: option base_url"
    url = checked_url(where, url).rstrip("/")
    parts = urlsplit(url)
    if parts.query or parts.fragment:
        raise UsageError(where, f"{url!r} has a query", "an address ending in the version")
    return url.removesuffix(ends) if ends else url


def service_key(
    full: str, url: str, given: str | None, by_host: Mapping[str, str]
) -> tuple[str, str | None]:
    """Variable that must hold the key (empty: none is needed) and the key it holds.

    A key goes only to the host it belongs to, unless ``api_key_env`` says otherwise.

    Raises
    ------
    UsageError: the key cannot be sent in a header.
    """
    host = urlsplit(url).hostname or ""
    variable = by_host.get(host, "") if given is None else given
    key = read_key(full, variable)
    return "" if is_loopback(url) and given is None else variable, key


def require_key(full: str, variable: str, key: str | None) -> None:
    """Refuse a run that would fail on every call for want of a key.

    Raises
    ------
    UsageError: there should be a key and is none.
    """
    if variable and key is None:
        raise UsageError(
            full,
            f"no key: the environment variable {variable} is not set",
            "a key of this service",
            f"Set {variable}, or name another variable with -M api_key_env=NAME.",
        )


def key_hint(variable: str) -> str:
    """What to say when a key is refused."""
    if variable:
        return f"the key is read from {variable}"
    return "no key was sent; name its variable with -M api_key_env=NAME"


def refuse_fields(full: str, extra: Mapping[str, Any] | None, reserved: set[str]) -> None:
    """Refuse an ``extra`` that would replace what is asked.

    Raises
    ------
    UsageError: it does.
    """
    taken = reserved & set(extra or {})
    if taken:
        raise UsageError(
            f"{full}: option extra", f"sets {', '.join(sorted(taken))}", "other fields"
        )


def with_price(reply: Reply, values: Mapping[str, Any], cached: float = 1.0) -> Reply:
    """The reply with its cost counted from ``price_in`` and ``price_out``, where the service states none.

    Parameters
    ----------
    cached: what a token read from a cache costs, as a part of ``price_in``.
    """
    price_in, price_out = values["price_in"], values["price_out"]
    if reply.usage.cost_usd is not None or price_in is None or price_out is None:
        return reply
    price = Price(
        input=price_in,
        output=price_out,
        cached_input=price_in * cached,
        cache_write=price_in * CACHE_WRITE,
        cache_write_1h=price_in * CACHE_WRITE_1H,
    )
    return replace(reply, usage=replace(reply.usage, cost_usd=price.of(reply.usage, 0.0)))


def with_stimulus(reply: Reply, payload: Payload | None, **more: Any) -> Reply:
    """The reply with a note of what was sent, without which a conversion would be silent."""
    if payload is None:
        return reply
    sent: dict[str, Any] = {"format": payload.format, "bytes": len(payload.data), **more}
    if payload.note:
        sent["note"] = payload.note
    return replace(reply, raw={**reply.raw, "stimulus": sent})


def choice_schema(choices: Sequence[str]) -> dict[str, Any]:
    """JSON schema of an object whose ``label`` is one of the choices."""
    return {
        "type": "object",
        "properties": {"label": {"type": "string", "enum": list(choices)}},
        "required": ["label"],
        "additionalProperties": False,
    }


def asked_schema(prompt: Prompt) -> Mapping[str, Any] | None:
    """The prompt's own schema, or one of its choices."""
    if prompt.schema is not None:
        return prompt.schema
    return choice_schema(prompt.choices) if prompt.choices else None


def require_schema(full: str, requests: Sequence[Request], structured: str) -> None:
    """Refuse a forced form without anything to force.

    Raises
    ------
    UsageError: a prompt has neither schema nor choices.
    """
    for request in requests:
        if asked_schema(request.prompt) is None:
            raise UsageError(
                full,
                f"structured={structured}, but item {request.item_id} has neither schema nor choices",
                "a prompt with one of them",
                "Use -M structured=none.",
            )


def unpaid(error: ModelError) -> ModelError:
    """The same error of a step that costs nothing (an upload, a look at a state)."""
    error.maybe_paid = False
    return error
