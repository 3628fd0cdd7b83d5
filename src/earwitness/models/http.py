"""One HTTP call with a streamed body, and what its failures mean.

Shared by every adapter that speaks HTTP. It makes one attempt: an answer of any status comes back as
:class:`HttpAnswer`, a broken connection is raised as :class:`~earwitness.errors.ModelError`, and
:func:`error_from` turns a bad status into one. Whether a failed call may have been paid for is decided by
whether the whole request had gone out.
"""

from __future__ import annotations

import asyncio
import base64
import functools
import ipaddress
import json
import os
import ssl
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit

from earwitness.errors import ModelError, UsageError
from earwitness.models.patience import parse_retry_after
from earwitness.models.redaction import Redactor

if TYPE_CHECKING:
    import httpx

CONNECT_TIMEOUT_S = 20.0
MAX_REPLY_BYTES = 32 * 1024 * 1024
"""More than this is no answer to a question; reading on would only fill memory."""
RAW_CHUNK_BYTES = 192 * 1024
"""Audio bytes turned into base64 at a time; a multiple of three, so that the pieces join."""

_RETRYABLE = frozenset({408, 409, 425, 429})
_PERMANENT_5XX = frozenset({501, 505, 511})
_MAYBE_PAID = frozenset({408, 502, 504, 524})
_KINDS = {
    400: "bad_request", 401: "auth", 402: "quota", 403: "auth", 404: "missing", 405: "bad_request",
    408: "timeout", 409: "conflict", 410: "missing", 413: "too_large", 415: "bad_request",
    422: "bad_request", 425: "server", 429: "rate_limit", 504: "timeout", 524: "timeout",
}  # fmt: skip
_QUOTA_WORDS = frozenset(
    {
        "insufficient_quota",
        "billing_hard_limit_reached",
        "billing_not_active",
        "insufficient_balance",
        "insufficient_credits",
        "arrearage",
        "allocationquota.freetieronly",
    }
)
_BLOCKED_WORDS = frozenset(
    {
        "content_policy_violation",
        "content_filter",
        "content_filtered",
        "responsibleaipolicyviolation",
        "data_inspection_failed",
        "datainspectionfailed",
        "moderation_blocked",
        "safety",
    }
)
_TOO_LARGE_WORDS = frozenset(
    {"context_length_exceeded", "string_above_max_length", "request_too_large"}
)


