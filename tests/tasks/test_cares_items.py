"""Mixed corpora as questions: loading, option order, prompts, conditions."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from earwitness.errors import DataError, UsageError
from earwitness.models.protocols import Reply, Transcript, Word
from earwitness.models.transcribers.lines import as_lines
from earwitness.tasks import location, reaction, sound
from earwitness.tasks.choices import (
    OPTIONS_KEY,
    Option,
    arrange,
    balanced_places,
    lexicon_of,
    options_from_text,
    read_choice,
)
from earwitness.tasks.scene_conditions import CONDITIONS, transcript
from earwitness.tasks.scene_items import load_mixed, margin_bucket
from earwitness.tasks.scene_prompts import load_scene_prompt


@pytest.fixture(scope="module")
def mixed(mixed_folder):
    return load_mixed(mixed_folder)


# --- loading


def test_a_mixed_corpus_has_its_scenes_and_a_limit_keeps_smaller_draws(mixed_folder, mixed):
    assert len(mixed.scenes) == 8
    ids = [scene.id for scene in mixed.scenes]
    assert ids == sorted(ids)
    three = {scene.id for scene in load_mixed(mixed_folder, limit=3).scenes}
    five = {scene.id for scene in load_mixed(mixed_folder, limit=5).scenes}
    assert three < five < set(ids)
    assert {s.scenario.split for s in load_mixed(mixed_folder, split="test").scenes} == {"test"}


def test_several_splits_are_those_of_each(mixed_folder):
    each = [
        {s.id for s in load_mixed(mixed_folder, split=name).scenes}
        for name in ("validation", "test")
    ]
    both = load_mixed(mixed_folder, split="validation, test")
    assert {s.id for s in both.scenes} == each[0] | each[1]
    assert not each[0] & each[1]


def test_what_cannot_be_asked_about_is_said(mixed_folder, tmp_path):
    with pytest.raises(UsageError, match="train, validation, test"):
        load_mixed(mixed_folder, split="dev")
    shutil.copytree(mixed_folder, tmp_path / "c", ignore=shutil.ignore_patterns("mixes", "twins"))
    with pytest.raises(UsageError, match="earwitness scenes mix"):
        load_mixed(tmp_path / "c")
    with pytest.raises(DataError, match="no corpus"):
        load_mixed(tmp_path)


def test_margins_fall_into_buckets_of_the_paper():
    assert [margin_bucket(x) for x in (5.9, 5.999999, 9.9, 10.0, 14.9, 15.0)] == [
        "below 6 dB", "6-10 dB", "6-10 dB", "10-15 dB", "10-15 dB", "15 dB or more",
    ]  # fmt: skip


# --- options


def test_the_true_answer_is_at_every_place_equally_often_and_adding_moves_nothing():
    items = [(f"s{k}", "pivot" if k % 3 else "verbal") for k in range(48)]
    places = balanced_places(items, seed=3, name="x")
    for label in ("pivot", "verbal"):
        of_label = Counter(places[item] for item, stratum in items if stratum == label)
        assert max(of_label.values()) - min(of_label.values()) == 0
    assert balanced_places(items[:20], seed=3, name="x") == dict(list(places.items())[:20])
    assert balanced_places(items, seed=4, name="x") != places


def test_four_rotations_put_the_answer_at_every_place_once():
    a, others = Option("a", "A"), [Option(x, x.upper()) for x in "bcd"]
    seen = [arrange(a, others, 2, seed=0, name="i", rotation=r).index(a) for r in range(4)]
    assert seen == [2, 3, 0, 1]


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("B", "office"), ("b)", "office"), ("**B**", "office"), ("B) an office", "office"),
        ("The answer is C.", "park"), ("an office", "office"), ("Office", "office"),
        ('{"answer": "D"}', "beach"), ("They are in a car", "car"),
        ("I think they are in an office.", "office"),
    ],
)  # fmt: skip
def test_letters_and_words_choose_an_option(text, label):
    options = [Option("car", "a car"), Option("office", "an office"), Option("park", "a park"), Option("beach", "a beach")]  # fmt: skip
    words = lexicon_of(
        "t", frozenset((o.label, o.shown) for o in (*options, Option("gym", "a gym")))
    )
    assert read_choice(Reply(text=text), words, options).label == label


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply(text="A gym"), "unmapped"), (Reply(text=""), "empty"),
        (Reply(text="I'm sorry, but I can't help with that."), "refused"),
        (Reply(text="a car or an office"), "ambiguous"), (Reply(text="x", finish="content_filter"), "blocked"),
        (Reply(text="They might be in an", finish="length"), "truncated"),
        (Reply(text="A) a car\nB) an office\nC) a park\nD) a beach"), "ambiguous"),
    ],
)  # fmt: skip
def test_what_is_no_choice_stays_without_a_label(reply, kind):
    options = [Option("car", "a car"), Option("office", "an office"), Option("park", "a park"), Option("beach", "a beach")]  # fmt: skip
    words = lexicon_of(
        "t", frozenset((o.label, o.shown) for o in (*options, Option("gym", "a gym")))
    )
    assert read_choice(reply, words, options).kind == kind


# --- prompts


def test_prompts_of_ones_own_are_checked(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text('id: mine\nversion: "1"\nuser: "Where? {options}"\n')
    assert location.load_prompt(path).id == "mine"
    path.write_text('id: mine\nversion: "1"\nuser: "Where?"\n')
    with pytest.raises(DataError, match=r"has no \{options\}"):
        location.load_prompt(path)
    path.write_text('id: mine\nversion: "1"\nuser: "{options} {sound}"\n')
    with pytest.raises(DataError, match=r"found \{sound\}"):
        location.load_prompt(path)
    path.write_text('id: mine\nversion: "1"\nuser: "{options}"\ndefinitions: {pivot: x}\n')
    with pytest.raises(DataError, match="pivot, verbal, behavioral, ambient"):
        reaction.load_prompt(path)
    with pytest.raises(UsageError, match="none, p1, time, time-sound"):
        load_scene_prompt("vab", task="reaction", needed=())


# --- questions


@pytest.mark.parametrize("task", [reaction, location, sound])
def test_every_item_is_asked_once_with_its_truth_among_the_options(mixed, task):
    questions = task.items(mixed, conditions=("audio", "silence"), rotations=2)
    n = len(mixed.scenes) * (1 if task is location else 2)
    assert len(questions) == 4 * n
    assert len({q.item.id for q in questions}) == 4 * n
    for question in questions:
        options = options_from_text(question.groups[OPTIONS_KEY])
        assert len({o.label for o in options}) == 4
        assert question.gold in {o.label for o in options}
        assert question.cluster in question.item.id
        # What a local baseline may know is what the prompt says anyway.
        known = question.item.metadata
        assert set(known) <= {"task", "scene", "corpus_seed", "options", "t"}
        assert known["options"] == question.groups[OPTIONS_KEY]
        assert "t" not in known or known["t"] in question.item.prompt.user
        assert question.item.audio is not None
        assert (question.item.audio.transform == "silence") == (
            question.item.condition == "silence"
        )
        for letter, option in zip("ABCD", options, strict=True):
            assert f"{letter}) {option.shown}" in question.item.prompt.user


def test_the_same_item_is_the_same_whatever_is_asked_beside_it(mixed_folder, mixed):
    some = {q.item.id: q for q in sound.items(load_mixed(mixed_folder, limit=3))}
    whole = {q.item.id: q for q in sound.items(mixed, conditions=("blind", "audio"))}
    assert some
    assert all(whole[key] == value for key, value in some.items())


def test_wrong_sounds_are_of_the_place_and_not_of_the_scene(mixed):
    for question, scene in zip(
        sound.items(mixed), [s for s in mixed.scenes for _ in s.manifest.events], strict=True
    ):
        present = {event.sound for event in scene.scenario.events}
        wrong = {o.label for o in options_from_text(question.groups[OPTIONS_KEY])} - {question.gold}
        assert not wrong & present
        assert wrong <= set(mixed.bank.sounds_at(scene.scenario.location))


def test_the_moment_told_is_the_loudest_one(mixed):
    event = mixed.scenes[0].manifest.events[0]
    question = reaction.items(mixed)[0]
    assert f"at its loudest at {event.salient_s:.1f} seconds" in question.item.prompt.user
    assert event.start_s < event.salient_s < event.end_s


def test_variants_reveal_nothing_the_time_or_time_and_sound(mixed):
    scene = mixed.scenes[0]
    event = scene.manifest.events[0]
    name = mixed.bank.sound(event.sound).name
    shown = {p: reaction.items(mixed, prompt_set=p)[0].item.prompt.user for p in ("none", "time", "time-sound")}  # fmt: skip
    time = f"{event.salient_s:.1f} seconds"
    assert [time in text for text in shown.values()] == [False, True, True]
    assert [name in text for text in shown.values()] == [False, False, True]
    swapped = reaction.items(mixed, prompt_set="time-sound", conditions=("swapped",))[0]
    assert name not in swapped.item.prompt.user


def test_whether_the_talk_names_the_sound_is_a_group(mixed):
    talk = {(q.groups["reaction"], q.groups["talk"]) for q in sound.items(mixed)}
    assert ("verbal", "names the sound") in talk
    assert ("ambient", "does not name the sound") in talk
    assert ("verbal", "does not name the sound") not in talk


# --- conditions


def test_each_condition_is_the_file_it_says(mixed):
    with pytest.raises(UsageError, match="has no transcript"):
        reaction.items(mixed, conditions=("asr",))
    written = {scene.manifest.audio.sha256: "[0.0-1.0] hello" for scene in mixed.scenes}
    mixed = replace(mixed, transcripts=written)
    by = {c: reaction.items(mixed, conditions=(c,))[0] for c in CONDITIONS}
    assert "[0.0-1.0] hello" in by["asr"].item.prompt.user
    event = mixed.scenes[0].manifest.events[0]
    folders = {c: q.item.audio.path.parent.name if q.item.audio else None for c, q in by.items()}
    assert folders == {
        "audio": "mixes", "muted": f"mute-{event.id}", "swapped": f"swap-{event.id}",
        "speech-only": "speech-only", "asr": None, "oracle": None, "oracle-tags": None, "blind": None,
        "silence": "mixes",
    }  # fmt: skip
    hashes = {q.item.audio.identity for q in by.values() if q.item.audio}
    assert len(hashes) == 5
    assert by["muted"].gold == by["audio"].gold
    assert by["muted"].item.prompt == by["audio"].item.prompt


def test_swapped_sounds_are_the_truth_and_the_planned_one_a_distractor(mixed):
    for question in sound.items(mixed, conditions=("swapped",)):
        planned = question.groups["_planned"]
        assert question.gold != planned
        assert planned in {o.label for o in options_from_text(question.groups[OPTIONS_KEY])}


def test_the_oracle_is_the_script_with_times_and_without_sounds(mixed):
    scene = mixed.scenes[0]
    plain, tagged = (transcript(mixed, scene, tags=tags) for tags in (False, True))
    turn = scene.manifest.turns[0]
    assert f"[{turn.start_s:.1f}-{turn.end_s:.1f}] A: Well," in plain
    assert "[a long breath let out]" in tagged
    assert "SOUND" not in tagged
    assert "[sighs]" not in plain + tagged
    question = reaction.items(mixed, conditions=("oracle",))[0]
    assert question.item.prompt.user.startswith(plain)


def test_a_missing_or_stale_twin_stops_before_any_call_and_says_the_command(mixed_folder, tmp_path):
    shutil.copytree(mixed_folder, tmp_path / "c")
    mixed = load_mixed(tmp_path / "c")
    path = tmp_path / "c" / "twins" / "mute-e2" / f"{mixed.scenes[0].id}.json"
    stored = json.loads(path.read_text())
    path.write_text(json.dumps({**stored, "audible_sha256": "0" * 64}))
    with pytest.raises(UsageError, match=r"has no twin mute-e2; .*scenes mix .* --mute each"):
        reaction.items(mixed, conditions=("audio", "muted"))
    path.unlink()
    with pytest.raises(UsageError, match=f"{mixed.scenes[0].id} has no twin mute-e2"):
        sound.items(mixed, conditions=("muted",))
    shutil.rmtree(tmp_path / "c" / "twins" / "speech-only")
    with pytest.raises(UsageError, match=r"and 7 more.*--speech-only"):
        location.items(mixed, conditions=("speech-only",))
    assert Path(path.parent).is_dir()


@pytest.mark.parametrize(
    ("conditions", "message"),
    [(("asr2",), "audio, muted"), ((), "none given"), (("audio", "audio"), "twice")],
)
def test_unknown_or_doubled_conditions_are_refused(mixed, conditions, message):
    with pytest.raises(UsageError, match=message):
        reaction.items(mixed, conditions=conditions)


def test_location_is_muted_only_where_there_are_sounds(mixed):
    first = mixed.scenes[0]
    bare = replace(first, manifest=replace(first.manifest, events=()))
    partly = replace(mixed, scenes=(bare, *mixed.scenes[1:]))
    assert len(location.items(partly, conditions=("audio", "muted"))) == 8 + 7


def test_transcripts_are_lines_divided_at_pauses():
    words = [Word(f"w{k}", k * 0.3, k * 0.3 + 0.2) for k in range(25)]
    words += [Word("late", 20.0, 20.4)]
    lines = as_lines(Transcript("", tuple(words))).splitlines()
    assert [len(line.split()) - 1 for line in lines] == [20, 5, 1]
    assert lines[2] == "[20.0-20.4] late"
    assert as_lines(Transcript("no times")) == "no times"
    assert as_lines(Transcript(" ")) == "(nothing was understood)"
