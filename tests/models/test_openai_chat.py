"""The real client against a local server that speaks the protocol."""

from __future__ import annotations

import asyncio
import hashlib
import tracemalloc
from collections.abc import Callable
from dataclasses import replace

import pytest

from earwitness.errors import ModelError, UsageError
from earwitness.models.openai_chat import open as open_openai
from earwitness.models.protocols import AudioModel, AudioRef, Message, Preflight, Request, TextModel
from earwitness.models.registry import open_model
from tests.models.conftest import KEY, PROMPT, open_and_ask, without_audio
from tests.standins.loopback import json_act
from tests.standins.openai_server import OpenAIServer, completion


def test_the_question_and_the_audio_arrive(request_: Request) -> None:
    with OpenAIServer(character="neutral") as server:
        reply = open_and_ask("openai/org/model-1", request_, base_url=server.url)
    asked = server.asked[0]
    assert reply.text == "neutral"
    assert reply.finish == "stop"
    assert reply.provider_model == "org/model-1-2026-11-01"
    assert asked.model == "org/model-1"
    assert asked.prompt == PROMPT.user
    assert asked.audio is not None
    assert asked.audio.seconds == 1.0
    assert asked.audio.rate == 16_000
    assert reply.raw["audio_tokens"] == 10
    assert reply.usage.output_tokens == 1
    assert reply.latency_s > 0


def test_the_file_is_sent_byte_for_byte(request_: Request) -> None:
    import base64

    with OpenAIServer() as server:
        open_and_ask("openai/m", request_, base_url=server.url)
    part = server.calls[0].json()["messages"][0]["content"][1]
    assert part["input_audio"]["format"] == "wav"
    sent = base64.b64decode(part["input_audio"]["data"], validate=True)
    assert request_.audio is not None
    assert hashlib.sha256(sent).hexdigest() == request_.audio.sha256


def test_the_length_is_stated_and_the_key_of_the_reply_is_sent(request_: Request) -> None:
    with OpenAIServer() as server:
        open_and_ask("openai/m", request_, base_url=server.url)
    headers = server.calls[0].headers
    assert headers["content-length"] == str(len(server.calls[0].body))
    assert "transfer-encoding" not in headers
    assert headers["idempotency-key"] == "key-of-the-reply"
    assert "authorization" not in headers


def test_nothing_of_the_item_is_sent(request_: Request) -> None:
    telling = replace(request_, item_id="anger-042", metadata={"speaker": "actor-7"})
    with OpenAIServer() as server:
        open_and_ask("openai/m", telling, base_url=server.url)
    call = server.calls[0]
    for word in ("anger-042", "actor-7", "clip.wav"):
        assert word.encode() not in call.body
        assert word not in str(call.headers)


@pytest.mark.parametrize(
    ("hz", "peak", "label"), [(150, 0.9, "anger"), (150, 0.01, "sadness"), (260, 0.01, "fear")]
)
def test_an_answer_from_level_and_pitch_shows_that_audio_arrives(
    make_clip: Callable[..., AudioRef], hz: float, peak: float, label: str
) -> None:
    clip = make_clip(hz=hz, peak=peak)
    with OpenAIServer(character="energy") as server:
        assert (
            open_and_ask("openai/m", Request("i", PROMPT, clip), base_url=server.url).text == label
        )


def test_silence_is_sent_in_place_of_the_sound(make_clip: Callable[..., AudioRef]) -> None:
    clip = make_clip(seconds=1.2345, peak=0.9, transform="silence")
    with OpenAIServer(character="energy") as server:
        reply = open_and_ask("openai/m", Request("i", PROMPT, clip), base_url=server.url)
    heard = server.asked[0].audio
    assert heard is not None
    assert heard.level_dbfs == -120.0
    assert heard.seconds == pytest.approx(clip.seconds, abs=1 / 16_000)
    assert reply.raw["stimulus"]["note"] == "replaced by silence of the same length"


def test_an_item_without_audio_is_plain_text(request_: Request) -> None:
    with OpenAIServer() as server:
        open_and_ask("openai/m", without_audio(request_), base_url=server.url)
    assert server.calls[0].json()["messages"] == [{"role": "user", "content": PROMPT.user}]


@pytest.mark.parametrize("form", ["input_audio", "audio_url"])
def test_forms_of_audio(request_: Request, form: str) -> None:
    with OpenAIServer(character="energy") as server:
        open_and_ask("openai/m", request_, base_url=server.url, audio_form=form)
    part = server.calls[0].json()["messages"][0]["content"][1]
    assert part["type"] == form
    assert server.asked[0].audio is not None


