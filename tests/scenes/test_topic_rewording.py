"""Pairs of topics and rewordings by a model, from the command line, against a stand-in."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from earwitness.cli import build_app
from earwitness.errors import DataError, EarwitnessError
from earwitness.scenes.bank import load_bank
from earwitness.scenes.corpus import Corpus
from earwitness.scenes.topic_pairs import load_topic_pairs
from tests.scenes.writing_cases import small_corpus
from tests.standins.text_services import text_service

WORDS = "someone wonders about a matter that both of them have heard of, with number"


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(build_app(), ["scenes", *arguments])
    if isinstance(result.exception, EarwitnessError):
        raise result.exception
    return result


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = small_corpus(tmp_path_factory.mktemp("r") / "c", load_bank(), 2, 3).corpus.folder
    run("write", str(folder), "--workers", "1")
    return folder


class Rewording:
    """Rewords every topic; ``spoil`` makes the first answers bad until it is told."""

    def __init__(self, spoil: str = "") -> None:
        self.spoil = spoil
        self.asked: list[str] = []

    def __call__(self, system: str, user: str) -> str:
        assert "overheard" in system
        self.asked.append(user)
        told = "could not be used" in user
        lines = re.findall(r"^(\d+)\. (.+)$", user, re.MULTILINE)
        if self.spoil == "prose" and not told:
            return "I would rather talk about something else."
        rewordings = []
        for number, topic in lines:
            text = f"{WORDS} {len(self.asked)}-{number}"
            if not told and self.spoil == "same":
                text = topic
            rewordings.append({"number": int(number), "rewording": text})
        if self.spoil == "missing" and not told:
            rewordings.pop()
        return json.dumps({"rewordings": rewordings})


@pytest.mark.parametrize("spoil", ["", "prose", "same", "missing"])
def test_every_topic_gets_a_rewording(corpus: Path, tmp_path: Path, spoil: str) -> None:
    out = tmp_path / "pairs.yaml"
    say = Rewording(spoil)
    with text_service("openai", say) as server:
        arguments = ["--writer", "openai/r", "-M", f"base_url={server.url}", "--out", str(out)]
        result = run("reword-topics", str(corpus), *arguments)
        assert result.exit_code == 0, result.output
        calls = len(say.asked)
        assert calls == (4 if spoil else 2)
        run("reword-topics", str(corpus), *arguments)
        assert len(say.asked) == calls  # nothing is asked twice
    pairs = load_topic_pairs(out)
    assert {pair.topic for pair in pairs.pairs} == {d.topic for d in Corpus(corpus).dialogues()}
    assert "6 topics with rewordings, of 2 templates" in result.stdout
    assert len(pairs.positives) == len(pairs.negatives) == 6


def test_a_dead_service_and_a_hopeless_one(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "pairs.yaml"
    result = run(
        "reword-topics", str(corpus), "--writer", "openai/r", "-M", "base_url=http://127.0.0.1:9/v1",
        "--out", str(out), "--max-retries", "0",
    )  # fmt: skip
    assert result.exit_code == 3
    assert "2 templates wait" in result.output
    with (
        text_service("openai", lambda *_: "No.") as server,
        pytest.raises(DataError, match="no template got two rewordings"),
    ):
        run(
            "reword-topics", str(corpus), "--writer", "openai/r", "-M", f"base_url={server.url}",
            "--out", str(out),
        )  # fmt: skip
    assert not out.exists()
