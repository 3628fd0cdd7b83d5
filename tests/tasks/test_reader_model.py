"""``offline/reader`` as the text-only control: what it reads, what it says it cannot, and how it is wired."""

from __future__ import annotations

import asyncio
import json
from typing import ClassVar

import numpy as np
import pytest
from typer.testing import CliRunner

from earwitness.audio.io import Audio, write_audio
from earwitness.cli import build_app
from earwitness.errors import EarwitnessError, UsageError
from earwitness.models.protocols import AudioRef, Message, Prompt, Request, Transcript, Word
from earwitness.models.registry import open_model, open_text_model
from earwitness.tasks.reader_model import NO_MOMENT, NO_TRANSCRIPT, marked, moment_of, transcript_of

TALK = (
    (0.0, 4.0, "A: I think we should paint the kitchen before the summer, the walls look tired."),
    (4.6, 8.0, "B: The landlord would have to agree, and he never answers his letters."),
    (8.8, 12.0, "A: {reaction}"),
    (12.6, 16.0, "B: {second}"),
    (16.6, 20.0, "A: {third}"),
)
AMBIENT = {
    "reaction": "Then we paint it anyway, he has not been here since we moved in.",
    "second": "A light yellow would be nice, the kitchen gets so little sun.",
    "third": "Yellow it is, and I will buy the brushes on Saturday.",
}
PIVOT = {
    "reaction": "Goodness, did you hear that dog barking? It sounds as if it were right at the door.",
    "second": "That dog is out there again, somebody should look whether it is hurt.",
    "third": "I will go down and see to the dog, poor thing, bring the lead.",
}


def prompt(talk, moment=8.4, speakers=True):
    lines = []
    for start, end, said in TALK:
        words = said.format(**talk)
        lines.append(f"[{start}-{end}] {words if speakers else words[3:]}")
    question = f"A short sound from their surroundings is at its loudest at {moment} seconds. How do they react?"
    return (
        "Transcript of the recording, times in seconds; there is no audio:\n"
        + "\n".join(lines)
        + f"\n\n{question}"
    )


@pytest.fixture(scope="module")
def reader():
    return open_model("offline/reader")


def ask(model, text):
    return asyncio.run(model.ask(Request("i", Prompt(text)))).text


def test_it_tells_a_sound_that_is_talked_about_from_one_nobody_minds(reader):
    assert ask(reader, prompt(PIVOT)) == "pivot"
    assert ask(reader, prompt(AMBIENT)) == "ambient"
    assert ask(reader, prompt(PIVOT, speakers=False)) in ("pivot", "verbal")


def test_as_a_text_model_it_reads_the_last_message_of_the_user(reader):
    model = open_text_model("offline/reader")
    said = [Message("system", "s"), Message("user", "earlier"), Message("user", prompt(PIVOT))]
    assert asyncio.run(model.complete(said)).text == "pivot"
    assert model.limits.tasks == ("reaction",)
    assert not model.limits.takes_audio


def test_without_a_transcript_or_a_moment_it_says_so(reader):
    assert ask(reader, "How do they react at 8.4 seconds?") == NO_TRANSCRIPT
    assert ask(reader, prompt(PIVOT).replace("at 8.4 seconds", "once")) == NO_MOMENT
    assert ask(reader, "") == NO_TRANSCRIPT


def test_lines_times_and_the_place_of_the_sound():
    lines = transcript_of(prompt(AMBIENT))
    assert [line[2] for line in lines] == ["A", "B", "A", "B", "A"]
    assert moment_of(prompt(AMBIENT)) == 8.4
    assert moment_of("Around second 12.5 something can be heard.") == 12.5
    # A time in the talk is no moment of the question.
    assert moment_of("[0.0-1.0] A: See you at 8.\n\nHow do they react?") is None
    assert marked(lines, 8.4).splitlines()[2] == "[SOUND: e1]"
    assert marked(lines, 0.0).splitlines()[0] == "[SOUND: e1]"
    assert marked(lines, 99.0).splitlines()[-1] == "[SOUND: e1]"
    # A recogniser's line may reach over the moment: its middle decides.
    assert marked([(0.0, 10.0, "A", "x")], 6.0).splitlines() == ["A: x", "[SOUND: e1]"]


def test_other_names_and_options_are_refused():
    with pytest.raises(UsageError, match="there is no such model"):
        open_model("offline/poet")
    with pytest.raises(UsageError, match="unknown option 'temperature'"):
        open_model("offline/reader", {"temperature": "1"})


def cares(*words):
    result = CliRunner().invoke(build_app(), ["run", "cares", *map(str, words)])
    if isinstance(result.exception, EarwitnessError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_it_answers_reaction_from_text_and_the_rest_does_not_apply(mixed_folder, tmp_path):
    found = cares(
        mixed_folder, "--model", "offline/reader", "--out", tmp_path, "--json",
        "--conditions", "audio,oracle,oracle-tags",
    )  # fmt: skip
    assert {(s["task"], s["condition"]) for s in found["scores"]} == {
        ("reaction", "oracle"), ("reaction", "oracle-tags"),
    }  # fmt: skip
    assert found["scores"][0]["scores"]["outcomes"]["answered"] == 16
    why = {(task, condition): reason for task, _, condition, reason in found["not_applicable"]}
    assert why["reaction", "audio"] == "the model takes words only"
    assert why["sound", "oracle"] == "the model answers reaction alone"


class Writer:
    """A transcriber with known words."""

    name = "known/words"
    settings: ClassVar = {}

    def transcribe(self, audio):
        words = [
            Word(word, start + 0.01 * k, start + 0.01 * k + 0.005 if k + 1 < len(parts) else end)
            for start, end, said in TALK
            for parts in [said.format(**PIVOT)[3:].split()]
            for k, word in enumerate(parts)
        ]
        return Transcript(" ".join(w.text for w in words), tuple(words))


def test_a_cascade_hands_it_the_times(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "earwitness.models.transcribers.registry.open_transcriber", lambda *_: Writer()
    )
    model = open_model("cascade/known/words+offline/reader")
    assert model.limits.tasks == ("reaction",)
    assert model.limits.takes_audio
    assert model.settings["times"] is True
    write_audio(tmp_path / "a.wav", Audio((0.1 * np.sin(np.arange(8000))).astype(np.float32), 8000))
    ref = AudioRef(tmp_path / "a.wav", "", 1.0, 8000)
    question = "A short sound is at its loudest at 8.4 seconds. How do they react?"
    reply = asyncio.run(model.ask(Request("i", Prompt(question), ref)))
    assert reply.text == "pivot"
    assert reply.raw["transcript"].startswith("[0.0-4.0] I think we should")
    assert "times" not in open_model("cascade/known/words+offline/reader", {"times": "no"}).settings


def test_baselines_choose_and_write_nothing(mixed_folder, tmp_path):
    found = cares(
        mixed_folder, "--model", "baseline/majority", "--model", "baseline/uniform", "--out", tmp_path,
        "--json", "--tasks", "reaction,summary", "--conditions", "audio,blind",
    )  # fmt: skip
    assert {s["task"] for s in found["scores"]} == {"reaction"}
    why = {reason for task, _, _, reason in found["not_applicable"] if task == "summary"}
    assert "the model chooses among labels and writes nothing" in why
    with pytest.raises(UsageError, match="the model answers emotion alone"):
        cares(mixed_folder, "--model", "baseline/neutral", "--out", tmp_path, "--json")
