"""Questions, prompts and outcomes of the emotion task, and rows from run folders."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from earwitness.clips.corpus import EMOTIONS, Clip, ClipSet, SetCard
from earwitness.clips.labels import load_label_map
from earwitness.errors import DataError, ModelError, UsageError
from earwitness.models.protocols import Reply
from earwitness.runs.folder import RunFolder
from earwitness.runs.items import prompt_hash, reply_key
from earwitness.runs.ledger import Ledger
from earwitness.tasks import emotion
from earwitness.tasks.prompt_sets import list_prompt_sets


def clip_set(n: int = 14) -> ClipSet:
    clips = tuple(
        Clip(
            id=f"c{number:03}",
            path=f"audio/c{number:03}.wav",
            sha256=f"{number:064x}",
            emotion=EMOTIONS[number * len(EMOTIONS) // n],
            speaker=f"s{number % 3}",
            language="en",
            seconds=2.0 + number,
            rate=16_000,
            channels=1,
            source_label="",
            licence="CC0",
            metadata={"sex": "female" if number % 2 else "male", "text": "Kids are talking"},
        )
        for number in range(n)
    )
    return ClipSet(Path("/sets/x"), SetCard("x", "1", "CC0", "any"), clips, "0" * 64)


# --- questions


def test_one_question_a_clip_with_its_truth_kept_apart():
    questions = emotion.items(clip_set())
    assert [q.item.id for q in questions] == [f"c{number:03}" for number in range(14)]
    first = questions[0]
    assert (first.gold, first.cluster) == ("anger", "s0")
    assert first.groups == {"language": "en", "sex": "male"}
    assert first.item.metadata == {"speaker": "s0", "language": "en"}
    assert first.item.audio is not None
    assert first.item.audio.seconds == 2.0
    assert first.item.prompt == emotion.load_prompt_set("vab").prompt


def test_the_label_is_nowhere_in_an_item():
    for question in emotion.items(clip_set()):
        shown = replace(question.item, prompt=replace(question.item.prompt, user="", choices=()))
        assert question.gold not in repr(shown)


def test_conditions_have_ids_of_their_own():
    questions = emotion.items(clip_set(), conditions=("audio", "silence", "blind"))
    assert len(questions) == 42
    assert len({q.item.id for q in questions}) == 42
    silent = next(q for q in questions if q.item.id == "c003|silence")
    assert silent.item.condition == "silence"
    assert silent.item.audio is not None
    assert silent.item.audio.transform == "silence"
    blind = next(q for q in questions if q.item.id == "c003|blind")
    assert blind.item.audio is None
    keys = {reply_key(q.item, "m", {}) for q in questions}
    assert len(keys) == 42


def test_a_limit_takes_labels_in_turn_and_grows():
    seven = emotion.items(clip_set(), limit=7)
    assert {q.gold for q in seven} == set(EMOTIONS)
    ten = emotion.items(clip_set(), limit=10)
    assert {q.item.id for q in seven} < {q.item.id for q in ten}
    assert len(emotion.items(clip_set(), limit=99)) == 14


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"conditions": ("loud",)},
            "conditions: found 'loud'; wanted some of audio, silence, blind",
        ),
        ({"conditions": ()}, "none given"),
        ({"conditions": ("audio", "audio")}, "one is named twice"),
        ({"limit": 0}, "limit: found 0; wanted at least 1"),
        (
            {"prompt_set": "p9"},
            "there is no packaged emotion prompt of that name; wanted one of json, own",
        ),
    ],
)
def test_questions_that_cannot_be_asked(arguments, message):
    with pytest.raises(UsageError, match=message):
        emotion.items(clip_set(), **arguments)


# --- prompts


@pytest.mark.parametrize("name", list_prompt_sets("emotion"))
def test_every_packaged_prompt_shows_every_label(name):
    prompt_set = emotion.load_prompt_set(name)
    assert prompt_set.id == name
    assert prompt_set.hash == prompt_hash(prompt_set.prompt)
    labels = [emotion.lexicon().label_of(choice) for choice in prompt_set.prompt.choices]
    assert sorted(filter(None, labels)) == sorted(EMOTIONS)
    assert all(choice in prompt_set.prompt.user for choice in prompt_set.prompt.choices)
    assert "{" not in prompt_set.prompt.user


PINNED = {
    "vab": "54e54fe7990a", "own": "bc44673274dc", "p1": "1559c724d2d4", "p2": "4939cf5d2ad9", "p3": "acf27566d126", "json": "1a8a55d45d96",
}  # fmt: skip


def test_prompts_do_not_change_unnoticed():
    """A changed prompt asks everything anew: raise its version and pin its new hash here."""
    found = {name: emotion.load_prompt_set(name).hash[:12] for name in list_prompt_sets("emotion")}
    assert found == PINNED


def test_the_parser_version_covers_the_lexicon():
    """Changed words change outcomes: raise the lexicon's version and PARSER_VERSION, then pin the hash."""
    assert f"closed-label 1, lexicon {emotion.lexicon().version}" == emotion.PARSER_VERSION
    assert emotion.lexicon().hash[:12] == "b217bc8c08b2"


