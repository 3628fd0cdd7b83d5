"""Which sound occurs at a moment?

Source: CARES (arXiv 2610.10208), audio tagging as a four-way choice. The protocol followed: the model is told the
moment and chooses among the true sound and three distractors that may occur at the same place and are not in the
scene.

Conventions:

* One item per sound, condition and rotation; the moment is the loudest of the sound's recording.
* Distractors are ordinary sounds of the location, drawn for the item, that are neither planned in the scene nor
  share a name with the true sound. A rare sound gets ordinary distractors.
* Under ``swapped`` the sound that is heard is the truth; the planned one stays among the options in place of a
  distractor, so that a model that answers from the words can be caught choosing it (group ``_planned``).
* Items of one scene form a cluster. Groups: location, sound, margin, level, reaction, register, and whether the
  talk names the sound: only where it does not, hearing is needed.
* The headline is accuracy (chance 25 %); the confusion table is by position, which shows position bias.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from earwitness.errors import DataError
from earwitness.runs.items import Item, Moment, Question
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
from earwitness.tasks.scene_items import (
    MixedCorpus,
    MixedScene,
    event_groups,
    known_of,
    named_in_talk,
    shown_time,
)
from earwitness.tasks.scene_prompts import ScenePrompt, load_scene_prompt

if TYPE_CHECKING:
    from earwitness.models.protocols import Prompt, Reply
    from earwitness.runs.outcomes import Outcome
    from earwitness.tasks.cares_scores import CaresScores
    from earwitness.tasks.label_lexicon import Lexicon
    from earwitness.tasks.records import Decision

TASK = "sound"
TASK_VERSION = "1"
PARSER_VERSION = "closed-label 1, options as words"
DEFAULT_PROMPT = "own"
APPLICABLE = CONDITIONS


def load_prompt(id_or_path: str | Path) -> ScenePrompt:
    """A packaged prompt (``own``, ``p1``) or a YAML file of one's own."""
    return load_scene_prompt(id_or_path, task=TASK, needed=("options", "t"))


def items(
    mixed: MixedCorpus,
    *,
    prompt_set: str | Path = DEFAULT_PROMPT,
    conditions: Sequence[str] = ("audio",),
    rotations: int = 1,
) -> tuple[Question, ...]:
    """The questions to ask, condition by condition, by scene and event; see :func:`earwitness.tasks.reaction.items`.

    Raises
    ------
    DataError: a location has too few sounds for three distractors.
    """
    check_conditions(conditions)
    prompt = load_prompt(prompt_set)
    require_twins(mixed, [(s, e.id) for s in mixed.scenes for e in s.manifest.events], conditions)
    places = balanced_places(
        ((f"{s.id}/{e.id}", f"{s.split} {s.location}") for s in mixed.plan for e in s.events),
        seed=mixed.seed,
        name=TASK,
    )
    drawn = {
        f"{scene.id}/{event.id}": (
            distractors(mixed, scene, event.id, event.sound),
            named_in_talk(mixed, scene, event.sound),
        )
        for scene in mixed.scenes
        for event in scene.manifest.events
    }
    questions = []
    for condition in conditions:
        for scene in mixed.scenes:
            for event in scene.manifest.events:
                base = f"{scene.id}/{event.id}"
                source = given(mixed, scene, condition, event.id)
                truth, (others, named) = event.sound, drawn[base]
                if condition == "swapped" and source.manifest is not None:
                    truth = source.manifest.event(event.id).heard or event.sound
                    kept = [other for other in others if other != truth][: N_OPTIONS - 2]
                    others = (*kept, event.sound)
                groups = {
                    **event_groups(scene, event),
                    "sound": truth,
                    "talk": "names the sound" if named else "does not name the sound",
                    "_planned": event.sound,
                }
                for rotation in range(rotations):
                    options = arrange(
                        _option(mixed, truth), [_option(mixed, other) for other in others],
                        places[base], seed=mixed.seed, name=f"{TASK} {base}", rotation=rotation,
                    )  # fmt: skip
                    fill = partial(_filled, prompt, options, source.preface)
                    questions.append(
                        Question(
                            item=Item(
                                id=item_id(base, rotation, condition),
                                task=TASK,
                                task_version=TASK_VERSION,
                                prompt=fill(event.salient_s),
                                moment=Moment(event.salient_s, fill),
                                audio=source.audio,
                                condition=condition,
                                metadata=known_of(
                                    mixed,
                                    scene,
                                    TASK,
                                    options=options_to_text(options),
                                    moment_s=event.salient_s if "{t}" in prompt.user else None,
                                ),
                            ),
                            gold=truth,
                            cluster=scene.id,
                            groups={
                                **groups,
                                "position": str(place_of(truth, options)),
                                OPTIONS_KEY: options_to_text(options),
                            },
                        )
                    )
    return tuple(questions)


def _filled(
    prompt: ScenePrompt, options: Sequence[Option], preface: str, moment_s: float
) -> Prompt:
    shown = [option.shown for option in options]
    return prompt.fill(
        choices=shown, preface=preface, options=lettered(options), t=shown_time(moment_s)
    )


def distractors(mixed: MixedCorpus, scene: MixedScene, event: str, sound: str) -> tuple[str, ...]:
    """Three sounds of the location that are not in the scene, ranked by a draw each.

    Raises
    ------
    DataError: there are fewer.
    """
    bank = mixed.bank
    present = {each.sound for each in scene.scenario.events}
    # What may be called the same as the true sound would make two options right.
    words = {name.casefold() for name in bank.sound(sound).names}
    usable = [
        other
        for other in bank.sounds_at(scene.scenario.location)
        if other not in present
        and not words & {name.casefold() for name in bank.sound(other).names}
    ]
    ranks = {
        other: stream(mixed.seed, "distractor", TASK, scene.id, event, other).random()
        for other in usable
    }
    chosen = tuple(sorted(usable, key=lambda other: ranks[other])[: N_OPTIONS - 1])
    if len(chosen) < N_OPTIONS - 1:
        raise DataError(
            f"location {scene.scenario.location!r} of bank {bank.id}",
            f"{len(chosen)} sounds that are not in scene {scene.id}",
            f"at least {N_OPTIONS - 1} to choose wrong answers from",
        )
    return chosen


def _option(mixed: MixedCorpus, sound: str) -> Option:
    return Option(sound, mixed.bank.sound(sound).name)


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
