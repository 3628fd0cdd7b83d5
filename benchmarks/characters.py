"""Is what the program says of a known listener true? ``python -m benchmarks characters --corpus DIR``.

Listeners of known character answer over real HTTP, asked by the commands a user types; baselines are asked beside
them. Then everything that must be true of each is checked against the scores, and a table is printed:

* ``perfect`` is right everywhere, and falls to chance when the sound is muted;
* ``deaf`` answers from the words only: what it says does not change when the sound is muted, d' is 0;
* ``always-pivot`` has three ignored classes and chance; ``random`` is at chance, inside its interval;
* ``echo`` and ``refuse`` are right never, with every item in the denominator;
* ``baseline/majority`` and ``baseline/uniform`` are at chance, ``baseline/listener`` finds sounds and places.

``--scenes`` limits how many scenes each is asked about (drawn by a hash of their ids). It needs a corpus with the
twins of ``--mute each``; with those of ``--mute all``, location and summary are muted too. The listener needs scenes
of the splits train and test.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CHARACTERS = ("perfect", "deaf", "always-pivot", "random", "echo", "refuse")
CHANGING = ("perfect", "deaf")
"""Those that hear or read, and are asked with the sounds muted too."""


@dataclass
class Checks:
    """What was looked at, and what was not true."""

    done: int = 0
    wrong: list[str] = field(default_factory=list)

    def that(self, true: bool, what: str) -> None:
        self.done += 1
        if not true:
            self.wrong.append(what)
            print(f"  NOT TRUE: {what}", flush=True)


class Table:
    """Scores as the command prints them with ``--json``."""

    def __init__(self, found: dict[str, Any]) -> None:
        self.found = found

    def of(self, task: str, condition: str = "audio") -> dict[str, Any]:
        for each in self.found["scores"]:
            if (each["task"], each["condition"]) == (task, condition):
                return dict(each)
        raise KeyError(f"{task}/{condition}")

    def gap(self, task: str, other: str = "muted") -> dict[str, Any]:
        for each in self.found["comparisons"]:
            if each["task"] == task and each["b"].endswith(f" {other}"):
                return dict(each)
        raise KeyError(f"{task}, audio against {other}")


def earwitness(*words: str | Path) -> str:
    """Run a command as a user types it; its standard output."""
    text = [str(word) for word in words]
    environment = {**os.environ, "OPENAI_API_KEY": "stand-in"}
    done = subprocess.run(
        [sys.executable, "-m", "earwitness", *text],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"earwitness {' '.join(text)}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


@contextlib.contextmanager
def listeners(corpus: Path) -> Iterator[str]:
    """The stand-in server in a process of its own; yields its base URL."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.standins.scene_characters", corpus, "--character", "by-name"],
        cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert child.stdout is not None
    try:
        yield child.stdout.readline().strip()
    finally:
        child.terminate()
        child.wait(timeout=30)
        child.stdout.close()


def ask(corpus: Path, model: str, runs: Path, *more: str | Path) -> Table:
    """One ``earwitness run cares`` with its table."""
    out = earwitness("run", "cares", corpus, "--model", model, "--out", runs, "--json", *more)
    return Table(json.loads(out))


# --- what must be true


def check_perfect(t: Table, checks: Checks) -> None:
    for task in ("reaction", "sound", "location"):
        checks.that(t.of(task)["headline"]["value"] == 1, f"perfect is right in all of {task}")
        checks.that(t.of(task)["positions"]["distance_"] == 0, f"perfect has no bias in {task}")
    checks.that(t.of("reaction", "muted")["headline"]["value"] == 0.25, "perfect muted: 25 %")
    for task in ("reaction", "sound"):
        gap = t.gap(task)
        checks.that(gap["p_holm"] < 0.05, f"perfect changes when muted in {task}")
        checks.that(gap["difference"]["low"] > 0, f"perfect loses when muted in {task}")
    g = t.of("grounding")
    checks.that(g["hits"]["value"] == 1, "perfect hits every sound")
    checks.that(g["false_alarms"]["value"] == 0, "perfect has no false alarms")
    checks.that(g["catch_alarms"]["value"] == 0, "perfect has no alarms at catch times")
    checks.that(g["d_prime"]["value"] > 3, "perfect: d' above 3")
    if "summary" not in tasks_of(t):
        return
    s = t.of("summary")
    largest = max(s["recall"], key=int)
    checks.that(s["recall"][largest]["all"]["value"] > 0.9, "perfect mentions the sounds")
    checks.that(s["base_rate"][largest]["value"] < 0.1, "absent sounds are not found in it")
    checks.that(t.gap("summary")["difference"]["low"] > 0, "perfect mentions none when muted")


