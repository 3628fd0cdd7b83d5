"""Casts: who may speak what."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from earwitness.errors import DataError, UsageError
from earwitness.models.voices.registry import open_voice
from earwitness.scenes.bank import load_bank
from earwitness.scenes.corpus_plan import read_cast
from earwitness.scenes.scenario import SPLITS, Scenario
from earwitness.scenes.voices_cast import CASTS, Cast, cast_path, choose, load_cast, open_cast
from earwitness.scenes.voices_text import Need, RenderError

SCENE = Scenario("s1", "t", "t", "test", "park", "friends", "F", "M", ())


def write(folder: Path, text: str) -> str:
    path = folder / "cast.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_the_default_cast_renders_what_it_says() -> None:
    cast, voices = open_cast()
    assert cast.policy == "shared"
    assert {"pause", "whisper", "sigh", "gasp"} <= cast.tags
    for split in SPLITS:
        assert len(cast.available("F", split)) == len(cast.available("M", split)) == 4
    assert set(voices) == {voice.id for voice in cast.voices}


@pytest.mark.parametrize("name", sorted(path.stem for path in CASTS.glob("*.yaml")))
def test_casts_that_ship_agree_with_the_plan(name: str) -> None:
    cast = load_cast(name)
    planned = read_cast(cast_path(name), load_bank())
    assert planned.hash == cast.hash
    assert frozenset(planned.tags) == cast.tags
    for split in SPLITS:
        for gender in ("F", "M"):
            assert len(cast.available(gender, split)) >= 2


@pytest.mark.parametrize("name", ["kokoro", "espeak"])
def test_twelve_voices_are_divided_by_split(name: str) -> None:
    cast = load_cast(name)
    assert cast.policy == "disjoint"
    assert len({voice.id for voice in cast.voices}) == 12


def test_a_cast_of_ones_own(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "name: mine\nvoices:\n"
        "  - {voice: command/a, gender: F, options: {run: 'say {out}'}, splits: [test]}\n"
        "  - {voice: command/a, gender: M, options: {run: 'say -m {out}'}, tags: [whisper]}\n",
    )
    cast = load_cast(path)
    assert cast.name == "mine"
    assert cast.policy == "shared"
    assert cast.voices[0].id == "command/a?run=say {out}"
    assert cast.voices[1].tags == {"whisper", "pause", "long_pause"}
    assert cast.tags == {"pause", "long_pause"}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("voices: []", r"voices: .*at least 1"),
        ("voices: [{voice: heart, gender: F}]", r"voices\.0\.voice: "),
        ("voices: [{voice: hibari/heart, gendr: F}]", r"voices\.0\.gendr: Extra inputs"),
        ("voices: [{voice: hibari/heart, gender: X}]", r"voices\.0\.gender: "),
        (
            "voices: [{voice: elevenlabs/x}]",
            r"voices\.0 \(elevenlabs/x\): has no gender; wanted gender: F or M",
        ),
        ("voices: [{voice: a/b, gender: F, splits: []}]", "is in no split"),
        ("- {voice: a/b, gender: F}\n- {voice: a/b, gender: F}", "is in the cast twice"),
        ("voices: [", "is no valid YAML"),
        ("just text", "cast.yaml: the whole"),
    ],
)
def test_casts_that_are_none(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(DataError, match=what):
        load_cast(write(tmp_path, text))


def test_a_tag_the_engine_does_not_render_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "- {voice: hibari/heart, gender: F, tags: [laugh, whisper]}")
    with pytest.raises(DataError, match="cannot render laugh; wanted of gasp, inhale"):
        open_cast(path)


def test_a_gender_against_the_engine_is_refused(tmp_path: Path) -> None:
    voice = open_voice("hibari/heart")
    path = write(tmp_path, "- {voice: hibari/heart, gender: M}")
    with pytest.raises(DataError, match="is said to be M; wanted F, as the engine says"):
        load_cast(path, {"hibari/heart": voice})


def test_no_such_cast() -> None:
    with pytest.raises(
        UsageError, match="'nobody' is no file and no cast that ships; wanted a file, or default"
    ):
        load_cast("nobody")


class TestChoosing:
    cast = load_cast("default")

    def test_two_voices_of_the_right_gender(self) -> None:
        for genders in ("FF", "FM", "MF", "MM"):
            for number in range(20):
                scene = replace(SCENE, id=f"s{number}", gender_a=genders[0], gender_b=genders[1])
                chosen = choose(self.cast, scene, [], 0)
                assert chosen["A"] != chosen["B"]
                assert chosen["A"].gender + chosen["B"].gender == genders

    def test_every_voice_is_used_about_as_often(self) -> None:
        scenes = (replace(SCENE, id=f"s{n}", gender_b="F") for n in range(400))
        used = Counter(v.id for s in scenes for v in choose(self.cast, s, [], 0).values())
        assert len(used) == 4
        assert max(used.values()) < 1.35 * min(used.values())

    def test_a_voice_that_joins_changes_only_the_scenes_it_wins(self) -> None:
        new = replace(self.cast.voices[0], id="hibari/new")
        larger = Cast("larger", "x", (*self.cast.voices, new))
        changed = 0
        for number in range(200):
            scene = replace(SCENE, id=f"s{number}")
            before, after = choose(self.cast, scene, [], 0), choose(larger, scene, [], 0)
            if before != after:
                changed += 1
                assert new in after.values()
        assert 20 < changed < 70

    def test_splits_are_kept(self) -> None:
        kokoro = load_cast("kokoro")
        used = {
            split: {
                v.id
                for n in range(40)
                for v in choose(kokoro, replace(SCENE, id=f"s{n}", split=split), [], 0).values()
            }
            for split in SPLITS
        }
        assert not used["train"] & used["test"]
        assert not used["validation"] & used["test"]

    def test_only_a_voice_that_can_is_chosen(self) -> None:
        mute = tuple(replace(v, tags=frozenset({"pause"})) for v in self.cast.voices[:3])
        cast = Cast("c", "x", (*mute, *self.cast.voices[3:]))
        need = ("A", Need("e1", 2, frozenset({"whisper"})))
        for number in range(20):
            chosen = choose(cast, replace(SCENE, id=f"s{number}"), [need], 0)
            assert chosen["A"] == self.cast.voices[3]

    def test_nobody_can(self) -> None:
        need = ("B", Need("e1", 2, frozenset({"laugh", "chuckle"})))
        with pytest.raises(
            RenderError,
            match=r"scene s1, speaker B: the reaction rests on \[chuckle, laugh\], which no M",
        ):
            choose(self.cast, SCENE, [need], 0)

    def test_too_few_voices(self) -> None:
        few = Cast("few", "x", (self.cast.voices[0],))
        with pytest.raises(
            DataError, match="cast few: 0 voices of gender M in split test, too few"
        ):
            choose(few, SCENE, [], 0)
