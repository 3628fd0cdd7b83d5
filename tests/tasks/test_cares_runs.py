"""``earwitness run cares`` against listeners of known character."""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from earwitness.cli import build_app
from earwitness.errors import EarwitnessError, UsageError
from earwitness.tasks.cares_runs import answers_of, chosen_tasks, prompts_by_task
from earwitness.tasks.cares_table import build_table
from tests.standins.loopback import error
from tests.standins.scene_characters import SceneServer


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "x")


def cares(*words, code=0):
    result = CliRunner().invoke(build_app(), ["run", "cares", *map(str, words)])
    if isinstance(result.exception, EarwitnessError):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


@contextmanager
def listener(corpus, character, *acts):
    with SceneServer(corpus, character) as server:
        server.script.extend(acts)
        yield server, ("--model", f"openai/{character}", "-M", f"base_url={server.url}")


@pytest.fixture(scope="module")
def table_of(mixed_folder, tmp_path_factory):
    """Tables of characters, each asked once in this module."""
    known = {}

    def ask(character, conditions="audio,muted", tasks="reaction,location,sound"):
        if (character, conditions, tasks) not in known:
            out = tmp_path_factory.mktemp("runs")
            with listener(mixed_folder, character) as (_, model):
                cares(mixed_folder, *model, "--out", out, "--conditions", conditions, "--tasks", tasks)  # fmt: skip
            found = answers_of(sorted(out.iterdir()))
            known[character, conditions, tasks] = build_table(found, resamples=300)
        return known[character, conditions, tasks]

    return ask


def gap(table, task, other):
    return next(c for c in table.comparisons if c.task == task and c.b.endswith(f" {other}"))


# --- characters


def test_the_perfect_listener_is_right_and_changes_when_the_sound_is_muted(table_of):
    table = table_of("perfect", "audio,muted,swapped,speech-only")
    for task in ("reaction", "location", "sound"):
        assert table.of(task, "openai/perfect").headline.value == 1
    assert table.of("reaction", "openai/perfect", "muted").headline.value == 0.25
    assert table.of("sound", "openai/perfect", "swapped").headline.value == 1
    assert table.of("location", "openai/perfect", "muted").headline.value == 1
    assert table.of("location", "openai/perfect", "speech-only").headline.value == 0.25
    assert gap(table, "reaction", "muted").p_sign_flip < 0.05
    assert gap(table, "sound", "muted").difference.low > 0
    assert table.of("sound", "openai/perfect").positions.distance == 0


def test_the_deaf_listener_shows_no_change_when_muted_and_knows_sounds_only_from_words(table_of):
    table = table_of("deaf", "audio,muted,oracle,oracle-tags")
    for task in ("reaction", "location", "sound"):
        change = gap(table, task, "muted")
        assert (change.difference.value, change.p_sign_flip) == (0, 1)
    for condition in ("audio", "oracle", "oracle-tags"):
        assert table.of("reaction", "openai/deaf", condition).headline.value == 1
    assert table.of("location", "openai/deaf").headline.value == 0.25
    talk = table.of("sound", "openai/deaf").scores.by_group["talk"]
    assert talk["names the sound"].value == 1
    assert talk["does not name the sound"].value < 0.5


def test_one_who_always_says_pivot_ignores_three_classes(table_of):
    table = table_of("always-pivot", "audio", "reaction,location")
    found = table.of("reaction", "openai/always-pivot")
    assert found.ignored == ("verbal", "behavioral", "ambient")
    assert found.headline.value == 0.25
    assert found.positions.distance < 0.4  # its places follow the options, which are balanced
    place = table.of("location", "openai/always-pivot")
    assert place.positions.chosen == (8, 0, 0, 0)
    assert place.positions.distance == 0.75