def check_deaf(t: Table, checks: Checks) -> None:
    for task in ("reaction", "sound", *(("location",) if "summary" in tasks_of(t) else ())):
        gap = t.gap(task)
        checks.that(gap["difference"]["value"] == 0, f"deaf does not change when muted in {task}")
        checks.that(gap["p_sign_flip"] == 1, f"deaf: p is 1 in {task}")
        low, high = gap["difference"]["low"], gap["difference"]["high"]
        checks.that(low <= 0 <= high, f"deaf: the interval of the change holds 0 in {task}")
    checks.that(t.of("reaction")["headline"]["value"] == 1, "deaf reads reactions off the words")
    low, high = t.of("location")["headline"]["low"], t.of("location")["headline"]["high"]
    checks.that(low <= 0.25 <= high, "deaf is at chance in location")
    talk = t.of("sound")["scores"]["by_group"]["talk"]
    named, unnamed = talk.get("names the sound"), talk.get("does not name the sound")
    if named and unnamed:
        checks.that(named["low"] > unnamed["high"], "deaf knows the sounds that are named")
        checks.that(unnamed["low"] <= 0.3, "deaf is near chance where no sound is named")
    g = t.of("grounding")
    checks.that(g["d_prime"]["value"] == 0, "deaf: d' is 0")
    checks.that(g["p_sign_flip"] == 1, "deaf: p is 1 in grounding")


def check_always_pivot(t: Table, checks: Checks) -> None:
    r = t.of("reaction")
    checks.that(r["headline"]["value"] == 0.25, "always-pivot: balanced accuracy 25 %")
    checks.that(
        sorted(r["ignored"]) == ["ambient", "behavioral", "verbal"], "always-pivot ignores three"
    )
    checks.that(t.of("sound")["positions"]["distance_"] > 0.6, "always the same place is a bias")
    low, high = t.of("sound")["headline"]["low"], t.of("sound")["headline"]["high"]
    checks.that(low <= 0.25 <= high, "always A is at chance in sound")


def check_random(t: Table, checks: Checks) -> None:
    for task in ("reaction", "sound"):
        found = t.of(task)
        low, high = found["headline"]["low"], found["headline"]["high"]
        # An interval leaves out the truth one time in twenty: twice its width never does here.
        width = high - low
        checks.that(low - width / 2 <= 0.25 <= high + width / 2, f"random is at chance in {task}")
        checks.that(not found["ignored"], f"random ignores no class in {task}")
        # Places drawn at random differ from those of the truth by some 0.7 / sqrt(n); twice that is no bias.
        most = 1.5 / found["scores"]["n"] ** 0.5
        checks.that(found["positions"]["distance_"] < most, f"random has no bias in {task}")


def check_no_label(t: Table, checks: Checks, name: str, kinds: tuple[str, ...]) -> None:
    for task in ("reaction", "sound"):
        found = t.of(task)
        outcomes, n = found["scores"]["outcomes"], found["scores"]["n"]
        checks.that(found["headline"]["value"] == 0, f"{name} is right never in {task}")
        checks.that(sum(outcomes[k] for k in kinds) == n, f"{name}: all {n} items are {kinds}")
        checks.that(sum(outcomes.values()) == n, f"{name}: every item has one outcome in {task}")
        checks.that(found["headline"]["high"] > 0, f"{name}: the interval has a width in {task}")


def check_chance(t: Table, checks: Checks, name: str) -> None:
    for task in ("reaction", "sound", "location"):
        found = t.of(task)["headline"]
        width = found["high"] - found["low"]
        ok = found["low"] - width / 2 <= 0.25 <= found["high"] + width / 2
        checks.that(ok, f"{name} is at chance in {task}")
    checks.that(abs(t.of("grounding")["d_prime"]["value"]) < 0.6, f"{name}: d' is near 0")


def check_listener(t: Table, checks: Checks) -> None:
    g = t.of("grounding")
    checks.that(g["d_prime"]["value"] > 1, "the listener: d' above 1")
    for task in ("sound", "location"):
        value = t.of(task)["headline"]["value"]
        checks.that(value > 0.35, f"the listener is above chance in {task}")
    if g["n_clusters"] < 8:
        return  # so few scenes show nothing beyond chance, whoever listens
    checks.that(g["p_sign_flip"] < 0.05, "the listener hears whether there is a sound")
    recall = {c["label"]: c["recall"] for c in t.of("reaction")["scores"]["per_class"]}
    # Talk that breaks off is heard as pauses; what tells the others apart is not in levels and gaps.
    for label in ("pivot", "verbal", "ambient"):
        checks.that(recall[label]["low"] <= 0.25, f"levels and gaps do not tell {label}")


# --- the table


def row(name: str, t: Table) -> str:
    cells = []
    for task in ("reaction", "sound", "location", "grounding", "summary"):
        try:
            found = t.of(task)
        except KeyError:
            cells.append(f"{'-':>22}")
            continue
        h = found["headline"]
        factor, digits = (1, 2) if task == "grounding" else (100, 0)
        limits = (
            ""
            if h["low"] is None
            else f" [{factor * h['low']:.{digits}f}, {factor * h['high']:.{digits}f}]"
        )
        cells.append(f"{f'''{factor * h['value']:.{1 if factor == 100 else 2}f}{limits}''':>22}")
    ignored = ", ".join(t.of("reaction")["ignored"]) if "reaction" in tasks_of(t) else ""
    changes = []
    for task in ("reaction", "sound"):
        with contextlib.suppress(KeyError):
            gap = t.gap(task)
            changes.append(
                f"{task} {100 * gap['difference']['value']:+.0f} (p {gap['p_holm']:.2g})"
            )
    return f"  {name:20s}{''.join(cells)}  {ignored or 'none':32s}{', '.join(changes)}"


