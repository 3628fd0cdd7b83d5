"""How do the speakers react to a sound?

Source: CARES (arXiv 2610.10208), reaction classification. The protocol followed: the model gets the recording, is
told when the sound occurs, and chooses among four reactions whose definitions stand in the prompt.

Conventions:

* One item per sound, condition and rotation. The moment told is the loudest of the sound's recording
  (``salient_s``), not where its file begins.
* The prompt ``time`` is the default; ``none`` tells only that there is a sound, ``time-sound`` also which one.
* Options are lettered; their order is balanced over places (:mod:`earwitness.tasks.choices`).
* The gold label is the reaction of the plan, under every condition: a muted sound is still reacted to.
* Items of one scene form a cluster. Groups: location, sound, register, margin over the ambience, level.
* Replies are read by :mod:`earwitness.tasks.closed_label` with the lexicon ``reaction``. The headline is balanced
  accuracy, the mean of the four recalls; items without a usable label are misses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from earwitness.models.protocols import Prompt, Reply
from earwitness.runs.items import Item, Moment, Question
from earwitness.scenes.bank_records import REACTIONS
from earwitness.tasks.choices import (
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
from earwitness.tasks.label_lexicon import load_lexicon
from earwitness.tasks.scene_conditions import CONDITIONS, check_conditions, given, require_twins
from earwitness.tasks.scene_items import MixedCorpus, event_groups, known_of, shown_time
from earwitness.tasks.scene_prompts import ScenePrompt, load_scene_prompt

if TYPE_CHECKING:
    from earwitness.runs.outcomes import Outcome
    from earwitness.tasks.cares_scores import CaresScores
    from earwitness.tasks.records import Decision

TASK = "reaction"
TASK_VERSION = "1"
PARSER_VERSION = "closed-label 1, lexicon reaction 1"
LABELS: tuple[str, ...] = REACTIONS
DEFAULT_PROMPT = "time"
APPLICABLE = CONDITIONS


def load_prompt(id_or_path: str | Path) -> ScenePrompt:
    """A packaged prompt (``time``, ``none``, ``time-sound``, ``p1``) or a YAML file of one's own."""
    return load_scene_prompt(
        id_or_path, task=TASK, needed=("options",), allowed=("t", "sound"), defined=LABELS
    )


def items(
    mixed: MixedCorpus,
    *,
    prompt_set: str | Path = DEFAULT_PROMPT,
    conditions: Sequence[str] = ("audio",),
    rotations: int = 1,
) -> tuple[Question, ...]:
    """The questions to ask, condition by condition, by scene and event.

    Parameters
    ----------
    rotations: how often each item is asked, options shifted by one place each time (1 to 4).

    Raises
    ------
    UsageError: an unknown condition, or twins that were not made.
    """
    check_conditions(conditions)
    prompt = load_prompt(prompt_set)
    require_twins(mixed, [(s, e.id) for s in mixed.scenes for e in s.manifest.events], conditions)
    shown = {label: Option(label, f"{label}: {prompt.definitions[label]}") for label in LABELS}
    places = balanced_places(
        ((f"{s.id}/{e.id}", f"{s.split} {e.reaction}") for s in mixed.plan for e in s.events),
        seed=mixed.seed,
        name=TASK,
    )
    questions = []
    for condition in conditions:
        for scene in mixed.scenes:
            for event in scene.manifest.events:
                base = f"{scene.id}/{event.id}"
                source = given(mixed, scene, condition, event.id)
                others = [shown[label] for label in LABELS if label != event.reaction]
                # Under "swapped" another sound is heard: the prompt that names the sound names that one.
                heard = source.manifest.event(event.id).heard if source.manifest else None
                for rotation in range(rotations):
                    options = arrange(
                        shown[event.reaction], others, places[base],
                        seed=mixed.seed, name=f"{TASK} {base}", rotation=rotation,
                    )  # fmt: skip
                    fill = partial(
                        _filled, prompt, preface=source.preface, options=lettered(options),
                        sound=mixed.bank.sound(heard or event.sound).name,
                    )  # fmt: skip
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
                            gold=event.reaction,
                            cluster=scene.id,
                            groups={
                                **event_groups(scene, event),
                                "position": str(place_of(event.reaction, options)),
                                OPTIONS_KEY: options_to_text(options),
                            },
                        )
                    )
    return tuple(questions)


def _filled(prompt: ScenePrompt, moment_s: float, **holes: str) -> Prompt:
    return prompt.fill(choices=LABELS, t=shown_time(moment_s), **holes)


def item_id(base: str, rotation: int, condition: str) -> str:
    """Id of an item: scene and event, then rotation and condition where they are not the first.

    >>> item_id("s1/e1", 0, "audio"), item_id("s1/e1", 2, "muted")
    ('s1/e1', 's1/e1~r2|muted')
    """
    return f"{base}{f'~r{rotation}' if rotation else ''}" + (
        "" if condition == "audio" else f"|{condition}"
    )


def parse(reply: Reply, groups: Mapping[str, str]) -> Outcome:
    """What a reply amounts to; ``groups`` are the question's, which hold its options.

    >>> from earwitness.tasks.choices import Option, options_to_text
    >>> asked = {"_options": options_to_text([Option("pivot", "pivot: x"), Option("ambient", "ambient: y")])}
    >>> parse(Reply(text="B) ambient"), asked).label
    'ambient'
    """
    return read_choice(reply, load_lexicon(TASK), options_from_text(groups[OPTIONS_KEY]))


def score(
    name: str,
    decisions: Sequence[Decision],
    *,
    seed: int = 0,
    resamples: int = 10_000,
    cluster_name: str = "scene",
    accept_failed: bool = False,
) -> CaresScores:
    """Balanced accuracy, recalls, ignored classes, confusion, position bias and splits of one system."""
    from earwitness.tasks.cares_scores import score_choices

    found = score_choices(
        name,
        TASK,
        decisions,
        LABELS,
        seed=seed,
        resamples=resamples,
        cluster_name=cluster_name,
        accept_failed=accept_failed,
    )
    return replace(found, headline=found.scores.macro_recall)
