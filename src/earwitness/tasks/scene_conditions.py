"""The same items, another input: what a model is given under each condition.

=================  =============================================================================================
``audio``          the mix
``muted``          the mix without the sound in question (without any, where a task asks about the whole scene)
``swapped``        another sound of the place at the same moment; the speakers still react as they did
``speech-only``    the voices in their room, no sounds and no ambience
``asr``            what a recogniser of speech wrote down of the mix, with times as text, no audio
``oracle``         the true script with its times as text, no audio; delivery tags left out
``oracle-tags``    the same with what is heard of delivery tags (a sigh, a broken-off word)
``blind``          the question alone
``silence``        digital silence of the same length
=================  =============================================================================================

``muted``, ``swapped`` and ``speech-only`` are twins made by the mixer: bit-identical to the mix outside the sound
(the voices alone differ everywhere). A twin that is missing stops the run before any call.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from earwitness.errors import UsageError
from earwitness.models.protocols import AudioRef
from earwitness.scenes.mixing.manifest import Manifest
from earwitness.scenes.tags import strip_tags
from earwitness.tasks.scene_items import AUDIBLE, MixedCorpus, MixedScene, shown_time
from earwitness.tasks.scene_transcripts import RECOGNISED

CONDITIONS = (
    "audio",
    "muted",
    "swapped",
    "speech-only",
    "asr",
    "oracle",
    "oracle-tags",
    "blind",
    "silence",
)
TEXT_CONDITIONS = ("asr", "oracle", "oracle-tags", "blind")
"""Conditions without audio: for models that take text."""
_MIX_OPTIONS = {"muted": "--mute each --mute all", "swapped": "--swap-sound each", "speech-only": "--speech-only"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Given:
    """What a model gets beside the question. ``manifest`` is of what is heard, None without audio."""

    audio: AudioRef | None
    preface: str
    manifest: Manifest | None


def check_conditions(conditions: Sequence[str]) -> None:
    """Refuse unknown or doubled conditions.

    Raises
    ------
    UsageError: one of them is unknown or named twice, or none is named.
    """
    unknown = [name for name in conditions if name not in CONDITIONS]
    if unknown or not conditions:
        found = f"found {unknown[0]!r}" if unknown else "none given"
        raise UsageError("--conditions", found, f"some of {', '.join(CONDITIONS)}")
    if len(set(conditions)) != len(conditions):
        raise UsageError("--conditions", "one is named twice", "each once")


def variant_of(condition: str, event: str | None) -> str:
    """The version of a scene that a condition is heard in.

    >>> variant_of("muted", "e2"), variant_of("muted", None), variant_of("silence", "e1")
    ('mute-e2', 'mute-all', 'audible')
    """
    if condition == "muted":
        return f"mute-{event}" if event else "mute-all"
    if condition == "swapped":
        return f"swap-{event}"
    return "speech-only" if condition == "speech-only" else AUDIBLE


def given(mixed: MixedCorpus, scene: MixedScene, condition: str, event: str | None) -> Given:
    """Input of one item.

    Parameters
    ----------
    event: id of the sound in question, None where the whole scene is.

    Raises
    ------
    UsageError: the twin or the transcript was not made.
    """
    if condition == "blind":
        return Given(None, "", None)
    if condition == "asr":
        return Given(None, recognised(mixed, scene), None)
    if condition in ("oracle", "oracle-tags"):
        return Given(None, transcript(mixed, scene, tags=condition == "oracle-tags"), None)
    manifest = mixed.manifest(scene, variant_of(condition, event))
    if manifest is None:
        raise missing_twins(mixed, condition, [(scene.id, variant_of(condition, event))])
    audio = mixed.audio(manifest)
    return Given(
        replace(audio, transform="silence") if condition == "silence" else audio, "", manifest
    )


def require_twins(
    mixed: MixedCorpus,
    wanted: Iterable[tuple[MixedScene, str | None]],
    conditions: Sequence[str],
    *,
    where: str | None = None,
) -> None:
    """See that every twin is there and belongs to the mix that is there now.

    Parameters
    ----------
    where: what needs them, for the error; None means the condition.

    Raises
    ------
    UsageError: twins are missing or older than their mix; all are counted and the command is named.
    """
    pairs = list(wanted)
    for condition in conditions:
        if condition not in _MIX_OPTIONS:
            continue
        missing = []
        for scene, event in pairs:
            variant = variant_of(condition, event)
            found = mixed.manifest(scene, variant)
            if found is None or found.audible_sha256 != scene.manifest.audio.sha256:
                missing.append((scene.id, variant))
        if missing:
            raise missing_twins(mixed, condition, missing, where)


def missing_twins(
    mixed: MixedCorpus,
    condition: str,
    missing: Sequence[tuple[str, str]],
    where: str | None = None,
) -> UsageError:
    """The error that says which twins are not there and how they are made."""
    scene, variant = missing[0]
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    return UsageError(
        where or f"condition {condition!r}",
        f"{scene} has no twin {variant}{more}",
        "a twin of every item, made from the mix that is there now",
        "Nothing was asked. Make them: earwitness scenes mix "
        f"{mixed.folder} --sounds LIBRARY {_MIX_OPTIONS[condition]}",
    )


def recognised(mixed: MixedCorpus, scene: MixedScene) -> str:
    """What a recogniser wrote down of the mix.

    Raises
    ------
    UsageError: it was not asked.
    """
    text = mixed.transcripts.get(scene.manifest.audio.sha256)
    if text is None:
        raise UsageError(
            "condition 'asr'", f"{scene.id} has no transcript", "one of every mix",
            "Transcribe them: earwitness.tasks.scene_transcripts.transcribe_scenes",
        )  # fmt: skip
    return f"{RECOGNISED}\n{text}"


def transcript(mixed: MixedCorpus, scene: MixedScene, *, tags: bool) -> str:
    """The true script with times: what a perfect recogniser of speech could hand on.

    Sounds never show. With ``tags``, what a listener hears of a delivery tag stands in its place.
    """
    from earwitness.scenes.dialogue import Dialogue, Utterance, render_transcript

    turns = {turn.index: turn for turn in scene.manifest.turns}
    lines = []
    for number, utterance in enumerate(scene.dialogue.utterances):
        if tags:
            alone = Dialogue(scene.id, "", (Utterance(utterance.speaker, utterance.text),))
            said = render_transcript(alone, scene.scenario, tags="heard", bank=mixed.bank)
            said = said.removeprefix(f"{utterance.speaker}: ")
        else:
            said = strip_tags(utterance.text)
        turn = turns[number]
        lines.append(
            f"[{shown_time(turn.start_s)}-{shown_time(turn.end_s)}] {utterance.speaker}: {said}"
        )
    head = "Transcript of the recording, times in seconds; there is no audio:"
    return "\n".join((head, *lines))
