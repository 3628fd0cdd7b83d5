"""The score of a judge on labelled snippets."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from earwitness.scenes.bank import Bank, load_bank
from earwitness.scenes.recovery import Case, Verdict
from earwitness.scenes.recovery_trial import Trial, try_judge
from earwitness.scenes.snippets import SnippetSet, load_snippets
from tests.scenes.recovery_cases import Reads, TableJudge

GOLDEN = Path(__file__).parents[1] / "golden" / "reaction_snippets.yaml"


@pytest.fixture(scope="module")
def bank() -> Bank:
    return load_bank()


@pytest.fixture(scope="module")
def snippets() -> SnippetSet:
    return load_snippets(GOLDEN)


def trial(snippets: SnippetSet, bank: Bank, reads: Reads) -> Trial:
    return asyncio.run(try_judge(TableJudge(reads), snippets, bank))


def test_a_judge_that_knows_the_labels(snippets: SnippetSet, bank: Bank) -> None:
    truth = {s.transcript(bank): s.reactions for s in snippets.snippets}
    found = trial(snippets, bank, lambda case: Verdict("a topic", truth[case.transcript]))
    assert found.balanced_accuracy.value == found.single.value == 1.0
    assert found.balanced_accuracy.of == 220
    assert found.single.of == 164
    assert all(share.value == 1.0 for share in found.hard.values())
    assert (
        found.hard["plain"].of
        + sum(share.of for kind, share in found.hard.items() if kind != "plain")
        == 220
    )
    assert json.loads(json.dumps(found.to_json()))["chance"] == 0.25


def test_always_the_same_is_chance(snippets: SnippetSet, bank: Bank) -> None:
    found = trial(snippets, bank, lambda c: Verdict("a topic", dict.fromkeys(c.events, "ambient")))
    assert found.balanced_accuracy.value == 0.25
    assert [row[3] for row in found.confusion] == [41, 52, 51, 76]
    assert list(found.precision) == ["ambient"]


def test_no_verdict_is_wrong_and_shown(snippets: SnippetSet, bank: Bank) -> None:
    truth = {s.transcript(bank): s for s in snippets.snippets}

    def reads(case: Case) -> Verdict | None:
        snippet = truth[case.transcript]
        if "pivot" in snippet.reactions.values():
            return None
        return Verdict("a topic", snippet.reactions)

    found = trial(snippets, bank, reads)
    assert found.recall["pivot"].value == 0.0
    assert found.confusion[0] == (0, 0, 0, 0, 41)
    assert len(found.failed) == sum("pivot" in s.reactions.values() for s in snippets.snippets)
    assert set(found.failed.values()) == {"no verdict: silence"}


def test_a_judge_sees_no_label_and_no_name_of_a_sound(snippets: SnippetSet, bank: Bank) -> None:
    judge = TableJudge(lambda _: None)
    asyncio.run(try_judge(judge, snippets, bank))
    for case, snippet in zip(judge.asked, snippets.snippets, strict=True):
        assert snippet.id not in case.transcript
        assert snippet.note not in case.transcript
        assert case.events == snippet.events
        assert "(" not in case.transcript
