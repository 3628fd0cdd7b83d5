"""Vendors by description, against a server that parses what it is sent."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from earwitness.errors import DataError, ModelError, UsageError
from earwitness.models.endpoint_schema import load_description, shipped
from earwitness.models.protocols import AudioModel, Preflight, Reply, Request
from earwitness.models.registry import open_model
from tests.models.conftest import KEY, open_and_ask, without_audio
from tests.standins.loopback import (
    EMPTY,
    HANG,
    INVALID_JSON,
    RESET_BEFORE,
    Act,
    Call,
    error,
    html,
    json_act,
)
from tests.standins.vendor_server import VendorServer

LABEL: dict[str, Any] = {
    "id": "label",
    "url": "http://127.0.0.1:{port}/v1/emotion",
    "options": {"port": {}, "model": {"default": "standard"}},
    "body": {
        "kind": "multipart",
        "audio": "file",
        "fields": {"model": "{model}", "config": {"a": [1]}},
    },
    "answer": {"label_at": "emotion.label", "id_at": "request_id"},
}
SCORES = LABEL | {
    "id": "scores",
    "url": "http://127.0.0.1:{port}/v1/scores",
    "answer": {"scores_at": "scores", "model_at": "model"},
}
RAW = SCORES | {"id": "raw", "url": "http://127.0.0.1:{port}/v1/raw?x=1", "body": {"kind": "raw"}}
WINDOWS = LABEL | {
    "id": "windows",
    "url": "http://127.0.0.1:{port}/v1/json",
    "body": {"kind": "json", "audio": "input.audio.data", "fields": {"input": {"kind": "file"}}},
    "answer": {
        "windows_at": "windows[*]",
        "scores_at": "expressions",
        "score_key": "probability",
        "empty_at": "windows",
    },
}
JOB = WINDOWS | {
    "id": "job",
    "url": "http://127.0.0.1:{port}/v1/jobs",
    "job": {
        "id_at": "job.id", "url": "/v1/jobs/{job_id}", "state_at": "state", "done": ["done"],
        "failed": ["failed"], "error_at": "error.message", "every_s": 0.01, "give_up_s": 5,
    },
    "answer": WINDOWS["answer"] | {"windows_at": "result.windows[*]", "empty_at": "result.windows"},
}  # fmt: skip


class Vendor:
    """Writes a description, opens it at a server and asks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, description: dict[str, Any], **changes: Any) -> Path:
        path = self.folder / "vendor.yaml"
        path.write_text(yaml.safe_dump(description | changes))
        return path

    def ask(
        self, server: VendorServer, request: Request, description: dict[str, Any], **changes: Any
    ) -> Reply:
        options = changes.pop("given", {})
        path = self.write(description, **changes)
        with server:
            return open_and_ask(f"endpoint/{path}", request, port=server.port, **options)


@pytest.fixture
def vendor(tmp_path: Path) -> Vendor:
    return Vendor(tmp_path)


def test_a_form_and_a_label(vendor: Vendor, request_: Request) -> None:
    server = VendorServer()
    reply = vendor.ask(server, request_, LABEL, given={"model": "large"})
    assert reply.text == "Calmness"
    assert reply.scores is None
    assert reply.provider_id == "req-1"
    assert server.fields == [{"model": "large", "config": '{"a": [1]}'}]
    assert server.heard[0].seconds == 1.0
    assert server.calls[0].headers["content-length"] == str(len(server.calls[0].body))


def test_scores_stay_native_and_unmapped(vendor: Vendor, request_: Request) -> None:
    reply = vendor.ask(VendorServer(), request_, SCORES)
    assert reply.text is None
    assert reply.scores == {"Calmness": 0.7, "Anger": 0.2, "Disgust": 0.1}
    assert reply.provider_model == "prosody-3"


def test_a_raw_body(vendor: Vendor, request_: Request) -> None:
    server = VendorServer()
    vendor.ask(server, request_, RAW)
    assert request_.audio is not None
    assert server.calls[0].body == request_.audio.path.read_bytes()
    assert server.calls[0].headers["content-type"] == "audio/wav"


