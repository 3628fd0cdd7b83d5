"""Recordings out of Debian packages, with packages made here."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from earwitness.audio import Audio, encode_audio, file_sha256
from earwitness.errors import DataError, LicenceError, UsageError
from earwitness.scenes.bank import Bank, load_bank
from earwitness.scenes.sound_debian import fetch_debian, load_packages
from tests.standins.debian_repo import machine, make_deb


@cache
def the_bank() -> Bank:
    return load_bank()


def bark(seed: int) -> bytes:
    noise = np.random.default_rng(seed).normal(0, 0.1, 11025).astype(np.float32)
    return encode_audio(Audio(noise, 11025))


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    repo = tmp_path / "repo"
    repo.mkdir()
    files = {f"usr/share/barks/sounds/{n}.wav": bark(n) for n in range(4)}
    files["usr/share/barks/sounds/README.txt"] = b"All barks by Anna, CC BY 3.0.\n"
    deb = make_deb(repo, "barks", "1.0-1", files)
    path = tmp_path / "packages.yaml"
    path.write_text(
        f"""
packages:
- name: barks
  version: 1.0-1
  sha256: {file_sha256(deb)}
  root: usr/share/barks
  licence: CC BY 3.0
  author: Anna
  licence_in: [sounds/README.txt, "by Anna, CC BY 3.0"]
  files:
  - {{paths: [sounds/0.wav, sounds/1.wav, sounds/2.wav], sound: dog_bark}}
  - {{paths: [sounds/3.wav], ambience: park, licence: CC0 1.0}}
"""
    )
    monkeypatch.setenv("PATH", machine(tmp_path / "bin", repo))
    return path


def test_packages_become_a_library(table: Path, tmp_path: Path) -> None:
    imported = fetch_debian(
        tmp_path / "lib", the_bank(), tmp_path / "cache", policy="shared", table=table, workers=1
    )
    takes = imported.library.sounds("dog_bark", "test")
    assert len(takes) == 3
    assert all(take.band_limited and take.licence == "CC BY 3.0" for take in takes)
    assert takes[0].attribution == "Anna, CC BY 3.0, from barks"
    assert takes[0].source.startswith("Debian package barks 1.0-1: sounds/")
    assert imported.library.ambiences("park")[0].licence == "CC0 1.0"
    # Again: everything is there already.
    again = fetch_debian(tmp_path / "lib", the_bank(), tmp_path / "cache", table=table, workers=1)
    assert (again.added, again.kept) == (0, 4)


def test_a_package_that_changed_is_refused(table: Path, tmp_path: Path) -> None:
    table.write_text(table.read_text().replace("sha256: ", "sha256: 0000"))
    with pytest.raises(DataError, match=r"SHA-256 .* of barks 1\.0-1.*--any-version"):
        fetch_debian(tmp_path / "lib", the_bank(), tmp_path / "cache", policy="shared", table=table)
    imported = fetch_debian(
        tmp_path / "lib",
        the_bank(),
        tmp_path / "cache",
        policy="shared",
        table=table,
        any_version=True,
        workers=1,
    )
    assert imported.added == 4


def test_terms_that_changed_are_refused(table: Path, tmp_path: Path) -> None:
    table.write_text(table.read_text().replace("by Anna, CC BY 3.0", "by Anna, public domain"))
    with pytest.raises(LicenceError, match=r"README\.txt does not say 'by Anna, public domain'"):
        fetch_debian(tmp_path / "lib", the_bank(), tmp_path / "cache", policy="shared", table=table)


def test_a_version_apt_does_not_have(table: Path, tmp_path: Path) -> None:
    table.write_text(table.read_text().replace("version: 1.0-1", "version: 2.0-1"))
    with pytest.raises(
        DataError, match=r"apt-get download barks=2\.0-1: E: Version .*apt-get update"
    ):
        fetch_debian(tmp_path / "lib", the_bank(), tmp_path / "cache", policy="shared", table=table)


def test_a_machine_without_apt_is_told_what_else_there_is(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(UsageError, match=r"dpkg-deb is not on this machine.*sounds synth.*--debs"):
        fetch_debian(tmp_path / "lib", the_bank(), tmp_path / "cache", table=table)
    monkeypatch.setenv("PATH", machine(tmp_path / "bin2", tmp_path / "repo", apt=False))
    with pytest.raises(UsageError, match="apt-get is not on this machine"):
        fetch_debian(tmp_path / "lib", the_bank(), tmp_path / "cache", table=table)
    imported = fetch_debian(
        tmp_path / "lib",
        the_bank(),
        tmp_path / "cache",
        table=table,
        debs=tmp_path / "repo",
        policy="shared",
        workers=1,
    )
    assert imported.added == 4


def test_unknown_and_missing_packages(table: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'nothing'; wanted barks"):
        fetch_debian(
            tmp_path / "lib", the_bank(), tmp_path / "cache", table=table, names=["nothing"]
        )
    (tmp_path / "none").mkdir()
    with pytest.raises(DataError, match=r"no barks_\*\.deb"):
        fetch_debian(
            tmp_path / "lib", the_bank(), tmp_path / "cache", table=table, debs=tmp_path / "none"
        )
    with pytest.raises(DataError, match="no table of packages"):
        load_packages(tmp_path / "nowhere.yaml")


def test_the_table_that_ships_fits_the_bank() -> None:
    bank = the_bank()
    known = {("sound", s.id) for s in bank.sounds} | {("ambience", x.id) for x in bank.locations}
    packages = load_packages()
    assert [p.name for p in packages] == [
        "minetest-data",
        "scratch",
        "lincity-ng-data",
        "sound-theme-freedesktop",
    ]
    targets = [file.target for package in packages for file in package.files]
    assert set(targets) <= known
    assert len({of for kind, of in targets if kind == "sound"}) == 31
    assert all(len(package.sha256) == 64 for package in packages)
    assert all(f.licence and f.author and f.stated_as for p in packages for f in p.files)
