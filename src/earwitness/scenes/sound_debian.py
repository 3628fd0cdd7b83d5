"""Real recordings out of Debian packages: fetched with apt, unpacked, never vendored.

Which file is which sound, its licence and author stand in ``sound_debian.yaml``, with version and SHA-256 of each
package. The licence is looked up in the package itself, so that a package that changed its terms is refused.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from earwitness.errors import DataError, LicenceError, UsageError
from earwitness.scenes.bank import Bank
from earwitness.scenes.sound_growing import Few
from earwitness.scenes.sound_import import Imported, ImportSettings, Progress, import_sounds
from earwitness.scenes.sound_maps import identity_map
from earwitness.scenes.sound_sources import Listing, Recording
from earwitness.scenes.sounds import SplitPolicy

TABLE = Path(__file__).with_name("sound_debian.yaml")

OTHER_WAYS = (
    "Without apt: earwitness sounds synth, or sounds import for recordings you have. "
    "Packages downloaded elsewhere are taken from --debs DIR."
)


@dataclass(frozen=True, slots=True)
class PackagedFile:
    """One recording in a package. ``target`` is (``sound`` or ``ambience``, id)."""

    path: str
    target: tuple[str, str]
    licence: str
    author: str
    group: str
    stated_in: str
    stated_as: str


@dataclass(frozen=True, slots=True)
class Package:
    """One pinned package."""

    name: str
    version: str
    sha256: str
    root: str
    files: tuple[PackagedFile, ...]


def load_packages(path: Path = TABLE) -> tuple[Package, ...]:
    """Read the table of packages.

    Raises
    ------
    DataError: it lacks something.
    """
    import yaml

    try:
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
        return tuple(_package(entry) for entry in value["packages"])
    except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
        raise DataError(str(path), f"is no table of packages ({error})", "as sound_debian.yaml") from error  # fmt: skip


def _package(entry: Mapping[str, Any]) -> Package:
    return Package(
        entry["name"], entry["version"], entry["sha256"], entry["root"],
        tuple(file for group in entry["files"] for file in _files(entry, group)),
    )  # fmt: skip


def _files(package: Mapping[str, Any], group: Mapping[str, Any]) -> Iterator[PackagedFile]:
    def of(key: str) -> Any:
        return group[key] if key in group else package[key]

    target = ("sound", group["sound"]) if "sound" in group else ("ambience", group["ambience"])
    stated_in, stated_as = of("licence_in")
    for path in group["paths"]:
        yield PackagedFile(
            path, target, of("licence"), of("author"), group.get("group", ""), stated_in, stated_as
        )


def fetch_debian(
    out: Path,
    bank: Bank,
    cache: Path,
    *,
    names: Sequence[str] = (),
    debs: Path | None = None,
    any_version: bool = False,
    policy: SplitPolicy | None = None,
    few: Few = "refuse",
    settings: ImportSettings | None = None,
    workers: int | None = None,
    table: Path = TABLE,
    on_package: Callable[[str], None] | None = None,
    on_progress: Progress | None = None,
) -> Imported:
    """Fetch packages, unpack them into ``cache`` and import their recordings.

    Parameters
    ----------
    names: only these packages.
    debs: folder with the .deb files, instead of apt.
    any_version: take the version apt has, and do not compare hashes.

    Raises
    ------
    UsageError: apt-get or dpkg-deb is not there, or no such package in the table.
    DataError: a package cannot be downloaded or is not the pinned one.
    LicenceError: a package does not state the licence that the table says.
    """
    packages = load_packages(table)
    known = {package.name for package in packages}
    if strange := sorted(set(names) - known):
        raise UsageError("--package", repr(strange[0]), ", ".join(sorted(known)))
    _need("dpkg-deb")
    if debs is None:
        _need("apt-get")
    recordings: list[Recording] = []
    for package in packages:
        if names and package.name not in names:
            continue
        if on_package:
            on_package(package.name)
        deb = _find_deb(package, debs) if debs else _download(package, cache, any_version)
        if not any_version:
            _verify(package, deb)
        recordings += list(_recordings(package, _unpack(package, deb, cache)))
    places = {x.id for x in bank.locations} | {sound.id for sound in bank.sounds}
    usable = [r for r in recordings if r.labels[0].split(":", 1)[1] in places]
    return import_sounds(
        Listing(usable), identity_map("debian", bank), bank, out, settings=settings, policy=policy,
        few=few, name="debian", workers=workers, on_progress=on_progress,
    )  # fmt: skip


def _need(program: str) -> None:
    if shutil.which(program) is None:
        raise UsageError(
            "sounds fetch debian", f"{program} is not on this machine", "Debian, Ubuntu or a relative",
            OTHER_WAYS,
        )  # fmt: skip


def _find_deb(package: Package, debs: Path) -> Path:
    found = sorted(debs.glob(f"{package.name}_*.deb"))
    if not found:
        raise DataError(str(debs), f"no {package.name}_*.deb", f"version {package.version}")
    return found[0]


def _download(package: Package, cache: Path, any_version: bool) -> Path:
    """With ``apt-get download``, which needs no rights and installs nothing."""
    folder = cache / "debs"
    folder.mkdir(parents=True, exist_ok=True)
    there = sorted(folder.glob(f"{package.name}_*.deb"))
    if there and (any_version or _hash(there[0]) == package.sha256):
        return there[0]
    for stale in there:
        stale.unlink()
    wanted = package.name if any_version else f"{package.name}={package.version}"
    done = _run(["apt-get", "-q", "download", wanted], folder)
    there = sorted(folder.glob(f"{package.name}_*.deb"))
    if done.returncode or not there:
        said = " ".join(done.stderr.split())[-300:] or "nothing was downloaded"
        raise DataError(
            f"apt-get download {wanted}", said, "the package",
            "Run apt-get update; other releases have other versions: try --any-version. " + OTHER_WAYS,
        )  # fmt: skip
    return there[0]


def _run(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def _hash(path: Path) -> str:
    from earwitness.audio.files import file_sha256

    return file_sha256(path)


def _verify(package: Package, deb: Path) -> None:
    if (found := _hash(deb)) != package.sha256:
        raise DataError(
            str(deb), f"SHA-256 {found[:12]}", f"{package.sha256[:12]} of {package.name} {package.version}",
            "Take it all the same with --any-version.",
        )  # fmt: skip


def _unpack(package: Package, deb: Path, cache: Path) -> Path:
    folder = cache / "unpacked" / package.name
    marker = folder / ".unpacked"
    stamp = _hash(deb)
    if marker.is_file() and marker.read_text() == stamp:
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    done = _run(["dpkg-deb", "-x", str(deb.resolve()), "."], folder)
    if done.returncode:
        raise DataError(str(deb), f"dpkg-deb cannot unpack it: {done.stderr.strip()[-200:]}", "a Debian package")  # fmt: skip
    marker.write_text(stamp)
    return folder


def _recordings(package: Package, folder: Path) -> Iterator[Recording]:
    texts: dict[str, str] = {}
    for file in package.files:
        stated = folder / (file.stated_in.lstrip("/") if file.stated_in.startswith("/") else f"{package.root}/{file.stated_in}")  # fmt: skip
        if str(stated) not in texts:
            texts[str(stated)] = stated.read_text("utf-8", "replace") if stated.is_file() else ""
        if file.stated_as not in texts[str(stated)]:
            raise LicenceError(
                f"{package.name}: {file.path}", f"{file.stated_in} does not say {file.stated_as!r}",
                f"the statement behind {file.licence}", "The package may have changed its terms: look, then correct sound_debian.yaml.",
            )  # fmt: skip
        path = folder / package.root / file.path
        if not path.is_file():
            raise DataError(
                str(path), "is missing", f"a recording of {package.name} {package.version}"
            )
        kind, of = file.target
        yield Recording(
            path, (f"{kind}:{of}",),
            source=f"Debian package {package.name} {package.version}: {file.path}",
            licence=file.licence, attribution=f"{file.author}, {file.licence}, from {package.name}",
            author=file.author, group=file.group, kind=kind,
        )  # fmt: skip
