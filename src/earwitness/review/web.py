"""What every page does with a request: who asks, is it really them, and the answer as a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse

from earwitness import __version__
from earwitness.review.desk import Desk
from earwitness.review.security import csrf_word, is_csrf_word, is_same_origin
from earwitness.review.store import Person, Role, person_of

COOKIES: Mapping[Role, tuple[str, str]] = {
    "annotator": ("earwitness_work", "/work"),
    "organiser": ("earwitness_organiser", "/organiser"),
}
"""Name and path of each role's cookie: a browser sends neither to the other's pages."""

COOKIE_SECONDS = 180 * 24 * 3600


def desk_of(request: Request) -> Desk:
    """The state of the server."""
    desk: Desk = request.app.state.desk
    return desk


def token_of(request: Request, role: Role) -> str:
    """The token in the cookie of a role; empty without one."""
    return request.cookies.get(COOKIES[role][0], "")


def person_in(request: Request, role: Role = "annotator") -> Person:
    """Who asks.

    Raises
    ------
    HTTPException: 401 for nobody, 429 for too many wrong tokens.
    """
    desk = desk_of(request)
    token = token_of(request, role)
    person = person_of(desk.db, token, role) if token else None
    if person is None:
        if token:
            slow_down(request)
        raise HTTPException(
            401, "Open the link you were given. If it has stopped working, ask for a new one."
        )
    return person


def slow_down(request: Request) -> None:
    """Only wrong tokens are counted: whoever has a right one is not kept out by those who guess."""
    host = request.client.host if request.client else ""
    if not desk_of(request).guessing.take(host):
        raise HTTPException(429, "Too many wrong links. Wait a minute.", {"retry-after": "60"})


def require_ours(request: Request, role: Role, word: object) -> None:
    """Refuse what another site made the browser send.

    Raises
    ------
    HTTPException: 403.
    """
    if not is_same_origin(request) or not is_csrf_word(token_of(request, role), word):
        raise HTTPException(403, "This page is out of date. Reload it and send again.")


def render(request: Request, name: str, status: int = 200, **context: Any) -> HTMLResponse:
    """A page."""
    desk = desk_of(request)
    text = desk.templates.get_template(name).render(
        project=desk.project, version=__version__, **context
    )
    return HTMLResponse(text, status)


def wants_json(request: Request) -> bool:
    """Whether a script asks, not a form."""
    return "application/json" in request.headers.get("accept", "")


def word_for(request: Request, role: Role) -> str:
    """The word the pages of a role carry."""
    return csrf_word(token_of(request, role))
