"""Signs of not listening, one by one."""

from __future__ import annotations

import math

import pytest

from earwitness.runs.outcomes import Outcome, OutcomeKind
from earwitness.tasks.choices import OPTIONS_KEY, Option, options_to_text
from earwitness.tasks.deafness import (
    DeafnessSigns,
    echoes_prompt,
    losses_of,
    prompt_grams,
    signs,
    unchanged,
)
from earwitness.tasks.records import Decision

PROMPT = (
    "The recording is a conversation of two people who are together in one place. Where are they? {options} "
    "Answer with the letter of one option only."
)


def decide(
    item: str,
    label: str | None,
    *,
    reply: str | None = None,
    kind: OutcomeKind = "answered",
    cluster: str = "s",
    options: tuple[str, ...] = (),
) -> Decision:
    groups = {OPTIONS_KEY: options_to_text([Option(o, o) for o in options])} if options else {}
    outcome = Outcome(kind if label is None else "answered", label)
    return Decision(item, "fear", outcome, cluster, groups=groups, reply=reply or label)


def answers(*labels: str | None) -> list[Decision]:
    return [decide(f"i{k}", label) for k, label in enumerate(labels)]


def look(task: str, audio: list[Decision], **others: list[Decision]) -> DeafnessSigns:
    return signs("m", task, audio, {k.replace("_", "-"): v for k, v in others.items()})


def test_agreement_beside_what_chance_would_give() -> None:
    audio = [(f"i{k}", "abcd"[k % 4]) for k in range(8)]
    same = unchanged("silence", audio, audio)
    assert (same.both, same.same, same.share, same.by_chance) == (8, 8, 1.0, 0.25)
    assert same.flagged
    turned = [(item, "abcd"[(k + 1) % 4]) for k, (item, _) in enumerate(audio)]
    other = unchanged("silence", audio, turned)
    assert (other.same, other.by_chance, other.flagged) == (0, 0.25, False)


def test_one_constant_answer_agrees_by_chance_alone() -> None:
    found = look("emotion", answers(*["fear"] * 6), silence=answers(*["fear"] * 6))
    pair = found.unchanged_under("silence")
    assert pair is not None
    assert (pair.share, pair.by_chance) == (1.0, 1.0)
    assert found.stuck
    assert found.deaf
    assert (
        "Silence in place of the recording changes nothing: the same answer to 6 of 6 (100%) items, 100% to be expected"
        " by chance." in found.findings()
    )


def test_items_without_an_answer_under_both_are_left_out() -> None:
    found = unchanged("silence", [("a", "x"), ("b", None), ("c", "x")], [("a", "x"), ("b", "x")])
    assert (found.both, found.same) == (1, 1)
    none = unchanged("silence", [("a", None)], [("a", "x")])
    assert none.both == 0
    assert math.isnan(none.by_chance)
    assert math.isnan(none.share)
    assert not none.flagged


@pytest.mark.parametrize(("n", "flagged"), [(4, False), (5, True)])
def test_nothing_is_flagged_below_five_items(n: int, flagged: bool) -> None:
    found = look("emotion", answers(*["fear"] * n), silence=answers(*["fear"] * n))
    assert (found.stuck, found.deaf, found.flagged) == (flagged,) * 3


@pytest.mark.parametrize(("same", "flagged"), [(9, True), (8, False)])
def test_nine_in_ten_is_the_limit(same: int, flagged: bool) -> None:
    audio = [decide(f"i{k}", f"label{k}") for k in range(10)]
    quiet = [decide(f"i{k}", f"label{k}" if k < same else "other") for k in range(10)]
    assert look("emotion", audio, silence=quiet).deaf is flagged


def test_places_are_compared_where_options_differ() -> None:
    """A model that always says B chooses another sound each time, and the same place."""
    audio = [decide(f"i{k}", f"right{k}", options=(f"left{k}", f"right{k}")) for k in range(6)]
    muted = [decide(f"i{k}", f"other{k}", options=(f"left{k}", f"other{k}")) for k in range(6)]
    pair = look("sound", audio, muted=muted).unchanged_under("muted")
    assert pair is not None
    assert (pair.same, pair.by_chance) == (6, 1.0)
    assert look("emotion", audio, muted=muted).unchanged_under("muted").same == 0  # type: ignore[union-attr]


