"""Label maps: what a word means, and which words mean nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earwitness.clips.corpus import EMOTIONS
from earwitness.clips.labels import list_label_maps, load_label_map, normalise_label
from earwitness.errors import DataError, UsageError


def test_every_packaged_map_loads_under_its_own_name_and_maps_to_the_seven_only():
    names = list_label_maps()
    assert {"ravdess", "emodb", "vendor-default", "own-words", "generic"} <= set(names)
    for name in names:
        label_map = load_label_map(name)
        assert label_map.id == name
        assert re.fullmatch("[0-9a-f]{64}", label_map.hash)
        assert label_map.description
        assert label_map.source
        assert set(label_map.mapping.values()) <= set(EMOTIONS)
        assert not set(label_map.mapping) & set(label_map.dropped)


@pytest.mark.parametrize(
    ("name", "native", "label"),
    [
        ("ravdess", "05", "anger"),
        ("ravdess", "surprised", "surprise"),
        ("ravdess", "calm", None),
        ("ravdess-calm-neutral", "calm", "neutral"),
        ("ravdess-calm-neutral", "02", "neutral"),
        ("crema-d", "ANG", "anger"),
        ("tess", "ps", "surprise"),
        ("savee", "sa", "sadness"),
        ("savee", "su", "surprise"),
        ("savee", "a", "anger"),
        ("emodb", "W", "anger"),
        ("emodb", "A", "fear"),
        ("emodb", "L", None),
        ("emodb", "N", "neutral"),
        ("vocal-affect-bench", "fearful", "fear"),
        ("vendor-default", "Calmness", "neutral"),
        ("vendor-default", "Anxiety", "fear"),
        ("vendor-default", "Surprise (negative)", "surprise"),
        ("vendor-default", "boredom", None),
        ("own-words", "calm", None),
        ("own-words", "愤怒", "anger"),
        ("own-words", "Wütend", "anger"),
        ("own-words", "DÉGOÛT", "disgust"),
        ("own-words", "miedo", "fear"),
        ("own-words", "悲しみ", "sadness"),
        ("own-words", "scared", "fear"),
    ],
)
def test_words_of_corpora_and_models(name, native, label):
    assert load_label_map(name).map(native)[0] == label


def test_all_adjectives_of_the_published_release_map_to_their_labels():
    label_map = load_label_map("vocal-affect-bench")
    adjectives = ("angry", "disgusted", "fearful", "happy", "neutral", "sad", "surprised")
    assert tuple(label_map.map(word)[0] for word in adjectives) == EMOTIONS
    for name in ("own-words", "vendor-default", "generic"):
        assert tuple(load_label_map(name).map(word)[0] for word in adjectives) == EMOTIONS


def test_case_width_punctuation_and_space_make_no_difference():
    label_map = load_label_map("own-words")
    for native in ("Angry", " ANGRY.", "**angry**", "ａｎｇｒｙ", "«angry»", "angry\n"):
        assert label_map.map(native) == ("anger", "angry -> anger")
    assert normalise_label("Surprise_(Negative)") == normalise_label("surprise-negative")


def test_a_rule_tells_left_out_from_unknown():
    label_map = load_label_map("ravdess")
    assert label_map.map("Calm") == (None, "calm -> none")
    assert label_map.map("bored") == (None, "unknown")
    assert label_map.map("") == (None, "unknown")
    assert load_label_map("own-words").map("anger fear") == (None, "unknown")


WIDE = tuple(load_label_map(name) for name in ("own-words", "vendor-default"))


@settings(derandomize=True, deadline=None, max_examples=300)
@given(st.text())
def test_mapping_never_raises_and_never_invents(native):
    for label_map in WIDE:
        label, rule = label_map.map(native)
        word = normalise_label(native)
        assert (label is not None) == (word in label_map.mapping)
        assert (rule == "unknown") == (word not in label_map.mapping | label_map.dropped)
        assert normalise_label(word) == word


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_map_of_ones_own_may_extend_and_override(tmp_path):
    path = write(
        tmp_path,
        'id: mine\nversion: "3"\nextends: [ravdess]\nmapping:\n  calm: neutral\n  no: sadness\n'
        "dropped:\n  happy: not asked here\n",
    )
    label_map = load_label_map(path)
    assert label_map.name == "mine@3"
    assert label_map.map("calm") == ("neutral", "calm -> neutral")
    assert label_map.map("no") == ("sadness", "no -> sadness")
    assert label_map.map("05")[0] == "anger"
    assert label_map.map("happy") == (None, "happy -> none")
    assert label_map.dropped["happy"] == "not asked here"


def test_the_hash_is_of_the_rules_and_not_of_their_layout(tmp_path):
    one = load_label_map(
        write(tmp_path, "id: m\nversion: '1'\nwords:\n  anger: [a, b]\n  fear: [c]\n")
    )
    same = load_label_map(
        write(
            tmp_path,
            "version: '1'\nid: m\ndescription: x\nmapping: {c: fear, b: anger, A: anger}\n",
        )
    )
    other = load_label_map(
        write(tmp_path, "id: m\nversion: '1'\nwords:\n  anger: [a]\n  fear: [b, c]\n")
    )
    assert one.hash == same.hash
    assert one.hash != other.hash


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("id: m\nwords: {anger: [a]}\n", r"has no version"),
        ("id: m\nversion: '1'\nwords: {joy: [a]}\n", r"found the label 'joy'; wanted one of anger"),
        (
            "id: m\nversion: '1'\nwords: {anger: [a], fear: ['A!']}\n",
            r"'A!' maps to both anger and fear",
        ),
        ("id: m\nversion: '1'\nwords: {anger: [a]}\nanger: x\n", r"unknown key 'anger'"),
        (
            "id: m\nversion: '1'\nmapping:\n  a: anger\n  a: fear\n",
            r"mine.yaml:5: 'a' is there twice",
        ),
        ("id: m\nversion: '1'\n", r"maps no word at all"),
        ("id: m\nversion: '1'\nwords: {anger: ['!?']}\n", r"has no letter or digit"),
        ("id: m\nversion: '1'\nwords: {anger: a}\n", r"found 'a'; wanted a list of words"),
        ("id: m\nversion: '1'\nwords: {anger: [a]}\ndropped: {b: ''}\n", r"no reason given"),
        ("- a\n", r"holds list; wanted a mapping"),
        ("id: [\n", r"not YAML"),
    ],
)
def test_a_map_that_contradicts_itself_is_refused(tmp_path, text, match):
    with pytest.raises(DataError, match=match):
        load_label_map(write(tmp_path, text))


def test_a_map_cannot_extend_itself(tmp_path):
    path = tmp_path / "loop.yaml"
    path.write_text(
        f"id: m\nversion: '1'\nextends: ['{path}']\nwords: {{anger: [a]}}\n", encoding="utf-8"
    )
    with pytest.raises(DataError, match="extends itself"):
        load_label_map(path)


def test_an_unknown_name_lists_what_there_is():
    with pytest.raises(
        UsageError, match="no packaged map of that name; wanted one of crema-d, emodb"
    ):
        load_label_map("nosuch")
    with pytest.raises(UsageError, match="no such label map file"):
        load_label_map("nosuch.yaml")
