"""A stand-in for a Debian machine: packages with sounds in them, and an apt-get and dpkg-deb that know them.

The packages are real ones (an ``ar`` archive with control and data). ``apt-get`` is a script that does what
``apt-get download NAME=VERSION`` does; ``dpkg-deb`` is the machine's own where there is one, else a script for ``-x``.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import tarfile
from pathlib import Path

APT = """#!{python}
import pathlib, shutil, sys
wanted = [a for a in sys.argv[1:] if not a.startswith("-")]
assert wanted.pop(0) == "download"
for one in wanted:
    name, _, version = one.partition("=")
    found = [p for p in pathlib.Path({repo!r}).glob(name + "_*.deb") if not version or p.name.split("_")[1] == version]
    if not found:
        sys.stderr.write("E: Version '" + version + "' for '" + name + "' was not found\\n")
        sys.exit(100)
    shutil.copy(found[0], pathlib.Path.cwd())
"""

DPKG = """#!{python}
import io, sys, tarfile
data = open(sys.argv[2], "rb").read()
at = 8
while data[:8] == b"!<arch>\\n" and at < len(data):
    name, size = data[at:at + 16].strip(), int(data[at + 48:at + 58])
    if name.startswith(b"data.tar"):
        tarfile.open(fileobj=io.BytesIO(data[at + 60:at + 60 + size])).extractall(sys.argv[3], filter="data")
        sys.exit(0)
    at += 60 + size + size % 2
sys.stderr.write("not a Debian format archive\\n")
sys.exit(2)
"""


def _tar(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(f"./{name}")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def make_deb(folder: Path, name: str, version: str, files: dict[str, bytes]) -> Path:
    """Write ``name_version_all.deb`` with these files."""
    control = f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: test\nDescription: test\n"
    members = {
        "debian-binary": b"2.0\n",
        "control.tar.gz": _tar({"control": control.encode()}),
        "data.tar.gz": _tar(files),
    }
    archive = b"!<arch>\n"
    for member, data in members.items():
        archive += f"{member:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(data):<10}`\n".encode() + data
        archive += b"\n" * (len(data) % 2)
    path = folder / f"{name}_{version}_all.deb"
    path.write_bytes(archive)
    return path


def machine(folder: Path, repo: Path, *, apt: bool = True) -> str:
    """A PATH on which apt-get and dpkg-deb are found, and nothing else of Debian."""
    programs = {"apt-get": APT} if apt else {}
    if shutil.which("dpkg-deb") is None or not apt:
        programs["dpkg-deb"] = DPKG
    folder.mkdir()
    for name, text in programs.items():
        script = folder / name
        script.write_text(text.format(python=sys.executable, repo=str(repo)))
        script.chmod(0o755)
    if "dpkg-deb" not in programs:
        (folder / "dpkg-deb").symlink_to(str(shutil.which("dpkg-deb")))
        return os.pathsep.join([str(folder), os.environ["PATH"]])
    return str(folder)
