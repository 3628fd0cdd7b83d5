"""Recordings: consent first, decoded before they are kept, lost by no kill, gone when consent is withdrawn."""

from __future__ import annotations

import hashlib
import json
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest

from earwitness.audio import Audio, encode_audio
from earwitness.errors import DataError, UsageError
from earwitness.review import forget, people, recordings, sources
from earwitness.review.project import Project, read_project, write_project
from earwitness.review.recordings import RefusedError, examine, longest_run, recordings_of
from earwitness.review.store import opened, rows
from tests.review.making import Site, Visitor, assignments, record_folder, served, tone, wav

OFF = {
    "echoCancellation": False,
    "noiseSuppression": False,
    "autoGainControl": False,
    "sampleRate": 48000,
}
PROJECT = Project("record", "t", consent_version="1", consent_text="yes", max_seconds=3.0)


def send(visitor: Visitor, position: int, data: bytes, **headers: str) -> httpx.Response:
    return visitor.client.post(
        f"/work/item/{position}/recording",
        content=data,
        headers={
            "content-type": "audio/wav", "accept": "application/json", "x-csrf": visitor.csrf,
            "x-capture": json.dumps(OFF), **{k.replace("_", "-"): v for k, v in headers.items()},
        },
    )  # fmt: skip


def agree(visitor: Visitor) -> None:
    text = visitor.page("/work")[0].text
    digest = text.split('name="text" value="')[1].split('"')[0]
    response = visitor.client.post(
        "/work/consent", data={"csrf": visitor.csrf, "agree": "yes", "text": digest}
    )
    assert response.status_code == 303


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with served(record_folder(tmp_path)) as site:
        yield site


@pytest.fixture
def speaker(site: Site) -> Visitor:
    tokens = people.add_people(site.folder, 0)
    visitor = site.visitor(tokens["spk-01"])
    agree(visitor)
    visitor.page("/work/next")
    return visitor


def test_consent_comes_first_and_again_when_its_text_changes(site: Site) -> None:
    token = people.add_people(site.folder, 0)["spk-01"]
    visitor = site.visitor(token)
    text = visitor.page("/work")[0].text
    assert "have everything you recorded deleted" in text
    assert "Version 1" in text
    assert "Before you begin" in visitor.page("/work/item/1")[0].text
    assert send(visitor, 1, wav()).status_code == 403
    without = visitor.client.post("/work/consent", data={"csrf": visitor.csrf, "text": "x"})
    assert without.status_code == 422
    agree(visitor)
    visitor.page("/work/next")
    assert send(visitor, 1, wav()).status_code == 200
    (row,) = recordings_of(site.folder)
    assert row["consent_version"] == "1"


def test_another_version_is_asked_for_again(tmp_path: Path) -> None:
    folder = record_folder(tmp_path)
    token = people.add_people(folder, 0)["spk-01"]
    with served(folder) as site:
        agree(site.visitor(token))
    project = read_project(folder)
    write_project(folder, replace(project, consent_version="2", consent_text="Another text."))
    with served(folder) as site:
        text = site.visitor(token).page("/work")[0].text
    assert "Another text." in text
    with opened(folder) as db:
        assert rows(db, "SELECT version FROM consents") == [("1",)]


def test_a_recording_lands_where_it_is_documented_to_be(site: Site, speaker: Visitor) -> None:
    told = send(speaker, 1, wav(0.8, rate=48_000)).json()
    assert told["saved"]
    assert told["next"] == "/work/item/2"
    (row,) = [
        json.loads(line) for line in (site.folder / "recordings.jsonl").read_text().splitlines()
    ]
    assert list(row)[:11] == [
        "id", "path", "sha256", "account", "speaker", "script_id", "text", "emotion", "seconds", "consent_version",
        "recorded_at",
    ]  # fmt: skip
    assert row["path"] == f"recordings/spk-01/{row['script_id']}--{row['emotion']}.wav"
    data = (site.folder / row["path"]).read_bytes()
    assert hashlib.sha256(data).hexdigest() == row["sha256"]
    assert data == wav(0.8, rate=48_000)
    assert row["account"] == row["speaker"] == "spk-01"
    assert row["capture"]["autoGainControl"] is False
    assert speaker.client.get("/work/item/1/audio").content == data
    assert recordings.missing_recordings(site.folder) == ()


def test_redoing_replaces(site: Site, speaker: Visitor) -> None:
    for hz in (200, 300):
        assert send(speaker, 1, wav(0.8, hz=hz)).status_code == 200
    (row,) = recordings_of(site.folder)
    assert row["takes"] == 2
    assert (site.folder / row["path"]).read_bytes() == wav(0.8, hz=300)
    assert list((site.folder / "recordings" / ".incoming").iterdir()) == []


