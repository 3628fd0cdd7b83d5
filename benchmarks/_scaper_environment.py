"""An environment of its own for scaper 1.6.5: it wants NumPy below 2, and the headers of libsox to be built with.

Where ``sox.h`` is not installed, it is taken out of Debian packages (``apt-get download``, unpacked into the folder
of the benchmark; nothing is installed and no rights are needed). Built once; found again afterwards.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

VERSION = "1.6.5"
DEVELOPMENT, LIBRARY = "libsox-dev", "libsox3"
INCLUDES = (Path("/usr/include"), Path("/usr/local/include"), Path("/opt/homebrew/include"))


class NoPeerError(Exception):
    """Scaper cannot be had here; the text says why."""


@dataclass(frozen=True)
class Environment:
    """How to start a Python that has scaper."""

    python: Path
    variables: dict[str, str]

    def run(self, *arguments: str) -> str:
        """Run Python with these arguments; what it printed."""
        return _run([str(self.python), *arguments], {**os.environ, **self.variables})


def environment(folder: Path) -> Environment:
    """Build the environment, or find it built.

    Raises
    ------
    NoPeerError: something is missing that cannot be made.
    """
    variables = _headers(folder)
    made = Environment(folder / "venv" / "bin" / "python", variables)
    if not _works(made):
        print(f"  building scaper {VERSION} in {folder} (soxbindings is compiled: a minute or two)")
        _run([sys.executable, "-m", "venv", "--clear", str(folder / "venv")])
        made.run("-m", "pip", "install", "-q", f"scaper=={VERSION}", "numpy<2")
        if not _works(made):
            raise NoPeerError(f"scaper {VERSION} was installed and cannot be imported")
    return made


def _works(made: Environment) -> bool:
    if not made.python.is_file():
        return False
    try:
        said = made.run("-c", "import scaper, soxbindings; print(scaper.__version__)")
    except NoPeerError:
        return False
    return said.split()[-1:] == [VERSION]


def _headers(folder: Path) -> dict[str, str]:
    """Variables by which compiler and loader find libsox; none where it is installed."""
    if any((place / "sox.h").is_file() for place in INCLUDES):
        return {}
    root = folder / "libsox"
    if not list(root.rglob("sox.h")):
        _unpack(root)
    include = next(root.rglob("sox.h")).parent
    libraries = ":".join(sorted({str(file.parent) for file in root.rglob("lib*.so*")}))
    return {"CPATH": str(include), "LIBRARY_PATH": libraries, "LD_LIBRARY_PATH": libraries}


def _unpack(root: Path) -> None:
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        raise NoPeerError(
            "soxbindings is compiled and wants sox.h: install the development files of libsox "
            "(Debian: libsox-dev; Homebrew: sox)"
        )
    depends = [
        line.split(":", 1)[1].strip()
        for line in _run(["apt-cache", "depends", LIBRARY]).splitlines()
        if line.strip().startswith("Depends:")
    ]
    wanted = [name for name in depends if not name.startswith(("<", "libc6", "libsox"))]
    root.mkdir(parents=True, exist_ok=True)
    _run(["apt-get", "download", "-q", DEVELOPMENT, LIBRARY, *wanted], cwd=root)
    for package in sorted(root.glob("*.deb")):
        _run(["dpkg-deb", "-x", str(package), str(root)])
    if not list(root.rglob("sox.h")):
        raise NoPeerError(f"{DEVELOPMENT} of this distribution has no sox.h")


def _run(
    command: list[str], variables: dict[str, str] | None = None, cwd: Path | None = None
) -> str:
    done = subprocess.run(
        command, env=variables, cwd=cwd, capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise NoPeerError(f"{' '.join(command[:4])} ...: {said[-1] if said else done.returncode}")
    return done.stdout
