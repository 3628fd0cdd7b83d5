"""Finding the corpus that runs were about, for its words, times and waveforms."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from earwitness.errors import EarwitnessError, UsageError

if TYPE_CHECKING:
    from earwitness.tasks.scene_items import MixedCorpus


@dataclass(frozen=True, slots=True)
class Finder:
    """Looks for corpora: in the folders a user names, then where the runs found them.

    ``bank`` is the folder of the corpora's bank, None for the one that ships.
    """

    folders: tuple[Path, ...] = ()
    bank: Path | None = None

    def find(
        self, card: Mapping[str, Any], scenes: Collection[str]
    ) -> tuple[MixedCorpus | None, str]:
        """The corpus of a run's card with the scenes asked about, or None and the reason.

        Parameters
        ----------
        card: what a run's card says of its corpus.
        scenes: ids of scenes to keep.
        """
        why = "its folder is not where the runs found it"
        recorded = [Path(str(card["folder"]))] if card.get("folder") else []
        for folder in (*self.folders, *recorded):
            if not (folder / "corpus.yaml").is_file():
                continue
            try:
                mixed = self._load(folder)
            except EarwitnessError as error:
                why = f"it cannot be read: {error.found}"
                continue
            if not _same(card, mixed):
                why = "what is there is another corpus"
                continue
            kept = tuple(scene for scene in mixed.scenes if scene.id in scenes)
            if not kept:
                why = "what is there has none of the scenes asked about"
                continue
            return replace(mixed, scenes=kept), ""
        return None, why

    def _load(self, folder: Path) -> MixedCorpus:
        from earwitness.tasks.scene_items import load_mixed

        return load_mixed(folder, bank=self.bank, any_bank=True)


def _same(card: Mapping[str, Any], mixed: MixedCorpus) -> bool:
    """Whether a corpus is the one of a run's card: planned with the same seed from the same bank."""
    bank = card.get("bank")
    planned = bank.get("hash") if isinstance(bank, Mapping) else None
    return mixed.seed == card.get("seed") and planned in (None, mixed.corpus.config.bank.hash)


def bank_note(mixed: MixedCorpus) -> str:
    """What to say where names are not those of the bank that the corpus was planned from; empty where they are."""
    wanted = mixed.corpus.config.bank
    if mixed.bank.hash == wanted.hash:
        return ""
    return (
        f"Planned from the bank {wanted.id} {wanted.version}, shown with names of {mixed.bank.id} {mixed.bank.version}."
        " Name the corpus's own with --bank DIR."
    )


def check_folders(folders: Sequence[Path]) -> None:
    """Refuse a ``--corpus`` that is none.

    Raises
    ------
    UsageError: there is no corpus in a folder.
    """
    for folder in folders:
        if not (folder / "corpus.yaml").is_file():
            raise UsageError(
                "--corpus", f"{folder} holds no corpus (no corpus.yaml)", "the folder of a corpus"
            )
