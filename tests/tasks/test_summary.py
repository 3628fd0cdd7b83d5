"""What summaries mention: questions, the offline judge, a chat model as judge, recall against the base rate."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from earwitness.cli import build_app
from earwitness.errors import DataError, IncompleteRunError, UsageError
from earwitness.models.protocols import Reply
from earwitness.models.registry import open_text_model
from earwitness.runs.budgets import parse_price
from earwitness.runs.jsonlines import read_lines
from earwitness.runs.outcomes import Outcome
from earwitness.runs.runner import RunnerSettings
from earwitness.runs.text_calls import Meter
from earwitness.scenes.bank import load_bank
from earwitness.tasks import summary
from earwitness.tasks.cares_runs import answers_of
from earwitness.tasks.cares_table import build_table
from earwitness.tasks.records import Decision
from earwitness.tasks.scene_items import load_mixed
from earwitness.tasks.summary import Judged, NamingJudge, checked, judged, score
from earwitness.tasks.summary_judge import ChatJudge, question, read_verdicts
from tests.standins.loopback import error, json_act
from tests.standins.openai_server import OpenAIServer, completion
from tests.tasks.test_cares_runs import cares, key, listener

__all__ = ["key"]  # the fixture that sets a key


@pytest.fixture(scope="module")
def mixed(mixed_folder):
    return load_mixed(mixed_folder)


@pytest.fixture(scope="module")
def bank():
    return load_bank()


def test_one_question_a_scene_and_budget_with_sounds_as_its_truth(mixed):
    questions = summary.items(mixed, conditions=("audio", "muted"))
    assert len(questions) == 8 * 3 * 2
    first = questions[0]
    truth = json.loads(first.gold)
    scene = mixed.scenes[0]
    assert [each["sound"] for each in truth["present"]] == [e.sound for e in scene.manifest.events]
    assert len(truth["absent"]) == 3
    assert not {e.sound for e in scene.scenario.events} & set(truth["absent"])
    assert "about 25 words" in first.item.prompt.user
    assert first.groups["budget"] == "25"
    assert questions[-1].item.audio.path.parent.name == "mute-all"


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply(text="They talk about a bicycle. No sound disturbs them."), "answered"),
        (Reply(text="I'm sorry, but I can't help with that."), "refused"),
        (Reply(text=" .. "), "empty"), (Reply(text=None), "empty"),
        (Reply(text="They talk about", finish="length"), "truncated"),
        (Reply(text="", finish="content_filter"), "blocked"),
    ],
)  # fmt: skip
def test_what_is_a_summary(reply, kind):
    assert summary.parse(reply, {}).kind == kind


# --- the offline judge


def test_the_offline_judge_finds_words_and_quotes_the_sentence(bank):
    judge = NamingJudge(bank)
    text = "Two friends talk. A dog barks twice! They go on about rent"
    found = {each.sound: each for each in judge.judge(text, ["dog_bark", "owl_hoot"])}
    assert (found["dog_bark"].verdict, found["dog_bark"].quote) == ("heard", "A dog barks twice!")
    assert found["owl_hoot"].verdict == "absent"
    assert judge.judge("An owl", ["owl_hoot"])[0].quote == "An owl"
    assert judge.judge("Birds are near.", ["owl_hoot"])[0].verdict == "nature"


@pytest.mark.parametrize(
    ("quote", "verdict"),
    [("a dog barks", "heard"), ("A  DOG, barks", "heard"), ("a cat", "absent"), ("", "absent"), ("og bar", "absent")],
)  # fmt: skip
def test_a_verdict_needs_a_quote_that_is_there(quote, verdict):
    assert checked(Judged("dog_bark", "heard", quote), "There a dog barks.").verdict == verdict


# --- a chat model as judge


def test_the_judge_never_sees_reactions(bank):
    prompt = question("They talk.", ["a dog barking"], again=True)
    text = f"{prompt.system} {prompt.user}".casefold()
    assert "a dog barking" in text
    for word in ("pivot", "verbal", "behavioral", "ambient", "reaction"):
        assert word not in text


def test_replies_of_a_judge_are_checked():
    text = "A dog barks and they laugh."
    listed = [{"sound": 1, "verdict": "heard", "quote": "a dog barks"}, {"sound": 2, "verdict": "discussed", "quote": "a train"}, {"sound": 9, "verdict": "heard", "quote": "they laugh"}]  # fmt: skip
    found = read_verdicts("```json\n" + json.dumps({"verdicts": listed}) + "\n```", text, ["dog_bark", "train", "owl"])  # fmt: skip
    assert [f.verdict for f in found] == ["heard", "absent", "absent"]
    assert found[1].why == "the quote is not in the summary"
    one_word = json.dumps({"verdicts": [{"sound": 1, "verdict": "heard", "quote": "dog"}]})
    assert read_verdicts(one_word, text, ["dog_bark"])[0].why == "no quote"
    assert read_verdicts("It is heard.", text, ["dog_bark"]) is None
    assert read_verdicts('{"verdicts": [{"sound": 1, "verdict": "maybe"}]}', text, ["x"]) is None


def summaries(texts, **groups):
    truth = {"present": [{"event": "e1", "sound": "dog_bark", "reaction": "pivot", "margin": "6-10 dB"}], "absent": ["owl_hoot"]}  # fmt: skip
    return [
        Decision(
            f"s{k}/w25", json.dumps(truth), Outcome("answered", "summary") if text else Outcome("refused"),
            f"s{k}", groups={"budget": "25", **groups}, reply=text,
        )
        for k, text in enumerate(texts)
    ]  # fmt: skip


def asked_of(call):
    said = call.json()["messages"][-1]["content"]
    return said if isinstance(said, str) else said[0]["text"]


def verdict_on_dogs(call):
    heard = "A dog barks." in asked_of(call)
    verdicts = [{"sound": 1, "verdict": "heard" if heard else "absent", "quote": "a dog barks" if heard else ""}]  # fmt: skip
    return json_act(completion(json.dumps({"verdicts": verdicts})))


def opened(server, bank, store):
    return ChatJudge(open_text_model("openai/judge", {"base_url": server.url}), bank, store)


def test_a_chat_judge_is_asked_once_a_summary_and_its_replies_are_kept(bank, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    texts = ["A dog barks.", "They talk.", "They talk."]
    store = tmp_path / "judge.jsonl"
    with OpenAIServer(choose=verdict_on_dogs) as server:
        judge = opened(server, bank, store)
        with pytest.raises(IncompleteRunError, match="was not judged"):
            judged(summaries(texts), judge)
        assert judge.prepare(summaries(texts)) == 0
        assert len(server.calls) == 2
        with store.open("a") as file:
            file.write('{"kind": "reply", "key": "torn')
        again = opened(server, bank, store)
        seen: list[tuple[int, int]] = []
        meter = Meter()
        assert judged(summaries(texts), again)[0].outcome.label == "heard"
        assert (
            again.prepare(summaries(texts), meter=meter, on_done=lambda *at: seen.append(at)) == 0
        )
        assert (len(server.calls), meter.calls) == (2, 0)
    found = judged(summaries(texts), again)
    assert [d.outcome.label for d in found] == ["heard", "absent", *["absent"] * 4]
    kinds = [entry["kind"] for _, entry in read_lines(store, "a ledger entry")]
    assert (kinds.count("started"), kinds.count("reply")) == (2, 2)


def test_an_answer_that_is_no_verdict_is_asked_for_again_and_said_so(bank, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    hopeless = False

    def choose(call):
        told = "was not this JSON" in asked_of(call)
        return verdict_on_dogs(call) if told and not hopeless else json_act(completion("Maybe."))

    with OpenAIServer(choose=choose) as server:
        judge = opened(server, bank, tmp_path / "judge.jsonl")
        assert judge.prepare(summaries(["A dog barks."])) == 0
        assert len(server.calls) == 2
        assert judged(summaries(["A dog barks."]), judge)[0].outcome.label == "heard"
        hopeless = True
        assert judge.prepare(summaries(["A dog barks.", "They talk."])) == 1
        assert len(server.calls) == 5
        with pytest.raises(IncompleteRunError, match="was not judged"):
            judged(summaries(["They talk."]), judge)
        # What never made sense is kept too, and not bought again.
        assert judge.prepare(summaries(["They talk."])) == 1
        assert len(server.calls) == 5


def test_a_judge_keeps_to_the_budget(bank, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    texts = [f"A dog barks. {n}" for n in range(6)]
    price = parse_price("call=0.5")
    with OpenAIServer(choose=verdict_on_dogs) as server:
        judge = opened(server, bank, tmp_path / "judge.jsonl")
        meter = Meter()
        rest = judge.prepare(summaries(texts), RunnerSettings(price=price, max_cost_usd=1.0), meter=meter)  # fmt: skip
        assert (rest, len(server.calls), meter.cost_usd) == (4, 2, 1.0)
        assert "limit of 1 USD" in (meter.stopped or "")
        assert judge.prepare(summaries(texts), RunnerSettings(max_calls=0)) == 4
        assert judge.prepare(summaries(texts)) == 0
        assert len(server.calls) == 6


def test_a_judge_that_is_closed_for_long_is_not_asked_before_its_time(bank, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    with OpenAIServer(choose=lambda _: error(429, **{"Retry-After": "3600"})) as server:
        judge = opened(server, bank, tmp_path / "v.jsonl")
        settings = RunnerSettings(max_retries=2, longest_wait_s=0.1)
        assert judge.prepare(summaries(["A dog barks."]), settings) == 1
        assert len(server.calls) == 1


# --- scores


def test_recall_base_rate_and_lengths_by_hand(bank):
    texts = ["A dog barks.", "An owl and a dog are heard.", "They talk. " * 20, None]
    found = score("m", judged(summaries(texts), NamingJudge(bank)), resamples=200)
    assert (found.recall["25", "pivot"].numerator, found.recall["25", "pivot"].denominator) == (
        2,
        4,
    )
    assert found.recall["25", "verbal"].denominator == 0
    assert (found.base_rate["25"].numerator, found.base_rate["25"].denominator) == (1, 4)
    assert found.verdicts["25"] == {"heard": 2, "absent": 1, "refused": 1}
    assert found.median_words["25"] == 7
    assert found.over_budget["25"] == pytest.approx(1 / 3)
    assert found.judge == "naming words"
    assert found.headline.value == 0.5


def test_truths_that_cannot_be_read_are_errors(bank):
    bad = Decision("s/w25", "pivot", Outcome("answered", "summary"), "s", groups={"budget": "25"})
    with pytest.raises(DataError, match="no list of sounds"):
        judged([bad], NamingJudge(bank))
    with pytest.raises(DataError, match="no judged sounds"):
        score("m", [])


def test_the_perfect_listener_mentions_what_sounds_and_no_longer_when_muted(mixed_folder, tmp_path):
    for character in ("perfect", "deaf"):
        with listener(mixed_folder, character) as (_, model):
            result = cares(mixed_folder, *model, "--tasks", "summary", "--conditions", "audio,muted", "--limit", 6, "--out", tmp_path)  # fmt: skip
        assert "judge: naming words" in result.output
    table = build_table(answers_of(sorted(tmp_path.iterdir())), resamples=200)
    for budget in ("25", "75", "200"):
        assert table.of("summary", "openai/perfect").recall[budget, "all"].value == 1
        assert table.of("summary", "openai/perfect", "muted").recall[budget, "all"].value == 0
        assert table.of("summary", "openai/deaf").recall[budget, "all"].value == 0
    gap = next(c for c in table.comparisons if c.a == "openai/perfect audio")
    assert (gap.difference.value, gap.metric) == (1, "sounds mentioned")
    assert gap.p_sign_flip == 2 * 0.5**6


def test_a_judge_that_fails_leaves_the_command_incomplete(mixed_folder, tmp_path):
    # The stand-in answers the judge's question with prose, which is no verdict; it says the same of every budget.
    with (
        listener(mixed_folder, "deaf") as (server, model),
        pytest.raises(IncompleteRunError, match="2 summaries could not be judged"),
    ):
        cares(
            mixed_folder, *model, "--tasks", "summary", "--limit", 2, "--out", tmp_path,
            "--judge", "openai/judge", "-J", f"base_url={server.url}",
        )  # fmt: skip


def test_what_a_judge_said_is_read_by_the_commands_that_ask_nobody(mixed_folder, tmp_path):
    def everything_heard(call):
        sounds = asked_of(call).count("\n", 0, asked_of(call).index("\n\nSummary"))
        quote = asked_of(call).partition("Summary:\n")[2].split("\n\nYour answer")[0][:20]
        said = [{"sound": n + 1, "verdict": "heard", "quote": quote} for n in range(sounds)]
        return json_act(completion(json.dumps({"verdicts": said})))

    sides = tmp_path / "a", tmp_path / "b"
    with OpenAIServer(choose=everything_heard) as judging:
        told = ("--judge", "openai/judge", "-J", f"base_url={judging.url}")
        for side in sides:
            with listener(mixed_folder, "deaf") as (_, model):
                cares(
                    mixed_folder, *model, *told, "--tasks", "summary", "--limit", 3, "--out", side
                )
        asked = len(judging.calls)
        assert asked
    figures = {}
    for judge in (told, ()):
        for words in (
            ["score", sides[0], "--json"],
            ["compare", *sides, "--json"],
            ["report", sides[0], "--out", tmp_path / "page", "--json"],
        ):
            result = CliRunner().invoke(build_app(), [*map(str, words), *judge])
            assert result.exit_code == 0, result.output
            figures[words[0], bool(judge)] = json.loads(result.stdout)
    assert len(judging.calls) == asked
    scored = {k: figures["score", k]["scores"][0]["headline"]["value"] for k in (True, False)}
    assert scored[True] > scored[False] == 0
    compared = {k: figures["compare", k]["tasks"][0]["a"] for k in (True, False)}
    assert compared == scored
    with pytest.raises(UsageError, match=r"no judge--openai_other.jsonl beside the runs"):
        CliRunner().invoke(
            build_app(), ["compare", *map(str, sides), "--judge", "openai/other"],
            catch_exceptions=False,
        )  # fmt: skip
