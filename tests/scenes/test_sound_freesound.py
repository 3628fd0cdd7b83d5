"""Freesound, against a service on this machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from earwitness.cli import build_app
from earwitness.errors import DataError, UsageError
from earwitness.scenes.bank import Bank, load_bank
from earwitness.scenes.sound_freesound import (
    Allow,
    Fetched,
    Freesound,
    FreesoundSettings,
    downloads_listing,
    fetch_freesound,
    load_queries,
)
from earwitness.scenes.sound_import import import_sounds
from earwitness.scenes.sound_maps import identity_map
from tests.standins.freesound import KEY, TOKEN, FreesoundServer, Upload
from tests.standins.loopback import Act, json_act


@cache
def the_bank() -> Bank:
    return load_bank()


BARKS = [
    Upload(1, "dog barking", 2.0),
    Upload(2, "dog barking loud", 1.0, "Attribution", "anna"),
    Upload(3, "dog barking", 60.0),
    Upload(4, "dog barking", 3.0, "Attribution NonCommercial", "ben"),
    Upload(5, "cat", 2.0),
    *(Upload(n, "dog barking", 1.5, username=f"user{n}") for n in range(10, 14)),
]
QUERIES = {("sounds", "dog_bark"): "dog barking"}


@pytest.fixture
def server() -> Iterator[FreesoundServer]:
    with FreesoundServer(BARKS) as running:
        yield running


def client(
    server: FreesoundServer, naps: list[float] | None = None, **settings: object
) -> Freesound:
    chosen = FreesoundSettings(base_url=server.url, **settings)  # type: ignore[arg-type]
    record = naps if naps is not None else []
    return Freesound(chosen, KEY, TOKEN if chosen.originals else "", sleep=record.append)


def fetch(server: FreesoundServer, folder: Path, **settings: object) -> Fetched:
    with client(server, **settings) as running:
        return fetch_freesound(folder, the_bank(), running, sounds=["dog_bark"], queries=QUERIES)


@pytest.mark.parametrize(("allow", "expected"), [("cc0", 5), ("by", 6), ("any", 7)])
def test_the_licence_filter(
    server: FreesoundServer, tmp_path: Path, allow: Allow, expected: int
) -> None:
    fetched = fetch(server, tmp_path, allow=allow)
    assert fetched.downloaded == expected
    assert fetched.short == {"dog_bark": expected}
    text = (tmp_path / "ATTRIBUTION.md").read_text()
    assert ('"dog barking loud 2" by anna' in text) == (allow != "cc0")
    assert "## dog_bark" in text


def test_nothing_is_fetched_twice_and_what_is_missing_is(
    server: FreesoundServer, tmp_path: Path
) -> None:
    assert fetch(server, tmp_path, per_sound=2).downloaded == 2
    before = len(server.calls)
    again = fetch(server, tmp_path, per_sound=2)
    assert (again.downloaded, again.kept) == (0, 2)
    assert len(server.calls) == before
    assert fetch(server, tmp_path, per_sound=4).downloaded == 2
    lines = (tmp_path / "downloads.jsonl").read_text().splitlines()
    assert len({json.loads(line)["id"] for line in lines}) == 4


def test_pages_are_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("earwitness.scenes.sound_freesound.PAGE_SIZE", 2)
    with FreesoundServer(BARKS) as server:
        assert fetch(server, tmp_path).downloaded == 5
        assert sum("page=" in call.path for call in server.calls) >= 2


def test_a_licence_the_filter_let_through_is_refused_all_the_same(tmp_path: Path) -> None:
    with FreesoundServer(BARKS) as server:
        server._search = lambda asked: json_act(  # type: ignore[method-assign]
            {"next": None, "results": [server._result(BARKS[3], asked["fields"].split(","))]}
        )
        assert fetch(server, tmp_path).downloaded == 0


def test_quotas_are_waited_for_and_the_days_end_stops(tmp_path: Path) -> None:
    minute = json_act(
        {"detail": "Request was throttled. Expected available in 7 seconds."}, 429, retry_after="7"
    )
    naps: list[float] = []
    with FreesoundServer(BARKS, minute, Act(status=503)) as server:
        with client(server, naps, per_sound=1) as running:
            fetched = fetch_freesound(
                tmp_path, the_bank(), running, sounds=["dog_bark"], queries=QUERIES
            )
        assert fetched.downloaded == 1
        assert 7.0 in naps
    day = json_act({"detail": "Request was throttled. Limit is 2000/day."}, 429)
    with (
        FreesoundServer(BARKS, day) as server,
        pytest.raises(DataError, match="requests left for today"),
    ):
        fetch(server, tmp_path / "other")


def test_requests_are_paced() -> None:
    naps: list[float] = []
    now = [0.0]

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        now[0] += seconds

    with FreesoundServer(BARKS) as server:
        settings = FreesoundSettings(base_url=server.url, per_minute=30)
        with Freesound(settings, KEY, sleep=sleep, clock=lambda: now[0]) as running:
            for _ in range(3):
                next(iter(running.search("dog barking", (0.5, 5))))
    assert naps == pytest.approx([2.0, 2.0])


def test_originals_need_a_token_and_get_the_upload(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="FREESOUND_ACCESS_TOKEN"):
        Freesound(FreesoundSettings(originals=True), KEY)
    with FreesoundServer(BARKS) as server:
        assert fetch(server, tmp_path, originals=True, per_sound=1).downloaded == 1
        assert any(call.path.endswith("/download/") for call in server.calls)
    assert json.loads((tmp_path / "downloads.jsonl").read_text())["lossy"] is False


def test_keys_never_show(tmp_path: Path) -> None:
    with FreesoundServer(BARKS, json_act({"detail": f"bad {KEY}"}, 403)) as server:
        with pytest.raises(DataError, match="Check the key") as caught:
            fetch(server, tmp_path)
        assert KEY not in str(caught.value)
        assert all(KEY not in call.path for call in server.calls)
    with pytest.raises(UsageError, match="FREESOUND_API_KEY"):
        Freesound(FreesoundSettings(), "")


@pytest.mark.parametrize("act", [Act(body=b"<html>"), json_act({"results": 3}), json_act([1])])
def test_answers_that_are_none(tmp_path: Path, act: Act) -> None:
    with FreesoundServer(BARKS, act) as server, pytest.raises(DataError, match="no list of sounds"):
        fetch(server, tmp_path)


def test_a_next_page_elsewhere_is_not_followed(tmp_path: Path) -> None:
    act = json_act({"results": [], "next": "http://elsewhere.example/apiv2/search/?page=2"})
    with (
        FreesoundServer(BARKS, act) as server,
        pytest.raises(DataError, match=r"elsewhere\.example"),
    ):
        fetch(server, tmp_path)


def test_downloads_become_a_library(server: FreesoundServer, tmp_path: Path) -> None:
    fetch(server, tmp_path / "got", allow="any")
    bank = the_bank()
    imported = import_sounds(
        downloads_listing(tmp_path / "got"),
        identity_map("freesound", bank),
        bank,
        tmp_path / "lib",
        workers=1,
    )
    takes = imported.library.sounds("dog_bark")
    assert len(takes) == 7
    assert {t.licence for t in takes} == {"CC0 1.0", "CC BY 4.0", "CC BY-NC 4.0"}
    assert all(bool(t.attribution) != t.licence.startswith("CC0") for t in takes)
    assert all("lossy preview" in t.source for t in takes)


def test_queries_of_ones_own(tmp_path: Path) -> None:
    assert load_queries(the_bank())["sounds", "dog_bark"] == "dog barking"
    path = tmp_path / "q.yaml"
    path.write_text("sounds: {dog_bark: terrier}\n")
    assert load_queries(the_bank(), path)["sounds", "dog_bark"] == "terrier"
    path.write_text("sounds: {dragon: roar}\n")
    with pytest.raises(DataError, match=r"sounds\.dragon"):
        load_queries(the_bank(), path)


def test_the_command(server: FreesoundServer, tmp_path: Path) -> None:
    queries = tmp_path / "q.yaml"
    queries.write_text("sounds: {dog_bark: dog barking}\n")
    result = CliRunner().invoke(
        build_app(),
        ["sounds", "fetch", "freesound", "--out", str(tmp_path / "got"), "--sound", "dog_bark", "--base-url", server.url,
         "--queries", str(queries), "--per-sound", "3", "--per-minute", "100000", "--json"],
        env={"FREESOUND_API_KEY": KEY},
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {"downloaded": 3, "kept": 0, "short": {}}
