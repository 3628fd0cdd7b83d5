"""Voices of services, against stand-ins that speak their protocols."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from earwitness.errors import DataError, ModelError, UsageError
from earwitness.models.protocols import Pause, Phrase, Vocalisation
from earwitness.models.voices.registry import open_voice
from tests.standins.loopback import CLOSE, Act, json_act
from tests.standins.tts_server import CHARACTER_S, TtsServer

KEY = "key-of-the-service"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[TtsServer]:
    monkeypatch.setenv("STANDIN_KEY", KEY)
    with TtsServer() as running:
        yield running


def eleven(server: TtsServer, voice: str = "Ab12", **options: object):
    given = {"base_url": server.url, "api_key_env": "STANDIN_KEY", **options}
    return open_voice(f"elevenlabs/{voice}", given)


def openai(server: TtsServer, voice: str = "onyx", **options: object):
    given = {"base_url": server.url, "api_key_env": "STANDIN_KEY", **options}
    return open_voice(f"openai/{voice}", given)


def test_elevenlabs_sends_tags_inline_and_one_request(server: TtsServer) -> None:
    voice = eleven(server)
    spoken = voice.speak(
        [Phrase("I just"), Vocalisation("sigh", "sighs"), Phrase("know it.", "whisper")], seed=7
    )
    (asked,) = server.asked
    assert asked["text"] == "I just [sighs] [whispers] know it."
    assert asked["model_id"] == "eleven_v3"
    assert asked["seed"] == 7
    assert asked["form"] == "pcm_24000"
    assert [word.text for word in spoken.words] == ["I", "just", "know", "it"]
    assert [mark.kind for mark in spoken.marks] == ["sigh", "whisper"]
    assert {"sigh", "whisper", "pause", "throat"} <= voice.renders


def test_elevenlabs_pause_is_silence_between_the_words(server: TtsServer) -> None:
    spoken = eleven(server).speak([Phrase("We could"), Pause(0.9), Phrase("go now.")])
    assert server.asked[0]["text"] == "We could go now."
    (mark,) = [mark for mark in spoken.marks if mark.kind == "pause"]
    assert mark.end_s - mark.start_s == pytest.approx(0.9)
    rate = spoken.audio.rate
    inside = spoken.audio.samples[round(mark.start_s * rate) + 2 : round(mark.end_s * rate) - 2]
    assert not inside.any()
    could, go = spoken.words[1], spoken.words[2]
    assert could.end_s <= mark.start_s
    assert go.start_s >= mark.end_s
    assert go.start_s - could.end_s == pytest.approx(0.9 + CHARACTER_S, abs=0.005)
    for word in spoken.words:
        middle = round((word.start_s + word.end_s) / 2 * rate)
        assert np.abs(spoken.audio.samples[middle - 100 : middle + 100]).max() > 0.2


def test_elevenlabs_edges_are_trimmed(server: TtsServer) -> None:
    spoken = eleven(server).speak([Phrase("Hello.")])
    assert spoken.audio.seconds == pytest.approx(6 * CHARACTER_S + 0.06, abs=0.02)


@pytest.mark.parametrize("form", ["mp3_44100_128", "wav_24000"])
def test_elevenlabs_files(server: TtsServer, form: str) -> None:
    spoken = eleven(server, output_format=form).speak([Phrase("Hello there.")])
    assert spoken.audio.rate == int(form.split("_")[1])
    assert len(spoken.words) == 2


def test_older_models_read_tags_out_so_they_declare_none(server: TtsServer) -> None:
    assert eleven(server, model="eleven_multilingual_v2").renders == {"pause", "long_pause"}


def test_elevenlabs_refuses_what_is_too_long_before_it_is_sent(server: TtsServer) -> None:
    with pytest.raises(DataError, match="an utterance of 6000 characters; wanted at most 5000"):
        eleven(server).speak([Phrase("a" * 6000)])
    assert server.calls == []


def test_elevenlabs_voice_that_does_not_exist(server: TtsServer) -> None:
    with pytest.raises(ModelError, match=r"HTTP 404.*voice_not_found") as caught:
        eleven(server, "unknown").speak([Phrase("Hello.")])
    assert not caught.value.retryable


def test_a_wrong_key_is_not_shown(server: TtsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN_KEY", "not-the-key")
    with pytest.raises(ModelError, match="read from STANDIN_KEY") as caught:
        eleven(server).speak([Phrase("Hello.")])
    assert caught.value.kind == "auth"
    assert "not-the-key" not in str(caught.value)


def test_used_up_credits_are_no_wrong_key(server: TtsServer) -> None:
    server.script.append(
        json_act({"detail": {"status": "quota_exceeded", "message": "0 left"}}, 401)
    )
    with pytest.raises(ModelError, match="quota_exceeded") as caught:
        eleven(server).speak([Phrase("Hello.")])
    assert caught.value.kind == "quota"
    assert not caught.value.retryable


def test_busy_may_be_tried_again(server: TtsServer) -> None:
    busy = {"detail": {"status": "too_many_concurrent_requests"}}
    server.script.append(json_act(busy, 429, retry_after="3"))
    with pytest.raises(ModelError) as caught:
        eleven(server).speak([Phrase("Hello.")])
    assert caught.value.retryable
    assert caught.value.retry_after_s == 3


@pytest.mark.parametrize(
    ("act", "what"),
    [
        (json_act({"alignment": {}}), "no audio_base64"),
        (json_act({"audio_base64": "###"}), "no base64"),
        (json_act({"audio_base64": "AAAAAAAA"}), "no times of characters"),
        (
            json_act(
                {
                    "audio_base64": "AAAAAAAA",
                    "alignment": {
                        "characters": ["X"],
                        "character_start_times_seconds": [0],
                        "character_end_times_seconds": [1],
                    },
                }
            ),
            "another text",
        ),
        (json_act({"audio_base64": "AAA="}), "no 16-bit samples|no times"),
        (Act(body=b"<html>", media_type="text/html"), "no audio_base64"),
    ],
)
def test_elevenlabs_bad_replies(server: TtsServer, act: Act, what: str) -> None:
    server.script.append(act)
    with pytest.raises(ModelError, match=what) as caught:
        eleven(server).speak([Phrase("Hello.")])
    assert caught.value.kind == "bad_reply"
    assert caught.value.maybe_paid


def test_openai_reads_a_streamed_wav_from_its_bytes(server: TtsServer) -> None:
    spoken = openai(server).speak([Phrase("Hello there.")])
    assert spoken.audio.rate == 24_000
    assert spoken.audio.seconds == pytest.approx(12 * CHARACTER_S + 0.06, abs=0.02)
    assert spoken.words == ()
    assert server.asked[0] == {
        "model": "gpt-4o-mini-tts",
        "voice": "onyx",
        "input": "Hello there.",
        "response_format": "wav",
    }


@pytest.mark.parametrize("form", ["pcm", "flac", "mp3"])
def test_openai_formats(server: TtsServer, form: str) -> None:
    spoken = openai(server, response_format=form).speak([Phrase("Hello there.")])
    assert spoken.audio.seconds == pytest.approx(12 * CHARACTER_S + 0.06, abs=0.08)


def test_openai_pauses_lie_between_requests(server: TtsServer) -> None:
    spoken = openai(server).speak([Phrase("We could"), Pause(1.0), Phrase("go.")])
    assert [asked["input"] for asked in server.asked] == ["We could", "go."]
    assert spoken.marks[0].end_s - spoken.marks[0].start_s == pytest.approx(1.0, abs=0.001)


def test_openai_renders_a_manner_only_where_the_user_says_how(server: TtsServer) -> None:
    assert "whisper" not in openai(server).renders
    voice = openai(server, manners={"whisper": "Whisper, breath only."}, instructions="Be calm.")
    assert "whisper" in voice.renders
    voice.speak([Phrase("Quiet.", "whisper")])
    assert server.asked[0]["instructions"] == "Be calm. Whisper, breath only."


def test_genders() -> None:
    local = {"base_url": "http://127.0.0.1:9/v1"}
    assert open_voice("openai/onyx", local).gender == "M"
    assert open_voice("openai/marin", local).gender == "F"
    assert open_voice("openai/own", {**local, "gender": "F"}).gender == "F"
    assert open_voice("elevenlabs/x", local).gender is None


def test_a_service_needs_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ELEVENLABS_API_KEY", raising=False)
    with pytest.raises(UsageError, match="ELEVENLABS_API_KEY is not set"):
        open_voice("elevenlabs/x")


def test_the_key_goes_to_its_own_host_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret-of-openai")
    with TtsServer(key=None) as server:
        open_voice("openai/onyx", {"base_url": server.url}).speak([Phrase("Hello.")])
        assert "authorization" not in server.calls[0].headers


def test_a_broken_connection(server: TtsServer) -> None:
    server.script.append(CLOSE)
    with pytest.raises(ModelError) as caught:
        openai(server).speak([Phrase("Hello.")])
    assert caught.value.retryable


def test_html_in_place_of_sound(server: TtsServer) -> None:
    server.script.append(Act(body=b"<html><body>Sign in</body></html>", media_type="text/html"))
    with pytest.raises(ModelError, match="no usable sound"):
        openai(server).speak([Phrase("Hello.")])


def test_settings_hold_no_key(server: TtsServer) -> None:
    for voice in (eleven(server), openai(server)):
        assert KEY not in repr(dict(voice.settings))
        assert voice.settings["server"] == server.url
        assert voice.remote
        assert not voice.deterministic


def test_a_server_may_have_a_name_instead_of_its_address(server: TtsServer) -> None:
    for engine in ("openai/onyx", "elevenlabs/Ab12"):
        voice = open_voice(engine, {"base_url": server.url, "server": "desk"})
        assert voice.settings["server"] == "desk"
