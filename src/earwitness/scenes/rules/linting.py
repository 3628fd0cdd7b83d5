"""Linting a file of dialogues, whoever wrote them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from earwitness.errors import DataError
from earwitness.scenes.bank import Bank
from earwitness.scenes.dialogue_records import dialogue_from_json, embedded_scenario
from earwitness.scenes.rules.checking import RULES, Checker
from earwitness.scenes.rules.corpus import CORPUS_RULES, NearDuplicates
from earwitness.scenes.rules.registry import Violation
from earwitness.scenes.scenario import Scenario, scenario_from_json

UNREADABLE = "D100-unreadable"
UNREADABLE_RULE = (UNREADABLE, "Every line is one dialogue as JSON: scenario, topic and timeline.")
SCENARIO_TWICE = "D803-scenario-twice"


@dataclass(frozen=True, slots=True)
class Located:
    """A broken rule with the line of the file (from 1) and the scenario of the dialogue it is in."""

    line: int
    scenario: str
    violation: Violation


@dataclass(frozen=True, slots=True)
class DialogueLint:
    """What was found in a file of dialogues."""

    dialogues: int
    violations: tuple[Located, ...]

    @property
    def counts(self) -> dict[str, int]:
        """Violations per code, by code."""
        return dict(sorted(Counter(found.violation.code for found in self.violations).items()))

    @property
    def faulty(self) -> int:
        """Dialogues with at least one violation."""
        return len({found.line for found in self.violations})


def rule_table() -> tuple[tuple[str, str], ...]:
    """Every code with the sentence that says what it asks for, in the order of the codes.

    Examples
    --------
    >>> rule_table()[1]
    ('D101-speakers', 'Every utterance is spoken by A or B.')
    """
    return (UNREADABLE_RULE, *((rule.code, rule.sentence) for rule in RULES), *CORPUS_RULES)


def read_records(path: Path) -> tuple[tuple[int, Any], ...]:
    """Read JSON lines, or one JSON document that is a list or an object.

    Returns
    -------
    Line number (from 1; place in the list for a document) and value; a line that is not JSON gives the
    :class:`DataError` that says so.

    Raises
    ------
    DataError: there is no such file, or it is not text.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(
            str(path), error.strerror or str(error), "a file of dialogues (JSON lines)"
        ) from error
    except UnicodeDecodeError as error:
        raise DataError(str(path), f"byte {error.start} is not UTF-8", "UTF-8 text") from error
    if text.lstrip().startswith("["):
        try:
            return tuple(enumerate(json.loads(text), start=1))
        except (ValueError, RecursionError) as error:
            raise DataError(str(path), f"not JSON ({error})", "a list of dialogues") from error
    try:
        whole = json.loads(text)
        if isinstance(whole, dict):
            return ((1, whole),)
    except (ValueError, RecursionError):
        pass  # Several lines, each a value of its own.
    # Not splitlines(): U+2028 and its like may stand inside a JSON string.
    lines = ((n, line) for n, line in enumerate(text.split("\n"), start=1) if line.strip())
    return tuple((n, _value(line)) for n, line in lines)


def _value(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        return DataError("line", f"not JSON ({error})")


def read_scenarios(path: Path) -> dict[str, Scenario]:
    """Read a plan (``scenarios.jsonl``) by id.

    Raises
    ------
    DataError: there is no such file, or a line of it is no scenario.
    """
    scenarios = {}
    for number, value in read_records(path):
        try:
            if isinstance(value, DataError):
                raise value
            scenario = scenario_from_json(value)
        except (KeyError, TypeError, ValueError, AttributeError, DataError) as error:
            found = error.found if isinstance(error, DataError) else f"not a scenario ({error})"
            raise DataError(
                f"{path}:{number}", found, "a scenario, as earwitness scenes plan writes it"
            ) from error
        scenarios[scenario.id] = scenario
    return scenarios


def lint(
    records: Iterable[tuple[int, Any]],
    bank: Bank,
    scenarios: Mapping[str, Scenario] | None = None,
) -> DialogueLint:
    """Check dialogues, each by itself and all against each other.

    Parameters
    ----------
    records: line number and JSON value. The value is a dialogue, or an object that holds one under
        ``dialogue``; its ``scenario`` is an id or a whole scenario.
    scenarios: by id, for dialogues that bring none.

    Examples
    --------
    >>> from earwitness.scenes.bank import load_bank
    >>> lint([(1, {"scenario": "s1"})], load_bank()).counts
    {'D100-unreadable': 1}
    """
    checker = Checker(bank)
    limits = checker.vocabulary.limits
    seen = NearDuplicates(
        max_shared_sentences=limits.max_shared_sentences,
        max_shared_shingles=limits.max_shared_shingles,
    )
    first: dict[str, int] = {}
    found: list[Located] = []
    count = 0
    for number, value in records:
        count += 1
        name, violations = _lint_one(value, checker, scenarios or {}, seen)
        found.extend(Located(number, name, violation) for violation in violations)
        if name and first.setdefault(name, number) != number:
            text = f"The scenario has a dialogue already, in line {first[name]}."
            found.append(Located(number, name, Violation(SCENARIO_TWICE, text, "dialogue")))
    return DialogueLint(count, tuple(found))


def _lint_one(
    value: Any, checker: Checker, scenarios: Mapping[str, Scenario], seen: NearDuplicates
) -> tuple[str, Sequence[Violation]]:
    try:
        if isinstance(value, DataError):
            raise value
        if isinstance(value, Mapping) and "timeline" not in value and "dialogue" in value:
            value = value["dialogue"]
        dialogue = dialogue_from_json(value)
        scenario = embedded_scenario(value)
    except DataError as error:
        text = f"{error.found[:1].upper()}{error.found[1:]}"
        wanted = f"; wanted {error.wanted}" if error.wanted else ""
        return "", (Violation(UNREADABLE, f"{text}{wanted}.", error.where),)
    scenario = scenario or scenarios.get(dialogue.scenario)
    violations = list(checker.check(dialogue, scenario))
    duplicate = seen.add(dialogue)
    return dialogue.scenario, violations if duplicate is None else [*violations, duplicate]
