"""The app over real HTTP: saving, undoing, resuming, and what it refuses."""

from __future__ import annotations

import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from earwitness.review.security import Allowance, csrf_word
from earwitness.review.store import opened, rows
from tests.review.making import Site, Visitor, always, label_folder, review_folder, served

HOSTILE = '<script>window.hacked=1</script><img src=x onerror="window.hacked=1">'


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with served(label_folder(tmp_path_factory.mktemp("label"), per_item=1)) as site:
        yield site


@pytest.fixture
def visitor(site: Site) -> Visitor:
    from earwitness.review import people

    with opened(site.folder) as db:
        number = rows(db, "SELECT count(*) FROM people WHERE role='annotator'")[0][0]
    if number == 0:
        people.add_people(site.folder, 1)
    return site.visitor(people.renew(site.folder, "ann-01"))


def answers(folder: Path) -> list[tuple[Any, ...]]:
    with opened(folder) as db:
        return rows(db, "SELECT person, item, payload FROM answers ORDER BY person, item")


def test_a_form_works_without_scripts(tmp_path: Path) -> None:
    folder = review_folder(tmp_path, 3, blind=True)
    with served(folder) as site:
        (visitor,) = site.annotators(1).values()
        for done in range(3):
            response, page = visitor.page("/work/next")
            assert f"<b>{done}</b> of 3" in response.text
            response = visitor.client.post(
                page.action,
                data={
                    "csrf": page.csrf,
                    "audio_quality": "good",
                    "perceived_emotion": "fear",
                    "note": "so, so",
                },
            )
            assert response.status_code == 303
        assert "All 3 are done" in visitor.page("/work")[0].text
        assert len(answers(folder)) == 3
        # Taking back opens the item again, with what was said filled in.
        response = visitor.client.post(
            "/work/undo", data={"csrf": visitor.csrf}, follow_redirects=True
        )
        assert 'value="fear" required checked' in response.text
        assert "so, so" in response.text
        assert len(answers(folder)) == 2


def test_sending_twice_keeps_one_and_changing_keeps_the_last(tmp_path: Path) -> None:
    folder = review_folder(tmp_path, 2)
    with served(folder) as site:
        (visitor,) = site.annotators(1).values()
        _, page = visitor.page("/work/item/1")
        for match in ("yes", "yes", "no"):
            told = visitor.post(page.action, audio_quality="good", match=match, seconds=3.25).json()
            assert told == {"saved": True, "next": "/work/item/2", "done": 1, "given": 2}
    (row,) = answers(folder)
    assert '"match":"no"' in row[2]
    with opened(folder) as db:
        assert rows(db, "SELECT act FROM history") == [("answer",), ("answer",)]
        assert rows(db, "SELECT seconds FROM answers") == [(3.2,)]


def test_work_is_resumed_with_another_start_of_the_server(tmp_path: Path) -> None:
    folder = label_folder(tmp_path, per_item=1)
    from earwitness.review.people import add_people

    token = add_people(folder, 1)["ann-01"]
    with served(folder) as site:
        site.visitor(token).answer_label(always("pivot"))
    with served(folder) as site:
        visitor = site.visitor(token)
        assert "<b>1</b> of 6" in visitor.page("/work/next")[0].text
        while visitor.answer_label(always("pivot")):
            pass
    assert len(answers(folder)) == 6


def test_later_goes_on_and_comes_back(visitor: Visitor) -> None:
    first = visitor.client.get("/work/next").headers["location"]
    position = int(first.rsplit("/", 1)[1])
    second = visitor.client.get(f"/work/next?after={position}").headers["location"]
    assert second != first
    last = visitor.client.get("/work/next?after=999").headers["location"]
    assert last == first
    for odd in ("x", "-1", "9" * 400, "１"):
        assert visitor.client.get("/work/next", params={"after": odd}).headers["location"] == first


def test_every_response_has_the_headers(site: Site, visitor: Visitor) -> None:
    for path in (
        "/",
        "/work",
        "/work/item/1",
        "/nothing",
        "/static/review.css",
        "/o/x",
        "/work/item/999",
    ):
        headers = visitor.client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cache-control"] in ("no-store", "no-cache")
        assert "server" not in headers
    text = visitor.page("/work/item/1")[0].text
    assert "<style" not in text
    assert " style=" not in text
    assert "onclick" not in text
    assert text.count("<script") == text.count('<script src="/static/')