@pytest.mark.parametrize("data_uri", [False, True])
def test_base64_in_json(vendor: Vendor, request_: Request, data_uri: bool) -> None:
    server = VendorServer()
    body = WINDOWS["body"] | {"data_uri": data_uri}
    vendor.ask(server, request_, WINDOWS, body=body)
    assert server.fields == [{"input": {"kind": "file", "audio": {"data": None}}}]
    sent = server.calls[0].json()["input"]["audio"]["data"]
    assert sent.startswith("data:audio/wav;base64,") is data_uri


@pytest.mark.parametrize(
    ("pool", "absent", "scores"),
    [
        # Windows: 0.25 s {Calmness 0.4, Anger 0.6}, 0.75 s {Calmness 0.8}.
        ("mean", "zero", {"Calmness": 0.6, "Anger": 0.3}),
        ("mean", "skip", {"Calmness": 0.6, "Anger": 0.6}),
        ("max", "zero", {"Calmness": 0.8, "Anger": 0.6}),
        ("duration_weighted", "zero", {"Calmness": 0.7, "Anger": 0.15}),
        ("duration_weighted", "skip", {"Calmness": 0.7, "Anger": 0.6}),
    ],
)
def test_windows_are_pooled(
    vendor: Vendor, request_: Request, pool: str, absent: str, scores: dict[str, float]
) -> None:
    answer = WINDOWS["answer"] | {"pool": pool, "absent": absent}
    reply = vendor.ask(VendorServer(), request_, WINDOWS, answer=answer)
    assert reply.scores == pytest.approx(scores)
    assert reply.raw["pool"] == pool
    assert reply.raw["windows"][0] == {
        "start": 0.0,
        "end": 0.25,
        "scores": {"Calmness": 0.4, "Anger": 0.6},
    }


def test_below_the_cutoff_is_kept_apart(vendor: Vendor, request_: Request) -> None:
    answer = SCORES["answer"] | {"cutoff": 0.2}
    reply = vendor.ask(VendorServer(), request_, SCORES, answer=answer)
    assert reply.scores == {"Calmness": 0.7, "Anger": 0.2}
    assert reply.raw["below_cutoff"] == {"Disgust": 0.1}


def test_nothing_heard_is_an_empty_answer_where_the_description_says_so(
    vendor: Vendor, request_: Request
) -> None:
    reply = vendor.ask(VendorServer(json_act({"windows": []})), request_, WINDOWS)
    assert reply.scores == {}


def test_a_job_is_followed_to_its_end(vendor: Vendor, request_: Request) -> None:
    server = VendorServer(polls=3)
    reply = vendor.ask(server, request_, JOB)
    assert reply.scores == pytest.approx({"Calmness": 0.6, "Anger": 0.3})
    assert [call.method for call in server.calls] == ["POST", "GET", "GET", "GET"]
    assert server.calls[1].path == "/v1/jobs/job%2F1"
    assert reply.latency_s >= 0.02


def test_a_result_at_an_address_of_its_own(vendor: Vendor, request_: Request) -> None:
    server = VendorServer(polls=1)
    vendor.ask(server, request_, JOB, job=JOB["job"] | {"result_url": "/v1/jobs/{job_id}/result"})
    assert server.calls[-1].path == "/v1/jobs/job%2F1/result"


@pytest.mark.parametrize(
    ("changes", "server", "kind", "message"),
    [
        ({}, {"job_end": "failed"}, "server", "the job ended as 'failed': the model crashed"),
        (
            {"give_up_s": 0.05},
            {"polls": 10_000},
            "timeout",
            r"the job was still 'running' after 0.05 s",
        ),
        ({"id_at": "job.name"}, {}, "bad_reply", "has no job id at 'job.name'"),
    ],
)
def test_jobs_that_come_to_nothing(
    vendor: Vendor,
    request_: Request,
    changes: dict[str, Any],
    server: dict[str, Any],
    kind: str,
    message: str,
) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        vendor.ask(VendorServer(**server), request_, JOB, job=JOB["job"] | changes)
    assert (caught.value.kind, caught.value.retryable, caught.value.maybe_paid) == (
        kind,
        True,
        True,
    )


def test_a_look_that_fails_in_passing_does_not_cost_the_job(
    vendor: Vendor, request_: Request
) -> None:
    """Asking anew would be a second job, and the first one was not free."""
    passing = [error(503), RESET_BEFORE, html(), EMPTY, Act("truncate")]
    # What is cut short was a look of its own.
    server = VendorServer(polls=3)
    server.script.extend([None, *passing])  # type: ignore[list-item]
    assert vendor.ask(server, request_, JOB).scores
    assert [call.method for call in server.calls] == ["POST", *["GET"] * (len(passing) + 2)]


