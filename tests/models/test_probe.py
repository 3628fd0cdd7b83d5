"""The deafness probe: deaf stand-ins, hearing ones, guessing ones, failing ones."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from earwitness.cli import build_app
from earwitness.errors import UsageError
from earwitness.models import probe as probing
from earwitness.models.probe import (
    ProbeAnswer,
    ProbeClip,
    ProbeResult,
    judge,
    make_clips,
    read_answer,
)
from earwitness.models.protocols import Reply
from earwitness.models.registry import open_model
from tests.standins.listening import listen
from tests.standins.loopback import Act, Call, error, json_act
from tests.standins.openai_server import OpenAIServer, completion


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> tuple[ProbeClip, ...]:
    return make_clips(tmp_path_factory.mktemp("probe"))


def sent_audio(call: Call) -> str:
    """Which sound a call brought, by its decoded samples."""
    for part in call.json()["messages"][0]["content"]:
        if part["type"] == "input_audio":
            return listen(base64.b64decode(part["input_audio"]["data"])).sha256
    return ""


def hearing(clips: Sequence[ProbeClip], *, deaf_proxy: bool = False) -> Any:
    """A service that knows the sounds, and so answers right exactly if they reach it."""
    known: dict[tuple[str, str], str] = {}
    for clip in clips:
        known[listen(clip.audio.path.read_bytes()).sha256, clip.prompt.user] = clip.truth

    def choose(call: Call) -> Act:
        words = call.json()["messages"][0]["content"]
        prompt = words if isinstance(words, str) else words[0]["text"]
        sound = "" if deaf_proxy else sent_audio(call)
        return json_act(completion(f"It is {known.get((sound, prompt), 'speech, a man: 123')}."))

    return choose


def run(clips: Sequence[ProbeClip], server: OpenAIServer) -> ProbeResult:
    async def both() -> ProbeResult:
        model = open_model("openai/m", {"base_url": server.url})
        try:
            return await probing.probe(model, clips)
        finally:
            await model.aclose()

    return asyncio.run(both())


def test_the_clips_are_what_they_are_said_to_be(
    clips: tuple[ProbeClip, ...], tmp_path: Path
) -> None:
    assert [clip.about for clip in clips] == ["number"] * 2 + ["kind"] * 4 + ["voice"] * 2
    assert len(clips) == probing.CALLS
    heard = [listen(clip.audio.path.read_bytes()) for clip in clips]
    assert heard[2].pitch_hz == pytest.approx(440, rel=0.02)
    assert heard[4].level_dbfs == -120
    assert heard[2].sha256 == heard[3].sha256
    assert clips[0].truth != clips[1].truth
    man, woman = (heard[at].pitch_hz for at in (6, 7))
    assert man is not None
    assert woman is not None
    assert man < 150 < woman
    again, other = make_clips(tmp_path / "a"), make_clips(tmp_path / "b", seed=1)
    assert [c.audio.sha256 for c in again] == [c.audio.sha256 for c in clips]
    assert [c.truth for c in other[:2]] != [c.truth for c in clips[:2]]


def test_a_hearing_service_is_told_from_the_same_one_behind_a_deaf_proxy(
    clips: tuple[ProbeClip, ...],
) -> None:
    with OpenAIServer(choose=hearing(clips)) as server:
        result = run(clips, server)
    assert (result.verdict, result.reason) == ("hearing", "2 of 2 spoken numbers were understood")
    assert all(answer.right for answer in result.answers)
    with OpenAIServer(choose=hearing(clips, deaf_proxy=True)) as server:
        result = run(clips, server)
    assert result.verdict == "deaf"
    assert "the same whatever is played" in result.reason


@pytest.mark.parametrize("character", ["neutral", "echo", "refuse"])
def test_deaf_characters(clips: tuple[ProbeClip, ...], character: str) -> None:
    with OpenAIServer(character=character) as server:
        assert run(clips, server).verdict == "deaf"


def test_a_service_that_fails_is_unclear(clips: tuple[ProbeClip, ...]) -> None:
    with OpenAIServer(choose=lambda _: error(401, "who are you")) as server:
        result = run(clips, server)
    assert result.verdict == "unclear"
    assert "every call failed: openai/m: HTTP 401" in result.reason


def test_a_stumble_is_tried_once_more(
    clips: tuple[ProbeClip, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probing, "_LONGEST_WAIT_S", 0.01)
    with OpenAIServer(error(500), error(529), choose=hearing(clips)) as server:
        assert run(clips, server).verdict == "hearing"


def test_a_service_that_is_closed_for_long_is_not_asked_before_its_time(
    clips: tuple[ProbeClip, ...],
) -> None:
    with OpenAIServer(choose=lambda _: error(429, **{"Retry-After": "3600"})) as server:
        assert run(clips, server).verdict == "unclear"
        assert len(server.calls) == len(clips)


def judged(clips: Sequence[ProbeClip], said: Sequence[str | None]) -> str:
    answers = []
    for clip, text in zip(clips, said, strict=True):
        reply = None if text is None else Reply(text=text)
        answers.append(
            ProbeAnswer(
                clip, reply, read_answer(clip, reply) if reply else "", "x" if text is None else ""
            )
        )
    return judge(answers)[0]


def test_verdicts(clips: tuple[ProbeClip, ...]) -> None:
    right = [clip.truth for clip in clips]
    assert judged(clips, right) == "hearing"
    assert judged(clips, [right[0], *["speech"] * 7]) == "hearing"
    assert judged(clips, ["111", "111", *right[2:]]) == "hearing"
    assert judged(clips, ["111", "222", *["speech"] * 4, "man", "man"]) == "deaf"
    assert (
        judged(clips, ["111", "222", "tone", "tone", "silence", "tone", "man", "woman"])
        == "unclear"
    )
    assert judged(clips, [None, "111", *["speech"] * 4, "man", "man"]) == "unclear"
    assert (
        judged(
            clips,
            [
                "I'm sorry, but no audio file was attached.",
                "I cannot hear audio.",
                *["I can't listen to recordings."] * 3,
                "speech",
                "man",
                "woman",
            ],
        )
        == "deaf"
    )


def scored(clips: Sequence[ProbeClip], scores: Sequence[dict[str, float]]) -> str:
    pairs = zip(clips, scores, strict=True)
    return judge([ProbeAnswer(clip, Reply(scores=each), "") for clip, each in pairs])[0]


def test_scores_must_follow_the_sound(clips: tuple[ProbeClip, ...]) -> None:
    a, b, c = {"joy": 0.1}, {"joy": 0.2}, {"joy": 0.3}
    assert scored(clips, [a, a, b, b, a, c, a, a]) == "hearing"
    assert scored(clips, [a] * 8) == "deaf"
    assert scored(clips, [a, a, b, c, a, c, a, a]) == "unclear"
    assert scored(clips, [a, a, b, b, b, c, a, a]) == "hearing"
    assert scored(clips, [a, a, b, b, c, c, a, a]) == "unclear"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("749", "749"), ("7 4 9.", "749"), ("Seven, four, nine.", "749"), ("7-4-9", "749"),
        ("The digits are 7, 4, 9", "749"), ('{"digits": "749"}', "749"), ("I hear 7494", ""),
        ("749 or 203", ""), ("none", ""),
    ],
)  # fmt: skip
def test_numbers_are_read_as_people_write_them(
    clips: tuple[ProbeClip, ...], text: str, number: str
) -> None:
    assert read_answer(clips[0], Reply(text=text)) == number


def test_choices_are_read_only_where_one_is_named(clips: tuple[ProbeClip, ...]) -> None:
    assert read_answer(clips[2], Reply(text='{"label": "Tone"}')) == "tone"
    assert read_answer(clips[2], Reply(text="Either speech or a tone.")) == ""
    assert read_answer(clips[7], Reply(text="A woman.")) == "woman"


def command(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(build_app(), ["models", "probe", *words], catch_exceptions=False)
    return result.exit_code, result.stdout


def test_the_command(clips: tuple[ProbeClip, ...], tmp_path: Path) -> None:
    with OpenAIServer(choose=hearing(clips)) as server:
        base = f"base_url={server.url}"
        code, said = command("openai/m", "-M", base, "--keep", str(tmp_path / "kept"))
    assert code == 0
    assert "openai/m: hearing" in said
    assert clips[0].truth in said
    assert len(list((tmp_path / "kept").glob("*.wav"))) == 8
    with OpenAIServer() as server:
        code, said = command("openai/m", "-M", f"base_url={server.url}", "--json")
    found = json.loads(said)
    assert (code, found["verdict"], len(found["answers"])) == (1, "deaf", 8)
    assert found["answers"][0]["text"] == "neutral"
    with OpenAIServer(choose=lambda _: error(404, "no such model")) as server:
        code, said = command("openai/m", "-M", f"base_url={server.url}")
    assert code == 3
    assert "unclear" in said


def test_the_command_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UsageError, match="OPENAI_API_KEY is not set"):
        command("openai/gpt-audio")