def test_one_who_draws_is_near_chance(table_of):
    found = table_of("random", "audio", "reaction,sound")
    for task in ("reaction", "sound"):
        assert 0 <= found.of(task, "openai/random").headline.low <= 0.3
        assert found.of(task, "openai/random").scores.outcomes["answered"] == 16


def test_one_who_repeats_the_question_answers_nothing(table_of):
    table = table_of("echo", "audio")
    for task, n in (("reaction", 16), ("location", 8), ("sound", 16)):
        found = table.of(task, "openai/echo")
        assert found.scores.outcomes["answered"] == 0
        assert (found.scores.right, found.scores.n) == (0, n)


def test_one_who_refuses_is_refused_everywhere_and_wrong(table_of):
    table = table_of("refuse", "audio")
    for task, n in (("reaction", 16), ("location", 8), ("sound", 16)):
        found = table.of(task, "openai/refuse")
        assert found.scores.outcomes["refused"] == n
        assert found.headline.value == 0


# --- the command


def test_a_run_goes_on_where_it_was_and_is_incomplete_until_then(mixed_folder, tmp_path):
    asked = ("--tasks", "location", "--out", tmp_path, "--max-retries", 0, "--concurrency", 1)
    with listener(mixed_folder, "perfect", *[error(400, "no")] * 2) as (server, model):
        result = cares(mixed_folder, *model, *asked, code=3)
        assert "incomplete: right between 75.0% and 100.0%" in result.output
        assert len(server.asked) == 6
        result = cares(mixed_folder, *model, *asked)
        assert len(server.asked) == 8
        assert "100.0" in result.output
        cares(mixed_folder, *model, *asked)
        assert len(server.asked) == 8
    card = json.loads((tmp_path / "location--openai_perfect--own" / "card.json").read_text())
    assert card["task"] == "location"
    assert card["clips"]["n"] == 8
    assert card["prompt"]["id"] == "own"


def test_accepted_failures_close_the_run(mixed_folder, tmp_path):
    asked = ("--tasks", "location", "--out", tmp_path, "--max-retries", 0, "--accept-failed")
    with listener(mixed_folder, "perfect", error(400, "no")) as (_, model):
        result = cares(mixed_folder, *model, *asked, "--json")
    found = json.loads(result.stdout)["scores"][0]
    assert found["scores"]["complete"]
    assert found["headline"]["value"] == 7 / 8


def test_a_dry_run_shows_prompts_and_calls_and_asks_nothing(mixed_folder, tmp_path):
    with listener(mixed_folder, "perfect") as (server, model):
        result = cares(mixed_folder, *model, "--out", tmp_path, "--dry-run", "--conditions", "audio,silence")  # fmt: skip
        assert server.asked == []
    assert "Nothing was asked" in result.output
    assert "prompt reaction/time" in result.output
    assert "prompt sound/own" in result.output
    assert list(tmp_path.iterdir()) == []


def test_prompts_rotations_and_limit(mixed_folder, tmp_path):
    with listener(mixed_folder, "always-pivot") as (server, model):
        result = cares(
            mixed_folder, *model, "--out", tmp_path, "--tasks", "reaction", "--limit", 2,
            "--rotations", 4, "--prompt-set", "time,none", "--json",
        )  # fmt: skip
        assert len(server.asked) == 2 * 2 * 4 * 2
    table = json.loads(result.stdout)
    assert {s["name"] for s in table["scores"]} == {"openai/always-pivot", "openai/always-pivot [none]"}  # fmt: skip
    assert table["spread"] == [["reaction", "openai/always-pivot", "audio", 0.0]]
    # Four rotations put pivot at every place equally often.
    assert table["scores"][0]["positions"]["chosen"] == [4, 4, 4, 4]


def test_a_text_control_is_compared_with(mixed_folder, tmp_path):
    with listener(mixed_folder, "deaf") as (_, model):
        result = cares(
            mixed_folder, *model, "--out", tmp_path, "--tasks", "sound", "--conditions",
            "audio,oracle", "--control", "openai/deaf:oracle", "--cluster", "template",
        )  # fmt: skip
    assert "openai/deaf audio - openai/deaf oracle = +0.0" in result.output