def test_a_result_that_is_not_there_at_once_is_looked_for_again(
    vendor: Vendor, request_: Request
) -> None:
    server = VendorServer(polls=1)
    server.script.extend([None, None, error(502)])  # type: ignore[list-item]
    job = JOB["job"] | {"result_url": "/v1/jobs/{job_id}/result"}
    assert vendor.ask(server, request_, JOB, job=job).scores
    assert [call.path.endswith("/result") for call in server.calls] == [False, False, True, True]


def as_a_date() -> Act:
    """A Retry-After as a date, which has no parts of a second."""
    later = datetime.now(UTC) + timedelta(seconds=2)
    return error(429, **{"Retry-After": format_datetime(later, usegmt=True)})


LATER: dict[str, Act | Callable[[], Act]] = {
    "seconds": error(429, **{"Retry-After": "1"}),
    "date": as_a_date,
    "milliseconds": error(429, **{"retry-after-ms": "1000"}),
    "a-503": error(503, **{"Retry-After": "1"}),
    "used-up": error(
        429, **{"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1s"}
    ),
    "not-done-yet": json_act({"state": "running"}, **{"Retry-After": "1"}),
}


# A result says nothing of a state, so that there is no "not yet" in it.
@pytest.mark.parametrize(
    ("how", "at"),
    [("not-done-yet", "state")]
    + [(how, at) for how in LATER if how != "not-done-yet" for at in ("state", "result")],
)
def test_a_look_waits_as_long_as_the_service_asks(
    vendor: Vendor, request_: Request, how: str, at: str
) -> None:
    server = VendorServer(polls=1)
    looks: list[float] = []

    def noted(call: Call) -> Act | None:
        if call.method != "GET" or (at == "result") != call.path.endswith("/result"):
            return None
        looks.append(time.monotonic())
        if len(looks) > 1:
            return None
        act = LATER[how]
        return act if isinstance(act, Act) else act()

    server.choose = noted
    job = JOB["job"] | {"result_url": "/v1/jobs/{job_id}/result"}
    assert vendor.ask(server, request_, JOB, job=job).scores
    first, second = looks
    assert second - first >= 0.99


def test_a_service_that_asks_for_more_patience_than_there_is(
    vendor: Vendor, request_: Request
) -> None:
    server = VendorServer()
    server.script.extend([None, error(429, **{"Retry-After": "60"})])  # type: ignore[list-item]
    begun = time.monotonic()
    with pytest.raises(ModelError) as caught:
        vendor.ask(server, request_, JOB)
    assert time.monotonic() - begun < 5
    problem = caught.value
    assert (problem.kind, problem.retry_after_s, problem.maybe_paid) == ("rate_limit", 60.0, True)
    assert len(server.calls) == 2


@pytest.mark.parametrize(
    ("act", "changes", "kind", "retryable"),
    [
        (error(403), {}, "auth", False),
        (error(404), {}, "missing", False),
        (error(503), {"give_up_s": 0.001}, "server", True),
        (RESET_BEFORE, {"give_up_s": 0.001}, "connection", True),
    ],
)
def test_a_job_that_is_lost_sight_of_may_have_been_paid(
    vendor: Vendor, request_: Request, act: Act, changes: Any, kind: str, retryable: bool
) -> None:
    server = VendorServer()
    server.script.extend([None, act])  # type: ignore[list-item]
    with pytest.raises(ModelError) as caught:
        vendor.ask(server, request_, JOB, job=JOB["job"] | changes)
    problem = caught.value
    assert (problem.kind, problem.retryable, problem.maybe_paid) == (kind, retryable, True)


AUTH = {"auth": {"env": "VENDOR_KEY", "header": "X-Api-Key"}}


