"""The corpus folder: everything of a corpus of scenes that exists before the audio.

=====================  =========================================================================
``corpus.yaml``        what the corpus was made from: seed, preset, bank, writer, judge, versions
``scenarios.jsonl``    the plan, template by template; a longer plan begins with the shorter one
``templates.jsonl``    title and facets of every situation in use
``refills.jsonl``      scenarios that took the place of abandoned ones
``dialogues.jsonl``    the accepted dialogues, in the order of the plan
``abandoned.jsonl``    scenarios given up, with the reasons of every attempt
``candidates.jsonl``   log: every dialogue that was proposed
``attempts.jsonl``     log: what became of every attempt
``verdicts.jsonl``     log: what the judge read, by content
``calls.jsonl``        log: every call of a model, with times and costs
=====================  =========================================================================

The first six are the corpus: the same inputs give the same bytes, whatever happened on the way. They appear
by atomic rename. Logs only grow, line by line; times and costs are found nowhere else.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from earwitness.errors import DataError, UsageError
from earwitness.runs.folder import write_atomically
from earwitness.runs.jsonlines import read_lines
from earwitness.scenes.bank import Bank, load_bank
from earwitness.scenes.bank_cast import bank_for
from earwitness.scenes.corpus_config import CorpusConfig, read_config
from earwitness.scenes.dialogue_records import Dialogue, dialogue_from_json, dialogue_to_json
from earwitness.scenes.scenario import Scenario, Split, scenario_from_json, to_lines

CONFIG = "corpus.yaml"
SCENARIOS = "scenarios.jsonl"
TEMPLATES = "templates.jsonl"
REFILLS = "refills.jsonl"
DIALOGUES = "dialogues.jsonl"
ABANDONED = "abandoned.jsonl"
CANDIDATES = "candidates.jsonl"
ATTEMPTS = "attempts.jsonl"
VERDICTS = "verdicts.jsonl"
CALLS = "calls.jsonl"
COMPARED = (CONFIG, SCENARIOS, TEMPLATES, REFILLS, DIALOGUES, ABANDONED)
"""Files that two runs from the same inputs have in common, byte by byte."""
SHARDS = "shards"
LOCK = ".lock"

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class TemplateText:
    """A situation two adults could talk about. ``source`` is ``bank``, ``facets`` or a writer's name."""

    id: str
    theme: str
    split: Split
    title: str
    facets: tuple[str, ...]
    source: str = "bank"


@dataclass(frozen=True, slots=True)
class Abandoned:
    """A scenario given up: its attempts' reasons, and the scenario that took its place, if any."""

    scenario: str
    reasons: tuple[tuple[str, ...], ...]
    refill: str | None


def dump_lines(values: Iterable[Mapping[str, Any]]) -> str:
    """Values as JSON lines, keys in the order given."""
    return "".join(
        json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n" for value in values
    )


