"""From nothing to one page about both families: ``make demo``, or ``make demo CLIPS=path/to/a/clip/set``.

Clips spoken and scenes mixed by packaged voices and synthetic sounds, baselines and a stand-in server asked, and one
report. Every step is a command a user could type; it is printed before it runs.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from earwitness.errors import EarwitnessError  # noqa: E402

SCENES = 12


def command(*words: str | Path | int) -> None:
    """Run one earwitness command, shown as it would be typed."""
    text = [str(word) for word in words]
    print(f"\n$ earwitness {shlex.join(text)}", flush=True)
    done = subprocess.run([sys.executable, "-m", "earwitness", *text], check=False)
    if done.returncode:
        sys.exit(done.returncode)


@contextlib.contextmanager
def stand_in_server(character: str) -> Iterator[str]:
    """A local server that speaks the OpenAI protocol; yields its base URL."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.standins.openai_server", "--character", character],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    try:
        yield child.stdout.readline().strip()
    finally:
        child.terminate()
        child.wait(timeout=10)
        child.stdout.close()


def make_synthetic_sets(out: Path) -> tuple[Path, Path]:
    """Speak the clips of both parts and import them as clip sets (train, test)."""
    from demo.make_clips import make_part

    sets = []
    for part in ("train", "test"):
        print(f"\nspeaking the {part} clips with packaged voices (synthetic: plumbing only)")
        table = make_part(out / "spoken" / part, part)
        target = out / "sets" / f"synthetic-{part}"
        command(
            "clips", "import", "csv", table, "--out", target,
            "--map", "path=file",
            "--name", f"synthetic-{part}", "--language", "en",
            "--licence", "Apache-2.0", "--use", "any", "--redistribute", "--synthetic",
        )  # fmt: skip
        sets.append(target)
    return sets[0], sets[1]


def run_models(clips: Path, runs: Path, *baseline: str | Path) -> None:
    """Baselines, and a stand-in server asked over real HTTP."""
    for model in ("baseline/majority", "baseline/uniform"):
        command("run", "emotion", "--clips", clips, "--model", model, "--out", runs, "--no-report")
    if baseline:
        command(
            "run", "emotion", "--clips", clips, "--model", "baseline/prosody", *baseline,
            "--out", runs, "--no-report",
        )  # fmt: skip
    with stand_in_server("energy") as url:
        command(
            "run", "emotion", "--clips", clips, "--model", "openai/stand-in",
            "-M", f"base_url={url}", "--conditions", "audio,silence",
            "--out", runs, "--no-report",
        )  # fmt: skip


def run_scenes(out: Path) -> list[Path]:
    """A small corpus of scenes from nothing, asked by baselines and by a reader of words. Returns what to report."""
    corpus, runs = out / "demo-scenes", out / "scene-runs"
    weights = out / "listener.model"
    command(
        "scenes", "build", "--scenes", SCENES, "--out", corpus,
        "--set", "plan.per_template=2", "--set", "sounds.takes=3", "--set", "mix.format=flac",
    )  # fmt: skip
    command("baseline", "train-listener", corpus, "--sounds", corpus / "library", "--out", weights)
    for model in ("baseline/majority", "baseline/uniform"):
        command(
            "run", "cares", corpus, "--model", model, "--conditions", "audio,muted", "--out", runs
        )
    # It has heard the scenes of the train split, so it is asked about the others alone.
    command(
        "run", "cares", corpus, "--model", "baseline/listener", "-M", f"weights={weights}",
        "--split", "validation,test", "--conditions", "audio,muted", "--out", runs,
    )  # fmt: skip
    if has("wordllama", "tokenizers"):
        conditions = "oracle,asr" if whisper_is_there() else "oracle"
        command(
            "run", "cares", corpus, "--model", "offline/reader", "--tasks", "reaction",
            "--conditions", conditions, "--out", runs,
        )  # fmt: skip
        if conditions == "oracle":
            print(
                "\n(the reader has read the true scripts. What a recogniser of speech makes of the mixes: "
                'pip install -e ".[local]", earwitness asr install, and --conditions asr)'
            )
    return [runs]


def has(*modules: str) -> bool:
    """Whether optional packages are installed."""
    return all(importlib.util.find_spec(module) for module in modules)


def whisper_is_there() -> bool:
    """Whether the packaged recogniser is installed with its weights."""
    from earwitness.models.transcribers.registry import open_transcriber

    try:
        open_transcriber("whisper/base", {})
    except EarwitnessError:
        return False
    return True


def may_train_on(clips: Path) -> bool:
    """Whether the set's card permits training."""
    import yaml

    card = yaml.safe_load((clips / "card.yaml").read_text(encoding="utf-8"))
    return str(card["use"]) != "evaluation-only"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build/demo"))
    parser.add_argument("--clips", type=Path, help="a clip set of yours (earwitness clips import)")
    parser.add_argument("--no-scenes", action="store_true", help="clips alone")
    given = parser.parse_args()
    begun = time.monotonic()
    out = given.out
    out.mkdir(parents=True, exist_ok=True)
    weights = out / "prosody.npz"
    runs = out / "runs"
    if given.clips is None:
        train, test = make_synthetic_sets(out)
        command("clips", "validate", test)
        command("baseline", "train", "--clips", train, "--out", weights)
        run_models(test, runs, "-M", f"weights={weights}")
    else:
        test = given.clips
        if not (test / "clips.jsonl").exists():
            sys.exit(
                f"{test} is no clip set (no clips.jsonl). Make one first, for example:\n"
                f"  earwitness clips import ravdess {test} --out sets/mine"
            )
        command("clips", "validate", test)
        if may_train_on(test):
            command("baseline", "train", "--clips", test, "--folds", "8", "--out", weights)
            run_models(test, runs, "-M", f"weights={weights}")
        else:
            run_models(test, runs)
    shown = [runs] if given.no_scenes else [runs, *run_scenes(out)]
    command("report", *shown, "--out", out, "--link-audio")
    print(f"\ndone in {time.monotonic() - begun:.0f} s: open {out / 'report.html'}")


if __name__ == "__main__":
    main()
