"""The gate of the writing loop: a judge, an embedder and tau, with every verdict kept by content.

``verdicts.jsonl`` has a line ``verdict`` for every transcript judged and a line ``likeness`` for every two topics
compared. Both are found again by a key made of all they depend on, so unchanged text is never judged twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from earwitness.errors import ModelError
from earwitness.runs.jsonlines import JsonLines, read_lines
from earwitness.scenes.bank import Bank
from earwitness.scenes.bank_records import Reaction
from earwitness.scenes.corpus import VERDICTS, Corpus
from earwitness.scenes.dialogue_records import Dialogue
from earwitness.scenes.recovery import (
    Case,
    Judge,
    OnDone,
    Opinion,
    Verdict,
    case_of,
    judge_identity,
    likeness_key,
    reasons_against,
    verdict_key,
)
from earwitness.scenes.recovery_threshold import Threshold, require_embedder
from earwitness.scenes.scenario import Scenario
from earwitness.scenes.writing import Ruling

if TYPE_CHECKING:
    from earwitness.models.protocols import Embedder

COSINE_DIGITS = 6
CHUNK = 64
"""Cases judged before their verdicts are on disk: what a kill may cost."""


@dataclass(frozen=True, slots=True)
class Ruled:
    """One ruling, for the report. ``cosine`` is that of planned and recovered topic."""

    scenario: Scenario
    verdict: Verdict
    cosine: float
    accepted: bool


@dataclass(slots=True)
class VerdictLog:
    """What ``verdicts.jsonl`` holds, and other such logs, by key; appends to it unless it is only read."""

    path: Path
    read_only: bool = False
    others: Sequence[Path] = ()
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    cosines: dict[str, float] = field(default_factory=dict)
    _file: JsonLines | None = None

    def __post_init__(self) -> None:
        for path in (*self.others, *((self.path,) if self.read_only else ())):
            for _, line in read_lines(path, "a verdict") if path.exists() else ():
                self._note(line, 0)
        if not self.read_only:
            self._file = JsonLines(
                self.path,
                keys=("kind", "key"),
                entry="a verdict",
                note=self._note,
                busy="another process is filtering this corpus",
            )

    def _note(self, line: Mapping[str, Any], offset: int) -> None:
        del offset
        if line["kind"] == "verdict":
            reactions = cast("dict[str, Reaction]", dict(line["reactions"]))
            self.verdicts.setdefault(line["key"], Verdict(line["topic"], reactions))
        elif line["kind"] == "likeness":
            self.cosines.setdefault(line["key"], float(line["cosine"]))

    def keep_verdict(self, key: str, scenario: str, judge: str, verdict: Verdict) -> None:
        """Append a verdict."""
        assert self._file is not None
        self._file.append(
            {
                "kind": "verdict",
                "key": key,
                "scenario": scenario,
                "judge": judge,
                "topic": verdict.topic,
                "reactions": dict(verdict.reactions),
            }
        )

    def keep_cosine(self, key: str, scenario: str, cosine: float) -> None:
        """Append a likeness."""
        assert self._file is not None
        self._file.append({"kind": "likeness", "key": key, "scenario": scenario, "cosine": cosine})

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


class RecoveryGate:
    """Accepts a dialogue whose topic and reactions an independent judge recovers.

    Parameters
    ----------
    judge: of another family than the writers (see :func:`earwitness.scenes.recovery.refuse_related`).
    embedder: compares planned and recovered topic.
    threshold: found with this embedder.
    verdicts: the file verdicts are kept in.
    others: files that may hold verdicts too, such as those of shards.

    Raises
    ------
    ThresholdError: the threshold belongs to another embedder.
    """

    def __init__(
        self,
        bank: Bank,
        judge: Judge,
        embedder: Embedder,
        threshold: Threshold,
        verdicts: Path,
        others: Sequence[Path] = (),
    ) -> None:
        from earwitness.models.embedders.hashes import embedder_hash

        self._bank = bank
        self._judge = judge
        self._embedder = embedder
        self._hash = embedder_hash(embedder)
        require_embedder(threshold, embedder.name, self._hash, "--tau")
        self._threshold = threshold
        self._identity = judge_identity(judge)
        self._log = VerdictLog(verdicts, others=others)
        self.rulings: list[Ruled] = []
        self.judged = 0

    @property
    def identity(self) -> Mapping[str, Any]:
        """Judge with family, settings and prompts; embedder with hash; tau."""
        return {
            **self._identity,
            "family": self._judge.family,
            "embedder": self._embedder.name,
            "embedder_hash": self._hash,
            "tau": self._threshold.tau,
            "calibration": self._threshold.to_json() if self._threshold.calibrated else None,
        }

    async def rule(
        self, cases: Sequence[tuple[Dialogue, Scenario]], on_done: OnDone | None = None
    ) -> list[Ruling]:
        """One ruling for every case, in their order; what was judged before is not judged again."""
        rulings: list[Ruling] = []
        for start in range(0, len(cases), CHUNK):
            rulings += await self._rule(cases[start : start + CHUNK])
            if on_done:
                on_done(len(rulings))
        return rulings

    async def _rule(self, cases: Sequence[tuple[Dialogue, Scenario]]) -> list[Ruling]:
        shown = [case_of(dialogue, scenario, self._bank) for dialogue, scenario in cases]
        keys = [verdict_key(case, self._identity) for case in shown]
        failed = await self._judge_new(cases, shown, keys)
        failed |= await self._compare_new(cases, keys)
        rulings = []
        for (dialogue, scenario), key in zip(cases, keys, strict=True):
            verdict = self._log.verdicts.get(key)
            if verdict is None or key in failed:
                rulings.append(Ruling(False, failed=failed.get(key, "not judged")))
                continue
            cosine = self._log.cosines[likeness_key(dialogue.topic, verdict.topic, self._hash)]
            reasons = reasons_against(scenario, verdict, cosine, self._threshold.tau)
            self.rulings.append(Ruled(scenario, verdict, cosine, not reasons))
            rulings.append(Ruling(not reasons, reasons))
        return rulings

    async def _judge_new(
        self,
        cases: Sequence[tuple[Dialogue, Scenario]],
        shown: Sequence[Case],
        keys: Sequence[str],
    ) -> dict[str, str]:
        """Have new transcripts judged; why some could not be, by key."""
        todo = {
            key: n for n, key in enumerate(keys) if key not in self._log.verdicts
        }  # the same words twice are judged once
        if not todo:
            return {}
        opinions: Sequence[Opinion] = await self._judge.judge([shown[n] for n in todo.values()])
        failed = {}
        for (key, n), opinion in zip(todo.items(), opinions, strict=True):
            if opinion.verdict is None:
                failed[key] = f"{self._judge.name}: {opinion.failed or 'no verdict'}"
            else:
                self.judged += 1
                self._log.keep_verdict(key, cases[n][1].id, self._judge.name, opinion.verdict)
        return failed

    async def _compare_new(
        self, cases: Sequence[tuple[Dialogue, Scenario]], keys: Sequence[str]
    ) -> dict[str, str]:
        """Compare topics that were not compared yet; why that was not possible, by key."""
        todo: dict[str, tuple[str, str, str]] = {}
        for (dialogue, scenario), key in zip(cases, keys, strict=True):
            verdict = self._log.verdicts.get(key)
            if verdict is None:
                continue
            likeness = likeness_key(dialogue.topic, verdict.topic, self._hash)
            if likeness not in self._log.cosines:
                todo[likeness] = (dialogue.topic, verdict.topic, scenario.id)
        if not todo:
            return {}
        texts = list(
            dict.fromkeys(text for one, other, _ in todo.values() for text in (one, other))
        )
        try:
            rows = dict(zip(texts, await self._embedder.embed(texts), strict=True))
        except ModelError as error:
            waiting = {name for _, _, name in todo.values()}
            return {
                key: f"{error.kind}: {error.message}"
                for (_, scenario), key in zip(cases, keys, strict=True)
                if scenario.id in waiting
            }
        for likeness, (one, other, name) in todo.items():
            cosine = float(np.dot(rows[one].astype(np.float64), rows[other].astype(np.float64)))
            self._log.keep_cosine(likeness, name, round(cosine, COSINE_DIGITS))
        return {}

    async def aclose(self) -> None:
        """Close judge, embedder and log."""
        self._log.close()
        await self._judge.aclose()
        await self._embedder.aclose()


def check_verdicts(corpus: Corpus, bank: Bank) -> Iterator[str]:
    """Say what in ``verdicts.jsonl`` does not bear out what was accepted, without asking anybody.

    Every accepted dialogue must have, under the judge and embedder of ``corpus.yaml``, a verdict with all planned
    reactions and a cosine of at least tau.
    """
    used = corpus.config.judge
    if not used:
        return
    log = VerdictLog(corpus.path(VERDICTS), read_only=True, others=corpus.logs(VERDICTS))
    for scenario, dialogue in corpus.scenes():
        verdict = log.verdicts.get(verdict_key(case_of(dialogue, scenario, bank), used))
        if verdict is None:
            yield f"{scenario.id}: accepted, and {used['judge']} has no verdict on these words"
            continue
        cosine = log.cosines.get(likeness_key(dialogue.topic, verdict.topic, used["embedder_hash"]))
        if cosine is None:
            yield f"{scenario.id}: accepted, and its topics were never compared"
            continue
        for reason in reasons_against(scenario, verdict, cosine, float(used["tau"])):
            yield f"{scenario.id}: accepted against {reason}"