def test_what_does_not_apply_is_said(mixed_folder, tmp_path):
    with listener(mixed_folder, "always-pivot") as (_, model):
        result = cares(mixed_folder, *model, "--out", tmp_path, "--tasks", "location", "--conditions", "audio,swapped")  # fmt: skip
        assert "not applicable: location, openai/always-pivot, swapped" in result.output
        with pytest.raises(UsageError, match="none applies"):
            cares(mixed_folder, *model, "--out", tmp_path, "--tasks", "location", "--conditions", "swapped")  # fmt: skip


def test_missing_twins_stop_the_command_before_any_call(mixed_folder, tmp_path):
    shutil.copytree(mixed_folder, tmp_path / "c", ignore=shutil.ignore_patterns("twins"))
    with listener(tmp_path / "c", "perfect") as (server, model):
        with pytest.raises(
            UsageError, match=r"Nothing was asked\. Make them: earwitness scenes mix"
        ):
            cares(tmp_path / "c", *model, "--out", tmp_path / "o", "--conditions", "audio,muted")
        assert server.asked == []
    assert not Path(tmp_path / "o").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--tasks", "colour"), "found 'colour'"),
        (("--conditions", "mute"), "found 'mute'"),
        (("--cluster", "room"), "scene or template"),
        (("--prompt-set", "vab"), "no chosen task has a prompt 'vab'"),
        (("--split", "dev"), "train, validation, test"),
    ],
)
def test_what_is_unknown_is_refused(mixed_folder, tmp_path, words, message):
    with pytest.raises(UsageError, match=message):
        cares(mixed_folder, "--model", "baseline/majority", "--out", tmp_path, *words)


def test_tasks_and_prompts_by_name():
    assert chosen_tasks(["all"])[:3] == ("reaction", "location", "sound")
    with pytest.raises(UsageError, match="twice"):
        chosen_tasks(["sound", "all"])
    both = ("reaction", "sound")
    assert prompts_by_task(both, []) == {"reaction": ("time",), "sound": ("own",)}
    assert prompts_by_task(both, ["p1"]) == {"reaction": ("p1",), "sound": ("p1",)}
    assert prompts_by_task(both, ["none", "sound=p1"]) == {"reaction": ("none",), "sound": ("p1",)}
    with pytest.raises(UsageError, match="not run"):
        prompts_by_task(both, ["location=p1"])
    with pytest.raises(UsageError, match="TASK=FILE"):
        prompts_by_task(both, ["mine.yaml"])


def test_transcripts_are_made_once_and_asked_about_without_audio(mixed_folder, tmp_path):
    program = tmp_path / "recogniser.sh"
    program.write_text(
        '#!/bin/sh\necho "well they said $(wc -c < "$1") things"\necho x >> "$0.log"\n'
    )
    program.chmod(0o755)
    asked = (
        "--tasks", "sound", "--conditions", "audio,asr", "--limit", 2, "--out", tmp_path / "o",
        "--asr", "command/mine", "-A", f"run={program} {{file}}", "--control", "openai/deaf:asr",
    )  # fmt: skip
    with listener(mixed_folder, "deaf") as (server, model):
        result = cares(mixed_folder, *model, *asked)
        cares(mixed_folder, *model, *asked)
    assert "openai/deaf audio - openai/deaf asr" in result.output
    heard = [a for a in server.asked if a.audio is None]
    assert len(heard) == 4
    assert all("well they said" in a.prompt for a in heard)
    assert (tmp_path / "recogniser.sh.log").read_text() == "x\n" * 2
    card = json.loads((tmp_path / "o" / "sound--openai_deaf--own" / "card.json").read_text())
    assert card["transcriber"]["name"] == "command/mine"