def test_the_published_points_are_in_the_default_prompt():
    text = emotion.load_prompt_set("vab").prompt.user
    for point in ("exactly one primary expressed emotion", "tone", "prosody", "rhythm", "intensity",
                  "pauses", "wording", "private inner state"):  # fmt: skip
        assert point in text


def test_several_prompts_at_once():
    assert [p.id for p in emotion.load_prompt_sets("own, p1,p2")] == ["own", "p1", "p2"]
    with pytest.raises(UsageError, match="the id 'own' is there twice"):
        emotion.load_prompt_sets("own,own")
    with pytest.raises(UsageError, match="names no prompt"):
        emotion.load_prompt_sets(" , ")


def prompt_file(tmp_path: Path, **changes: object) -> Path:
    import yaml

    data: dict[str, object] = {
        "id": "mine",
        "version": "1",
        "choices": ["Wut", "Ekel", "Angst", "Freude", "neutral", "Trauer", "Überraschung"],
        "user": "Wie klingt die Stimme?\n{numbered}",
    }
    data |= changes
    path = tmp_path / "mine.yaml"
    kept = {key: value for key, value in data.items() if value is not None}
    path.write_text(yaml.safe_dump(kept, allow_unicode=True), encoding="utf-8")
    return path


def test_a_prompt_of_ones_own_in_another_language(tmp_path):
    prompt_set = emotion.load_prompt_set(prompt_file(tmp_path))
    assert prompt_set.prompt.user.endswith("7. Überraschung")
    assert (
        emotion.items(clip_set(), prompt_set=prompt_file(tmp_path))[0].item.prompt
        == prompt_set.prompt
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": None}, "has no id; wanted id, version, choices and user"),
        ({"user": ""}, "has no user"),
        ({"id": "a b"}, "the id 'a b'"),
        ({"choices": ["Wut", "Zorn"]}, "'Wut' and 'Zorn' both mean anger"),
        ({"choices": ["Wut"]}, "no word for disgust, fear"),
        ({"choices": ["blah"]}, "'blah' is no word for any label; wanted words for anger"),
        ({"choices": "anger"}, "choices: found 'anger'; wanted a list of words"),
        (
            {"user": "What? {labels}"},
            "found {labels}; wanted one of {choices}, {lettered}, {numbered}",
        ),
        ({"user": "What?"}, "never shows the choice 'Wut'"),
        ({"schema": "x"}, "schema: found str"),
        ({"extra": 1}, "unknown key 'extra'"),
    ],
)
def test_a_prompt_file_that_is_not_one(tmp_path, changes, message):
    with pytest.raises(DataError, match=message):
        emotion.load_prompt_set(prompt_file(tmp_path, **changes))


def test_prompt_files_that_are_not_there_or_not_yaml(tmp_path):
    with pytest.raises(UsageError, match="no such prompt file"):
        emotion.load_prompt_set(tmp_path / "none.yaml")
    bad = tmp_path / "bad.yaml"
    bad.write_text("id: [", encoding="utf-8")
    with pytest.raises(DataError, match="not YAML"):
        emotion.load_prompt_set(bad)
    bad.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="not UTF-8 text"):
        emotion.load_prompt_set(bad)


# --- replies


@pytest.mark.parametrize(
    ("reply", "wanted"),
    [
        (Reply(text="anger"), "anger"),
        (Reply(text="anger", finish="unknown"), "anger"),
        (Reply(text="anger", finish="content_filter"), "blocked"),
        (Reply(text=None, finish="content_filter"), "blocked"),
        (Reply(text="anger", finish="refusal"), "refused"),
        (Reply(text=None, finish="refusal"), "refused"),
        (Reply(text=None), "empty"),
        (Reply(text=""), "empty"),
        (Reply(text="", finish="length"), "truncated"),
        (Reply(text="  ", finish="length"), "truncated"),
        (Reply(text="Anger", finish="length"), "anger"),
        (Reply(text="Answer: fear. The voice trem", finish="length"), "fear"),
        (Reply(text="The emotion is fear", finish="length"), "truncated"),
        (Reply(text="The voice sounds angry and the", finish="length"), "truncated"),
        (Reply(text="<think>it is anger", finish="length"), "truncated"),
        (Reply(text="I cannot listen to aud", finish="length"), "truncated"),
        (Reply(scores={"anger": 0.2, "fear": 0.7}), "fear"),
        (Reply(scores={"anger": 0.2, "fear": 0.7}, finish="content_filter"), "blocked"),
        (Reply(scores={}), "empty"),
        (Reply(text="fear", scores={}), "fear"),
    ],
)
def test_a_reply_amounts_to(reply, wanted):
    outcome = emotion.parse(reply)
    assert (outcome.label or outcome.kind) == wanted, outcome
    assert outcome.rule


