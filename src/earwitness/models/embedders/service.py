"""``openai/NAME``: any service that speaks ``POST {base_url}/embeddings`` as OpenAI does.

Text Embeddings Inference, vLLM, Infinity, Ollama and llama.cpp serve BGE and others so:
``openai/BAAI/bge-large-en-v1.5 -E base_url=http://localhost:8080/v1``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from earwitness.errors import ModelError, UsageError
from earwitness.models.embedders.hashes import unit_rows
from earwitness.models.http import (
    Body,
    HttpAnswer,
    HttpCaller,
    checked_url,
    error_from,
    is_loopback,
    parsed,
    read_key,
)
from earwitness.models.options import Option, read_options
from earwitness.models.patience import retry_wait_s
from earwitness.models.redaction import Redactor

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

OPENAI_URL = "https://api.openai.com/v1"
_KEY_VARIABLES = {"api.openai.com": "OPENAI_API_KEY"}
OPTIONS = (
    Option("base_url", "text", "address of the service, up to and with /v1", OPENAI_URL),
    Option("api_key_env", "text", "environment variable that holds the key"),
    Option("server", "text", "name of the server for the records, instead of base_url"),
    Option("revision", "text", "state of the weights, where you know it; for the records"),
    Option(
        "dimensions", "integer", "length of the vectors, where the service can shorten", least=1
    ),
    Option("batch", "integer", "texts a call", 32, least=1),
    Option("timeout_s", "number", "for one call", 60.0, least=0.1),
    Option("max_retries", "integer", "further tries of a call that failed", 5, least=0),
)
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 60.0


class ServiceEmbedder:
    """An embedding service. Use :func:`open_service` to make one."""

    def __init__(
        self,
        name: str,
        model: str,
        url: str,
        values: Mapping[str, Any],
        key: str | None,
        caller: HttpCaller,
    ) -> None:
        self._name = name
        self._model = model
        self._url = url
        self._values = values
        self._key = key
        self._caller = caller

    @property
    def name(self) -> str:
        return self._name

    @property
    def settings(self) -> Mapping[str, Any]:
        """What may change a vector, as far as anybody outside a service can know it."""
        kept = {key: self._values[key] for key in ("dimensions", "revision") if self._values[key]}
        return {"server": self._values["server"] or self._url, **kept}

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of unit length, (n, d).

        Raises
        ------
        ModelError: the service gave none, after all tries.
        """
        import numpy as np

        size = self._values["batch"]
        rows: list[list[float]] = []
        for start in range(0, len(texts), size):
            rows += await self._patiently(texts[start : start + size])
        if len({len(row) for row in rows}) > 1:
            raise self._bad("vectors of different lengths")
        return unit_rows(np.array(rows, np.float32).reshape(len(rows), -1))

    async def _patiently(self, texts: Sequence[str]) -> list[list[float]]:
        tries = self._values["max_retries"] + 1
        for number in range(1, tries + 1):
            try:
                return await self._call(texts)
            except ModelError as error:
                own_s = FIRST_WAIT_S * 2 ** (number - 1)
                wait_s = retry_wait_s(error.retry_after_s, own_s, LONGEST_WAIT_S)
                if not error.retryable or number == tries or wait_s is None:
                    raise
                await asyncio.sleep(wait_s)
        raise AssertionError("there is a last try")

    async def _call(self, texts: Sequence[str]) -> list[list[float]]:
        fields: dict[str, Any] = {
            "model": self._model,
            "input": list(texts),
            "encoding_format": "float",
        }
        if self._values["dimensions"]:
            fields["dimensions"] = self._values["dimensions"]
        headers = {"Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        body = Body("application/json", json.dumps(fields, ensure_ascii=False).encode())
        answer = await self._caller.send("POST", f"{self._url}/embeddings", headers, body)
        if answer.status != 200:
            hint = "name the variable of the key with -E api_key_env=NAME"
            raise error_from(self._name, answer, self._caller.redact, hint=hint)
        return self._rows(answer, len(texts))

    def _rows(self, answer: HttpAnswer, wanted: int) -> list[list[float]]:
        said = parsed(answer.text)
        data = said.get("data") if isinstance(said, dict) else None
        if not isinstance(data, list) or len(data) != wanted:
            raise self._bad(f"no list of {wanted} vectors")
        found: dict[int, list[float]] = {}
        for place, entry in enumerate(data):
            row = entry.get("embedding") if isinstance(entry, dict) else None
            index = entry.get("index", place) if isinstance(entry, dict) else None
            numbers = isinstance(row, list) and all(
                isinstance(value, (int, float)) and not isinstance(value, bool) for value in row
            )
            if not numbers or not row or not isinstance(index, int):
                raise self._bad("an entry that is no vector")
            found[index] = [float(value) for value in row]
        if sorted(found) != list(range(wanted)):
            raise self._bad("vectors that do not belong to the texts sent")
        return [found[index] for index in range(wanted)]

    def _bad(self, what: str) -> ModelError:
        return ModelError(f"{self._name}: {what}", kind="bad_reply", retryable=False)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._caller.aclose()


def open_service(model: str, options: Mapping[str, Any]) -> ServiceEmbedder:
    """Open ``openai/NAME`` for embeddings.

    Raises
    ------
    UsageError: an unknown or unfit option, or no key for a service that is not on this machine.
    """
    name = f"openai/{model}"
    values = read_options(name, options, OPTIONS)
    url = checked_url(f"{name}: option base_url", values["base_url"]).rstrip("/")
    url = url.removesuffix("/embeddings")
    variable = values["api_key_env"] or _KEY_VARIABLES.get(urlsplit(url).hostname or "", "")
    key = read_key(name, variable)
    if variable and key is None and not is_loopback(url):
        raise UsageError(
            name,
            f"no key: the environment variable {variable} is not set",
            "a key of this service",
            f"Set {variable}, or name another variable with -E api_key_env=NAME.",
        )
    redact = Redactor([key] if key else [])
    caller = HttpCaller(name, values["timeout_s"], redact)
    return ServiceEmbedder(name, model, url, values, key, caller)
