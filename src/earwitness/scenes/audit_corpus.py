"""The whole leak audit of a corpus: what its plan and words give away, and, once it is mixed, what its acoustics do."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from typing import Any

from earwitness.errors import UsageError
from earwitness.scenes.audit import GROUPS as WORD_GROUPS
from earwitness.scenes.audit import Audit, audit
from earwitness.scenes.audit_acoustic import (
    GROUPS,
    TOGETHER,
    acoustic_cases,
    acoustic_floors,
    audit_acoustics,
)
from earwitness.scenes.corpus import Corpus
from earwitness.scenes.dialogue_records import Dialogue
from earwitness.scenes.scenario import Scenario

ACOUSTIC_GROUPS = (*GROUPS, TOGETHER)


@dataclass(frozen=True, slots=True)
class CorpusAudit:
    """Both halves; None for one that was not asked for, or has nothing to listen to yet.

    ``with_words`` is whether there were dialogues, or only a plan.
    """

    words: Audit | None
    acoustics: Audit | None
    scenes: int
    with_words: bool

    @property
    def ok(self) -> bool:
        """Whether nothing leaks, and neither control."""
        return all(half.ok for half in (self.words, self.acoustics) if half is not None)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values: figures of the plan and words, and under ``acoustics`` those of the audio."""
        values = {"ok": self.ok, "groups": [], "control": None}
        values |= {} if self.words is None else half_to_json(self.words)
        heard = None if self.acoustics is None else half_to_json(self.acoustics)
        return {**values, "ok": self.ok, "acoustics": heard}


def half_to_json(found: Audit) -> dict[str, Any]:
    """Groups and control as plain JSON values."""
    rows = [{**asdict(group), "leaks": group.leaks} for group in found.groups]
    control = {**asdict(found.control), "leaks": found.control.leaks}
    return {"ok": found.ok, "groups": rows, "control": control}


def audit_corpus(
    corpus: Corpus,
    *,
    split: str | None = None,
    only: Collection[str] = (),
    strict: bool = False,
    acoustics: bool = True,
    workers: int | None = None,
    seed: int = 0,
    on_stage: Callable[[str], None] | None = None,
) -> CorpusAudit:
    """Audit a planned, written or mixed corpus.

    Parameters
    ----------
    split: only scenes of this split.
    only: names of groups of either half; all if empty.
    strict: hold every group to chance, whatever the presets say their designs give away.
    acoustics: listen to what is mixed, too.
    on_stage: told what is done next.

    Raises
    ------
    UsageError: there is no such group.
    DataError: no events, too few templates, or damaged files.
    """
    known = (*WORD_GROUPS, "together", *ACOUSTIC_GROUPS)
    if unknown := sorted(set(only) - set(known)):
        raise UsageError("--group", f"no group {unknown[0]!r}", ", ".join(known))
    told = on_stage or (lambda _: None)
    written = corpus.scenes()
    scenes: list[tuple[Scenario, Dialogue | None]] = (
        [*written] if written else [(scenario, None) for scenario in corpus.scenarios()]
    )
    scenes = [scene for scene in scenes if split in (None, scene[0].split)]
    of_words = [name for name in only if name not in ACOUSTIC_GROUPS]
    of_sound = [name for name in only if name in ACOUSTIC_GROUPS]
    words = heard = None
    if of_words or not only:
        words = audit(
            scenes,
            floors={} if strict else corpus.config.preset.floors,
            only=of_words,
            seed=seed,
            on_group=lambda name: told(f"guessing reactions from: {name}"),
        )
    if of_sound or (acoustics and not only):
        told("measuring sounds")
        cases = acoustic_cases(corpus, split=split, workers=workers)
        if cases or of_sound:
            heard = audit_acoustics(
                cases,
                floors={} if strict else acoustic_floors(corpus),
                only=of_sound,
                seed=seed,
                on_group=lambda name: told(f"guessing reactions from: {name}"),
            )
    return CorpusAudit(words, heard, len(scenes), bool(written))
