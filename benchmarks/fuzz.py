"""Random bytes against what reads other people's bytes: the ledger, the reply parsers, labels, waits.

``make fuzz``, or ``python -m benchmarks.fuzz SECONDS [TARGET ...]``: every target in a process of its own, guided by
coverage (atheris) where that is installed, else by hypothesis alone, which is said. Exits with 1 and the bytes that
broke something.
"""

from __future__ import annotations

import importlib.util
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks._fuzz_targets import SEEDS, TARGETS, imported

SECONDS = 5


def guided(name: str, seconds: int) -> tuple[int, str]:
    """Fuzz a target with atheris in a child; its exit code and what it said."""
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "corpus"
        corpus.mkdir()
        for number, seed in enumerate(SEEDS[name]):
            (corpus / f"seed-{number}").write_bytes(seed)
        words = [
            sys.executable, "-m", "benchmarks.fuzz", "--child", name, str(corpus), f"-max_total_time={seconds}",
            "-max_len=4096", "-timeout=20", "-rss_limit_mb=1500", f"-artifact_prefix={folder}/", "-seed=1",
        ]  # fmt: skip
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
        said = done.stdout + done.stderr
        for path in Path(folder).glob("*-*"):
            if path.is_file():
                said += f"\nbytes that did it: {path.read_bytes()!r}"
        return done.returncode, said


def child(name: str, arguments: list[str]) -> None:
    """The fuzzing process."""
    import atheris

    with atheris.instrument_imports(include=["earwitness"], enable_loader_override=False):
        imported()
    atheris.Setup([sys.argv[0], *arguments], TARGETS[name])
    atheris.Fuzz()


def unguided(name: str, seconds: int) -> int:
    """Mutate the seeds at random for so long; the number of inputs."""
    drawn = random.Random(1)
    until, tried = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        data = bytearray(drawn.choice(SEEDS[name]))
        for _ in range(drawn.randrange(1, 8)):
            at = drawn.randrange(len(data) + 1)
            how = drawn.randrange(4)
            if how == 0:
                data[at:at] = drawn.randbytes(drawn.randrange(1, 6))
            elif how == 1:
                del data[at : at + drawn.randrange(1, 20)]
            elif how == 2 and at < len(data):
                data[at] = drawn.randrange(256)
            else:
                piece = data[at : at + 30]
                data[at:at] = piece
        try:
            TARGETS[name](bytes(data))
        except BaseException:
            print(f"{name}: broken by {bytes(data)!r}")
            raise
        tried += 1
    return tried


def run(seconds: int, names: list[str]) -> int:
    has_atheris = importlib.util.find_spec("atheris") is not None
    if not has_atheris:
        print("atheris is not installed: seeds mutated at random, without coverage to guide it")
    wrong = 0
    for name in names:
        if not has_atheris:
            print(f"{name:8} {unguided(name, seconds):9,d} inputs in {seconds} s: nothing broke")
            continue
        code, said = guided(name, seconds)
        done = re.search(r"Done (\d+) runs", said)
        covered = re.findall(r"cov: (\d+)", said)
        if code or done is None:
            wrong += 1
            print(f"{name:8} BROKEN\n{said[-4000:]}")
        else:
            print(
                f"{name:8} {int(done[1]):9,d} inputs in {seconds} s, {covered[-1]} places reached: nothing broke"
            )
    return 1 if wrong else 0


def main() -> None:
    """A few seconds a target, beside the other benchmarks."""
    if run(SECONDS, list(TARGETS)):
        raise SystemExit(1)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], sys.argv[3:])
    else:
        seconds, *chosen = sys.argv[1:] or [str(SECONDS)]
        sys.exit(run(int(seconds), chosen or list(TARGETS)))
