"""Tables of predictions as others write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from earwitness.clips.corpus import Clip, SetCard, write_clip_set
from earwitness.clips.labels import load_label_map
from earwitness.errors import DataError, UsageError
from earwitness.report.boards import build
from earwitness.report.tables import predictions_csv
from earwitness.runs.outcomes import Outcome
from earwitness.tasks.prediction_columns import parse_columns
from earwitness.tasks.predictions import load_predictions, read_predictions
from earwitness.tasks.records import Decision, System

EMOTIONS = ("anger", "disgust", "fear", "happiness", "neutral", "sadness", "surprise")


def table(tmp_path: Path, text: str, name: str = "theirs.csv", encoding: str = "utf-8") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    return path


def kinds(system: System) -> dict[str, str]:
    return {d.item_id: d.outcome.label or d.outcome.kind for d in system.decisions}


SIMPLE = "id,label,prediction\nx1,angry,Anger\nx2,sad,neutral\nx3,happy,\n"


def test_columns_are_guessed_and_said(tmp_path):
    read = load_predictions(table(tmp_path, SIMPLE))
    assert dict(read.columns) == {"id": "id", "gold": "label", "prediction": "prediction"}
    assert set(read.guessed) == {"id", "gold", "prediction"}
    (system,) = read.systems
    assert (system.name, system.origin) == ("theirs", "predictions")
    assert kinds(system) == {"x1": "anger", "x2": "neutral", "x3": "empty"}
    assert [d.gold for d in system.decisions] == ["anger", "sadness", "happiness"]
    assert [d.cluster for d in system.decisions] == ["x1", "x2", "x3"]
    assert read.notes == ("no speaker is named: intervals treat every item as independent",)


@pytest.mark.parametrize(
    ("separator", "encoding"),
    [
        (",", "utf-8"),
        (";", "utf-8"),
        ("\t", "utf-8"),
        ("|", "utf-8"),
        (",", "utf-8-sig"),
        (";", "utf-16"),
    ],
)
def test_separators_and_marks(tmp_path, separator, encoding):
    text = SIMPLE.replace(",", separator).replace("\n", "\r\n")
    (system,) = read_predictions(table(tmp_path, text, encoding=encoding))
    assert kinds(system) == {"x1": "anger", "x2": "neutral", "x3": "empty"}


def test_replies_with_separators_and_line_ends_in_quotes(tmp_path):
    text = 'id,gold,reply\nx1,anger,"Anger, I think.\nThe tone is ""sharp""."\nx2,fear,"{""emotion"": ""fear""}"\n'
    (system,) = read_predictions(table(tmp_path, text))
    assert kinds(system) == {"x1": "anger", "x2": "fear"}
    assert system.decisions[0].reply == 'Anger, I think.\nThe tone is "sharp".'


def test_the_mapped_label_goes_before_raw_words(tmp_path):
    text = "audio_id,required_emotion,raw_output,mapped_label\nx1,angry,calm,neutral\nx2,sad,anger,sad\n"
    read = load_predictions(table(tmp_path, text))
    assert kinds(read.systems[0]) == {"x1": "neutral", "x2": "sadness"}
    assert read.systems[0].decisions[0].reply == "calm"
    raw = load_predictions(table(tmp_path, text), columns={"prediction": "raw_output"})
    assert kinds(raw.systems[0]) == {"x1": "unmapped", "x2": "anger"}
    assert "prediction" not in raw.guessed


def test_a_model_column_makes_several_systems(tmp_path):
    text = "model,id,gold,prediction\nb,x1,anger,fear\na,x1,anger,anger\na,x2,fear,fear\nb,x2,fear,fear\n"
    first, second = read_predictions(table(tmp_path, text))
    assert (first.name, second.name) == ("a", "b")
    assert kinds(second) == {"x1": "fear", "x2": "fear"}


def test_a_call_that_failed_stays_in_the_denominator(tmp_path):
    text = "id,gold,prediction,status\nx1,anger,anger,ok\nx2,fear,,HTTP 500\nx3,fear,,ok\nx4,fear,neutral,timeout\n"
    read = load_predictions(table(tmp_path, text))
    (system,) = read.systems
    assert kinds(system) == {"x1": "anger", "x2": "failed", "x3": "empty", "x4": "neutral"}
    assert system.decisions[1].outcome.detail == "HTTP 500"
    assert any("1 rows have an error and a prediction" in note for note in read.notes)


def test_a_row_that_only_others_have_is_failed(tmp_path):
    text = "model,id,gold,prediction\na,x1,anger,anger\na,x2,fear,fear\nb,x2,fear,fear\n"
    read = load_predictions(table(tmp_path, text))
    assert kinds(read.systems[1]) == {"x1": "failed", "x2": "fear"}
    assert read.systems[1].decisions[0].gold == "anger"
    assert (
        "b has no row for 1 of 2 items that other models have (the first: x1); they count as failed"
        in read.notes
    )


def test_words_go_through_a_label_map(tmp_path):
    text = "id,gold,prediction\nx1,fear,Anxiety\nx2,neutral,calm\nx3,neutral,boredom\n"
    (system,) = read_predictions(table(tmp_path, text), label_map=load_label_map("vendor-default"))
    assert kinds(system) == {"x1": "fear", "x2": "neutral", "x3": "unmapped"}
    assert system.decisions[0].outcome.rule == "map: anxiety -> fear"
    assert system.card["label_map"]["id"] == "vendor-default"
    (plain,) = read_predictions(table(tmp_path, text))
    assert kinds(plain) == {"x1": "unmapped", "x2": "unmapped", "x3": "unmapped"}


def test_speakers_and_groups_are_taken_along(tmp_path):
    text = "id,gold,prediction,speaker,gender,lang,latency_s\nx1,fear,fear,s1,f,en,0.5\n"
    (system,) = read_predictions(table(tmp_path, text))
    decision = system.decisions[0]
    assert (decision.cluster, decision.latency_s) == ("s1", 0.5)
    assert decision.groups == {"language": "en", "sex": "f"}


def test_other_closed_sets(tmp_path):
    text = "id,gold,prediction\nx1,kitchen,The answer is kitchen.\nx2,office,kitchen or office\n"
    (system,) = read_predictions(table(tmp_path, text), labels=("kitchen", "office"))
    assert kinds(system) == {"x1": "kitchen", "x2": "ambiguous"}


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("", DataError, "is empty; wanted a header and one row a prediction"),
        ("id,gold,prediction\n", DataError, "has a header and no row"),
        (
            "id,gold,prediction\nx,anger\n",
            DataError,
            r"theirs.csv:2: has 2 cells; wanted 3, as the header",
        ),
        ("id,id,gold\n1,2,3\n", DataError, "has two columns named 'id'"),
        ("id,gold,prediction\n,anger,fear\n", DataError, r":2: has no id"),
        (
            "id,gold,prediction\nx,blue,fear\n",
            DataError,
            "the gold label 'blue'; wanted a word for one of anger",
        ),
        (
            "id,gold,prediction\nx,anger,fear\nx,anger,fear\n",
            DataError,
            r":3: theirs has 'x' already in line 2; wanted each item once.*--columns model=COLUMN",
        ),
        (
            "model,id,gold,prediction\na,x,anger,fear\nb,x,fear,fear\n",
            DataError,
            "'x' is anger in one row and fear for b; wanted one gold label an item",
        ),
        (
            "id,prediction\nx,fear\n",
            DataError,
            r"no column looks like the gold .*--columns gold=COLUMN or --clips DIR",
        ),
        ("gold,prediction\nanger,fear\n", DataError, r"no column looks like the id"),
        ("id,gold\nx,fear\n", DataError, r"no column looks like the prediction"),
        (
            "id,gold,prediction,latency_s\nx,fear,fear,fast\n",
            DataError,
            "found 'fast'; wanted a number",
        ),
    ],
)
def test_tables_that_do_not_fit(tmp_path, text, error, message):
    with pytest.raises(error, match=message):
        read_predictions(table(tmp_path, text))


def test_files_that_are_no_text(tmp_path):
    with pytest.raises(DataError, match="No such file"):
        read_predictions(tmp_path / "none.csv")
    path = tmp_path / "latin.csv"
    path.write_bytes("id,gold,prediction\nx,anger,colère".encode("latin-1"))
    with pytest.raises(DataError, match=r"is not UTF-8 text .*Save it as CSV UTF-8"):
        read_predictions(path)


def test_columns_as_given():
    assert parse_columns("id=file, gold=truth") == {"id": "file", "gold": "truth"}
    with pytest.raises(UsageError, match="found 'id'; wanted FIELD=COLUMN"):
        parse_columns("id")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"ident": "id"}, "unknown field 'ident'; wanted some of id, gold"),
        ({"id": "file"}, "has no column 'file'; wanted one of id, label, prediction"),
    ],
)
def test_columns_that_are_not_there(tmp_path, columns, message):
    with pytest.raises(UsageError, match=message):
        read_predictions(table(tmp_path, SIMPLE), columns=columns)


@pytest.fixture
def clips(tmp_path: Path) -> Path:
    records = [
        Clip(f"c{n}", f"audio/voice_{n}.wav", f"{n:064x}", label, f"s{n}", "en", 2.0, 16_000, 1, label, "CC0",
             {"sex": "male"})
        for n, label in enumerate(("anger", "fear", "neutral"))
    ]  # fmt: skip
    folder = tmp_path / "set"
    (folder / "audio").mkdir(parents=True)
    for clip in records:
        (folder / clip.path).write_bytes(b"RIFF")
    write_clip_set(folder, SetCard("voices", "1", "CC0", "any"), records)
    return folder


@pytest.mark.parametrize(
    "name", ["c1", "audio/voice_1.wav", "voice_1.wav", "other/voice_1.flac", "c1|silence"]
)
def test_a_clip_set_gives_what_the_table_lacks(tmp_path, clips, name):
    read = load_predictions(table(tmp_path, f"file,prediction\n{name},afraid\n"), clips=clips)
    (decision,) = read.systems[0].decisions
    assert (decision.gold, decision.outcome.label, decision.cluster) == ("fear", "fear", "s1")
    assert decision.audio_path == clips / "audio" / "voice_1.wav"
    assert decision.groups == {"language": "en", "sex": "male"}
    assert read.systems[0].card["clips"]["name"] == "voices"
    assert read.notes == ("the table covers 1 of the 3 clips of voices",)


def test_a_clip_set_and_a_table_must_agree(tmp_path, clips):
    with pytest.raises(DataError, match="the clip set voices has no clip 'c9'"):
        read_predictions(table(tmp_path, "id,prediction\nc9,fear\n"), clips=clips)
    with pytest.raises(DataError, match="calls 'c1' anger, the clip set fear; wanted one truth"):
        read_predictions(table(tmp_path, "id,gold,prediction\nc1,anger,fear\n"), clips=clips)


def test_our_own_table_is_read_back_the_same(tmp_path):
    outcomes = [
        Outcome("answered", "anger", rule="cue: mad -> anger", native="mad"),
        Outcome("refused", rule="declines", native="I can't"),
        Outcome("failed", rule="no reply", detail="timeout"),
        Outcome("ambiguous", rule="several labels (said)", native="fear, anger"),
        Outcome("empty", rule="no words"),
        Outcome("truncated", rule="cut", native="-the"),
        Outcome("unmapped", rule="outside the labels", native="boredom"),
    ]
    decisions = tuple(
        Decision(
            f"-c{n}",
            EMOTIONS[n],
            outcome,
            f"s{n}",
            condition,
            reply="=mad\nabout it" if n == 0 else None,
        )
        for n, outcome in enumerate(outcomes)
        for condition in ("audio", "silence")
    )
    data = build([System("m", decisions)], EMOTIONS, seed=0)
    path = table(tmp_path, predictions_csv(data), "predictions.csv")
    (system,) = read_predictions(path)
    assert len(system.decisions) == 14
    for decision in system.decisions:
        wanted = next(
            d
            for d in decisions
            if (d.item_id, d.condition) == (decision.item_id, decision.condition)
        )
        assert (decision.outcome.kind, decision.outcome.label) == (
            wanted.outcome.kind,
            wanted.outcome.label,
        )
        assert decision.outcome.rule == wanted.outcome.rule
        assert decision.outcome.native == wanted.outcome.native
        assert decision.gold == wanted.gold
        assert decision.reply == wanted.reply
