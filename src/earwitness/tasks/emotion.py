"""Which of seven emotions does the voice express?

Source: VocalAffectBench (arXiv 2608.28932). The protocol followed: a prompted model gets the audio and one
fixed instruction with the closed set of labels, no transcript and no metadata; an emotion endpoint gets the
file with its default settings, and its native labels or scores are mapped to the seven before scoring.

Conventions:

* One item per clip and condition. ``audio`` is the clip; ``silence`` is digital silence of the same length;
  ``blind`` is the prompt alone; ``asr`` is what a recogniser wrote down of the clip, as text, without audio. The first
  two controls show what a model answers without hearing, the third what it answers from the words.
* The gold label is the clip's; the cluster is its speaker; groups are language and what the set says of sex,
  intensity and accent. A local model may know speaker and language, never the label.
* Every reply gets one of eight outcomes (:func:`parse`); none leaves the denominator and none becomes
  ``neutral`` for want of a label.
* Text is read by :mod:`earwitness.tasks.closed_label` with the lexicon ``emotion``; words outside the seven are
  ``unmapped`` unless a label map is named. Scores are read by :mod:`earwitness.tasks.score_vectors` with the
  map ``vendor-default`` unless another is named.
* A stop at the token limit counts only where the label was given explicitly and could not go on
  ("Anger", "Answer: fear. The..."); otherwise the outcome is ``truncated``.

Scores of a system are computed by :mod:`earwitness.tasks.scoring`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from earwitness.clips.corpus import EMOTIONS, Clip, ClipSet, audio_ref
from earwitness.errors import DataError, UsageError
from earwitness.models.protocols import AudioRef, Prompt, Reply
from earwitness.runs.items import Item, Question
from earwitness.runs.outcomes import Outcome
from earwitness.tasks import prompt_sets
from earwitness.tasks.chunks import merge_chunks
from earwitness.tasks.closed_label import PARSER_VERSION as CLOSED_LABEL_VERSION
from earwitness.tasks.closed_label import option_codes, read_reply
from earwitness.tasks.label_lexicon import Lexicon, load_lexicon
from earwitness.tasks.prompt_sets import PromptSet
from earwitness.tasks.records import Decision, System
from earwitness.tasks.score_vectors import Pooling, pooling, read_scores

if TYPE_CHECKING:
    from earwitness.clips.labels import LabelMap
    from earwitness.runs.folder import Answer

TASK = "emotion"
TASK_VERSION = "1"
LEXICON = "emotion"
PARSER_VERSION = f"closed-label {CLOSED_LABEL_VERSION}, lexicon 1"
CONDITIONS = ("audio", "silence", "blind", "asr")
TEXT_CONDITIONS = ("blind", "asr")
"""Conditions without audio: for models that take text."""
SCORE_MAP = "vendor-default"
"""Label map of native score names where the user names none."""
GROUPS = ("sex", "gender", "intensity", "accent", "age_group")
"""Metadata of a clip that results may be split by."""


def lexicon() -> Lexicon:
    """The words for the seven emotions."""
    return load_lexicon(LEXICON)


def load_prompt_set(id_or_path: str | Path) -> PromptSet:
    """A packaged prompt (``vab``, ``own``, ``p1`` ...) or a YAML file of one's own.

    Raises
    ------
    UsageError: there is no such prompt.
    DataError: the file is not a prompt for the seven emotions.

    >>> load_prompt_set("vab").prompt.choices[0]
    'anger'
    """
    return prompt_sets.load_prompt_set(id_or_path, task=TASK, labels=EMOTIONS, lexicon=lexicon())


def load_prompt_sets(names: str) -> tuple[PromptSet, ...]:
    """Several prompts, comma-separated: ``own,p1,p2``."""
    return prompt_sets.load_prompt_sets(names, task=TASK, labels=EMOTIONS, lexicon=lexicon())


def items(
    clip_set: ClipSet,
    *,
    prompt_set: str | Path = "vab",
    conditions: Sequence[str] = ("audio",),
    limit: int | None = None,
    transcripts: Mapping[str, str] | None = None,
) -> tuple[Question, ...]:
    """The questions to ask about a clip set, sorted by id, condition by condition.

    Parameters
    ----------
    prompt_set: one prompt, by id or path.
    conditions: of :data:`CONDITIONS`; ids of other conditions than ``audio`` end in ``|condition``.
    limit: clips to ask about; taken label by label in turn, so that a small probe has all labels and a
        larger one contains the smaller.
    transcripts: of the condition ``asr``, by the hash of the clip's file.

    Raises
    ------
    UsageError: an unknown or doubled condition, a limit below one, or a clip without a transcript.
    """
    unknown = [condition for condition in conditions if condition not in CONDITIONS]
    if unknown or not conditions:
        raise UsageError(
            "conditions",
            f"found {unknown[0]!r}" if unknown else "none given",
            f"some of {', '.join(CONDITIONS)}",
        )
    if len(set(conditions)) != len(conditions):
        raise UsageError("conditions", "one is named twice", "each once")
    if limit is not None and limit < 1:
        raise UsageError("limit", f"found {limit}", "at least 1")
    prompt = load_prompt_set(prompt_set).prompt
    clips = chosen_clips(clip_set, limit)
    return tuple(
        Question(
            item=Item(
                id=clip.id if condition == "audio" else f"{clip.id}|{condition}",
                task=TASK,
                task_version=TASK_VERSION,
                prompt=_read_out(prompt, clip, transcripts) if condition == "asr" else prompt,
                audio=_audio(clip_set, clip, condition),
                condition=condition,
                metadata={"speaker": clip.speaker, "language": clip.language},
            ),
            gold=clip.emotion,
            cluster=clip.cluster,
            groups=_groups(clip),
        )
        for condition in conditions
        for clip in clips
    )


def chosen_clips(clip_set: ClipSet, limit: int | None = None) -> list[Clip]:
    """The clips that are asked about, sorted by id; see ``limit`` of :func:`items`."""
    clips = sorted(clip_set.clips, key=lambda clip: clip.id)
    if limit is None:
        return clips
    return sorted(_in_turn(clips)[:limit], key=lambda clip: clip.id)


def _read_out(prompt: Prompt, clip: Clip, transcripts: Mapping[str, str] | None) -> Prompt:
    """The prompt after what a recogniser wrote down of the clip."""
    from earwitness.tasks.scene_transcripts import RECOGNISED

    text = (transcripts or {}).get(clip.sha256)
    if text is None:
        raise UsageError(
            "condition 'asr'", f"{clip.id} has no transcript", "one of every clip",
            "Transcribe them: earwitness.tasks.scene_transcripts.transcribe",
        )  # fmt: skip
    return replace(prompt, user=f"{RECOGNISED}\n{text}\n\n{prompt.user}")


def _in_turn(clips: Iterable[Clip]) -> list[Clip]:
    seen: dict[str, int] = {}
    ranked: list[tuple[int, str, Clip]] = []
    for clip in clips:
        rank = seen.get(clip.emotion, 0)
        seen[clip.emotion] = rank + 1
        ranked.append((rank, clip.emotion, clip))
    return [clip for _, _, clip in sorted(ranked, key=lambda entry: entry[:2])]


def _audio(clip_set: ClipSet, clip: Clip, condition: str) -> AudioRef | None:
    if condition in TEXT_CONDITIONS:
        return None
    return audio_ref(clip_set, clip, "silence" if condition == "silence" else None)


def _groups(clip: Clip) -> dict[str, str]:
    groups = {"language": clip.language} if clip.language else {}
    groups |= {key: clip.metadata[key] for key in GROUPS if clip.metadata.get(key)}
    return groups


def parse(
    reply: Reply,
    *,
    label_map: LabelMap | None = None,
    codes: Mapping[str, str] | None = None,
    pool: Pooling | None = None,
) -> Outcome:
    """What a reply amounts to.

    Parameters
    ----------
    label_map: for native score names (``vendor-default`` if not given), and for words of a text reply that are
        none of the seven (no map if not given).
    codes: letters or numbers the prompt gave its options.
    pool: how scores of several native names of one label add up, see :mod:`earwitness.tasks.score_vectors`.

    >>> parse(Reply(text="**Angry**")).label
    'anger'
    >>> parse(Reply(text="", finish="length")).kind
    'truncated'
    """
    if reply.finish == "content_filter":
        return Outcome("blocked", rule="finish reason", native=reply.text or None)
    if reply.scores is not None and not (reply.text and not reply.scores):
        return read_scores(reply.scores, label_map or _score_map(), pool=pool)
    text = reply.text or ""
    if reply.finish == "refusal":
        return Outcome("refused", rule="finish reason", native=text or None)
    if reply.finish == "length" and not text.strip():
        return Outcome("truncated", rule="no text before the length stop")
    read = read_reply(text, lexicon(), codes=codes)
    outcome = read.outcome
    if outcome.kind == "unmapped" and label_map is not None and outcome.native:
        label, rule = label_map.map(outcome.native)
        if label is not None:
            outcome = replace(outcome, kind="answered", label=label, rule=f"map: {rule}")
    if reply.finish == "length":
        if outcome.kind == "answered" and read.explicit:
            return replace(outcome, rule=f"{outcome.rule} (before the length stop)")
        return Outcome(
            "truncated", rule="no explicit label before the length stop", native=text[:120]
        )
    return outcome


def _score_map() -> LabelMap:
    from earwitness.clips.labels import load_label_map

    return load_label_map(SCORE_MAP)


def _map_of(card: Mapping[str, Any]) -> LabelMap | None:
    """The label map a run was made for (a vendor's own), if it names one."""
    from earwitness.clips.labels import load_label_map

    named = card.get("label_map")
    return load_label_map(str(named["name"])) if isinstance(named, Mapping) else None


def describe(clip_set: ClipSet) -> dict[str, object]:
    """What cards of runs and reports say of a clip set."""
    card = clip_set.card
    return {
        "name": card.name,
        "version": card.version,
        "revision": card.revision,
        "licence": card.licence,
        "use": card.use,
        "redistribute": card.redistribute,
        "synthetic": card.synthetic,
        "source": card.source,
        "label_map": card.label_map,
        "conversion": card.conversion,
        "sha256": clip_set.sha256,
        "folder": str(clip_set.folder),
        "n": len(clip_set.clips),
    }


def system(
    folder: Path,
    *,
    condition: str = "audio",
    label_map: LabelMap | None = None,
    accept_failed: bool = False,
) -> System:
    """A leaderboard row from a run folder, its stored replies parsed anew.

    Items without a reply are ``failed``, with the reason in ``detail``. The card gets a ``scoring`` entry:
    parser version, lexicon, label map and pooling.

    Raises
    ------
    DataError: not a run of this task.
    UsageError: the run was not asked under this condition.
    """
    from earwitness.runs.folder import RunFolder

    run = RunFolder(folder)
    card = run.card()
    if card.get("task") != TASK:
        raise DataError(
            str(folder), f"is a run of the task {card.get('task')!r}", f"a run of {TASK!r}"
        )
    answers = [answer for answer in run.answers() if answer.question.condition == condition]
    if not answers:
        asked = ", ".join(str(name) for name in card.get("conditions") or ())
        raise UsageError(str(folder), f"has no item under {condition!r}", f"one of: {asked}")
    vectors = [answer.reply.scores for answer in answers if answer.reply and answer.reply.scores]
    pool = pooling(vectors) if vectors else None
    prompt = card.get("prompt")
    prompt_text = str(prompt.get("text") or "") if isinstance(prompt, Mapping) else ""
    codes = option_codes(prompt_text, lexicon())
    label_map = label_map or _map_of(card)
    used_map = label_map or (_score_map() if vectors else None)
    decisions = merge_chunks(
        (answer.question, _decision(answer, label_map, codes, pool)) for answer in answers
    )
    scoring: dict[str, Any] = {
        "parser_version": PARSER_VERSION,
        "lexicon": {"id": lexicon().id, "version": lexicon().version, "hash": lexicon().hash},
        "label_map": {"id": used_map.id, "version": used_map.version, "hash": used_map.hash}
        if used_map
        else None,
        "pooling": pool,
    }
    return System(
        name=str(card.get("name") or card.get("model") or folder.name),
        decisions=decisions,
        card={**card, "scoring": scoring},
        accept_failed=accept_failed,
    )


def _decision(
    answer: Answer,
    label_map: LabelMap | None,
    codes: Mapping[str, str],
    pool: Pooling | None,
) -> Decision:
    question, reply = answer.question, answer.reply
    if reply is None:
        outcome = Outcome("failed", rule="no reply", detail=answer.failure or "not asked")
    else:
        outcome = parse(reply, label_map=label_map, codes=codes, pool=pool)
    return Decision(
        item_id=question.id,
        gold=question.gold,
        outcome=outcome,
        cluster=question.cluster,
        condition=question.condition,
        groups=question.groups,
        seconds=question.seconds,
        reply=_raw(reply),
        # Answers of batch jobs have none.
        latency_s=(reply.latency_s or None) if reply else None,
        cost_usd=answer.cost_usd,
        audio_path=Path(question.audio_path) if question.audio_path else None,
    )


def _raw(reply: Reply | None) -> str | None:
    if reply is None:
        return None
    if reply.scores and not reply.text:
        return json.dumps(dict(reply.scores), ensure_ascii=False, sort_keys=True)
    return reply.text
