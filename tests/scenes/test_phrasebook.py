"""Dialogues composed from the phrasebook: what they keep, and what they must not tell."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import combinations

import pytest

from earwitness.errors import DataError
from earwitness.scenes.bank import Bank, BankError, load_bank
from earwitness.scenes.bank_names import Namer
from earwitness.scenes.dialogue import Dialogue, NearDuplicates, check, spoken_seconds
from earwitness.scenes.dialogue_records import dialogue_to_json
from earwitness.scenes.phrasebook import compose, compose_template_text, compose_topic
from earwitness.scenes.phrasebook.compose import Composer
from earwitness.scenes.phrasebook.grammar import load_phrasebook
from earwitness.scenes.phrasebook.reactions import answers, fragments, sentences
from earwitness.scenes.plan import PlanRequest, load_preset, plan
from earwitness.scenes.scenario import PlannedEvent, Scenario

SEED = 11


@pytest.fixture(scope="module")
def bank() -> Bank:
    return load_bank()


def planned(bank: Bank, preset: str, templates: int = 20) -> tuple[Scenario, ...]:
    return plan(bank, PlanRequest(templates, 10, seed=3, preset=load_preset(preset)))


@pytest.fixture(scope="module")
def made(bank: Bank) -> list[tuple[Scenario, Dialogue]]:
    scenarios = planned(bank, "balanced") + planned(bank, "paper")
    return [(scenario, compose(scenario, bank, SEED)) for scenario in scenarios]


def test_every_dialogue_keeps_every_rule(
    bank: Bank, made: Sequence[tuple[Scenario, Dialogue]]
) -> None:
    broken = [
        (scenario.id, str(violation))
        for scenario, dialogue in made
        for violation in check(dialogue, scenario, bank)
    ]
    assert broken == []


def test_a_scene_speaks_for_about_two_minutes(made: Sequence[tuple[Scenario, Dialogue]]) -> None:
    seconds = [spoken_seconds(dialogue) for _, dialogue in made]
    assert 115 < sum(seconds) / len(seconds) < 127
    assert all(10 <= len(dialogue.utterances) <= 13 for _, dialogue in made)


def test_the_same_seed_gives_the_same_words_and_another_one_others(bank: Bank) -> None:
    scenario = planned(bank, "balanced", 1)[0]
    fresh = Composer(bank).compose(scenario, SEED)
    assert dialogue_to_json(fresh) == dialogue_to_json(compose(scenario, bank, SEED))
    assert fresh != compose(scenario, bank, SEED + 1)


def test_a_dialogue_does_not_depend_on_what_was_composed_before(bank: Bank) -> None:
    scenarios = planned(bank, "balanced", 1)
    forwards = [compose(scenario, bank, SEED) for scenario in scenarios]
    backwards = [compose(scenario, bank, SEED) for scenario in reversed(scenarios)]
    assert forwards == backwards[::-1]


def test_no_two_dialogues_share_a_third_of_their_sentences(
    made: Sequence[tuple[Scenario, Dialogue]],
) -> None:
    seen = NearDuplicates()
    # The two plans share ids, and with an id the draws of a dialogue: one of them is enough.
    dialogues = [dialogue for _, dialogue in made[: len(made) // 2]]
    assert [found for found in map(seen.add, dialogues) if found] == []
    assert len(seen) == len(dialogues)
    said = Counter(
        part
        for dialogue in dialogues
        for utterance in dialogue.utterances
        for part in sentences(utterance.text)
    )
    assert len(said) / sum(said.values()) > 0.6


def with_reaction(scenario: Scenario, reaction: str, register: str | None) -> Scenario:
    events = tuple(
        dataclasses.replace(event, reaction=reaction, register=register)
        for event in scenario.events
    )
    return dataclasses.replace(scenario, events=events)


def test_words_away_from_events_do_not_depend_on_reactions(bank: Bank) -> None:
    scenarios = [scenario for scenario in planned(bank, "balanced") if scenario.events]
    compared = 0
    for scenario in scenarios[:120]:
        calm = compose(with_reaction(scenario, "ambient", None), bank, SEED)
        for reaction, register in (
            ("verbal", "label_and_return"),
            ("behavioral", "restart_the_sentence"),
        ):
            other = compose(with_reaction(scenario, reaction, register), bank, SEED)
            assert [place for _, place in other.events] == [place for _, place in calm.events]
            after = {place for _, place in calm.events}
            for n, (one, two) in enumerate(zip(calm.utterances, other.utterances, strict=True)):
                if n not in after:
                    assert one == two
                    compared += 1
                else:
                    assert one != two
    assert compared > 1000


def test_before_the_first_event_nothing_foreshadows_a_pivot(bank: Bank) -> None:
    for scenario in planned(bank, "balanced", 4):
        if not scenario.events:
            continue
        calm = compose(with_reaction(scenario, "ambient", None), bank, SEED)
        pivot = dataclasses.replace(
            scenario.events[0], reaction="pivot", register="imagine_the_people"
        )
        ambient = with_reaction(scenario, "ambient", None).events[1:]
        other = compose(dataclasses.replace(scenario, events=(pivot, *ambient)), bank, SEED)
        first = calm.events[0][1]
        assert len(calm.utterances) == len(other.utterances)
        assert calm.events == other.events
        assert calm.utterances[:first] == other.utterances[:first]
        assert not set(calm.utterances[first:]) & set(other.utterances[first:])


def test_every_register_is_performed(made: Sequence[tuple[Scenario, Dialogue]], bank: Bank) -> None:
    performed = {event.register for scenario, _ in made for event in scenario.events}
    assert performed - {None} == {register.id for register in bank.registers}


def reacting(made: Sequence[tuple[Scenario, Dialogue]], register: str) -> list[tuple[str, ...]]:
    """The texts of the two utterances before and the five after each event of a register."""
    found = []
    for scenario, dialogue in made:
        for event in scenario.events:
            if event.register == register:
                at = dialogue.position(event.id)
                texts = [utterance.text for utterance in dialogue.utterances]
                found.append((texts[at - 1], *texts[at : at + 5]))
    assert found
    return found


def test_a_repeat_says_the_lost_words_again(made: Sequence[tuple[Scenario, Dialogue]]) -> None:
    for before, asked, again, *_ in reacting(made, "ask_for_a_repeat"):
        lost = sentences(before)[-1]
        assert lost not in asked
        assert lost[1:] in again


def test_a_sentence_is_handed_over_unfinished(made: Sequence[tuple[Scenario, Dialogue]]) -> None:
    for _, begun, ended, *_ in reacting(made, "hand_over_midway"):
        assert begun.endswith("...")
        assert not ended.startswith("...")


def test_louder_means_the_same_words_again(made: Sequence[tuple[Scenario, Dialogue]]) -> None:
    for _, said, *_ in reacting(made, "say_it_again_louder"):
        head, _, rest = said.partition("... ")
        assert rest.lower().startswith(head.lower())
        assert sentences(said)[0].endswith("!")


def test_a_pivot_stays_on_its_sound(made: Sequence[tuple[Scenario, Dialogue]], bank: Bank) -> None:
    """What was talked about before is not taken up again."""
    for scenario, dialogue in made:
        pivots = [event for event in scenario.events if event.reaction == "pivot"]
        if not pivots:
            continue
        facets = compose_template_text(bank, scenario.template, scenario.theme).facets
        long = [facet for facet in facets if len(facet) > 9]
        rest = " ".join(utterance.text for utterance in dialogue.after(pivots[0].id))
        assert len(dialogue.after(pivots[0].id)) >= 4
        assert not any(facet in rest for facet in long)


def test_topics_name_the_situation_and_agree_with_the_dialogue(
    made: Sequence[tuple[Scenario, Dialogue]], bank: Bank
) -> None:
    for scenario, dialogue in made[:100]:
        assert dialogue.topic == compose_topic(scenario, bank, SEED)
        title = compose_template_text(bank, scenario.template, scenario.theme).title
        theme = bank.theme(scenario.theme).name
        topic = dialogue.topic.lower()
        assert title.lower() in topic or theme.lower() in topic
    by_template = defaultdict(set)
    for scenario, dialogue in made:
        by_template[scenario.template].add(dialogue.topic)
    assert all(len(topics) > 5 for topics in by_template.values())


def test_sounds_that_could_occur_are_not_spoken_of_in_undisturbed_talk(
    made: Sequence[tuple[Scenario, Dialogue]], bank: Bank
) -> None:
    namer = Namer(bank)
    for scenario, dialogue in made:
        if scenario.events:
            continue
        possible = {*bank.sounds_at(scenario.location), *bank.rare_at(scenario.location)}
        for utterance in dialogue.utterances:
            assert namer.named_in(utterance.text, sounds=possible) == ()


def test_the_place_is_not_given_away_by_its_own_names(bank: Bank) -> None:
    book = load_phrasebook()
    names = [name.lower() for location in bank.locations for name in location.names]
    for key in ("talk.anchor_indoor", "talk.anchor_outdoor"):
        for variant in book.variants(key):
            assert not [name for name in names if f" {name}" in variant.said.text.lower()]


def test_situations_beyond_the_bank_are_distinct(bank: Bank) -> None:
    theme = bank.categories[0].themes[0]
    texts = [compose_template_text(bank, f"{theme.id}.{n:02d}") for n in range(1, 201)]
    assert [text.title for text in texts[:10]] == [s.title for s in theme.situations]
    assert len({text.title for text in texts}) == 200
    assert all(2 <= len(text.facets) <= 4 for text in texts)
    with pytest.raises(BankError, match="no number at its end"):
        compose_template_text(bank, "home_cooking")
    with pytest.raises(BankError, match="no theme"):
        compose_template_text(bank, "no_such_theme.01")


def test_a_plan_beyond_the_situations_is_composed_too(bank: Bank) -> None:
    template = f"{bank.categories[0].themes[0].id}.57"
    scenario = planned(bank, "balanced", 1)[3]
    scenario = dataclasses.replace(
        scenario, id=f"{template}.01", template=template, theme=bank.categories[0].themes[0].id
    )
    assert check(compose(scenario, bank, SEED), scenario, bank) == ()


def test_a_language_without_a_phrasebook_is_refused(bank: Bank) -> None:
    scenario = planned(bank, "balanced", 1)[0]
    with pytest.raises(DataError, match=r"no phrasebook for 'fi'.*one of en"):
        compose(scenario, dataclasses.replace(bank, language="fi", hash="x"), SEED)


def test_a_register_the_phrasebook_does_not_know_is_named(bank: Bank) -> None:
    event = PlannedEvent("e1", "phone_ringtone", "verbal", "sing_along", "early")
    with pytest.raises(DataError, match=r"no sentences for 'verbal\.sing_along'"):
        answers(load_phrasebook(), event)


def test_sentences_in_pieces_keep_their_words() -> None:
    text = "it's a lot, I grant you, and still I would pay it gladly today."
    broken = fragments(text)
    assert broken.count("...") >= 3
    plain = broken.replace("...", "").split()
    assert plain == [word.rstrip(",") if n < 9 else word for n, word in enumerate(text.split())]
    assert fragments("fair enough.").endswith("enough.")


def test_every_way_of_placing_events_keeps_them_apart(
    made: Sequence[tuple[Scenario, Dialogue]],
) -> None:
    for _, dialogue in made:
        places = [place for _, place in dialogue.events]
        assert all(abs(a - b) >= 2 for a, b in combinations(places, 2))
