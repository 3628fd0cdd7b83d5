"""What the tasks about scenes share: a mixed corpus as they read it, and the attributes results are split by.

Everything comes from the manifests the mixer writes: the moment a sound is loudest, how far it stands over the
ambience, and the file with its hash. A scene that was never mixed has no questions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from earwitness.errors import DataError, UsageError
from earwitness.models.protocols import AudioRef
from earwitness.scenes.mixing.manifest import Manifest, MixedEvent, read_manifest
from earwitness.scenes.scenario import SPLITS, Scenario

if TYPE_CHECKING:
    from earwitness.scenes.bank import Bank
    from earwitness.scenes.bank_names import Namer
    from earwitness.scenes.corpus import Corpus
    from earwitness.scenes.dialogue_records import Dialogue

AUDIBLE = "audible"
MARGINS_DB = (6.0, 10.0, 15.0)
"""Limits of the buckets by how far a sound stands over the ambience."""


@dataclass(frozen=True, slots=True)
class MixedScene:
    """A scene that can be heard: its plan, its words, and what the mixer measured."""

    scenario: Scenario
    dialogue: Dialogue
    manifest: Manifest

    @property
    def id(self) -> str:
        return self.scenario.id


@dataclass(frozen=True)
class MixedCorpus:
    """The mixed scenes of a corpus to ask about, sorted by id.

    Attributes
    ----------
    plan: every scenario in the order of the plan, mixed or not: a place in it never moves when scenes are added.
    unmixed: accepted scenes without audio.
    transcripts: what a recogniser wrote down of each mix, by the hash of its file; empty until it was asked.
    """

    corpus: Corpus
    bank: Bank
    scenes: tuple[MixedScene, ...]
    plan: tuple[Scenario, ...]
    split: str | None
    unmixed: int
    transcripts: Mapping[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.corpus.folder

    @property
    def seed(self) -> int:
        return self.corpus.config.seed

    @cached_property
    def namer(self) -> Namer:
        """Finds the words that name a sound."""
        from earwitness.scenes.bank_names import Namer

        return Namer(self.bank)

    @cached_property
    def sha256(self) -> str:
        """Hash of everything that is heard: the scenes' files by id."""
        text = json.dumps([[scene.id, scene.manifest.audio.sha256] for scene in self.scenes])
        return hashlib.sha256(text.encode()).hexdigest()

    def manifest(self, scene: MixedScene, variant: str = AUDIBLE) -> Manifest | None:
        """The manifest of a scene or of one of its twins, None where it was not made."""
        if variant == AUDIBLE:
            return scene.manifest
        from earwitness.scenes.mixing.stage import manifest_file

        path = manifest_file(self.folder, scene.id, variant)
        return read_manifest(path) if path.is_file() else None

    def audio(self, manifest: Manifest) -> AudioRef:
        """The file of a manifest, by reference."""
        audio = manifest.audio
        return AudioRef(
            path=self.folder / audio.file,
            sha256=audio.sha256,
            seconds=audio.duration_s,
            rate=audio.rate_hz,
            channels=audio.channels,
        )


def load_mixed(
    folder: Path | str,
    *,
    bank: Path | None = None,
    split: str | None = None,
    limit: int | None = None,
    any_bank: bool = False,
) -> MixedCorpus:
    """Read the mixed scenes of a corpus.

    Parameters
    ----------
    bank: folder of the corpus's bank; None means the one that ships.
    split: ``train``, ``validation`` or ``test``, several with commas; None means all.
    limit: only so many scenes, drawn by a hash of their ids: more contain fewer.
    any_bank: take the bank although the corpus was planned from another state of it: enough for showing scenes, not
        for asking about them.

    Raises
    ------
    UsageError: unknown split, a limit below one, or nothing there to ask about.
    DataError: no corpus, or a manifest that belongs to another scene.
    """
    from earwitness.scenes.bank import load_bank
    from earwitness.scenes.corpus import Corpus
    from earwitness.scenes.mixing.stage import manifest_file

    chosen = SPLITS if split is None else tuple(part.strip() for part in split.split(","))
    if any(part not in SPLITS for part in chosen):
        raise UsageError("--split", repr(split), f"{', '.join(SPLITS)}, or several with commas")
    if limit is not None and limit < 1:
        raise UsageError("--limit", f"found {limit}", "at least 1")
    corpus = Corpus(folder)
    pairs = [(s, d) for s, d in corpus.scenes() if s.split in chosen]
    scenes = []
    for scenario, dialogue in pairs:
        path = manifest_file(corpus.folder, scenario.id)
        if not path.is_file():
            continue
        manifest = read_manifest(path)
        if manifest.scene != scenario.id:
            raise DataError(str(path), f"is of the scene {manifest.scene!r}", repr(scenario.id))
        scenes.append(MixedScene(scenario, dialogue, manifest))
    if not scenes:
        what = "mixed scene" if split is None else f"mixed scene of the split {split!r}"
        raise UsageError(
            str(folder),
            f"has no {what}",
            "at least one",
            f"Make them: earwitness scenes mix {folder} --sounds LIBRARY",
        )
    unmixed = len(pairs) - len(scenes)
    scenes = sorted(scenes, key=lambda s: hashlib.sha256(s.id.encode()).digest())[:limit]
    return MixedCorpus(
        corpus,
        load_bank(bank) if any_bank else corpus.bank(bank),
        tuple(sorted(scenes, key=lambda scene: scene.id)),
        (*corpus.scenarios(), *corpus.refills()),
        split,
        unmixed,
    )