class Corpus:
    """A corpus folder, read part by part.

    Raises
    ------
    DataError: no corpus there, or a part is missing or broken; file and line are named.

    Examples
    --------
    ``Corpus(Path("corpus")).dialogues()``
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        if not (self.folder / CONFIG).is_file():
            raise DataError(
                str(self.folder),
                "is no corpus (no corpus.yaml)",
                wanted="a folder made by: earwitness scenes plan",
            )

    def path(self, name: str) -> Path:
        """Where a part of the corpus is."""
        return self.folder / name

    @cached_property
    def config(self) -> CorpusConfig:
        """What the corpus was made from."""
        return read_config(self.path(CONFIG))

    def with_config(self, config: CorpusConfig) -> Corpus:
        """Put another configuration in place and return the corpus as it then is."""
        write_atomically(self.path(CONFIG), config.to_yaml())
        return Corpus(self.folder)

    def scenarios(self) -> tuple[Scenario, ...]:
        """The plan, in its order."""
        return self._read(SCENARIOS, "a scenario", scenario_from_json)

    def refills(self) -> tuple[Scenario, ...]:
        """Scenarios in the place of abandoned ones; empty before anything was written."""
        return self._read(REFILLS, "a scenario", scenario_from_json, missing_ok=True)

    def templates(self) -> tuple[TemplateText, ...]:
        """Texts of the situations; empty before anything was written."""
        return self._read(TEMPLATES, "a template", template_from_json, missing_ok=True)

    def dialogues(self) -> tuple[Dialogue, ...]:
        """The accepted dialogues, in the order of the plan; empty before anything was written."""
        return self._read(DIALOGUES, "a dialogue", dialogue_from_json, missing_ok=True)

    def abandoned(self) -> tuple[Abandoned, ...]:
        """Scenarios given up; empty before anything was written."""
        return self._read(ABANDONED, "an abandoned scenario", _abandoned_from_json, missing_ok=True)

    def scenes(self) -> tuple[tuple[Scenario, Dialogue], ...]:
        """Each accepted dialogue with its scenario, in the order of the plan.

        Raises
        ------
        DataError: a dialogue belongs to no scenario of the corpus.
        """
        known = {scenario.id: scenario for scenario in (*self.scenarios(), *self.refills())}
        pairs = []
        for number, dialogue in enumerate(self.dialogues(), start=1):
            if dialogue.scenario not in known:
                raise DataError(
                    f"{self.path(DIALOGUES)}:{number}",
                    f"a dialogue of {dialogue.scenario!r}, which is no scenario of this corpus",
                )
            pairs.append((known[dialogue.scenario], dialogue))
        return tuple(pairs)

    def bank(self, folder: Path | None = None) -> Bank:
        """The bank the corpus was planned from.

        Parameters
        ----------
        folder: None means the bank that ships with Earwitness.

        Raises
        ------
        UsageError: it is another bank, or another state of it.
        """
        bank = load_bank(folder)
        wanted = self.config.bank
        if bank.hash != wanted.hash:
            raise UsageError(
                "--bank",
                f"{bank.id} {bank.version} with hash {bank.hash[:12]}",
                wanted=f"{wanted.id} {wanted.version} with hash {wanted.hash[:12]}, from which "
                f"{self.folder} was planned",
                next_step="Name its folder with --bank DIR, or plan a new corpus.",
            )
        return bank

    def for_cast(self, bank: Bank) -> Bank:
        """The bank as far as the cast can render it that the corpus was planned for, if for any.

        Dialogues are written and checked with it, so that none rests on a delivery tag nobody performs.
        """
        cast = self.config.cast
        return bank_for(bank, None if cast is None else cast.tags)

    def logs(self, name: str) -> tuple[Path, ...]:
        """Every file of a log: the corpus's own and those of shards, in a stable order."""
        own = [self.path(name)] if self.path(name).exists() else []
        return (*own, *sorted((self.folder / SHARDS).glob(f"*/{name}")))

    def _read(
        self,
        name: str,
        entry: str,
        convert: Any,
        *,
        missing_ok: bool = False,
    ) -> tuple[Any, ...]:
        path = self.path(name)
        if missing_ok and not path.exists():
            return ()
        found = []
        for number, line in read_lines(path, entry):
            try:
                found.append(convert(line))
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise DataError(f"{path}:{number}", f"is not {entry} ({error})") from error
            except DataError as error:
                raise DataError(
                    f"{path}:{number}: {error.where}", error.found, error.wanted
                ) from error
        return tuple(found)

    @contextlib.contextmanager
    def lock(self, *, shared: bool = False) -> Iterator[None]:
        """Keep other processes from changing the corpus; shards of one corpus share the lock.

        Raises
        ------
        UsageError: another process has it.
        """
        with locked(self.folder, shared=shared):
            yield


@contextlib.contextmanager
def locked(folder: Path, *, shared: bool = False, name: str = LOCK) -> Iterator[None]:
    """Hold a folder's lock, or another by its file's name; see :meth:`Corpus.lock`."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                str(folder),
                "another process is working on this corpus",
                next_step="Wait for it to end and run the same command again.",
            ) from None
        yield
    finally:
        os.close(handle)


def write_scenarios(path: Path, scenarios: Sequence[Scenario]) -> None:
    """Put scenarios in place, whole or not at all."""
    write_atomically(path, to_lines(scenarios))


def write_dialogues(path: Path, dialogues: Iterable[Dialogue]) -> None:
    """Put dialogues in place, whole or not at all."""
    write_atomically(path, dump_lines(dialogue_to_json(dialogue) for dialogue in dialogues))


def write_templates(path: Path, templates: Iterable[TemplateText]) -> None:
    """Put templates in place, whole or not at all."""
    write_atomically(path, dump_lines(template_to_json(template) for template in templates))


def write_abandoned(path: Path, abandoned: Iterable[Abandoned]) -> None:
    """Put the list of abandoned scenarios in place, whole or not at all."""
    write_atomically(path, dump_lines(_abandoned_to_json(entry) for entry in abandoned))


def template_to_json(template: TemplateText) -> dict[str, Any]:
    """A template as plain JSON values, keys in reading order."""
    return {
        "id": template.id,
        "theme": template.theme,
        "split": template.split,
        "title": template.title,
        "facets": list(template.facets),
        "source": template.source,
    }


def template_from_json(value: Mapping[str, Any]) -> TemplateText:
    """Read what :func:`template_to_json` wrote."""
    return TemplateText(**{**value, "facets": tuple(value["facets"])})


def _abandoned_to_json(entry: Abandoned) -> dict[str, Any]:
    return {
        "scenario": entry.scenario,
        "attempts": len(entry.reasons),
        "reasons": [list(reasons) for reasons in entry.reasons],
        "refill": entry.refill,
    }


def _abandoned_from_json(value: Mapping[str, Any]) -> Abandoned:
    return Abandoned(value["scenario"], tuple(map(tuple, value["reasons"])), value["refill"])
