"""A simulated collection: recordings and reviews for the assignments of a collection. Nobody speaks in them.

``python demo/make_recordings.py COLLECTION`` writes ``recordings.jsonl`` with its files, ``reviews.jsonl`` and
``speakers.csv``. Each recording is a hum of its own, 1 to 2 seconds long at 24 kHz; one reviewer turns some down,
most often disgust, fear and surprise. It shows that the commands work together and says nothing of emotion.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from earwitness.audio import Audio, encode_audio
from earwitness.clips.assignment import Assignment, read_assignments
from earwitness.stats.streams import stream

RATE = 24_000
HARD = {"disgust": 3.0, "fear": 3.0, "surprise": 2.0}
"""How much more often than others a performance of this emotion is turned down."""


def hum(seed: int, name: str, seconds: float, rate: int = RATE) -> Audio:
    """A hum with an envelope: never silent, different for every name."""
    rng = stream(seed, "hum", name)
    time = np.arange(round(seconds * rate)) / rate
    pitch = 90 + 160 * rng.random() + 20 * np.sin(2 * np.pi * (1 + 3 * rng.random()) * time)
    wave = sum(np.sin(2 * np.pi * np.cumsum(k * pitch) / rate) / k for k in range(1, 6))
    envelope = 0.25 + 0.75 * np.sin(np.pi * time / time[-1])
    noise = rng.normal(0, 0.01, len(time))
    return Audio((0.2 * wave * envelope + noise).astype(np.float32), rate)


def simulate(
    folder: Path,
    assignments: Sequence[Assignment],
    *,
    turned_down: int,
    seconds: tuple[float, float] = (1.0, 2.0),
    seed: int = 0,
) -> None:
    """Write recordings of every assignment, reviews of them all, and who the speakers are."""
    low, high = seconds
    recordings = []
    for each in assignments:
        name = f"{each.account}/{each.script_id}--{each.emotion}"
        drawn = stream(seed, "recording", name)
        data = encode_audio(hum(seed, name, low + (high - low) * float(drawn.random())))
        path = folder / "recordings" / f"{name}.wav"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        recordings.append(
            {
                "id": name,
                "path": f"recordings/{name}.wav",
                "sha256": hashlib.sha256(data).hexdigest(),
                "account": each.account,
                "speaker": each.account,
                "script_id": each.script_id,
                "text": each.text,
                "emotion": each.emotion,
                "seconds": round((len(data) - 44) / 2 / RATE, 4),
                "consent_version": "1",
                "recorded_at": "2026-05-20T10:00:00Z",
            }
        )
    # Exponential keys with rates: the smallest so many are a weighted draw without replacement.
    keys = {
        row["id"]: float(stream(seed, "review", str(row["id"])).exponential())
        / HARD.get(str(row["emotion"]), 1.0)
        for row in recordings
    }
    out = set(sorted(keys, key=keys.__getitem__)[:turned_down])
    reviews = []
    for number, row in enumerate(recordings):
        bad = row["id"] in out
        reviews.append(
            {
                "recording": row["id"],
                "reviewer": "reviewer",
                "audio_quality": "poor" if bad and number % 3 == 0 else "good",
                "match": ("no" if number % 2 else "unclear") if bad else "yes",
                "perceived_emotion": None,
                "note": "",
                "at": "2026-06-01T10:00:00Z",
            }
        )
    for file, rows in (("recordings.jsonl", recordings), ("reviews.jsonl", reviews)):
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / file).write_text(text, encoding="utf-8")
    with (folder / "speakers.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["account", "speaker", "sex", "language"])
        for account in dict.fromkeys(each.account for each in assignments):
            sex = "female" if stream(seed, "sex", account).random() < 0.55 else "male"
            table.writerow([account, account, sex, "en"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("collection", type=Path)
    parser.add_argument("--turned-down", type=int, default=49, help="recordings a reviewer rejects")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    assignments = read_assignments(given.collection)
    simulate(given.collection, assignments, turned_down=given.turned_down, seed=given.seed)
    print(f"{given.collection}: {len(assignments)} simulated recordings and reviews")


if __name__ == "__main__":
    main()