def margin_bucket(over_ambience_db: float | None) -> str:
    """How far a sound stands over the ambience, as a bucket; edges belong to the upper one.

    >>> [margin_bucket(x) for x in (5.0, 6.0, 12.5, 40.0, None)]
    ['below 6 dB', '6-10 dB', '10-15 dB', '15 dB or more', 'no ambience']
    """
    if over_ambience_db is None:
        return "no ambience"
    low, middle, high = MARGINS_DB
    # A margin raised to exactly 6 dB is stored as 5.999...: a hundredth of a decibel is no difference.
    margin = over_ambience_db + 0.01
    if margin < low:
        return f"below {low:g} dB"
    if margin < middle:
        return f"{low:g}-{middle:g} dB"
    return f"{middle:g}-{high:g} dB" if margin < high else f"{high:g} dB or more"


def event_groups(scene: MixedScene, event: MixedEvent) -> dict[str, str]:
    """Attributes that results about a sound are split by; of the audible version under every condition."""
    groups = {
        "location": scene.scenario.location,
        "sound": event.sound,
        "reaction": event.reaction,
        "margin": margin_bucket(event.over_ambience_db),
        "level": "set back" if event.set_back else "as loud as the voices",
    }
    if event.register:
        groups["register"] = event.register
    return groups


def spoken_text(scene: MixedScene) -> str:
    """Everything that is said, without delivery tags."""
    from earwitness.scenes.dialogue import plain_text

    return "\n".join(plain_text(utterance) for utterance in scene.dialogue.utterances)


def named_in_talk(mixed: MixedCorpus, scene: MixedScene, sound: str) -> bool:
    """Whether somebody says a word that identifies the sound."""
    mentions = mixed.namer.mentions(spoken_text(scene), sound)
    return any(mention.tier == "name" for mention in mentions)


def shown_time(seconds: float) -> str:
    """A moment as prompts write it, to a tenth of a second.

    >>> shown_time(83.449)
    '83.4'
    """
    return f"{seconds:.1f}"


def describe(mixed: MixedCorpus) -> dict[str, object]:
    """What cards of runs say of a corpus."""
    config = mixed.corpus.config
    return {
        "name": mixed.folder.resolve().name,
        "kind": "scenes",
        "folder": str(mixed.folder),
        "seed": mixed.seed,
        "bank": {"id": config.bank.id, "version": config.bank.version, "hash": config.bank.hash},
        "split": mixed.split,
        "sha256": mixed.sha256,
        "n": len(mixed.scenes),
        "unmixed": mixed.unmixed,
        "templates": {scene.id: scene.scenario.template for scene in mixed.scenes},
    }


def public_groups(groups: Mapping[str, str]) -> dict[str, str]:
    """Groups that results are split by, without those a task keeps for itself (names with ``_``)."""
    return {key: value for key, value in groups.items() if not key.startswith("_")}


def known_of(
    mixed: MixedCorpus,
    scene: MixedScene,
    task: str,
    *,
    options: str | None = None,
    moment_s: float | None = None,
) -> dict[str, str]:
    """What a local baseline may know of an item: all that its prompt says, and which scene it is of.

    Parameters
    ----------
    options: of a choice, as stored; never which of them is true.
    moment_s: None where the prompt tells none.
    """
    known = {"task": task, "scene": scene.id, "corpus_seed": str(mixed.seed)}
    if options is not None:
        known["options"] = options
    if moment_s is not None:
        known["t"] = shown_time(moment_s)
    return known


def index_of(plan: Sequence[Scenario]) -> dict[str, Scenario]:
    """Scenarios by id."""
    return {scenario.id: scenario for scenario in plan}
