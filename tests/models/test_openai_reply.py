"""The reader of answers never raises anything but ModelError."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earwitness.errors import ModelError
from earwitness.models.http import HttpAnswer
from earwitness.models.openai_reply import read_reply
from earwitness.models.protocols import Reply
from earwitness.models.redaction import Redactor
from tests.standins.openai_server import as_stream, completion

LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            [
                "choices", "message", "content", "error", "code", "type", "finish_reason", "usage", "refusal",
                "text", "delta", "audio", "transcript", "prompt_tokens", "prompt_tokens_details", "model",
                "id", "metadata", "cost", "reasoning_content", "audio_tokens",
            ]
        ),
        inner,
        max_size=5,
    ),
    max_leaves=25,
)  # fmt: skip
MESSAGE = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("content", "refusal", "reasoning", "audio"), JSON)
)
CHOICE = st.fixed_dictionaries(
    {"message": MESSAGE}, optional={"finish_reason": LEAVES, "error": JSON, "delta": MESSAGE}
)
BODY = st.fixed_dictionaries(
    {"choices": st.lists(CHOICE, max_size=2)},
    optional=dict.fromkeys(("usage", "id", "model", "error", "system_fingerprint"), JSON),
)


def read(
    body: bytes, status: int = 200, media_type: str = "application/json"
) -> Reply | ModelError:
    answer = HttpAnswer(status, {"content-type": media_type}, body, 0.1)
    try:
        return read_reply("openai/m", answer, Redactor(["secret-key"]))
    except ModelError as problem:
        return problem


@settings(derandomize=True, deadline=None, max_examples=150)
@given(body=BODY | JSON, status=st.sampled_from([200, 200, 200, 400, 403, 429, 500]))
def test_any_json(body: object, status: int) -> None:
    got = read(json.dumps(body).encode(), status)
    assert isinstance(got, Reply | ModelError)
    if isinstance(got, Reply):
        assert isinstance(got.text, str)
        json.dumps(dict(got.raw))


@settings(derandomize=True, deadline=None, max_examples=100)
@given(events=st.lists(BODY | JSON, max_size=4), done=st.booleans())
def test_any_stream(events: list[object], done: bool) -> None:
    text = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    got = read((text + "data: [DONE]\n\n" * done).encode(), media_type="text/event-stream")
    assert isinstance(got, Reply | ModelError)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(body=st.binary(max_size=200), status=st.integers(200, 599), media_type=st.text(max_size=20))
def test_any_bytes(body: bytes, status: int, media_type: str) -> None:
    assert isinstance(read(body, status, media_type), Reply | ModelError)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(cut=st.integers(0, 400), streamed=st.booleans())
def test_an_answer_cut_anywhere_is_never_taken_for_a_whole_one(cut: int, streamed: bool) -> None:
    whole = (
        as_stream(completion("surprise"))
        if streamed
        else json.dumps(completion("surprise")).encode()
    )
    got = read(
        whole[: min(cut, len(whole) - 1)],
        media_type="text/event-stream" if streamed else "application/json",
    )
    if isinstance(got, Reply):
        assert streamed
        assert got.text == "surprise"


def test_deep_nesting_is_no_crash() -> None:
    assert isinstance(read(b"[" * 100_000), ModelError)
    assert isinstance(read(b'{"error":' * 50_000 + b"1" + b"}" * 50_000), ModelError)


@pytest.mark.parametrize("cost", [True, -1, "free", 1e300])
def test_costs_that_are_none(cost: object) -> None:
    got = read(json.dumps(completion(usage={"cost": cost})).encode())
    assert isinstance(got, Reply)
    assert got.usage.cost_usd is None
