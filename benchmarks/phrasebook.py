"""A thousand dialogues from the phrasebook: how long they take, how long they speak, and how alike they are.

Run by ``make bench`` or ``python -m benchmarks.phrasebook``. Scenes are the 1,000 of the test split of a plan of
1,000 templates, the split in which each register has the fewest words for the most scenes.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from earwitness.scenes.bank import load_bank
from earwitness.scenes.dialogue import Dialogue, NearDuplicates, check, spoken_seconds
from earwitness.scenes.phrasebook import compose
from earwitness.scenes.plan import PlanRequest, load_preset, plan
from earwitness.scenes.rules.sentences import sentences_in, words_in
from earwitness.scenes.tags import strip_tags

SEED = 5
BUDGET_MS = 20.0
LEAST_WORDS = 4
"""Shorter sentences belong to everybody and are not counted, as in the rule D801."""


def said(dialogue: Dialogue) -> set[str]:
    """The sentences of a dialogue, words only."""
    found = set()
    for utterance in dialogue.utterances:
        plain = strip_tags(utterance.text)
        for start, end in sentences_in(plain):
            words = [word.text for word in words_in(plain[start:end])]
            if len(words) >= LEAST_WORDS:
                found.add(" ".join(words))
    return found


def shares(dialogues: Sequence[Dialogue]) -> tuple[float, float, float]:
    """Largest and mean share of sentences two dialogues have in common, and share of distinct sentences."""
    sentences = [said(dialogue) for dialogue in dialogues]
    places: defaultdict[str, list[int]] = defaultdict(list)
    for n, own in enumerate(sentences):
        for sentence in own:
            places[sentence].append(n)
    common: Counter[tuple[int, int]] = Counter()
    for where in places.values():
        for place, later in enumerate(where):
            common.update((earlier, later) for earlier in where[:place])
    found = [n / min(len(sentences[a]), len(sentences[b])) for (a, b), n in common.items()]
    pairs = len(dialogues) * (len(dialogues) - 1) / 2
    return max(found), sum(found) / pairs, len(places) / sum(map(len, sentences))


def main() -> None:
    bank = load_bank()
    for preset in ("balanced", "paper"):
        request = PlanRequest(1000, 10, seed=SEED, preset=load_preset(preset))
        scenarios = [s for s in plan(bank, request) if s.split == "test"]
        compose(scenarios[0], bank, SEED)
        start = time.process_time()
        dialogues = [compose(scenario, bank, SEED) for scenario in scenarios]
        cpu_ms = 1000 * (time.process_time() - start) / len(dialogues)
        seconds = np.array([spoken_seconds(dialogue) for dialogue in dialogues])
        broken = sum(
            bool(check(dialogue, scenario, bank))
            for scenario, dialogue in zip(scenarios, dialogues, strict=True)
        )
        seen = NearDuplicates()
        alike = sum(seen.add(dialogue) is not None for dialogue in dialogues)
        largest, mean, distinct = shares(dialogues)
        print(f"{len(dialogues)} dialogues of the test split, preset {preset}")
        print(f"  CPU-ms a dialogue           {cpu_ms:8.1f}   budget {BUDGET_MS:g}  {'ok' if cpu_ms <= BUDGET_MS else 'OVER'}")  # fmt: skip
        print(f"  break a rule                {broken:8d}   wanted 0")
        print(f"  near-duplicates             {alike:8d}   wanted 0")
        print(f"  largest share in common     {largest:8.3f}   at most 0.333")
        print(f"  mean share in common        {mean:8.4f}")
        print(f"  distinct sentences          {distinct:8.3f}")
        print(f"  seconds spoken              {seconds.mean():8.1f}   sd {seconds.std():.1f}, {seconds.min():.0f} to {seconds.max():.0f} (the paper: 120.4, sd 18.8)")  # fmt: skip


if __name__ == "__main__":
    main()
