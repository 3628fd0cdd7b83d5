"""``earwitness run emotion --conditions asr,blind,silence``: the same clips, another input."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from earwitness.cli import build_app
from earwitness.errors import EarwitnessError, UsageError
from earwitness.models.protocols import Limits
from earwitness.runs.folder import RunFolder
from earwitness.tasks import emotion
from earwitness.tasks.emotion_runs import _not_applicable
from tests.clips.hums import make_hums
from tests.standins.openai_server import OpenAIServer
from tests.tasks.test_emotion import clip_set

WORDS = "the parcel is on the table"


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    """Seven hums, one for each label."""
    return make_hums(tmp_path_factory.mktemp("hums"), 7)


def run(*words):
    result = CliRunner().invoke(build_app(), ["run", "emotion", *map(str, words), "--no-report"])
    if isinstance(result.exception, EarwitnessError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result


def test_under_asr_a_model_gets_the_words_and_no_audio(clips, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    asr = ("--asr", "command/said", "-A", f"run=sh -c 'echo {WORDS}' {{file}}")
    with OpenAIServer(character="neutral") as server:
        model = ("--model", "openai/m", "-M", f"base_url={server.url}")
        run("--clips", clips, *model, "--conditions", "audio,asr,blind", *asr, "--out", tmp_path)
        asked = list(server.asked)
        run("--clips", clips, *model, "--conditions", "audio,asr,blind", *asr, "--out", tmp_path)
        assert len(server.asked) == len(asked) == 21
    told = [each for each in asked if WORDS in each.prompt]
    assert len(told) == 7
    assert all(each.audio is None for each in told)
    assert all(
        each.prompt.startswith("Transcript of the recording by a speech recogniser")
        for each in told
    )
    assert sum(each.audio is None for each in asked) == 14
    (folder,) = [path for path in tmp_path.iterdir() if path.is_dir()]
    card = RunFolder(folder).card()
    assert card["transcriber"]["name"] == "command/said"
    assert card["conditions"] == ["audio", "asr", "blind"]
    store = (tmp_path / "transcripts--command_said.jsonl").read_text().splitlines()
    assert [json.loads(line)["text"] for line in store] == [WORDS] * 7


def test_what_a_model_cannot_be_asked_is_left_out_and_said(clips, tmp_path):
    result = run("--clips", clips, "--model", "baseline/neutral", "--conditions", "silence,blind", "--out", tmp_path / "a")  # fmt: skip
    assert "not applicable" not in result.output
    with pytest.raises(UsageError, match=r"audio: the model answers reaction alone"):
        run("--clips", clips, "--model", "offline/reader", "--out", tmp_path / "b")
    cards = Spec(needs_audio=True), Spec(needs_audio=False)
    assert [set(_not_applicable(model, "m", ("audio", "asr"))) for model in cards] == [
        {"asr"},
        set(),
    ]


class Spec:
    """A model by what it declares."""

    def __init__(self, **limits):
        self.limits = Limits(**limits)


def test_a_clip_without_a_transcript_is_an_error():
    with pytest.raises(UsageError, match="c000 has no transcript"):
        emotion.items(clip_set(), conditions=("asr",))
    texts = {clip.sha256: f"words of {clip.id}" for clip in clip_set().clips}
    questions = emotion.items(clip_set(), conditions=("asr",), transcripts=texts, limit=7)
    assert len(questions) == 7
    for question in questions:
        assert f"words of {question.item.id.partition('|')[0]}\n\n" in question.item.prompt.user
        assert question.item.audio is None
        assert question.item.prompt.choices == emotion.load_prompt_set("vab").prompt.choices
