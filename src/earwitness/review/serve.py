"""Serving a review folder: one process, one port, until it is stopped."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from earwitness.errors import MissingExtraError, UsageError
from earwitness.review.store import new_organiser, opened

DEFAULT_PORT = 8642
KEEP_ALIVE_S = 30
MOST_CONNECTIONS = 1000


@dataclass(frozen=True, slots=True)
class Served:
    """Where a folder is served, and the organiser's link of this start."""

    address: str
    organiser: str
    loopback: bool
    secure: bool


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def serve(
    folder: Path,
    *,
    host: str = "127.0.0.1",
    port: int = DEFAULT_PORT,
    certificate: Path | None = None,
    key: Path | None = None,
    on_start: Callable[[Served], None] | None = None,
) -> None:
    """Serve a folder until the process is interrupted. Answers are on the disk before they are confirmed.

    Parameters
    ----------
    port: 0 takes a free one.
    certificate, key: PEM files; both, for https. Browsers give no microphone over plain http, but for this machine.
    on_start: called once the port is open.

    Raises
    ------
    MissingExtraError: [review] is not installed.
    UsageError: the port is taken, a file is missing, or it is one of certificate and key alone.
    DataError: it is no review folder.
    """
    try:
        import starlette  # noqa: F401
        import uvicorn
    except ImportError:
        raise MissingExtraError("earwitness review serve", "review") from None
    if (certificate is None) != (key is None):
        raise UsageError("--tls-cert", "goes with --tls-key", "both or neither")
    for path in (certificate, key):
        if path is not None and not path.is_file():
            raise UsageError(str(path), "no such file", "a PEM file")
    secure = certificate is not None
    from earwitness.review.app import build_app

    listener = _listen(host, port)
    try:
        app = build_app(folder, secure=secure)
    except BaseException:
        listener.close()
        raise
    config = uvicorn.Config(
        app,
        ssl_certfile=certificate,
        ssl_keyfile=key,
        # Addresses of links hold tokens: no access log.
        access_log=False,
        log_level="warning",
        server_header=False,
        ws="none",
        timeout_keep_alive=KEEP_ALIVE_S,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_graceful_shutdown=5,
        proxy_headers=False,
    )
    try:
        config.load()
    except OSError as error:
        listener.close()
        raise UsageError(
            "--tls-cert", f"cannot be used ({error})", "PEM files that belong together"
        ) from None
    with opened(folder) as db:
        token = new_organiser(db)
    if on_start is not None:
        name = listener.getsockname()
        shown = "localhost" if name[0] in ("0.0.0.0", "::") else name[0]
        shown = f"[{shown}]" if ":" in shown else shown
        address = f"{'https' if secure else 'http'}://{shown}:{name[1]}"
        on_start(Served(address, f"{address}/o/{token}", is_loopback(host), secure))
    uvicorn.Server(config).run(sockets=[listener])


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen(256)
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"{host}:{port}",
            f"cannot be opened ({error})",
            "a free port",
            "Name another: --port 0 takes a free one.",
        ) from None
    return listener