def test_the_key_comes_from_the_environment(
    vendor: Vendor, request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VENDOR_KEY", KEY)
    reply = vendor.ask(VendorServer(key=KEY), request_, JOB, **AUTH)
    assert reply.scores
    bearer = {"auth": {"env": "VENDOR_KEY", "prefix": "Bearer "}}
    assert vendor.ask(VendorServer(key=KEY), request_, LABEL, **bearer).text == "Calmness"


def test_a_wrong_key_is_not_repeated(
    vendor: Vendor, request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VENDOR_KEY", "wrong-000")
    with pytest.raises(ModelError, match="the key is read from VENDOR_KEY") as caught:
        vendor.ask(VendorServer(key=KEY), request_, LABEL, **AUTH)
    assert (caught.value.kind, caught.value.retryable) == ("auth", False)
    assert "wrong-000" not in caught.value.message


def test_a_key_that_is_not_set(vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VENDOR_KEY", raising=False)
    model = open_model(f"endpoint/{vendor.write(LABEL, **AUTH)}", {"port": "1"})
    assert isinstance(model, Preflight)
    with pytest.raises(UsageError, match="VENDOR_KEY is not set"):
        model.preflight([])


def test_a_key_stays_with_its_host(
    vendor: Vendor, request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VENDOR_KEY", KEY)
    elsewhere = VendorServer(json_act({"state": "done", "result": {"windows": []}}))
    with elsewhere:
        first = VendorServer(json_act({"see": f"{elsewhere.url}/result"}))
        job = {key: value for key, value in JOB["job"].items() if key not in ("id_at", "url")}
        vendor.ask(first, request_, JOB, job=job | {"url_at": "see"}, **AUTH)
    assert first.calls[0].headers["x-api-key"] == KEY
    assert "x-api-key" not in elsewhere.calls[0].headers


@pytest.mark.parametrize(
    ("act", "kind", "retryable"),
    [
        (error(429, **{"Retry-After": "3"}), "rate_limit", True),
        (error(500), "server", True),
        (error(422), "bad_request", False),
        (error(413), "too_large", False),
        (html(), "bad_reply", True),
        (EMPTY, "bad_reply", True),
        (INVALID_JSON, "bad_reply", True),
        (json_act({"emotion": {}}), "bad_reply", True),
        (json_act({"emotion": {"label": 3}}), "bad_reply", True),
        (RESET_BEFORE, "connection", True),
        (Act("truncate"), "connection", True),
        (HANG, "timeout", True),
    ],
)
def test_faults(vendor: Vendor, request_: Request, act: Act, kind: str, retryable: bool) -> None:
    with pytest.raises(ModelError) as caught:
        vendor.ask(VendorServer(act), request_, LABEL, timeout_s=0.5)
    assert (caught.value.kind, caught.value.retryable) == (kind, retryable)
    assert caught.value.retry_after_s == (3.0 if kind == "rate_limit" else None)


def test_a_policy_block_is_an_outcome(vendor: Vendor, request_: Request) -> None:
    reply = vendor.ask(VendorServer(error(400, "no", "content_filter")), request_, LABEL)
    assert reply.finish == "content_filter"


def test_an_error_the_answer_reports(vendor: Vendor, request_: Request) -> None:
    answer = LABEL["answer"] | {"error_at": "error"}
    with pytest.raises(ModelError, match="the service reports model is loading"):
        vendor.ask(
            VendorServer(json_act({"error": "model is loading"})), request_, LABEL, answer=answer
        )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"scores": {"a": "high"}}, "the score of 'a' is 'high'; wanted a finite number"),
        ({"scores": {"a": None}}, "the score of 'a' is 'None'"),
        ({"scores": {"a": True}}, "the score of 'a' is 'True'"),
        ({"scores": 3}, "a int at 'scores'; wanted scores"),
        ({"scores": [{"label": "a", "score": 1}]}, "a score without 'name'"),
        (
            {"scores": [{"name": "a", "score": 1}, {"name": "a", "score": 2}]},
            "'a' is scored twice; use windows_at",
        ),
        ({}, "nothing at 'scores'"),
    ],
)
def test_scores_that_are_none(vendor: Vendor, request_: Request, body: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        vendor.ask(VendorServer(json_act(body)), request_, SCORES)
    assert caught.value.kind == "bad_reply"


def test_scores_as_pairs_and_as_text(vendor: Vendor, request_: Request) -> None:
    body = {"scores": [{"name": "joy", "score": "0.25"}, {"name": "fear", "score": 1}]}
    reply = vendor.ask(VendorServer(json_act(body)), request_, SCORES)
    assert reply.scores == {"joy": 0.25, "fear": 1.0}


def test_an_item_without_audio(vendor: Vendor, request_: Request) -> None:
    with pytest.raises(ModelError, match="takes audio, and this item has none"):
        vendor.ask(VendorServer(), without_audio(request_), LABEL)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"answer": {}},
            r"vendor.yaml: answer: give exactly one of label_at, text_at and scores_at",
        ),
        ({"answer": {"label_at": "a..b"}}, "answer.label_at: path 'a..b' cannot be read"),
        ({"answer": {"label_at": "a", "windows_at": "b"}}, "windows_at needs scores_at"),
        ({"body": {"kind": "soap"}}, "body.kind: Input should be 'multipart', 'json' or 'raw'"),
        ({"body": {"kind": "raw", "fields": {"a": 1}}}, "a raw body has no fields"),
        ({"body": {"kind": "json", "audio": "a[0]"}}, "a path of plain keys"),
        ({"urll": "x"}, "urll: Extra inputs are not permitted"),
        ({"url": "http://x/{hots}"}, "placeholder {hots} is no option"),
        ({"url": "http://x/{a"}, "write a literal brace twice"),
        ({"job": {"state_at": "s", "done": ["d"]}}, "give one of url .* and url_at"),
        (
            {"job": {"state_at": "s", "done": ["d"], "url": "/x/{job_id}"}},
            "id_at must say where the id is",
        ),
        ({"id": "With Space"}, "id: String should match pattern"),
    ],
)
def test_descriptions_that_are_none(vendor: Vendor, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_description(str(vendor.write(LABEL, **changes)))


def test_files_that_are_no_descriptions(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("[1")
    with pytest.raises(DataError, match="is no valid YAML"):
        load_description(str(path))
    path.write_text("- 1")
    with pytest.raises(DataError, match="the whole"):
        load_description(str(path))
    with pytest.raises(
        UsageError,
        match=r"no such description; wanted a \.yaml file, or one of hume, oruk, template-label",
    ):
        load_description("nobody")
    with pytest.raises(DataError, match="cannot be read"):
        load_description(str(tmp_path / "none.yaml"))


def test_an_option_without_a_value_or_a_url_that_is_none(vendor: Vendor) -> None:
    name = f"endpoint/{vendor.write(LABEL)}"
    with pytest.raises(UsageError, match=r"option 'port' has no value. Give -M port="):
        open_model(name)
    with pytest.raises(UsageError, match="is no URL"):
        open_model(name, {"port": "x"})


def test_an_option_cannot_reach_into_objects(vendor: Vendor, request_: Request) -> None:
    server = VendorServer()
    vendor.ask(server, request_, LABEL, given={"model": "{port.__class__}"})
    assert server.fields[0]["model"] == "{port.__class__}"


def test_settings_change_with_what_is_sent_and_not_with_what_it_is_called(vendor: Vendor) -> None:
    def opened(**changes: Any) -> Any:
        return dict(
            open_model(f"endpoint/{vendor.write(LABEL, **changes)}", {"port": "1"}).settings
        )

    before = opened()
    assert opened(summary="other words", label_map="generic", timeout_s=5) == before
    assert opened(headers={"X-Version": "2"}) != before
    assert opened(answer={"label_at": "other"}) != before


@pytest.mark.parametrize("name", shipped())
def test_what_ships_can_be_opened(name: str) -> None:
    model = open_model(f"endpoint/{name}")
    assert isinstance(model, AudioModel)
    assert model.limits.needs_audio
    assert load_description(name).id == name
    assert model.label_map == "vendor-default"  # type: ignore[attr-defined]


def test_the_templates_work_as_they_say(
    request_: Request, monkeypatch: pytest.MonkeyPatch, vendor: Vendor
) -> None:
    monkeypatch.setenv("EXAMPLE_API_KEY", KEY)
    templates = [name for name in shipped() if load_description(name).template]
    assert len(templates) == 2
    for name in templates:
        text = yaml.safe_load(
            (
                Path(load_description.__code__.co_filename).parent / "endpoints" / f"{name}.yaml"
            ).read_text()
        )
        text = yaml.safe_load(yaml.safe_dump(text).replace("https://", "http://"))
        if "job" in text:
            text["job"]["every_s"] = 0.01
        path = vendor.write(text)
        with VendorServer(key=KEY) as server:
            reply = open_and_ask(f"endpoint/{path}", request_, host=f"127.0.0.1:{server.port}")
        assert reply.text == "Calmness" or reply.scores == pytest.approx(
            {"Calmness": 0.7, "Anger": 0.15}
        )
