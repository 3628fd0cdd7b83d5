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
            bank = card.get("bank")
            same_bank = not isinstance(bank, Mapping) or bank.get("hash") in (
                None,
                mixed.corpus.config.bank.hash,
            )
            if mixed.seed != card.get("seed") or not same_bank:
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

        return load_mixed(folder, bank=self.bank)


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
