"""Long recordings: cropped around the moment, or asked chunk by chunk and merged by a stated rule; never cut in silence."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

from earwitness.cli import build_app
from earwitness.errors import UsageError
from earwitness.models.protocols import Limits
from earwitness.runs.folder import RunFolder, StoredQuestion
from earwitness.runs.items import Question, reply_key
from earwitness.runs.long_audio import CHUNK_RULE, check_policy, fit
from earwitness.runs.outcomes import Outcome
from earwitness.tasks import grounding, location, reaction, sound
from earwitness.tasks.cares_runs import answers_of
from earwitness.tasks.chunks import merge_chunks
from earwitness.tasks.records import Decision
from earwitness.tasks.scene_items import MixedCorpus, load_mixed
from tests.standins.scene_characters import SceneServer

LIMITS = Limits(max_seconds=6.0)


@pytest.fixture(scope="module")
def mixed(mixed_folder: Path) -> MixedCorpus:
    return load_mixed(mixed_folder)


def told(question: Question) -> str:
    return question.item.prompt.user


@pytest.mark.parametrize("task", [reaction, sound, grounding])
def test_a_question_about_a_moment_is_asked_around_it_with_the_time_of_the_stretch(
    mixed: MixedCorpus, task: object
) -> None:
    whole = task.items(mixed)  # type: ignore[attr-defined]
    for policy in ("crop", "chunk"):
        fitted = fit(whole, LIMITS, check_policy(policy))
        assert (fitted.cropped, fitted.chunked) == (len(whole), 0)
        for before, after in zip(whole, fitted.questions, strict=True):
            moment, audio = before.item.moment, after.item.audio
            assert moment is not None
            assert audio is not None
            assert audio.window is not None
            start, end = audio.window
            assert 0 <= start <= moment.seconds <= end <= before.item.audio.seconds + 1e-9
            assert end - start == pytest.approx(6.0, abs=0.002)
            assert audio.seconds <= 6.0
            shown = f"{moment.seconds - start:.1f}"
            assert shown in told(after)
            assert after.item.prompt == moment.prompt_at(moment.seconds - start)
            assert after.item.id == before.item.id
            assert after.part is None
            # Another stretch is another question to the ledger.
            assert reply_key(after.item, "m", {}) != reply_key(before.item, "m", {})
            if "t" in before.item.metadata:
                assert after.item.metadata["t"] == shown


def test_a_moment_near_an_end_keeps_the_stretch_inside(mixed: MixedCorpus) -> None:
    longest = max(q.item.audio.seconds for q in reaction.items(mixed) if q.item.audio)
    fitted = fit(reaction.items(mixed), Limits(max_seconds=longest - 0.01), "crop")
    windows = [q.item.audio.window for q in fitted.questions if q.item.audio]
    assert any(window is not None and window[0] == 0.0 for window in windows)


def test_what_is_short_enough_is_left_as_it_is(mixed: MixedCorpus) -> None:
    whole = location.items(mixed)
    for policy in ("refuse", "crop", "chunk"):
        fitted = fit(whole, Limits(max_seconds=10_000.0), check_policy(policy))
        assert fitted.questions == tuple(whole)
        assert fitted.described() is None


def test_crop_refuses_what_asks_about_no_moment(mixed: MixedCorpus) -> None:
    with pytest.raises(
        UsageError, match=r"8 of 8 items .* no moment to crop around.*--long-audio chunk"
    ):
        fit(location.items(mixed), LIMITS, "crop", model="some/model")
    with pytest.raises(UsageError, match="refuse or crop or chunk"):
        check_policy("cut")


def test_chunks_cover_a_recording_without_overlap(mixed: MixedCorpus) -> None:
    whole = location.items(mixed)
    fitted = fit(whole, LIMITS, "chunk")
    assert fitted.chunked == len(whole)
    assert fitted.chunks == len(fitted.questions) > 2 * len(whole)
    by_item: dict[str, list[Question]] = {}
    for question in fitted.questions:
        assert question.part is not None
        by_item.setdefault(question.part.of, []).append(question)
    for before in whole:
        parts = by_item[before.item.id]
        windows = [part.item.audio.window for part in parts if part.item.audio]
        assert windows[0][0] == 0.0
        assert windows[-1][1] == before.item.audio.seconds
        assert all(one[1] == other[0] for one, other in pairwise(windows))
        lengths = [end - start for start, end in windows]
        assert max(lengths) <= 6.0
        assert max(lengths) - min(lengths) < 0.01
        assert [part.part.index for part in parts if part.part] == list(range(1, len(parts) + 1))
    described = fitted.described()
    assert described is not None
    assert described["rule"] == CHUNK_RULE


def test_a_model_that_takes_next_to_nothing_is_refused(mixed: MixedCorpus) -> None:
    with pytest.raises(UsageError, match="at most; wanted enough of it to hear something"):
        fit(location.items(mixed), Limits(max_seconds=0.01), "chunk")


# --- merging


def decided(outcomes: Sequence[Outcome], texts: Sequence[str] = ()) -> Decision:
    pairs = []
    for number, outcome in enumerate(outcomes, start=1):
        question = StoredQuestion(
            f"i#{number}/{len(outcomes)}", "audio", f"k{number}", "a", "c", {}, 2.0, "x.wav",
            part_of="i", part=number, parts=len(outcomes),
        )  # fmt: skip
        text = texts[number - 1] if texts else outcome.label
        pairs.append(
            (question, Decision(question.id, "a", outcome, "c", seconds=2.0, reply=text, cost_usd=0.1, latency_s=1.0))
        )  # fmt: skip
    [merged] = merge_chunks(pairs, join_texts=bool(texts))
    return merged


def said(label: str) -> Outcome:
    return Outcome("answered", label)


def test_the_label_most_chunks_name_wins() -> None:
    merged = decided([said("a"), said("b"), said("a"), Outcome("unmapped")])
    assert (merged.item_id, merged.outcome.kind, merged.outcome.label) == ("i", "answered", "a")
    assert merged.outcome.rule == "most of 4 chunks (a 2, b 1)"
    assert (merged.seconds, merged.latency_s) == (8.0, 4.0)
    assert merged.cost_usd == pytest.approx(0.4)
    assert merged.reply == "[1/4] a\n[2/4] b\n[3/4] a"


def test_a_tie_is_ambiguous_and_no_label_is_what_most_are() -> None:
    assert decided([said("a"), said("b")]).outcome.kind == "ambiguous"
    merged = decided([Outcome("refused"), Outcome("unmapped"), Outcome("refused")])
    assert (merged.outcome.kind, merged.outcome.label) == ("refused", None)


def test_a_failed_chunk_fails_the_item_as_it_can_still_be_asked() -> None:
    merged = decided([said("a"), said("a"), Outcome("failed", detail="timeout")])
    assert (merged.outcome.kind, merged.outcome.detail) == ("failed", "timeout")


def test_free_texts_are_joined_in_their_order() -> None:
    merged = decided(
        [said("summary"), Outcome("refused"), said("summary")],
        ["A dog barks.", "No.", "They leave."],
    )
    assert merged.reply == "A dog barks.\n\nThey leave."
    assert merged.outcome.label == "summary"


def test_whole_items_pass_through() -> None:
    question = StoredQuestion("i", "audio", "k", "a", "c", {}, 2.0, "x.wav")
    decision = Decision("i", "a", said("a"), "c")
    assert merge_chunks([(question, decision)]) == (decision,)


# --- the command


def cares(*words: object, code: int = 0) -> str:
    result = CliRunner().invoke(build_app(), ["run", "cares", *map(str, words)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.output


def test_scenes_longer_than_a_model_takes_are_refused_cropped_or_chunked(
    mixed_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EARWITNESS_HOME", str(tmp_path / "home"))
    with SceneServer(mixed_folder, "always-pivot") as server:
        words = (
            mixed_folder, "--model", "openai/m", "-M", f"base_url={server.url}", "-M", "max_seconds=6",
            "--out", tmp_path / "runs", "--limit", 4,
        )  # fmt: skip
        with pytest.raises(UsageError, match=r"takes at most 6 s.*--long-audio crop or chunk"):
            cares(*words, "--tasks", "reaction,location")
        with pytest.raises(UsageError, match="no moment to crop around"):
            cares(*words, "--tasks", "reaction,location", "--long-audio", "crop")
        assert not server.calls
        cares(*words, "--tasks", "reaction,location,summary", "--long-audio", "chunk")
        calls = len(server.calls)
        cares(*words, "--tasks", "reaction,location,summary", "--long-audio", "chunk")
        assert len(server.calls) == calls
        # No more than the model takes was ever sent.
        assert max(asked.audio.seconds for asked in server.asked if asked.audio) <= 6.0
    folders = sorted(path for path in (tmp_path / "runs").iterdir() if path.is_dir())
    cards = {RunFolder(folder).card()["task"]: RunFolder(folder).card() for folder in folders}
    assert cards["reaction"]["long_audio"]["cropped"] == cards["reaction"]["n_items"]
    assert cards["location"]["long_audio"]["chunked"] == cards["location"]["n_items"] == 4
    assert calls == sum(
        card["long_audio"]["cropped"] + card["long_audio"]["chunks"] for card in cards.values()
    )
    for answers in answers_of(folders):
        assert len(answers.decisions) == cards[answers.task]["n_items"]
        assert all("#" not in decision.item_id for decision in answers.decisions)
    notes = [
        json.loads(line)["reply"]["raw"]["stimulus"]["note"]
        for folder in folders
        for line in (folder / "ledger.jsonl").read_text().splitlines()
        if '"reply":{' in line
    ]
    assert notes
    assert all(note.startswith("seconds ") for note in notes)