def tasks_of(t: Table) -> set[str]:
    return {each["task"] for each in t.found["scores"]}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--sounds", type=Path, help="library of the corpus, for the listener")
    parser.add_argument("--scenes", type=int, default=0, help="scenes of each character; 0: all")
    parser.add_argument("--out", type=Path, help="keep runs and report here")
    parser.add_argument("--no-baselines", action="store_true", help="only the listeners over HTTP")
    given = parser.parse_args()
    if given.corpus is None:
        print("  needs a corpus: python -m benchmarks characters --corpus DIR")
        return
    with tempfile.TemporaryDirectory() as scratch:
        out = given.out or Path(scratch)
        baselines = not given.no_baselines
        sys.exit(run(given.corpus, given.sounds, given.scenes, out, baselines=baselines))


def run(corpus: Path, sounds: Path | None, scenes: int, out: Path, *, baselines: bool) -> int:
    checks, rows = Checks(), []
    limit = ("--limit", str(scenes)) if scenes else ()
    began = time.monotonic()
    with listeners(corpus) as url:
        service = (
            "-M",
            f"base_url={url}",
            "-M",
            "formats=wav,flac",
            "--concurrency",
            "24",
            "--megabytes-in-flight",
            "512",
        )
        for name in CHARACTERS:
            options = (corpus, f"openai/{name}", out / "runs" / name, *service, *limit)
            if name in CHANGING:
                both = ("--conditions", "audio,muted")
                if (corpus / "twins" / "mute-all").is_dir():
                    tables = [
                        ask(*options, "--tasks", "reaction,sound,location,summary", *both),
                        ask(*options, "--tasks", "grounding"),
                    ]
                else:
                    tables = [
                        ask(*options, "--tasks", "reaction,sound", *both),
                        ask(*options, "--tasks", "location,grounding"),
                    ]
            else:
                tables = [ask(*options, "--tasks", "reaction,sound")]
            table = joined(tables)
            check_character(name, table, checks)
            rows.append(row(name, table))
            print(rows[-1], flush=True)
    # Baselines cost next to nothing and are asked about every scene.
    for name in ("baseline/majority", "baseline/uniform") if baselines else ():
        table = ask(corpus, name, out / "runs" / name.replace("/", "-"))
        check_chance(table, checks, name)
        rows.append(row(name, table))
        print(rows[-1], flush=True)
    if baselines:
        rows.append(listener(corpus, sounds, out, checks))
        print(rows[-1], flush=True)
    check_report(corpus, out, checks)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"\n{header()}\n" + "\n".join(rows))
    print(
        f"  {checks.done} checks, {len(checks.wrong)} not true; {used.ru_utime + used.ru_stime:.0f} CPU-s, "
        f"{time.monotonic() - began:.0f} s"
    )
    return 1 if checks.wrong else 0


def joined(tables: list[Table]) -> Table:
    parts = [t.found for t in tables]
    both = {key: [each for p in parts for each in p[key]] for key in ("scores", "comparisons")}
    for each in both["scores"]:
        positions = each.get("positions")
        if positions:
            n = sum(positions["chosen"])
            pairs = zip(positions["chosen"], positions["truths"], strict=True)
            positions["distance_"] = 0.5 * sum(abs(c - t) for c, t in pairs) / n if n else None
    return Table(both)


def check_character(name: str, table: Table, checks: Checks) -> None:
    if name == "perfect":
        check_perfect(table, checks)
    elif name == "deaf":
        check_deaf(table, checks)
    elif name == "always-pivot":
        check_always_pivot(table, checks)
    elif name == "random":
        check_random(table, checks)
    elif name == "echo":
        check_no_label(table, checks, name, ("ambiguous", "unmapped"))
    else:
        check_no_label(table, checks, name, ("refused",))


def listener(corpus: Path, sounds: Path | None, out: Path, checks: Checks) -> str:
    weights = out / "listener.model"
    library = ("--sounds", sounds) if sounds else ()
    earwitness("baseline", "train-listener", corpus, "--out", weights, *library)
    table = ask(
        corpus, "baseline/listener", out / "runs" / "baseline-listener", "-M", f"weights={weights}",
        "--split", "test",
    )  # fmt: skip
    check_listener(table, checks)
    return row("baseline/listener", table)


def check_report(corpus: Path, out: Path, checks: Checks) -> None:
    """The page over all runs is written, and says of the characters what was found."""
    folders = [out / "runs" / name for name in CHARACTERS]
    earwitness("report", *folders, "--out", out / "report")
    page = (out / "report" / "report.html").read_text(encoding="utf-8")
    for name in CHARACTERS:
        checks.that(f"openai/{name}" in page, f"the report names {name}")
    del corpus


def header() -> str:
    names = ("reaction", "sound", "location", "d'", "summary")
    return (
        f"  {'listener':20s}{''.join(f'{name:>22s}' for name in names)}  {'ignored':32s}when muted"
    )


if __name__ == "__main__":
    main()