def test_cookies_are_out_of_reach_and_of_one_role(site: Site) -> None:
    from earwitness.review.people import renew

    token = renew(site.folder, "ann-01")
    response = httpx.get(f"{site.address}/a/{token}")
    cookie = response.headers["set-cookie"].lower()
    for part in ("httponly", "samesite=lax", "path=/work", "max-age="):
        assert part in cookie
    assert response.headers["location"] == "/work"
    assert token not in httpx.get(f"{site.address}/work", cookies={"earwitness_work": token}).text


def test_forged_requests_are_refused(site: Site, visitor: Visitor) -> None:
    _, page = visitor.page("/work/next")
    labels = {name.removeprefix("label."): "pivot" for name in page.names}
    before = answers(site.folder)
    good = {"x-csrf": page.csrf, "accept": "application/json"}

    def send(headers: dict[str, str], **more: Any) -> int:
        return visitor.client.post(
            page.action, json={"labels": labels, **more}, headers=headers
        ).status_code

    assert send({}) == 403
    assert send({"x-csrf": ""}) == 403
    assert send({"x-csrf": csrf_word("another token")}) == 403
    assert send({**good, "origin": "https://elsewhere.example"}) == 403
    assert send({**good, "origin": "null"}) == 403
    assert send({**good, "sec-fetch-site": "cross-site"}) == 403
    assert send({**good, "sec-fetch-site": "same-site"}) == 403
    form = visitor.client.post(page.action, data={f"label.{k}": v for k, v in labels.items()})
    assert form.status_code == 403
    plain = visitor.client.post(
        page.action, content=b"{}", headers={**good, "content-type": "text/plain"}
    )
    assert plain.status_code == 415
    assert visitor.client.get("/work/undo").status_code == 405
    assert answers(site.folder) == before
    assert send({**good, "origin": site.address, "sec-fetch-site": "same-origin"}) == 200


def test_sizes_are_limited_while_they_arrive(site: Site, visitor: Visitor) -> None:
    _, page = visitor.page("/work/item/1")
    headers = {
        "x-csrf": page.csrf,
        "accept": "application/json",
        "content-type": "application/json",
    }
    declared = visitor.client.post(page.action, content=b"x" * 70_000, headers=headers)
    assert declared.status_code == 413

    def parts() -> Iterator[bytes]:
        for _ in range(100):
            yield b"y" * 1000

    chunked = visitor.client.post(page.action, content=parts(), headers=headers)
    assert chunked.status_code == 413
    many = visitor.client.post(page.action, data={f"f{n}": "" for n in range(200)})
    assert many.status_code == 400
    for broken in (b"{", b"[]", b"\xff", b"[" * 50_000, b"null"):
        response = visitor.client.post(page.action, content=broken, headers=headers)
        assert response.status_code == 400, broken[:10]


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fproject.py", "/static/....//app.py",
        "/static/%2fetc/passwd", "/static//etc/passwd", "/static/..%5capp.py", "/work/item/../../review.db",
        "/work/item/1/audio/../../../review.db", "/work/item/-1", "/work/item/1.5", "/work/item/%00", "/review.db",
        "/organiser/export/..%2freview.db", "/organiser/export/%2e%2e/x.csv", "/work/item/99999999999999999999/audio",
        "/work/item/9223372036854775808",
    ],
)  # fmt: skip
def test_no_path_leads_out(site: Site, visitor: Visitor, path: str) -> None:
    import socket

    host, port = site.address.removeprefix("http://").split(":")
    cookie = "; ".join(f"{k}={v}" for k, v in visitor.client.cookies.items())
    # By hand: clients tidy such paths up before they send them.
    with socket.create_connection((host, int(port)), timeout=5) as raw:
        raw.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n".encode()
        )
        answer = b""
        while part := raw.recv(65536):
            answer += part
    assert answer.split(b" ", 2)[1] in (b"404", b"401", b"400")
    assert b"SQLite" not in answer
    assert b"import" not in answer
    assert b"Traceback" not in answer