class Body:
    """A request's body, produced piece by piece; ``sent`` turns True when the last piece has gone out.

    ``data`` is sent once, as it is or as base64, between ``before`` and ``after``. No base64 text of the
    whole exists at any time.
    """

    def __init__(
        self,
        media_type: str,
        before: bytes,
        data: bytes = b"",
        after: bytes = b"",
        *,
        as_base64: bool = True,
    ) -> None:
        self.media_type = media_type
        self._before = before
        self._data = data
        self._after = after
        self._as_base64 = as_base64
        self.sent = False

    @property
    def length(self) -> int:
        """Bytes on the wire."""
        coded = -(-len(self._data) // 3) * 4 if self._as_base64 else len(self._data)
        return len(self._before) + coded + len(self._after)

    def release(self) -> None:
        """Let go of the audio: the HTTP library keeps a connection's last request for as long as it lives."""
        self._data = b""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = len(self._data)
        for start in range(0, max(size, 1), RAW_CHUNK_BYTES):
            piece = self._data[start : start + RAW_CHUNK_BYTES]
            coded = base64.b64encode(piece) if self._as_base64 else piece
            # Joined with what surrounds it: every piece costs the HTTP library a send of its own.
            before = self._before if start == 0 else b""
            after = self._after if start + RAW_CHUNK_BYTES >= size else b""
            yield b"".join((before, coded, after))
        self.sent = True


class FileBody(Body):
    """A body that is read from an open file piece by piece, between ``before`` and ``after``."""

    def __init__(
        self, media_type: str, before: bytes, file: IO[bytes], size: int, after: bytes = b""
    ) -> None:
        super().__init__(media_type, before, after=after, as_base64=False)
        self._file = file
        self._size = size

    @property
    def length(self) -> int:
        return super().length + self._size

    async def __aiter__(self) -> AsyncIterator[bytes]:
        self._file.seek(0)
        yield self._before
        left = self._size
        while left > 0 and (piece := self._file.read(min(RAW_CHUNK_BYTES, left))):
            left -= len(piece)
            yield piece
        yield self._after
        self.sent = True


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """Status, headers (lower-case names) and body of an answer, with the seconds it took."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    seconds: float

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", errors="replace")

    @property
    def media_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


@dataclass(eq=False)
class HttpCaller:
    """Makes calls for one model; one connection pool, opened in the event loop that first uses it.

    Parameters
    ----------
    service: the model's name, for messages.
    timeout_s: for one call from the first byte out to the last byte in, however slowly it drips.
    redact: cleans everything that is quoted from an answer.
    """

    service: str
    timeout_s: float
    redact: Redactor
    _client: httpx.AsyncClient | None = field(default=None, repr=False)
    _loop: asyncio.AbstractEventLoop | None = field(default=None, repr=False)

    async def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: Body | None = None,
        *,
        sink: IO[bytes] | None = None,
        within_s: float | None = None,
    ) -> HttpAnswer:
        """Make one call.

        Parameters
        ----------
        sink: where a good answer's body goes as it comes, however large; the answer's own body is empty then.
        within_s: time for the whole call instead of ``timeout_s``, for large files. Silence is still waited for no
            longer than ``timeout_s``.

        Raises
        ------
        ModelError: no complete answer came back (``connection``, ``timeout``, ``tls``, ``bad_reply``).
        """
        import httpx

        given = dict(headers)
        if body is not None:
            given |= {"Content-Type": body.media_type, "Content-Length": str(body.length)}
        client = self._opened(url)
        longest_s = self.timeout_s if within_s is None else within_s
        began = time.perf_counter()

        def failed(
            what: str, kind: str, *, retryable: bool = True, paid: bool = False
        ) -> ModelError:
            # A request that had not gone out completely cannot have been worked on.
            out = body is None or body.sent
            return ModelError(
                f"{self.service}: {what}",
                kind=kind,
                retryable=retryable,
                maybe_paid=paid and out and method != "GET",
            )

        try:
            async with (
                asyncio.timeout(longest_s),
                client.stream(method, url, headers=given, content=body) as answer,
            ):
                if sink is not None and answer.is_success:
                    data = await _pour(answer, sink)
                else:
                    data = await _read(answer)
                seconds = time.perf_counter() - began
                return HttpAnswer(
                    answer.status_code,
                    {name.lower(): value for name, value in answer.headers.items()},
                    data,
                    seconds,
                )
        except _TooMuchError:
            raise failed(
                f"the answer is larger than {MAX_REPLY_BYTES:,} bytes",
                "bad_reply",
                retryable=False,
                paid=True,
            ) from None
        except (TimeoutError, httpx.ReadTimeout, httpx.WriteTimeout):
            raise failed(
                f"no complete answer within {longest_s:g} s", "timeout", paid=True
            ) from None
        except (httpx.ConnectTimeout, httpx.PoolTimeout):
            raise failed(f"no connection to {place_of(url)} in time", "connection") from None
        except httpx.ConnectError as error:
            if certificate_problem(error):
                what = f"the certificate of {place_of(url)} is not trusted: {self.redact.excerpt(str(error))}"
                raise failed(what, "tls", retryable=False) from None
            what = f"cannot connect to {place_of(url)}: {self.redact.excerpt(str(error))}"
            raise failed(what, "connection") from None
        except httpx.DecodingError:
            raise failed("the answer's compression is broken", "bad_reply", paid=True) from None
        except (httpx.UnsupportedProtocol, httpx.ProxyError) as error:
            what = self.redact.excerpt(str(error))
            raise failed(
                what, "connection", retryable=isinstance(error, httpx.ProxyError)
            ) from None
        except httpx.TransportError as error:
            reason = self.redact.excerpt(str(error)) or type(error).__name__
            raise failed(f"the connection broke: {reason}", "connection", paid=True) from None
        finally:
            if body is not None:
                body.release()

    def _opened(self, url: str) -> httpx.AsyncClient:
        import httpx

        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            connect_s = min(CONNECT_TIMEOUT_S, self.timeout_s)
            self._client = httpx.AsyncClient(
                timeout=httpx.Timeout(self.timeout_s, connect=connect_s),
                # The runner bounds concurrency; a second bound here would only add waiting.
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=64),
                follow_redirects=False,
                trust_env=not is_loopback(url),
                verify=_trusted(not is_loopback(url)),
                headers={"User-Agent": _user_agent()},
            )
            self._loop = loop
        return self._client

    async def aclose(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.aclose()


class _TooMuchError(Exception):
    pass


async def _read(answer: httpx.Response) -> bytes:
    pieces: list[bytes] = []
    total = 0
    async for piece in answer.aiter_bytes():
        total += len(piece)
        if total > MAX_REPLY_BYTES:
            raise _TooMuchError
        pieces.append(piece)
    return b"".join(pieces)


async def _pour(answer: httpx.Response, sink: IO[bytes]) -> bytes:
    async for piece in answer.aiter_bytes():
        sink.write(piece)
    return b""


@functools.cache
def _trusted(trust_env: bool) -> ssl.SSLContext:
    """Whom connections trust. Reading the authorities takes 40 ms, so that all models of a process share it."""
    import httpx

    return httpx.create_ssl_context(trust_env=trust_env)


def _user_agent() -> str:
    from earwitness import __version__

    return f"earwitness/{__version__}"


def certificate_problem(error: BaseException) -> bool:
    """Whether a connection failed because nobody vouches for the other side."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ssl.SSLCertVerificationError):
            return True
        seen = seen.__cause__ or seen.__context__
    return "CERTIFICATE_VERIFY_FAILED" in str(error)


def place_of(url: str) -> str:
    """Scheme, host and port of a URL, for messages."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")


def is_loopback(url: str) -> bool:
    """Whether a URL leads to this very machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def checked_url(where: str, url: str) -> str:
    """An http(s) URL without credentials in it.

    Raises
    ------
    UsageError: no http(s) URL, no host, or a user name or password inside.
    """
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise UsageError(
            where, f"{url!r} is no URL ({error})", "such as https://api.example.com/v1"
        ) from None
    if parts.username or parts.password:
        raise UsageError(
            where,
            "the URL holds a user name or password",
            "a URL without them, since it is written into the run card",
            "Put the key into an environment variable and name that.",
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(where, f"{url!r} is no http(s) URL", "such as https://api.example.com/v1")
    return url


def read_key(where: str, variable: str) -> str | None:
    """The key held by an environment variable, or None where it is not set.

    Raises
    ------
    UsageError: the value cannot be sent in a header; the value itself is not shown.
    """
    key = os.environ.get(variable, "").strip() if variable else ""
    if not key:
        return None
    if not key.isascii() or not key.isprintable() or " " in key:
        raise UsageError(
            where,
            f"the value of {variable} holds characters no key has (spaces, line breaks, accents)",
            "the key alone",
            f"Set {variable} again.",
        )
    return key


def error_codes(body: Any) -> set[str]:
    """The short words a service uses to name an error: ``code``, ``type`` and ``status`` wherever they sit."""
    found: set[str] = set()

    def collect(value: Any, depth: int) -> None:
        if not isinstance(value, dict) or depth > 3:
            return
        for name in ("code", "type", "status", "reason"):
            word = value.get(name)
            if isinstance(word, str):
                found.add(word.lower())
        for name in ("error", "innererror", "detail", "metadata"):
            collect(value.get(name), depth + 1)

    collect(body, 0)
    return found


def is_blocked(status: int, codes: set[str], body: Any) -> bool:
    """Whether an error says that the content was blocked, which is an answer and not a failure."""
    if status not in (200, 400, 403, 422, 451):
        return False
    if codes & _BLOCKED_WORDS:
        return True
    error = body.get("error") if isinstance(body, dict) else None
    metadata = error.get("metadata") if isinstance(error, dict) else None
    # OpenRouter: 403 with the reasons for which its moderation flagged the input.
    return status == 403 and isinstance(metadata, dict) and "flagged_input" in metadata


def parsed(text: str) -> Any:
    """JSON, or None where it is not."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def classified(code: int, codes: set[str], advised: str = "") -> tuple[str, bool]:
    """Kind of an error and whether another try may help, by its status and the words it names itself with.

    Parameters
    ----------
    codes: as :func:`error_codes` finds them.
    advised: the service's own advice, ``true`` or ``false``; empty: none.
    """
    kind = _KINDS.get(code, "server" if code >= 500 else "bad_request")
    retryable = code in _RETRYABLE or (code >= 500 and code not in _PERMANENT_5XX)
    if advised in ("true", "false") and code >= 400:
        retryable = advised == "true"
    if codes & _QUOTA_WORDS:
        kind, retryable = "quota", False
    elif code < 500 and codes & _TOO_LARGE_WORDS:
        kind, retryable = "too_large", False
    return kind, retryable


def error_from(
    service: str, answer: HttpAnswer, redact: Redactor, *, status: int | None = None, hint: str = ""
) -> ModelError:
    """What a status that is not 2xx (or an error object in a 200, with ``status`` given) means.

    Parameters
    ----------
    hint: what the user can do about an ``auth`` error.
    """
    code = answer.status if status is None else status
    advised = answer.headers.get("x-should-retry", "").lower()
    kind, retryable = classified(code, error_codes(parsed(answer.text)), advised)
    message = f"{service}: HTTP {answer.status}"
    if status is not None and status != answer.status:
        message += f" with error {status}"
    if 300 <= code < 400:
        retryable = False
        target = redact.excerpt(answer.headers.get("location", ""))
        message += f", which leads elsewhere ({target}); use the final address as the base URL"
    said = redact.excerpt(answer.text)
    message += f": {said}" if said else " without a word"
    if kind == "auth" and hint:
        message += f" ({hint})"
    return ModelError(
        message,
        kind=kind,
        retryable=retryable,
        status=code,
        retry_after_s=parse_retry_after(answer.headers) if retryable else None,
        maybe_paid=code in _MAYBE_PAID,
    )
