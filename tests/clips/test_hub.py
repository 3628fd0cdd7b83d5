"""Downloading the published release: the hub's real client against a stand-in over HTTP."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from earwitness.clips.corpus import load_clip_set
from earwitness.clips.importing import import_clips
from earwitness.clips.readers.vocal_affect import REPOSITORY, REVISION, download
from earwitness.clips.settings import Settings
from earwitness.errors import DataError, UsageError
from tests.clips.test_readers import release
from tests.standins.hub import Hub, serve

pytest.importorskip("huggingface_hub")


@pytest.fixture
def hub(tmp_path: Path) -> Hub:
    folder = release(tmp_path / "release", labels=("angry", "sad", "happy"))
    files = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    large = frozenset(name for name in files if name.endswith(".wav"))
    return Hub(REPOSITORY, REVISION, files, large)


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hub: Hub):
    """The client in this process, with a cache of its own; it reads its constants when it is imported."""
    from huggingface_hub import constants

    with serve(hub):
        monkeypatch.setattr(constants, "ENDPOINT", hub.endpoint)
        template = hub.endpoint + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
        if hasattr(constants, "AGENT_HARNESSES_PATH"):
            monkeypatch.setattr(constants, "AGENT_HARNESSES_PATH", str(tmp_path / "harnesses.json"))
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        monkeypatch.delenv("HF_TOKEN", raising=False)
        yield hub


def test_the_command_downloads_the_pinned_revision_and_imports_it(hub, tmp_path):
    """In a process of its own, as a user runs it, with the environment alone pointing to the stand-in."""
    # Longer than the client's chunk of 10 MiB: shorter files are fetched again whole, not resumed.
    cut = "data/more.bin"
    hub.files |= {cut: bytes(range(256)) * (11 << 12)}
    hub.large |= {cut}
    hub.cut_once.add(cut)
    command = [
        sys.executable,
        "-m",
        "earwitness",
        "clips",
        "import",
        "vocal-affect-bench",
        REPOSITORY,
    ]
    command += ["--out", str(tmp_path / "set"), "--workers", "1", "--json"]
    with serve(hub):
        environment = {
            **os.environ,
            "HF_ENDPOINT": hub.endpoint,
            "HF_HOME": str(tmp_path / "home"),
            "HF_TOKEN": "hf_secret_of_the_user",
        }
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        first = len(hub.seen)
        again = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False
        )
        assert again.returncode == 0, again.stderr
    summary = json.loads(done.stdout)
    assert summary["counts"] == {"anger": 1, "happiness": 1, "sadness": 1}
    assert (summary["revision"], summary["use"]) == (REVISION, "evaluation-only")
    clip_set = load_clip_set(tmp_path / "set")
    assert clip_set.card.revision == REVISION
    assert (tmp_path / "set" / "LICENSE").read_text() == "No voice cloning.\n"

    early, late = hub.seen[:first], hub.seen[first:]
    assert len([s for s in early if "/tree/" in s.path]) > 1, "the listing has several pages"
    assert {s.path for s in early if "/resolve/" in s.path} == {
        f"/datasets/{REPOSITORY}/resolve/{REVISION}/{name}" for name in hub.files
    }
    storage = [s for s in early if "localhost" in s.host]
    assert len(storage) == len(hub.large) + 1, "one download was cut and asked for again"
    assert [s.range for s in storage if s.range] == [f"bytes={10 << 20}-"]
    assert not any(s.authorized for s in storage), "the user's token stays with the hub"
    assert not [s for s in late if "localhost" in s.host], "nothing is fetched twice"
    assert "hf_secret_of_the_user" not in done.stdout + done.stderr


def test_a_branch_is_resolved_to_its_commit(client, tmp_path):
    imported = import_clips(
        "vocal-affect-bench", REPOSITORY, tmp_path / "set", Settings(revision="main"), workers=1
    )
    assert imported.clip_set.card.revision == REVISION
    assert client.of("GET", "/revision/main")


def test_the_folder_and_the_download_give_the_same_clips(client, tmp_path):
    local = import_clips("vocal-affect-bench", tmp_path / "release", tmp_path / "a", workers=1)
    remote = import_clips("vocal-affect-bench", REPOSITORY, tmp_path / "b", workers=1)
    assert local.clip_set.sha256 == remote.clip_set.sha256


def test_what_the_hub_does_not_have_is_said(client):
    with pytest.raises(
        DataError, match=r"hub data set .*bench: has no revision v9; wanted a commit"
    ):
        download(REPOSITORY, "v9")
    with pytest.raises(DataError, match=r"hub data set some/other: not found on the hub"):
        download("some/other", "main")


def test_a_gated_data_set_says_what_to_do(client):
    client.gated = True
    with pytest.raises(DataError, match=r"asks for its terms to be accepted.*set HF_TOKEN"):
        download(REPOSITORY, "main")


def test_a_hub_that_cannot_be_reached_is_said(client, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(DataError, match=r"could not be downloaded .*Run the same command again"):
        download(REPOSITORY, "main")


def test_a_folder_that_is_not_there_is_no_name_of_the_hub(tmp_path):
    for source in (tmp_path / "nowhere", "sets/vab", "nowhere"):
        with pytest.raises(UsageError, match=f"no such folder; wanted .*{REPOSITORY} for the hub"):
            import_clips("vocal-affect-bench", source, tmp_path / "set", workers=1)