def test_tokens_cannot_be_guessed_for_long(tmp_path: Path) -> None:
    folder = label_folder(tmp_path, per_item=1)
    from earwitness.review.people import add_people

    token = add_people(folder, 1)["ann-01"]
    with served(folder) as site:
        stranger = site.visitor()
        codes = [
            stranger.client.get(f"/a/{token[:-1]}{c}").status_code
            for c in string.ascii_letters
            if c != token[-1]
        ]
        assert set(codes) == {404, 429}
        assert codes[-1] == 429
        by_cookie = stranger.client.get(
            "/work", headers={"cookie": f"earwitness_work={token[:-2]}xx"}
        )
        assert by_cookie.status_code == 429
        # Whoever has a right link is not kept out by those who guess.
        assert "wait for you" in site.visitor(token).page("/work")[0].text
        assert stranger.client.get("/work").status_code == 401


def test_a_flood_of_answers_is_slowed_down() -> None:
    clock = [0.0]
    allowance = Allowance(rate=2, burst=3, clock=lambda: clock[0], most_names=2)
    assert [allowance.take("a") for _ in range(4)] == [True, True, True, False]
    assert allowance.take("b")
    clock[0] = 1.0
    assert [allowance.take("a") for _ in range(3)] == [True, True, False]
    for name in "cde":
        allowance.take(name)
    assert len(allowance._left) == 2


def test_what_people_type_stays_text_everywhere(tmp_path: Path) -> None:
    folder = label_folder(tmp_path, 4, per_item=1, title=f"T {HOSTILE}")
    from earwitness.review.people import add_people

    (token,) = add_people(folder, 0, [f"ann {HOSTILE}"]).values()
    with served(folder) as site:
        visitor = site.visitor(token)
        _, page = visitor.page("/work/next")
        labels = {name.removeprefix("label."): "pivot" for name in page.names}
        assert visitor.post(page.action, labels=labels, note=HOSTILE).status_code == 200
        organiser = site.organiser()
        pages = [
            visitor.page(page.action)[0].text,
            visitor.page("/work")[0].text,
            organiser.client.get("/organiser").text,
            organiser.client.get("/organiser/report").text,
        ]
    for text in pages:
        assert "<script>window" not in text
        assert "<img" not in text
    assert "&lt;script&gt;" in pages[0]


values = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=20)
    | st.lists(st.text(max_size=3), max_size=2)
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    path=st.sampled_from(["/work/item/1", "/work/item/2", "/work/undo", "/work/consent", "/work/item/1/recording"]),
    body=st.dictionaries(st.sampled_from(["labels", "label.s1", "note", "seconds", "csrf", "agree"]), values)
    | st.binary(max_size=60),
    kind=st.sampled_from(["application/json", "application/x-www-form-urlencoded", "audio/wav", "text/xml", "", "é"]),
    accept=st.sampled_from(["application/json", "text/html", "*/*"]),
    capture=st.sampled_from(["", "{", "[]", "{}", '{"autoGainControl":true}']),
)  # fmt: skip
def test_nothing_that_is_sent_breaks_the_server(
    site: Site, visitor: Visitor, path: str, body: Any, kind: str, accept: str, capture: str
) -> None:
    import json

    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {b"content-type": kind.encode(), b"accept": accept.encode(), b"x-csrf": csrf_word(visitor.client.cookies["earwitness_work"]).encode(), b"x-capture": capture.encode()}  # fmt: skip
    response = visitor.client.post(path, content=content, headers=headers)
    assert response.status_code in (200, 303, 400, 403, 404, 409, 413, 415, 422, 429)
    if response.headers.get("content-type", "").startswith("application/json"):
        assert set(response.json()) & {"saved", "error", "next"}


def test_a_body_that_is_no_use_and_methods_that_are_not_there(visitor: Visitor) -> None:
    for method, path in (
        ("PUT", "/work/item/1"),
        ("DELETE", "/work"),
        ("POST", "/organiser"),
        ("POST", "/"),
        ("PATCH", "/work/undo"),
    ):
        response = visitor.client.request(method, path)
        assert response.status_code == 405, (method, path)
    assert visitor.client.head("/work").status_code == 200
