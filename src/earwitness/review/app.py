"""The app: who may see what, and what becomes of what they send.

========================================  =============================================================
``GET /a/TOKEN``, ``GET /o/TOKEN``        a link is opened; leads on to ``/work`` or ``/organiser``
``GET /work``                             what to do, consent, how far one is
``GET /work/next``                        the next open item
``GET /work/item/N``                      an item; ``N`` is a place in one's own list
``GET /work/item/N/audio``                its sound
``POST /work/item/N``                     an answer, as a form or as JSON
``POST /work/item/N/recording``           a recording (WAV)
``POST /work/undo``, ``/work/consent``    take the latest answer back; agree
``GET /organiser`` and below              :mod:`earwitness.review.organiser`
========================================  =============================================================

Places in one's own list are all a browser ever names: no ids, no file names, no paths.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from anyio import to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from earwitness.errors import AudioFileError, EarwitnessError
from earwitness.review import pages
from earwitness.review.answers import AnswerError, read_answer, read_seconds
from earwitness.review.desk import Desk, shown_of
from earwitness.review.recordings import (
    RefusedError,
    check_capture,
    examine,
    most_bytes,
    receive,
    save_take,
    settle,
    write_list,
)
from earwitness.review.security import (
    FORM_BYTES,
    SecureHeaders,
    TooLargeError,
    read_body,
)
from earwitness.review.store import (
    Person,
    Role,
    has_consented,
    item_at,
    mark_seen,
    next_open,
    person_of,
    progress_of,
    save_answer,
    save_consent,
    undo_answer,
)
from earwitness.review.web import (
    COOKIE_SECONDS,
    COOKIES,
    desk_of,
    person_in,
    render,
    require_ours,
    slow_down,
    wants_json,
    word_for,
)

LONGEST_LIST = 10_000_000
_TAG_KEY = secrets.token_bytes(32)


def build_app(folder: Path, *, secure: bool = False) -> SecureHeaders:
    """The app of a review folder.

    Raises
    ------
    DataError: it is no review folder.
    """
    from earwitness.review import organiser

    desk = Desk(folder, secure=secure)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        del app
        yield
        desk.close()

    app = Starlette(
        routes=[
            Route("/", front),
            Route("/a/{token}", open_link("annotator")),
            Route("/o/{token}", open_link("organiser")),
            Route("/work", work),
            Route("/work/next", work_next),
            Route("/work/undo", undo, methods=["POST"]),
            Route("/work/consent", consent, methods=["POST"]),
            Route("/work/item/{position:int}", item, methods=["GET", "POST"]),
            Route("/work/item/{position:int}/audio", audio),
            Route("/work/item/{position:int}/recording", recording, methods=["POST"]),
            *organiser.ROUTES,
            Mount("/static", Static(packages=[("earwitness.review", "static")])),
        ],
        exception_handlers={
            HTTPException: failed,
            TooLargeError: too_large,
            AnswerError: not_kept,
            RefusedError: not_kept,
            EarwitnessError: broken,
            Exception: crashed,
        },
        lifespan=lifespan,
    )
    app.state.desk = desk
    # Around everything: also what is answered when something breaks down has the headers.
    return SecureHeaders(app)


class Static(StaticFiles):
    """Files of the app; asked for again by their tag each time, so that a new version is never mixed with an old one."""

    def file_response(self, *args: Any, **options: Any) -> Response:
        response = super().file_response(*args, **options)
        response.headers["cache-control"] = "no-cache"
        return response


async def front(request: Request) -> Response:
    return render(request, "message.html.j2", title="Earwitness", text=pages.FRONT)


def open_link(role: Role) -> Any:
    """The page behind the links of a role."""

    async def opened(request: Request) -> Response:
        desk = desk_of(request)
        token = request.path_params["token"]
        person = person_of(desk.db, token, role)
        if person is None:
            slow_down(request)
            raise HTTPException(404, "This link does not work, or no longer. Ask for a new one.")
        await desk.writer.run(lambda db: mark_seen(db, person.id))
        name, path = COOKIES[role]
        response = RedirectResponse(path, 303)
        response.set_cookie(
            name, token, max_age=COOKIE_SECONDS, path=path, secure=desk.secure, httponly=True, samesite="lax",
        )  # fmt: skip
        return response

    return opened


async def work(request: Request) -> Response:
    desk, person = desk_of(request), person_in(request)
    done, given = progress_of(desk.db, person.id)
    name = "consent.html.j2" if needs_consent(desk, person) else "start.html.j2"
    context = pages.start(desk, person, done, given)
    return render(request, name, **context, csrf=word_for(request, "annotator"))


def needs_consent(desk: Desk, person: Person) -> bool:
    """Whether somebody has still to agree to the text as it is now."""
    project = desk.project
    if project.kind != "record":
        return False
    return not has_consented(
        desk.db, person.id, project.consent_version, pages.text_hash(project.consent_text)
    )


async def work_next(request: Request) -> Response:
    desk, person = desk_of(request), person_in(request)
    return RedirectResponse(next_address(desk, person, _after(request)), 303)


def _after(request: Request) -> int:
    text = request.query_params.get("after", "0")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def next_address(desk: Desk, person: Person, after: int = 0) -> str:
    """Where somebody goes on."""
    position = next_open(desk.db, person.id, after)
    return "/work" if position is None or needs_consent(desk, person) else f"/work/item/{position}"


class Sound(FileResponse):
    """Audio without the date of its file, which may tell what is in it; its tag means nothing outside this process."""

    def set_stat_headers(self, stat_result: os.stat_result) -> None:
        state = f"{stat_result.st_mtime_ns} {stat_result.st_size}".encode()
        tag = hashlib.blake2s(state, key=_TAG_KEY).hexdigest()
        self.headers.setdefault("etag", f'"{tag}"')
        self.headers.setdefault("last-modified", "Thu, 01 Jan 1970 00:00:00 GMT")
        super().set_stat_headers(stat_result)


def place_in(request: Request) -> int:
    """The place in one's own list that an address names.

    Raises
    ------
    HTTPException: 404 for a number no list reaches.
    """
    position: int = request.path_params["position"]
    if position > LONGEST_LIST:
        raise HTTPException(404, "There is no such item in your list.")
    return position


async def item(request: Request) -> Response:
    """One route for both, so that a refused method is told which there are."""
    return await (answer(request) if request.method == "POST" else item_page(request))


async def item_page(request: Request) -> Response:
    desk, person = desk_of(request), person_in(request)
    if needs_consent(desk, person):
        return RedirectResponse("/work", 303)
    position = place_in(request)
    found = item_at(desk.db, person.id, position)
    if found is None:
        raise HTTPException(404, "There is no such item in your list.")
    item, shown, stored = found
    context = pages.item(desk, person, position, item, shown_of(shown), bool(stored))
    return render(
        request,
        f"{desk.project.kind}.html.j2",
        **context,
        csrf=word_for(request, "annotator"),
    )


async def audio(request: Request) -> Response:
    desk, person = desk_of(request), person_in(request)
    if needs_consent(desk, person):
        raise HTTPException(404, "There is no such item in your list.")
    found = item_at(desk.db, person.id, place_in(request))
    if found is None:
        raise HTTPException(404, "There is no such item in your list.")
    item, _, stored = found
    if desk.project.kind == "record":
        stored = pages.own_recording(desk, item)
    if not stored:
        raise HTTPException(404, "There is no sound for this item.")
    path = await to_thread.run_sync(desk.audio_file, item, stored)
    return Sound(path, media_type="audio/wav", headers={"cache-control": "no-store"})


async def _fields(request: Request) -> dict[str, Any]:
    """What a form or a script sent.

    Raises
    ------
    HTTPException: 400 for what is neither, 415 for another type.
    """
    body = await read_body(request, FORM_BYTES)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        text = body.decode("utf-8")
        if kind == "application/json":
            given = json.loads(text)
            if not isinstance(given, dict):
                raise ValueError("no object")
            given.setdefault("csrf", request.headers.get("x-csrf"))
            return given
        if kind in ("application/x-www-form-urlencoded", ""):
            return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=100))
    except (ValueError, RecursionError):
        raise HTTPException(400, "What was sent cannot be read.") from None
    raise HTTPException(415, "Send a form or JSON.")


async def answer(request: Request) -> Response:
    desk, person = desk_of(request), person_in(request)
    given = await _fields(request)
    require_ours(request, "annotator", given.get("csrf"))
    if not desk.answering.take(person.id):
        raise HTTPException(429, "Too many answers at once. Wait a moment.", {"retry-after": "1"})
    position = place_in(request)
    found = item_at(desk.db, person.id, position)
    if found is None:
        raise HTTPException(
            409, "This item was given to somebody else meanwhile. Go on with the next one."
        )
    item, shown, _ = found
    payload = read_answer(desk.project, shown_of(shown), given)
    seconds = read_seconds(given)
    await desk.writer.run(lambda db: save_answer(db, person.id, item, payload, seconds))
    return _onward(request, desk, person, position)


def _onward(request: Request, desk: Desk, person: Person, position: int) -> Response:
    """Committed: say where to go on."""
    address = next_address(desk, person, position)
    if not wants_json(request):
        return RedirectResponse(address, 303)
    done, given = progress_of(desk.db, person.id)
    return JSONResponse({"saved": True, "next": address, "done": done, "given": given})


async def undo(request: Request) -> Response:
    desk, person = desk_of(request), person_in(request)
    require_ours(request, "annotator", (await _fields(request)).get("csrf"))
    if desk.project.kind == "record":
        raise HTTPException(409, "Recordings are redone, not taken back.")
    taken = await desk.writer.run(lambda db: undo_answer(db, person.id))
    if taken is None:
        raise HTTPException(409, "There is nothing to take back.")
    address = f"/work/item/{taken[0]}"
    return (
        JSONResponse({"next": address}) if wants_json(request) else RedirectResponse(address, 303)
    )


async def consent(request: Request) -> Response:
    desk, person = desk_of(request), person_in(request)
    given = await _fields(request)
    require_ours(request, "annotator", given.get("csrf"))
    project = desk.project
    if project.kind != "record":
        raise HTTPException(409, "There is nothing to agree to here.")
    digest = pages.text_hash(project.consent_text)
    if given.get("agree") != "yes" or given.get("text") != digest:
        raise AnswerError("Tick the box to agree. Without it nothing is recorded.")
    await desk.writer.run(lambda db: save_consent(db, person.id, project.consent_version, digest))
    return RedirectResponse("/work", 303)


async def recording(request: Request) -> Response:
    desk, person = desk_of(request), person_in(request)
    require_ours(request, "annotator", request.headers.get("x-csrf"))
    if desk.project.kind != "record":
        raise HTTPException(409, "Nothing is recorded here.")
    if needs_consent(desk, person):
        raise HTTPException(403, "Agree to the text on the first page before you record.")
    if not desk.uploading.take(person.id):
        raise HTTPException(
            429, "Too many recordings at once. Wait a moment.", {"retry-after": "5"}
        )
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "audio/wav":
        raise HTTPException(415, "Send audio/wav.")
    position = place_in(request)
    found = item_at(desk.db, person.id, position)
    if found is None:
        raise HTTPException(404, "There is no such item in your list.")
    item = found[0]
    capture = check_capture(_capture(request))
    data = await read_body(request, most_bytes(desk.project))
    take = await to_thread.run_sync(examine, data, desk.project)
    await to_thread.run_sync(receive, desk.folder, data, take)
    version = desk.project.consent_version
    await desk.writer.run(lambda db: save_take(db, person.id, item, take, version, capture))
    await desk.writer.run(lambda db: settle(db, desk.folder, item))
    await to_thread.run_sync(write_list, desk.folder)
    return _onward(request, desk, person, position)


def _capture(request: Request) -> Mapping[str, Any]:
    try:
        found = json.loads(request.headers.get("x-capture", "{}"))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise HTTPException(400, "What was sent cannot be read.")
    return found


def _told(
    request: Request, status: int, text: str, headers: Mapping[str, str] | None = None
) -> Response:
    """An error, for a script or for a reader."""
    if wants_json(request) or request.headers.get("content-type", "").startswith(
        ("application/json", "audio/")
    ):
        response: Response = JSONResponse({"error": text}, status)
    else:
        back = "/work" if request.url.path.startswith("/work") and status not in (401, 404) else ""
        response = render(
            request,
            "message.html.j2",
            status,
            title=pages.TITLES.get(status, "This did not work"),
            text=text,
            back=back,
        )
    response.headers.update(headers or {})
    return response


async def failed(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 500)
    detail = str(getattr(error, "detail", ""))
    if status == 404 and detail == "Not Found":
        detail = "There is no such page."
    if status == 405:
        detail = "This address cannot be used like that."
    return _told(request, status, detail, getattr(error, "headers", None))


async def too_large(request: Request, error: Exception) -> Response:
    del error
    # What is still on its way is not read; the connection ends instead.
    return _told(request, 413, "What was sent is too large.", {"connection": "close"})


async def not_kept(request: Request, error: Exception) -> Response:
    return _told(request, 422, str(error))


async def broken(request: Request, error: Exception) -> Response:
    """Something is wrong with the folder; names of files are for the organiser's terminal, not for the browser."""
    import logging

    logging.getLogger("earwitness.review").error(
        "%s %s: %s", request.method, request.url.path, error
    )
    what = (
        "The sound of this item cannot be played."
        if isinstance(error, AudioFileError)
        else "This cannot be done now."
    )
    return _told(request, 500, f"{what} Tell the person who gave you the link.")


async def crashed(request: Request, error: Exception) -> Response:
    del error
    return _told(
        request, 500, "Something went wrong here; your answer may not be saved. Send it again."
    )