def test_grounding_compares_the_halves_of_its_pairs() -> None:
    deaf = [decide(f"s/e{k}/{half}", "yes") for k in range(6) for half in ("present", "absent")] + [
        decide("s/c0/catch", "no")
    ]
    pair = look("grounding", deaf).unchanged_under("muted")
    assert pair is not None
    assert (pair.both, pair.same) == (6, 6)
    hearing = [
        decide(f"s/e{k}/{half}", label)
        for k in range(6)
        for half, label in (("present", "yes"), ("absent", "no"))
    ]
    pair = look("grounding", hearing).unchanged_under("muted")
    assert pair is not None
    assert (pair.same, pair.by_chance) == (0, 0.0)


def test_summaries_have_no_answer_to_compare() -> None:
    found = look(
        "summary",
        [decide(f"i{k}", "summary", reply=f"Text {k}.") for k in range(6)],
        silence=[decide(f"i{k}", "summary", reply="Text.") for k in range(6)],
    )
    assert not found.flagged
    assert found.pairs == ()
    assert not found.one_answer


def test_copies_are_counted_over_recordings() -> None:
    long = "Two people talk about a bicycle, at length, in a park, and nothing else happens at all."
    same_scene = [decide(f"a/w{k}", "summary", reply=long, cluster="a") for k in range(3)]
    other = decide("b/w1", "summary", reply=long, cluster="b")
    by_scene = {"clip": lambda decision: decision.cluster}
    assert signs("m", "summary", same_scene, {}, **by_scene).copied == 0  # type: ignore[arg-type]
    assert signs("m", "summary", [*same_scene, other], {}, **by_scene).copied == 4  # type: ignore[arg-type]
    assert signs("m", "summary", same_scene, {}).copied == 3


def test_echoes_of_the_prompt() -> None:
    filled = PROMPT.replace("{options}", "A) a park B) an office")
    assert echoes_prompt(filled, PROMPT)
    assert echoes_prompt(f"You asked: {filled} My answer is A.", PROMPT)
    assert not echoes_prompt("A", PROMPT)
    assert not echoes_prompt("They are together in one place, which I take to be a park.", PROMPT)
    audio = [decide(f"i{k}", None, reply=filled, kind="ambiguous") for k in range(6)]
    found = signs("m", "location", audio, {}, prompts=[PROMPT])
    assert (found.echoes, found.echoing) == (6, True)
    assert "6 of 6 (100%) replies repeat the prompt." in found.findings()


def test_an_unknown_or_short_prompt_is_not_looked_for() -> None:
    audio = [decide(f"i{k}", "fear", reply="Which emotion?") for k in range(6)]
    assert signs("m", "emotion", audio, {}).echoes is None
    assert signs("m", "emotion", audio, {}, prompts=["Which emotion?"]).echoes is None
    assert not echoes_prompt("Which emotion?", "Which emotion?")


def test_echoes_of_a_prompt_without_spaces_between_words() -> None:
    asked = "请仔细听这段录音,然后只从以下标签中选择一个:{options}"
    assert len(prompt_grams(asked)) > 10
    assert echoes_prompt(asked.replace("{options}", "愤怒、恐惧"), asked)
    assert not echoes_prompt("愤怒", asked)


@pytest.mark.parametrize("kind", ["refused", "blocked"])
def test_declining(kind: OutcomeKind) -> None:
    audio = [decide(f"i{k}", None, kind=kind, reply=f"No {k}.") for k in range(3)]
    found = look("emotion", audio + answers("fear", "anger", "joy"))
    assert found.declining
    assert found.flags == ("declines",)
    assert "It declined 3 of 6 (50%) items." in found.findings()
    assert not look("emotion", audio[:2] + answers("fear", "anger", "joy")).declining


def test_one_answer_in_many_words() -> None:
    audio = [decide(f"i{k}", "fear", reply=f"Clip {k} sounds afraid") for k in range(6)]
    found = look("emotion", audio)
    assert not found.stuck
    assert found.flags == ("one answer to nearly everything",)


def test_a_place_is_told_by_the_ambience_too() -> None:
    assert losses_of("location") == ("silence", "speech-only")
    assert losses_of("reaction") == ("silence", "muted")


def test_a_listener_has_no_flag() -> None:
    audio = answers("fear", "anger", "joy", "fear", "disgust", "neutral")
    quiet = answers("neutral", "neutral", "neutral", "fear", "neutral", "anger")
    found = look("emotion", audio, silence=quiet)
    assert found.flags == ()
    assert found.findings() == ()
    assert not found.flagged


def test_no_replies() -> None:
    found = look("emotion", [decide("a", None, kind="failed")])
    assert (found.replies, found.items, found.top_reply, found.flagged) == (0, 1, "", False)
