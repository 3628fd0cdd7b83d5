"""Prompts of the user's own, kept in the corpus they were used for.

``prompts/`` in a corpus folder holds a copy of every prompt that was given with ``--prompts``, so that whoever goes
on with the corpus, on another day or by another command, asks with the same words. What ships is not copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from earwitness.errors import DataError
from earwitness.runs.folder import write_atomically
from earwitness.scenes.corpus import Corpus

KEPT = "prompts"
"""Folder in a corpus."""


def prompts_in_use(corpus: Corpus, given: Path | None, names: Sequence[str], shipped: Path) -> Path:
    """The folder whose prompts are to be used: the one given, else that of the corpus, else what ships.

    Parameters
    ----------
    names: files that belong together, without ``.yaml``; the corpus has all of them or none counts.
    """
    if given is not None:
        return given
    kept = corpus.path(KEPT)
    return kept if all((kept / f"{name}.yaml").is_file() for name in names) else shipped


def keep_prompts(corpus: Corpus, used: Path, names: Sequence[str], shipped: Path) -> None:
    """Put copies of the prompts in use into the corpus; of what ships, none.

    Raises
    ------
    DataError: one of them cannot be read.
    """
    kept = corpus.path(KEPT)
    if used.resolve() == kept.resolve():
        return
    for name in names:
        path = kept / f"{name}.yaml"
        if used.resolve() == shipped.resolve():
            path.unlink(missing_ok=True)
            continue
        source = used / f"{name}.yaml"
        try:
            text = source.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(str(source), f"cannot be read ({error})", "a prompt") from None
        kept.mkdir(exist_ok=True)
        write_atomically(path, text)
