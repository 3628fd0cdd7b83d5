"""A small collection for tests: scripts, assignments, recordings, reviews."""

from __future__ import annotations

from pathlib import Path

from demo.make_recordings import simulate
from earwitness.clips.assignment import Assignment, Design, add_accounts, assign
from earwitness.clips.pool import PoolEntry, judge, make_pool
from earwitness.clips.pool_reading import Review
from earwitness.clips.scripts import Script, script_id, write_scripts
from earwitness.clips.scripts_offline import load_phrasebook
from earwitness.clips.selecting import SelectionSettings, select
from earwitness.clips.selecting_record import write_selection
from earwitness.stats.streams import stream


def scripts(count: int, seed: int = 0) -> list[Script]:
    book = load_phrasebook("en")
    return [Script(script_id(n), book.write(n, 1, seed), "en", "", "", "") for n in range(count)]


def names(count: int) -> list[str]:
    return [f"a{n:03}" for n in range(1, count + 1)]


def assigned(accounts: int = 68, count: int = 100, **design: int) -> tuple[Assignment, ...]:
    return assign(names(accounts), scripts(count), Design(**design))


def simulated_pool(
    assignments: tuple[Assignment, ...], turned_down: int, seed: int = 0
) -> tuple[PoolEntry, ...]:
    """Entries as a pool has them, without any audio: durations of 18 to 37 s, two sexes, one reviewer."""
    entries, keys = [], {}
    for a in assignments:
        name = f"{a.account}/{a.script_id}--{a.emotion}"
        rng = stream(seed, "simulated", name)
        sex = "female" if stream(seed, "sex", a.account).random() < 0.55 else "male"
        entries.append(
            PoolEntry(
                id=name, path=f"recordings/{name}.wav", sha256=f"{len(entries):064x}", account=a.account,
                speaker=a.account, script_id=a.script_id, text=a.text, emotion=a.emotion,
                seconds=round(18 + 19 * float(rng.random()), 3), sex=sex, language="en",
                consent_version="1", recorded_at="", reviews=0, status="",
            )
        )  # fmt: skip
        keys[name] = float(rng.exponential()) / (3 if a.emotion in ("fear", "disgust") else 1)
    out = set(sorted(keys, key=keys.__getitem__)[:turned_down])
    reviews = [Review(e.id, "r", e.id not in out, "yes") for e in entries]
    return judge(entries, reviews, assignments)


def small_collection(folder: Path, accounts: int = 5, per_label: int = 2) -> Path:
    """A collection with audio of 0.2 s, its pool and selection in place."""
    folder.mkdir(parents=True)
    write_scripts(folder, scripts(6))
    made = add_accounts(folder, names(accounts), scripts(6), Design())
    simulate(folder, made, turned_down=2, seconds=(0.2, 0.25))
    make_pool(folder, workers=1)
    reselect(folder, per_label)
    return folder


def reselect(folder: Path, per_label: int = 2) -> None:
    from earwitness.clips.pool import read_pool

    settings = SelectionSettings(per_label=per_label)
    entries = read_pool(folder)
    write_selection(folder, entries, select(entries, settings), settings)
