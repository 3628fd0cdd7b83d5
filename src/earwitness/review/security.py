"""What stands between the network and the app: sizes, headers, origins, rates.

Tokens
    A link carries 256 random bits. Opening it puts the token into a cookie that scripts cannot read, for the part of
    the app the role may use, and leads on to an address without it. Only hashes are stored.
Forged requests
    A request that changes something must carry a word made from the token, which another site cannot know, and come
    from the same origin where the browser says so.
Pages
    Scripts and styles come from files of the app alone; nothing may frame a page; nothing is cached.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

FORM_BYTES = 64 * 1024
"""Largest answer; a note has at most 2,000 characters."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self' blob:; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)

_HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    # Not "no-referrer": with it browsers send "Origin: null" along with forms, and origins could not be compared.
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"microphone=(self), camera=(), geolocation=()"),
)


class SecureHeaders:
    """Puts the headers on every response; what has no ``cache-control`` is not stored anywhere."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message.setdefault("headers", [])
                names = {name for name, _ in headers}
                headers.extend(_HEADERS)
                if b"cache-control" not in names:
                    headers.append((b"cache-control", b"no-store"))
            await send(message)

        await self.app(scope, receive, sending)


class TooLargeError(Exception):
    """A body of more bytes than are taken."""


async def read_body(request: Request, most: int) -> bytes:
    """The body, or an error as soon as it is known to be too large.

    Raises
    ------
    TooLargeError: the header says so, or more than ``most`` bytes came.
    """
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > most:
        raise TooLargeError
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise TooLargeError
        parts.append(part)
    return b"".join(parts)


def csrf_word(token: str) -> str:
    """The word that pages carry and changes must bring back; it tells nothing of the token."""
    return hmac.new(token.encode(), b"earwitness review", hashlib.sha256).hexdigest()


def is_csrf_word(token: str, given: object) -> bool:
    """Whether it is that word, compared in constant time."""
    return isinstance(given, str) and hmac.compare_digest(
        csrf_word(token).encode(), given.encode("utf-8", "surrogatepass")
    )


def is_same_origin(request: Request) -> bool:
    """Whether the browser says that one of our own pages asked; one that says nothing has the word alone."""
    site = request.headers.get("sec-fetch-site")
    if site is not None and site not in ("same-origin", "none"):
        return False
    origin = request.headers.get("origin")
    if origin is None:
        return True
    return urlsplit(origin).netloc == request.headers.get("host", "")


class Allowance:
    """A bucket for each name that fills with time: ``rate`` a second, at most ``burst``.

    Examples
    --------
    >>> allowance = Allowance(rate=1, burst=2, clock=lambda: 0.0)
    >>> [allowance.take("ann") for _ in range(3)]
    [True, True, False]
    """

    def __init__(
        self,
        *,
        rate: float,
        burst: int,
        clock: Callable[[], float] = time.monotonic,
        most_names: int = 10_000,
    ) -> None:
        self.rate = rate
        self.burst = burst
        self._clock = clock
        self._most = most_names
        self._left: OrderedDict[Any, tuple[float, float]] = OrderedDict()

    def take(self, name: object) -> bool:
        """Take one; False when there is none."""
        at = self._clock()
        left, since = self._left.pop(name, (float(self.burst), at))
        left = min(float(self.burst), left + (at - since) * self.rate)
        allowed = left >= 1
        self._left[name] = (left - 1 if allowed else left, at)
        while len(self._left) > self._most:
            self._left.popitem(last=False)
        return allowed