def test_of_another_account_nothing_can_be_heard_or_sent(site: Site, speaker: Visitor) -> None:
    assert send(speaker, 1, wav()).status_code == 200
    other = site.visitor(people.renew(site.folder, "spk-02"))
    agree(other)
    other.page("/work/next")
    assert other.client.get("/work/item/1/audio").status_code == 404
    assert send(other, 4, wav()).status_code == 404
    assert send(other, 1, wav()).status_code == 200
    assert {row["account"] for row in recordings_of(site.folder)} == {"spk-01", "spk-02"}


def clipped() -> bytes:
    return encode_audio(Audio(np.clip(tone(level=0.3).samples * 8, -1, 1), 16_000))


REFUSED = {
    "too loud": (clipped(), "clipping"),
    "silent": (encode_audio(Audio(np.zeros(16_000, np.float32), 16_000)), "Nothing can be heard"),
    "too quiet": (wav(level=0.001), "Nothing can be heard"),
    "short": (wav(0.2), "too short: 0.20 s of at least 0.5 s"),
    "long": (wav(3.5), "too long: 3.5 s of at most 3 s"),
    "stereo": (encode_audio(Audio(np.stack([tone().samples] * 2, axis=1), 16_000)), "2 channels"),
    "low rate": (wav(rate=8_000), "rate is 8000 Hz"),
    "a script": (b"<html>" + b"x" * 2000, "no WAV"),
    "mp3 by name only": (b"ID3\x04" + bytes(4000), "no WAV"),
    "cut": (wav()[:9000], "cannot be read"),
    "a header alone": (wav()[:44], "cannot be read"),
    "a lying header": (b"RIFF\xff\xff\xff\xffWAVE" + b"\0" * 60, "cannot be read"),
    "nothing": (b"", "no WAV"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_used_is_refused_with_its_reason(name: str) -> None:
    data, reason = REFUSED[name]
    with pytest.raises(RefusedError, match=reason):
        examine(data, PROJECT)


def test_floats_that_are_no_numbers_are_refused() -> None:
    samples = tone().samples.copy()
    data = bytearray(encode_audio(Audio(samples, 16_000), subtype="FLOAT"))
    data[-8:-4] = np.float32("nan").tobytes()
    with pytest.raises(RefusedError, match="cannot be read"):
        examine(bytes(data), PROJECT)


def test_a_full_scale_peak_alone_is_no_clipping() -> None:
    samples = tone(level=0.3).samples.copy()
    samples[100:102] = 1.0
    assert examine(encode_audio(Audio(samples, 16_000)), PROJECT).seconds == pytest.approx(0.6)
    assert longest_run(np.abs(samples) >= 0.9) == 2
    assert longest_run(np.zeros(0, bool)) == 0


def test_nothing_refused_is_kept(site: Site, speaker: Visitor) -> None:
    for data, _ in REFUSED.values():
        if len(data) != len(wav(3.5)):
            assert send(speaker, 1, data).status_code == 422
    for value in (True, None, "false", 0):
        capture = json.dumps({**OFF, "noiseSuppression": value})
        told = send(speaker, 1, wav(), x_capture=capture)
        assert told.status_code == 422
        assert "noise suppression" in told.json()["error"]
    for capture in ("[]", "no", ""):
        assert send(speaker, 1, wav(), x_capture=capture).status_code in (400, 422)
    assert send(speaker, 1, wav(), content_type="audio/mpeg").status_code == 415
    assert send(speaker, 1, wav(), x_csrf="no").status_code == 403
    assert [p for p in (site.folder / "recordings").rglob("*") if p.is_file()] == []
    assert recordings_of(site.folder) == []


def test_too_large_and_too_many(site: Site, speaker: Visitor) -> None:
    most = recordings.most_bytes(read_project(site.folder))

    def flood() -> Iterator[bytes]:
        for _ in range(most // 65536 + 2):
            yield bytes(65536)

    host, port = site.address.removeprefix("http://").split(":")
    head = (
        f"POST /work/item/1/recording HTTP/1.1\r\nHost: {host}\r\nX-CSRF: {speaker.csrf}\r\n"
        f"Cookie: earwitness_work={speaker.client.cookies['earwitness_work']}\r\nContent-Type: audio/wav\r\n"
        f"X-Capture: {json.dumps(OFF)}\r\nContent-Length: {most + 1}\r\n\r\n"
    )
    # Refused by what it declares, before a byte of it came.
    with socket.create_connection((host, int(port)), timeout=5) as raw:
        raw.sendall(head.encode())
        assert raw.recv(100).startswith(b"HTTP/1.1 413")
    # The connection ends while the rest is on its way; a client may see either.
    try:
        code = speaker.client.post(
            "/work/item/1/recording", content=flood(),
            headers={"content-type": "audio/wav", "x-csrf": speaker.csrf, "x-capture": json.dumps(OFF)},
        ).status_code  # fmt: skip
    except (httpx.WriteError, httpx.ReadError, httpx.RemoteProtocolError):
        code = 413
    assert code == 413
    codes = [send(speaker, 1, b"no").status_code for _ in range(25)]
    assert 429 in codes


def test_a_take_too_many(site: Site, speaker: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recordings, "MOST_TAKES", 2)
    codes = [send(speaker, 1, wav(hz=200 + n)).status_code for n in range(3)]
    assert codes == [200, 200, 422]


def test_a_kill_between_commit_and_file_is_made_good(site: Site, speaker: Visitor) -> None:
    send(speaker, 1, wav(hz=210))
    (row,) = recordings_of(site.folder)
    incoming = site.folder / "recordings" / ".incoming"
    path = site.folder / row["path"]
    # As after a kill: committed, but not moved yet; and one that was received and never committed.
    path.replace(incoming / f"{row['sha256']}.wav")
    (incoming / f"{'0' * 64}.wav").write_bytes(wav(hz=330))
    assert recordings.missing_recordings(site.folder) == (row["id"],)
    assert recordings.recover(site.folder) == 1
    assert path.read_bytes() == wav(hz=210)
    assert list(incoming.iterdir()) == []


def test_forgetting_a_speaker_leaves_nothing(site: Site, speaker: Visitor, tmp_path: Path) -> None:
    send(speaker, 1, wav(hz=210))
    other = site.visitor(people.renew(site.folder, "spk-02"))
    agree(other)
    other.page("/work/next")
    send(other, 1, wav(hz=310))
    review = tmp_path / "review"
    sources.create_review(site.folder, review)
    with served(review) as reviews:
        (reviewer,) = reviews.annotators(1).values()
        for position in (1, 2):
            reviewer.page(f"/work/item/{position}")
            assert reviewer.client.get(f"/work/item/{position}/audio").status_code == 200
            saved = reviewer.post(
                f"/work/item/{position}", audio_quality="good", match="yes", note="zebra"
            )
            assert saved.status_code == 200
    from earwitness.review.export import export

    export(review)
    removed = [forget.forget_account(folder, "spk-01") for folder in (site.folder, review)]
    assert any(name.startswith("recordings/spk-01/") for name in removed[0])
    assert "review.db: consent and link" in removed[0]
    assert "export/reviews.csv" in removed[1]
    assert not (site.folder / "recordings" / "spk-01").exists()
    for folder in (site.folder, review):
        for path in folder.rglob("*"):
            if path.is_file() and path.name != "project.yaml":
                assert b"spk-01" not in path.read_bytes(), path
    assert [row["account"] for row in recordings_of(site.folder)] == ["spk-02"]
    with opened(review) as db:
        assert rows(db, "SELECT count(*) FROM answers") == [(1,)]
    assert forget.forget_account(review, "spk-01") == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"account": "../x"}, "account: found '../x'"),
        ({"account": ".hidden"}, "account"),
        ({"script_id": "a/b"}, "script_id"),
        ({"emotion": "joy"}, "emotion: found 'joy'"),
        ({"text": ""}, "text"),
        ({"text": "x" * 3000}, "3000 characters"),
        ({"script_id": 7}, "script_id: found 7"),
    ],
)
def test_bad_assignments_are_named(tmp_path: Path, change: dict[str, object], message: str) -> None:
    line = {"account": "a", "script_id": "s", "text": "Hm.", "emotion": "fear", **change}
    path = tmp_path / "assignments.jsonl"
    path.write_text(json.dumps(line) + "\n")
    with pytest.raises(DataError, match=message):
        sources.create_record(path, tmp_path / "work")
    assert not (tmp_path / "work" / "review.db").exists()


def test_doubled_assignments_and_folders_are_refused(tmp_path: Path) -> None:
    path = assignments(tmp_path / "s", 1, 1)
    path.write_text(path.read_text() * 2)
    with pytest.raises(DataError, match=r":2: spk-01/s001--.* is already on line 1"):
        sources.create_record(path, tmp_path / "work")
    path = assignments(tmp_path / "s", 1, 1)
    sources.create_record(path, tmp_path / "work")
    with pytest.raises(UsageError, match="is a review folder already"):
        sources.create_record(path, tmp_path / "work")
    with pytest.raises(UsageError, match="nothing was recorded yet"):
        sources.create_review(tmp_path / "work", tmp_path / "review")
    with pytest.raises(UsageError, match="goes with --consent-version"):
        sources.create_record(path, tmp_path / "w2", consent=path)