def test_a_label_map_gives_words_outside_the_seven_a_label():
    vendor = load_label_map("vendor-default")
    assert emotion.parse(Reply(text="Calm")).kind == "unmapped"
    mapped = emotion.parse(Reply(text="Calm"), label_map=vendor)
    assert (mapped.label, mapped.rule, mapped.native) == ("neutral", "map: calm -> neutral", "Calm")
    assert (
        emotion.parse(Reply(text="The speaker sounds anxious."), label_map=vendor).label == "fear"
    )
    assert emotion.parse(Reply(text="boredom"), label_map=vendor).kind == "unmapped"
    assert emotion.parse(Reply(text="I can't hear audio"), label_map=vendor).kind == "refused"


# --- run folders


class Scripted:
    name = "scripted/model"
    settings: dict[str, object] = {}  # noqa: RUF012


def run_folder(tmp_path: Path, replies: dict[str, Reply | ModelError], prompt: str = "vab") -> Path:
    questions = emotion.items(clip_set(7), prompt_set=prompt, conditions=("audio", "silence"))
    text = emotion.load_prompt_set(prompt).prompt.user
    card = {
        "task": "emotion",
        "name": "scripted/model",
        "conditions": ["audio", "silence"],
        "prompt": {"id": prompt, "text": text},
        "clips": {"name": "x"},
    }
    folder = RunFolder(tmp_path / "run")
    folder.write(card, questions, Scripted.name, Scripted.settings)
    with Ledger(folder.ledger_path) as ledger:
        for question in questions:
            key = reply_key(question.item, Scripted.name, Scripted.settings)
            given = replies.get(question.item.id)
            if isinstance(given, Reply):
                ledger.reply(key, given, item=question.item.id, attempts=1, cost_usd=0.5)
            elif given is not None:
                ledger.failed(key, given, item=question.item.id, attempts=3)
    return folder.path


def test_a_run_folder_becomes_a_row(tmp_path):
    quota = ModelError("quota used up", kind="rate_limit", retryable=False)
    folder = run_folder(
        tmp_path,
        {
            "c000": Reply(text="Angry", latency_s=0.25),
            "c001": Reply(text="not sure"),
            "c002": quota,
            "c003|silence": Reply(text="neutral"),
        },
    )
    system = emotion.system(folder)
    assert system.name == "scripted/model"
    by_id = {decision.item_id: decision for decision in system.decisions}
    assert len(by_id) == 7
    right = by_id["c000"]
    assert (right.gold, right.outcome.label, right.reply) == ("anger", "anger", "Angry")
    assert (right.latency_s, right.cost_usd, right.seconds) == (0.25, 0.5, 2.0)
    assert right.audio_path == Path("/sets/x/audio/c000.wav")
    assert right.groups == {"language": "en", "sex": "male"}
    assert by_id["c001"].outcome.kind == "unmapped"
    assert by_id["c002"].outcome.kind == "failed"
    assert "quota used up" in by_id["c002"].outcome.detail
    assert by_id["c003"].outcome.kind == "failed"
    assert by_id["c003"].outcome.detail == "not asked"
    scoring = system.card["scoring"]
    assert isinstance(scoring, dict)
    assert scoring["parser_version"] == emotion.PARSER_VERSION
    assert scoring["label_map"] is None

    silent = emotion.system(folder, condition="silence", accept_failed=True)
    assert silent.accept_failed
    assert sum(d.outcome.kind == "answered" for d in silent.decisions) == 1


def test_option_letters_of_the_prompt_are_understood(tmp_path):
    folder = run_folder(
        tmp_path, {"c000": Reply(text="C"), "c001": Reply(text="C) anger")}, prompt="p2"
    )
    outcomes = [decision.outcome for decision in emotion.system(folder).decisions[:2]]
    assert [outcome.label for outcome in outcomes] == ["anger", "anger"]


def test_scores_are_pooled_the_same_way_in_a_whole_run(tmp_path):
    folder = run_folder(
        tmp_path,
        {
            "c000": Reply(scores={"calm": 0.3, "relaxed": 0.3, "anger": 0.4}),
            "c001": Reply(scores={"calm": 0.9, "anger": 0.8}),
        },
    )
    system = emotion.system(folder)
    scoring = system.card["scoring"]
    assert isinstance(scoring, dict)
    assert scoring["pooling"] == "max"
    assert scoring["label_map"]["id"] == "vendor-default"
    assert system.decisions[0].outcome.label == "anger"
    assert system.decisions[0].reply == '{"anger": 0.4, "calm": 0.3, "relaxed": 0.3}'


def test_folders_that_are_no_run_of_this_task(tmp_path):
    folder = run_folder(tmp_path, {})
    with pytest.raises(
        UsageError, match="has no item under 'blind'; wanted one of: audio, silence"
    ):
        emotion.system(folder, condition="blind")
    RunFolder(folder).write_card({"task": "location"})
    with pytest.raises(
        DataError, match="is a run of the task 'location'; wanted a run of 'emotion'"
    ):
        emotion.system(folder)