def test_a_service_that_only_streams(request_: Request) -> None:
    with OpenAIServer(character="energy", stream_only=True) as server:
        reply = open_and_ask(
            "openai/m", request_, base_url=server.url, stream="yes", audio_form="input_audio_uri"
        )
    assert reply.text == "neutral"
    assert reply.finish == "stop"
    assert reply.raw["audio_tokens"] == 10


@pytest.mark.parametrize(
    "host", ["dashscope-intl.aliyuncs.com", "ws-1.cn-beijing.maas.aliyuncs.com"]
)
def test_dashscope_needs_no_options(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DASHSCOPE_API_KEY", KEY)
    model = open_openai("qwen3.5-omni-plus", {"base_url": f"https://{host}/compatible-mode/v1"})
    assert model._key == KEY
    assert model.settings["audio_form"] == "input_audio_uri"
    assert model.settings["modalities"] == ["text"]
    assert model._values["stream"] is True


def test_a_host_that_only_looks_like_dashscope_gets_no_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DASHSCOPE_API_KEY", KEY)
    for host in ("maas.aliyuncs.com.evil.example", "evilmaas.aliyuncs.com"):
        model = open_openai("m", {"base_url": f"https://{host}/v1"})
        assert (model._key, model._values["stream"]) == (None, False)


def test_options_reach_the_request(request_: Request) -> None:
    with OpenAIServer() as server:
        open_and_ask(
            "openai/m", request_, base_url=server.url + "/", temperature="0", seed="7", top_p="0.9",
            max_completion_tokens="64", reasoning_effort="low", modalities="text", audio_first="yes",
            structured="json_schema", extra='{"top_k": 1}',
        )  # fmt: skip
    body = server.calls[0].json()
    assert server.calls[0].path == "/v1/chat/completions"
    assert (body["temperature"], body["seed"], body["top_p"]) == (0.0, 7, 0.9)
    assert body["max_completion_tokens"] == 64
    assert "max_tokens" not in body
    assert body["reasoning_effort"] == "low"
    assert body["modalities"] == ["text"]
    assert body["top_k"] == 1
    assert [part["type"] for part in body["messages"][0]["content"]] == ["input_audio", "text"]
    schema = body["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["label"]["enum"] == list(PROMPT.choices)


def test_nothing_is_sent_that_was_not_asked_for(request_: Request) -> None:
    with OpenAIServer() as server:
        open_and_ask("openai/m", request_, base_url=server.url)
    assert set(server.calls[0].json()) == {"model", "messages"}


def test_a_clip_in_another_format_is_converted_and_said_so(
    make_clip: Callable[..., AudioRef],
) -> None:
    clip = make_clip("clip.flac", rate=48_000)
    with OpenAIServer() as server:
        reply = open_and_ask(
            "openai/m", Request("i", PROMPT, clip), base_url=server.url, rates="16000"
        )
    assert server.asked[0].audio is not None
    assert server.asked[0].audio.rate == 16_000
    assert reply.raw["stimulus"]["note"] == "decoded from flac; resampled from 48000 to 16000 Hz"


def test_costs_are_counted_from_prices(request_: Request) -> None:
    body = completion(usage={"prompt_tokens": 1000, "completion_tokens": 10})
    with OpenAIServer(json_act(body)) as server:
        reply = open_and_ask(
            "openai/m", request_, base_url=server.url, price_in="2.5", price_out="10"
        )
    assert reply.usage.cost_usd == pytest.approx(0.0026)


def test_the_cost_a_service_states_counts(request_: Request) -> None:
    body = completion(usage={"prompt_tokens": 1000, "completion_tokens": 10, "cost": 0.5})
    with OpenAIServer(json_act(body)) as server:
        reply = open_and_ask(
            "openai/m", request_, base_url=server.url, price_in="2.5", price_out="10"
        )
    assert reply.usage.cost_usd == 0.5


def test_the_key_is_sent_as_bearer(request_: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", f"  {KEY}\n")
    with OpenAIServer(key=KEY) as server:
        reply = open_and_ask("openai/m", request_, base_url=server.url, api_key_env="MY_KEY")
    assert reply.text == "neutral"


def test_the_key_of_openai_is_not_sent_elsewhere(
    request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with OpenAIServer() as server:
        open_and_ask("openai/m", request_, base_url=server.url)
    assert "authorization" not in server.calls[0].headers


def test_a_key_that_is_not_set_is_missed_before_the_first_call(
    request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    model = open_openai("gpt-audio", {})
    assert isinstance(model, Preflight)
    with pytest.raises(UsageError, match=r"OPENAI_API_KEY is not set.*api_key_env"):
        model.preflight([request_])


def test_a_broken_key_is_refused_without_showing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hälf\ntwo")
    with pytest.raises(
        UsageError, match="the value of OPENAI_API_KEY holds characters no key has"
    ) as caught:
        open_openai("gpt-audio", {})
    assert "hälf" not in str(caught.value)


def test_settings_hold_all_that_changes_the_answer_and_no_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    first = open_openai("m", {"temperature": "0"})
    assert first.settings == open_openai("m", {"temperature": 0.0, "timeout_s": "5"}).settings
    assert first.settings != open_openai("m", {"temperature": "1"}).settings
    assert first.settings != open_openai("m", {"temperature": "0", "rates": "16000"}).settings
    assert KEY not in str(first.settings)
    assert KEY not in repr(first)
    assert KEY not in repr(vars(first)["_caller"])


def test_a_named_server_may_change_its_port() -> None:
    one = open_openai("m", {"base_url": "http://localhost:8000/v1", "server": "lab"})
    two = open_openai("m", {"base_url": "http://localhost:8001/v1", "server": "lab"})
    assert one.settings == two.settings


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"base_url": "localhost:8000"}, r"'localhost:8000' is no http\(s\) URL"),
        ({"base_url": "http://me:pass@host/v1"}, "holds a user name or password"),
        ({"base_url": "http://host/v1?key=1"}, "has a query"),
        ({"base_url": "http://host:port/v1"}, "is no URL"),
        ({"temprature": "0"}, r"unknown option 'temprature'.*Did you mean 'temperature'"),
        ({"temperature": "warm"}, "option temperature='warm'; wanted a number"),
        ({"temperature": "-1"}, "at least 0"),
        ({"max_tokens": "10", "max_completion_tokens": "10"}, "both set"),
        ({"extra": "[1]"}, "wanted a JSON object"),
        ({"extra": '{"model": "x"}'}, "sets model"),
        ({"structured": "yes"}, "one of none, json_schema, json_object"),
        ({"rates": "high"}, "whole numbers of Hz"),
    ],
)
def test_unfit_options_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        open_openai("m", options)


def test_a_forced_form_needs_something_to_force(request_: Request) -> None:
    model = open_openai("m", {"base_url": "http://localhost:1/v1", "structured": "json_schema"})
    model.preflight([request_])
    with pytest.raises(UsageError, match="neither schema nor choices"):
        model.preflight([replace(request_, prompt=replace(PROMPT, choices=()))])


def test_a_clip_that_has_changed_is_not_sent(request_: Request) -> None:
    assert request_.audio is not None
    request_.audio.path.write_bytes(request_.audio.path.read_bytes() + b"\0")
    with (
        OpenAIServer() as server,
        pytest.raises(ModelError, match="has changed since the set was made") as caught,
    ):
        open_and_ask("openai/m", request_, base_url=server.url)
    assert (caught.value.kind, caught.value.retryable) == ("audio", False)
    assert not server.calls


def test_text_roles() -> None:
    with OpenAIServer(character="echo") as server:
        model = open_model("openai/m", {"base_url": server.url})
        assert isinstance(model, AudioModel)
        assert isinstance(model, TextModel)

        async def run() -> str | None:
            reply = await model.complete([Message("system", "Be brief."), Message("user", "Hello")])
            await model.aclose()
            return reply.text

        assert asyncio.run(run()) == "Hello"
    assert server.asked[0].system == "Be brief."


def test_one_model_asks_many_at_once_and_in_a_second_event_loop(request_: Request) -> None:
    with OpenAIServer(character="uniform") as server:
        model = open_model("openai/m", {"base_url": server.url})

        async def many() -> set[str | None]:
            replies = await asyncio.gather(*(model.ask(request_) for _ in range(40)))
            await model.aclose()
            return {reply.text for reply in replies}

        assert len(asyncio.run(many())) == 1
        assert len(asyncio.run(many())) == 1
    assert len(server.calls) == 80


def test_the_body_is_streamed_so_that_no_base64_copy_of_it_exists(
    make_clip: Callable[..., AudioRef],
) -> None:
    """The server throws the body away as it comes, so that what is measured is the client."""
    clip = make_clip(seconds=200.0)
    size = clip.path.stat().st_size

    async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        import json

        head = await reader.readuntil(b"\r\n\r\n")
        left = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        while left:
            left -= len(await reader.read(min(left, 1 << 16)))
        body = json.dumps(completion()).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def measure() -> tuple[int, int]:
        server = await asyncio.start_server(swallow, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        model = open_model("openai/m", {"base_url": f"http://127.0.0.1:{port}/v1"})
        await model.ask(Request("warm-up", PROMPT))
        tracemalloc.start()
        try:
            await model.ask(Request("i", PROMPT, clip))
            return tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
            await model.aclose()
            server.close()
            await server.wait_closed()

    left, peak = asyncio.run(measure())
    assert peak < size + 1_500_000
    assert left < 500_000
