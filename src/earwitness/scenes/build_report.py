"""What a build came to: what every stage took and did, and how a program that called it should end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from earwitness.scenes.audit_corpus import CorpusAudit
    from earwitness.scenes.corpus_validate import Validation

NOT_JUDGED = "V401"


@dataclass(frozen=True, slots=True)
class StageTime:
    """One stage: what it did, in words, and what it took. ``cpu_s`` is of all processes."""

    name: str
    wall_s: float
    cpu_s: float
    did: str


@dataclass
class BuildReport:
    """What a build came to.

    Attributes
    ----------
    asked, places: scenes that were asked for, and whole situations' worth of them, which were planned.
    accepted: scenes with a dialogue that keeps the rules and passed the judge.
    splits: accepted scenes by split.
    waiting: scenes whose calls failed or were stopped, with the reason of the first.
    lost: places for which no dialogue was found.
    """

    corpus: str
    asked: int
    templates: int
    per_template: int
    places: int
    stages: list[StageTime] = field(default_factory=list)
    judged: bool = True
    accepted: int = 0
    splits: dict[str, int] = field(default_factory=dict)
    reactions: dict[str, int] = field(default_factory=dict)
    abandoned: int = 0
    refills: int = 0
    waiting: dict[str, str] = field(default_factory=dict)
    stopped: str | None = None
    lost: list[str] = field(default_factory=list)
    cost_usd: float = 0.0
    library: str = ""
    takes_shared: bool = False
    cast: str = ""
    voices_shared: bool = False
    mixed: int = 0
    audio_s: float = 0.0
    audio_bytes: int = 0
    twins: dict[str, int] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    validation: Validation | None = None
    audit: CorpusAudit | None = None
    audit_left_out: str = ""

    @property
    def exit_code(self) -> int:
        """0 complete, 3 work is left that the same command goes on with, 1 something is wrong."""
        if self.waiting or self.stopped:
            return 3
        broken = self.validation is not None and self.validation.errors
        leaks = self.audit is not None and not self.audit.ok
        left = self.validation is not None and self.validation.unfinished
        if self.lost or self.refused or broken or leaks:
            return 1
        return 3 if left and not self._unjudged_only else 0

    @property
    def _unjudged_only(self) -> bool:
        """Whether all that validation misses is the judge nobody asked for."""
        left = self.validation.unfinished if self.validation else ()
        return not self.judged and all(promise.code == NOT_JUDGED for promise in left)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        from dataclasses import asdict

        values = asdict(self)
        values["stages"] = [asdict(stage) for stage in self.stages]
        if self.audit is not None:
            values["audit"] = self.audit.to_json()
        return {**values, "exit_code": self.exit_code}
