"""The organiser's pages: how far people are, whether they agree, what they answered."""

from __future__ import annotations

import time
from typing import Any

from anyio import to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from earwitness.review.desk import Desk
from earwitness.review.export import tables, to_csv, to_jsonl
from earwitness.review.results import LIVE_RESAMPLES
from earwitness.review.state import state_of
from earwitness.review.web import desk_of, person_in, render

KEPT_S = 2.0
"""How long a state of things is good for; many open pages ask no more often than that."""


async def page(request: Request) -> Response:
    person_in(request, "organiser")
    desk = desk_of(request)
    state = await _state(desk)
    return render(
        request,
        "organiser.html.j2",
        state=state,
        files=_files(desk),
        folder=desk.folder.resolve().name,
    )


async def live(request: Request) -> Response:
    person_in(request, "organiser")
    return JSONResponse(await _state(desk_of(request)))


async def report(request: Request) -> Response:
    from earwitness.review.report import render_report

    person_in(request, "organiser")
    desk = desk_of(request)
    text = await to_thread.run_sync(lambda: render_report(desk.folder, linked=True))
    return HTMLResponse(text)


async def openapi(request: Request) -> Response:
    person_in(request, "organiser")
    return JSONResponse(load_openapi())


def load_openapi() -> dict[str, Any]:
    """The description of the addresses, for tools that test them."""
    from importlib import resources

    import yaml

    text = resources.files("earwitness.review").joinpath("data", "openapi.yaml").read_text("utf-8")
    description: dict[str, Any] = yaml.safe_load(text)
    return description


async def download(request: Request) -> Response:
    person_in(request, "organiser")
    name, suffix = request.path_params["name"], request.path_params["suffix"]
    desk = desk_of(request)
    if f"{name}.{suffix}" not in _files(desk):
        raise HTTPException(404, "There is no such file.")
    table = (await to_thread.run_sync(tables, desk.folder))[name]
    text, kind = (
        (to_csv(table), "text/csv")
        if suffix == "csv"
        else (to_jsonl(table), "application/x-ndjson")
    )
    return Response(
        text,
        media_type=f"{kind}; charset=utf-8",
        headers={"content-disposition": f'attachment; filename="{name}.{suffix}"'},
    )


ROUTES = (
    Route("/organiser", page),
    Route("/organiser/live.json", live),
    Route("/organiser/report", report),
    Route("/organiser/openapi.json", openapi),
    Route("/organiser/export/{name}.{suffix}", download),
)


def _files(desk: Desk) -> tuple[str, ...]:
    names = {"record": "recordings", "review": "reviews", "label": "labels"}
    return tuple(
        f"{n}.{s}" for n in (names[desk.project.kind], "history") for s in ("jsonl", "csv")
    )


async def _state(desk: Desk) -> dict[str, Any]:
    kept = desk.kept_state
    if kept is not None and time.monotonic() - kept[0] < KEPT_S:
        return kept[1]
    state = await to_thread.run_sync(lambda: state_of(desk.folder, LIVE_RESAMPLES, pairs=False))
    desk.kept_state = (time.monotonic(), state)
    return state
