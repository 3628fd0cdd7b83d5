"""Where are the speakers?

Source: CARES (arXiv 2610.10208), acoustic scene classification as a four-way choice. The protocol followed: the
model hears the whole scene and chooses among the true place and three others of the bank, with no moment given.

Conventions:

* One item per scene, condition and rotation. Distractors are three other locations drawn for the scene; the place
  of the true one is balanced (:mod:`earwitness.tasks.choices`).
* ``muted`` takes all sounds away and leaves the ambience; ``swapped`` does not apply. Scenes without sounds are
  left out of ``muted``.
* A scene is its own cluster. Groups: the location, whether it is indoors, and whether the talk gives it away.
* The headline is accuracy (chance 25 %); the confusion table is by position, which shows position bias.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from earwitness.runs.items import Item, Question
from earwitness.stats.streams import stream
from earwitness.tasks.choices import (
    N_OPTIONS,
    OPTIONS_KEY,
    Option,
    arrange,
    balanced_places,
    lettered,
    options_from_text,
    options_to_text,
    place_of,
    read_choice,
)
from earwitness.tasks.reaction import item_id
from earwitness.tasks.scene_conditions import CONDITIONS, check_conditions, given, require_twins
from earwitness.tasks.scene_items import MixedCorpus, MixedScene, known_of, spoken_text
from earwitness.tasks.scene_prompts import ScenePrompt, load_scene_prompt

if TYPE_CHECKING:
    from earwitness.models.protocols import Reply
    from earwitness.runs.outcomes import Outcome
    from earwitness.tasks.cares_scores import CaresScores
    from earwitness.tasks.label_lexicon import Lexicon
    from earwitness.tasks.records import Decision

TASK = "location"
TASK_VERSION = "1"
PARSER_VERSION = "closed-label 1, options as words"
DEFAULT_PROMPT = "own"
APPLICABLE = tuple(name for name in CONDITIONS if name != "swapped")


def load_prompt(id_or_path: str | Path) -> ScenePrompt:
    """A packaged prompt (``own``, ``p1``) or a YAML file of one's own."""
    return load_scene_prompt(id_or_path, task=TASK, needed=("options",))


def items(
    mixed: MixedCorpus,
    *,
    prompt_set: str | Path = DEFAULT_PROMPT,
    conditions: Sequence[str] = ("audio",),
    rotations: int = 1,
) -> tuple[Question, ...]:
    """The questions to ask, condition by condition, by scene; see :func:`earwitness.tasks.reaction.items`."""
    check_conditions(conditions)
    prompt = load_prompt(prompt_set)
    require_twins(mixed, [(s, None) for s in mixed.scenes if s.manifest.events], conditions)
    shown = {place.id: Option(place.id, place.name) for place in mixed.bank.locations}
    places = balanced_places(
        ((s.id, f"{s.split} {s.location}") for s in mixed.plan), seed=mixed.seed, name=TASK
    )
    questions = []
    for condition in conditions:
        for scene in mixed.scenes:
            if condition == "muted" and not scene.manifest.events:
                continue
            source = given(mixed, scene, condition, None)
            truth = shown[scene.scenario.location]
            others = distractors(mixed, scene, shown)
            for rotation in range(rotations):
                options = arrange(
                    truth, others, places[scene.id],
                    seed=mixed.seed, name=f"{TASK} {scene.id}", rotation=rotation,
                )  # fmt: skip
                questions.append(
                    Question(
                        item=Item(
                            id=item_id(scene.id, rotation, condition),
                            task=TASK,
                            task_version=TASK_VERSION,
                            prompt=prompt.fill(
                                choices=[option.shown for option in options],
                                preface=source.preface,
                                options=lettered(options),
                            ),
                            audio=source.audio,
                            condition=condition,
                            metadata=known_of(mixed, scene, TASK, options=options_to_text(options)),
                        ),
                        gold=truth.label,
                        cluster=scene.id,
                        groups={
                            **_groups(mixed, scene),
                            "position": str(place_of(truth.label, options)),
                            OPTIONS_KEY: options_to_text(options),
                        },
                    )
                )
    return tuple(questions)


def distractors(
    mixed: MixedCorpus, scene: MixedScene, shown: Mapping[str, Option]
) -> tuple[Option, ...]:
    """Three other places, drawn for the scene: ranked by a draw each, so that a new place moves few."""
    others = sorted(set(shown) - {scene.scenario.location})
    ranks = {
        place: stream(mixed.seed, "distractor", TASK, scene.id, place).random() for place in others
    }
    chosen = sorted(others, key=lambda place: ranks[place])[: N_OPTIONS - 1]
    return tuple(shown[place] for place in chosen)


def _groups(mixed: MixedCorpus, scene: MixedScene) -> dict[str, str]:
    from earwitness.scenes.bank_names import words_of

    place = mixed.bank.location(scene.scenario.location)
    said = f" {' '.join(word for word, _, _ in words_of(spoken_text(scene)))} "
    named = any(
        f" {' '.join(word for word, _, _ in words_of(name))} " in said for name in place.names
    )
    return {
        "location": place.id,
        "setting": place.setting,
        "talk": "names the place" if named else "does not name the place",
    }


def parse(reply: Reply, groups: Mapping[str, str], lexicon: Lexicon) -> Outcome:
    """What a reply amounts to. ``lexicon`` holds the words of all options of the run."""
    return read_choice(reply, lexicon, options_from_text(groups[OPTIONS_KEY]))


def score(
    name: str,
    decisions: Sequence[Decision],
    *,
    seed: int = 0,
    resamples: int = 10_000,
    cluster_name: str = "scene",
    accept_failed: bool = False,
) -> CaresScores:
    """Accuracy, position bias and splits of one system."""
    from earwitness.tasks.cares_scores import score_positions

    return score_positions(
        name,
        TASK,
        decisions,
        seed=seed,
        resamples=resamples,
        cluster_name=cluster_name,
        accept_failed=accept_failed,
    )
