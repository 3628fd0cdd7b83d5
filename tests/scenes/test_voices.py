"""The speak stage: resumable, the same for any number of workers, and nothing bought twice."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from earwitness.audio.io import read_audio
from earwitness.errors import DataError, UsageError
from earwitness.scenes import voices_making
from earwitness.scenes.bank import load_bank
from earwitness.scenes.corpus import Corpus, write_dialogues
from earwitness.scenes.dialogue_records import Dialogue, Utterance
from earwitness.scenes.voices import (
    CALLS,
    CARD,
    LINES,
    SpeakReport,
    forecast,
    read_voices,
    speak_corpus,
)
from earwitness.scenes.voices_cast import open_cast
from earwitness.scenes.voices_store import VoiceStore
from earwitness.scenes.voices_text import RenderError
from tests.scenes.voices_corpus import make_corpus
from tests.standins.loopback import CLOSE, error, json_act
from tests.standins.tts_server import TtsServer

ROOT = Path(__file__).parents[2]
BANK = load_bank()


def speak(corpus: Corpus, cast: str = "default", **more: object) -> SpeakReport:
    chosen, voices = open_cast(cast)
    try:
        return speak_corpus(corpus, chosen, voices, BANK, **{"workers": 1, **more})
    finally:
        for voice in voices.values():
            voice.close()


def contents(corpus: Corpus) -> dict[str, str]:
    """Hash of every file the stage made."""
    files = [corpus.path(LINES), corpus.path(CARD), *sorted(corpus.path("voices").rglob("*.*"))]
    return {
        str(path.relative_to(corpus.folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


@pytest.fixture
def espeak_corpus(tmp_path: Path) -> Corpus:
    return make_corpus(tmp_path / "corpus", templates=3, utterances=9, cast="espeak")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[TtsServer]:
    monkeypatch.setenv("STANDIN_KEY", "key-of-the-service")
    monkeypatch.setattr(voices_making, "FIRST_WAIT_S", 0.001)
    with TtsServer() as running:
        yield running


def paid_cast(folder: Path, server: TtsServer) -> str:
    options = f"{{base_url: '{server.url}', api_key_env: STANDIN_KEY, server: desk}}"
    path = folder / "paid.yaml"
    path.write_text(
        "\n".join(
            f"- {{voice: elevenlabs/{gender}{n}, gender: {gender}, options: {options}}}"
            for gender in "FM"
            for n in (1, 2)
        )
    )
    return str(path)


def test_every_turn_is_a_file_of_its_own(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path / "corpus", templates=2, utterances=9)
    report = speak(corpus)
    assert (report.scenes, report.turns) == (2, 18)
    spoken = read_voices(corpus.folder)
    assert list(spoken) == [dialogue.scenario for dialogue in corpus.dialogues()]
    genders = {s.id: (s.gender_a, s.gender_b) for s in corpus.scenarios()}
    card = yaml.safe_load(corpus.path(CARD).read_text())
    for dialogue in corpus.dialogues():
        turns = spoken[dialogue.scenario]
        assert [turn.speaker for turn in turns] == [u.speaker for u in dialogue.utterances]
        by_speaker = {turn.speaker: turn.voice for turn in turns}
        assert len(set(by_speaker.values())) == 2
        assert (
            tuple(card["voices"][by_speaker[s]]["gender"] for s in "AB")
            == genders[dialogue.scenario]
        )
        for turn in turns:
            data = corpus.path(turn.file).read_bytes()
            assert hashlib.sha256(data).hexdigest() == turn.sha256
            audio = read_audio(corpus.path(turn.file))
            assert (audio.frames, audio.rate) == (turn.frames, turn.rate)
            assert len(turn.words) == len(turn.text.split())
            assert turn.words[-1].end_s <= turn.seconds
    assert card["cast"]["split_policy"] == "shared"
    assert card["turns"] == 18
    assert "**voices are shared by the splits**" in corpus.path("CARD.md").read_text()


def test_the_same_for_any_number_of_workers(tmp_path: Path) -> None:
    one = make_corpus(tmp_path / "one", templates=3, utterances=9, cast="espeak")
    two = make_corpus(tmp_path / "two", templates=3, utterances=9, cast="espeak")
    speak(one, "espeak", workers=1)
    speak(two, "espeak", workers=2)
    assert contents(one) == contents(two)


def test_nothing_is_made_twice(espeak_corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    first = speak(espeak_corpus, "espeak")
    before = contents(espeak_corpus)
    assert first.made > 0

    def never(*_: object) -> None:
        raise AssertionError("synthesised again")

    monkeypatch.setattr(voices_making, "_made", never)
    again = speak(espeak_corpus, "espeak")
    assert (again.made, again.found) == (0, first.made)
    assert contents(espeak_corpus) == before


def test_a_lost_or_torn_file_is_made_again(espeak_corpus: Corpus) -> None:
    speak(espeak_corpus, "espeak")
    before = contents(espeak_corpus)
    files = sorted(espeak_corpus.path("voices").rglob("*.wav"))
    files[0].unlink()
    files[1].write_bytes(files[1].read_bytes()[:100])
    files[2].with_suffix(".json").write_text('{"key": "to')
    assert speak(espeak_corpus, "espeak").made == 3
    assert contents(espeak_corpus) == before


def test_a_kill_at_any_moment(tmp_path: Path) -> None:
    whole = make_corpus(tmp_path / "whole", templates=3, utterances=9, cast="espeak")
    speak(whole, "espeak")
    corpus = make_corpus(tmp_path / "killed", templates=3, utterances=9, cast="espeak")
    command = [sys.executable, "-m", "earwitness", "scenes", "speak", str(corpus.folder)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    running = subprocess.Popen(
        [*command, "--cast", "espeak", "--workers", "1"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    limit = time.monotonic() + 60
    while len(list(corpus.path("voices").rglob("*.wav"))) < 3 and running.poll() is None:
        assert time.monotonic() < limit
        time.sleep(0.005)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    kept = len(list(corpus.path("voices").rglob("*.json")))
    report = speak(corpus, "espeak")
    assert report.found >= min(kept, 2)
    for part in corpus.path("voices").rglob("*.part"):
        part.unlink()
    assert contents(corpus) == contents(whole)


def test_shards_share_the_work_and_the_last_run_writes_the_list(tmp_path: Path) -> None:
    whole = make_corpus(tmp_path / "whole", templates=3, utterances=9, cast="espeak")
    total = speak(whole, "espeak").made
    corpus = make_corpus(tmp_path / "sharded", templates=3, utterances=9, cast="espeak")
    parts = [speak(corpus, "espeak", shard=(n, 3)) for n in (1, 2, 3)]
    assert sum(part.made for part in parts) == total
    assert not any(part.complete for part in parts)
    assert not corpus.path(LINES).exists()
    assert speak(corpus, "espeak").made == 0
    assert contents(corpus) == contents(whole)


def test_the_first_scenes_can_be_had_first(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path / "part", templates=3, utterances=9, cast="espeak")
    whole = make_corpus(tmp_path / "whole", templates=3, utterances=9, cast="espeak")
    first = speak(corpus, "espeak", limit=1)
    assert (first.scenes, first.turns, first.waiting) == (1, 9, 2)
    assert list(read_voices(corpus.folder)) == [corpus.dialogues()[0].scenario]
    assert speak(corpus, "espeak", limit=2).found == first.made
    rest = speak(corpus, "espeak")
    assert (rest.scenes, rest.waiting) == (3, 0)
    # A limit makes less and forgets nothing.
    assert speak(corpus, "espeak", limit=1).scenes == 3
    speak(whole, "espeak")
    assert contents(corpus) == contents(whole)
    assert "no voice is in two splits" in corpus.path("CARD.md").read_text()


def test_a_cache_serves_other_corpora(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = make_corpus(tmp_path / "first", templates=2, utterances=9, cast="espeak")
    second = make_corpus(tmp_path / "second", templates=2, utterances=9, cast="espeak")
    assert speak(first, "espeak", cache=cache).made > 0
    assert speak(second, "espeak", cache=cache).made == 0
    assert contents(first) == contents(second)
    stored = next(cache.rglob("*.wav"))
    stored.write_bytes(bytes(len(stored.read_bytes())))
    third = VoiceStore(tmp_path / "third", cache)
    assert third.get(stored.stem) is None


def test_what_the_label_rests_on_refuses_the_scene(tmp_path: Path) -> None:
    # Planned for voices that whisper and breathe, spoken by voices that do not.
    corpus = make_corpus(tmp_path / "corpus", templates=10, per_template=2, cast="default")
    chosen, voices = open_cast("espeak")
    refused = forecast(corpus, chosen, voices, BANK)["refused"]
    assert 0 < len(refused) < 20
    dialogues = corpus.dialogues()
    good = next(dialogue for dialogue in dialogues if dialogue.scenario not in refused)
    kept = [d for d in dialogues if d.scenario in refused or d is good]
    write_dialogues(corpus.path("dialogues.jsonl"), kept)
    with pytest.raises(
        RenderError,
        match=rf"the reaction rests on \[.*{len(refused)} of {len(kept)} scenes.*--leave-out-refused",
    ):
        speak(corpus, "espeak")
    assert not corpus.path("voices").exists()
    report = speak(corpus, "espeak", leave_out_refused=True)
    assert set(report.refused) == set(refused)
    assert set(read_voices(corpus.folder)) == {good.scenario}
    assert set(yaml.safe_load(corpus.path(CARD).read_text())["refused"]) == set(refused)


def test_removed_tags_are_counted(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path / "corpus", templates=1, utterances=9, cast="espeak")
    (dialogue,) = corpus.dialogues()
    first = dialogue.timeline[0]
    assert isinstance(first, Utterance)
    changed = Utterance(first.speaker, "[sighs] " + first.text + " [laughs]")
    write_dialogues(
        corpus.path("dialogues.jsonl"),
        [Dialogue(dialogue.scenario, dialogue.topic, (changed, *dialogue.timeline[1:]))],
    )
    report = speak(corpus, "espeak")
    assert report.removed == {"laugh": 1, "sigh": 1}
    (turns,) = read_voices(corpus.folder).values()
    assert turns[0].removed == ("sigh", "laugh")
    assert "[" not in turns[0].text
    assert yaml.safe_load(corpus.path(CARD).read_text())["removed_tags"] == {"laugh": 1, "sigh": 1}


def test_services_are_called_once_for_a_turn(tmp_path: Path, server: TtsServer) -> None:
    corpus = make_corpus(tmp_path / "corpus", templates=2, utterances=9, cast="default")
    cast = paid_cast(tmp_path, server)
    chosen, voices = open_cast(cast)
    planned = forecast(corpus, chosen, voices, BANK)
    assert planned["paid_files"] == planned["to_make"] > 0
    assert server.calls == []
    report = speak(corpus, cast)
    assert len(server.asked) == report.made == planned["paid_files"]
    assert report.characters == planned["paid_characters"]
    events = [json.loads(line)["event"] for line in corpus.path(CALLS).read_text().splitlines()]
    assert events.count("started") == events.count("done") == report.made
    assert speak(corpus, cast).made == 0
    assert len(server.asked) == report.made


def test_services_that_are_busy_are_asked_again(tmp_path: Path, server: TtsServer) -> None:
    server.script.extend([error(429), CLOSE, error(503)])
    corpus = make_corpus(tmp_path / "corpus", templates=1, utterances=9)
    report = speak(corpus, paid_cast(tmp_path, server), concurrency=2)
    assert report.complete
    lines = [json.loads(line) for line in corpus.path(CALLS).read_text().splitlines()]
    assert sum(line["event"] == "failed" for line in lines) == 3


def test_a_service_that_is_closed_for_long_is_not_asked_before_its_time(
    tmp_path: Path, server: TtsServer
) -> None:
    server.choose = lambda _: error(429, **{"Retry-After": "3600"})
    corpus = make_corpus(tmp_path / "corpus", templates=1, utterances=9)
    with pytest.raises(DataError, match="run the same command again"):
        speak(corpus, paid_cast(tmp_path, server), concurrency=1)
    assert len(server.calls) == 1


def test_what_was_paid_for_is_kept_when_the_credits_run_out(
    tmp_path: Path, server: TtsServer
) -> None:
    empty = json_act({"detail": {"status": "quota_exceeded", "message": "0 left"}}, 401)
    corpus = make_corpus(tmp_path / "corpus", templates=1, utterances=9)
    cast = paid_cast(tmp_path, server)
    server.choose = lambda call: empty if call.number >= 4 else None
    with pytest.raises(DataError, match=r"quota_exceeded.*Everything spoken so far is kept"):
        speak(corpus, cast, concurrency=1)
    assert len(list(corpus.path("voices").rglob("*.json"))) == 4
    assert len(server.calls) == 5
    server.choose = None
    report = speak(corpus, cast)
    assert report.found == 4
    assert len(server.asked) == report.made + 4


def test_a_call_in_flight_at_a_kill_is_told(tmp_path: Path, server: TtsServer) -> None:
    corpus = make_corpus(tmp_path / "corpus", templates=1, utterances=9)
    line = {"event": "started", "key": "k", "voice": "elevenlabs/F1", "at": 0.0, "attempt": 1}
    corpus.path(CALLS).write_text(json.dumps(line) + "\n")
    assert speak(corpus, paid_cast(tmp_path, server)).in_flight == 1


def test_a_limit_on_characters(tmp_path: Path, server: TtsServer) -> None:
    corpus = make_corpus(tmp_path / "corpus", templates=1, utterances=9)
    with pytest.raises(UsageError, match=r"--max-characters: \d+ characters would be sent to paid"):
        speak(corpus, paid_cast(tmp_path, server), max_characters=100)
    assert server.calls == []


def test_an_engine_that_fails_names_the_turn(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path / "corpus", templates=1, utterances=9)
    path = tmp_path / "broken.yaml"
    run = f"{sys.executable} -c 'import sys; sys.exit(4)'"
    path.write_text(
        "\n".join(
            f'- {{voice: command/{g}{n}, gender: {g}, options: {{run: "{run}"}}}}'
            for g in "FM"
            for n in (1, 2)
        )
    )
    with pytest.raises(DataError, match=r"scene \S+, utterance \d: command/..: ended with code 4"):
        speak(corpus, str(path))


def test_another_process_has_the_corpus(espeak_corpus: Corpus) -> None:
    with espeak_corpus.lock(), pytest.raises(UsageError, match="another process is working"):
        speak(espeak_corpus, "espeak")


def test_not_spoken_yet(espeak_corpus: Corpus) -> None:
    with pytest.raises(DataError, match=r"voices\.jsonl: is missing.*earwitness scenes speak"):
        read_voices(espeak_corpus.folder)
