"""The words the rules look for: those of the bank's language, and the bank's own in their place."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import yaml

from earwitness.errors import DataError
from earwitness.scenes.bank import Bank
from earwitness.scenes.bank_records import RulesFile
from earwitness.scenes.rules.limits import FOLDER, Limits, default_limits
from earwitness.scenes.rules.sentences import PhraseIndex

PHRASES = (
    "fillers",
    "phone_call",
    "stock_phrases",
    "sound_talk",
    "not_sound_talk",
    "causes",
    "repairs",
)
"""Lists of words and phrases that are looked for in what is said."""

WORDS = ("harmless_repeats", "label_words", "abbreviations")
"""Lists that are looked up word by word."""


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """Words and limits, ready to use.

    Attributes
    ----------
    language: BCP 47 tag.
    lists: every list by its key, as it was written.
    missing: keys of lists that neither the language nor the bank has: their rules find nothing.
    """

    language: str
    limits: Limits
    lists: dict[str, tuple[str, ...]]
    missing: tuple[str, ...]
    phrases: PhraseIndex
    harmless_repeats: frozenset[str]
    label_words: frozenset[str]
    abbreviations: frozenset[str]


def load_vocabulary(language: str, own: RulesFile | None = None) -> Vocabulary:
    """Return the words and limits for a language, with those of a bank in their place.

    Parameters
    ----------
    language: BCP 47 tag such as ``en-GB``; its first part chooses ``rules/<language>.yaml``. A language
        without such a file has no words but the bank's own.
    own: the bank's ``rules.yaml``.

    Examples
    --------
    >>> "um" in load_vocabulary("en-GB").lists["fillers"]
    True
    >>> load_vocabulary("fi").missing[0]
    'fillers'
    """
    base = language_rules(language.split("-")[0].lower())
    lists: dict[str, tuple[str, ...]] = {}
    missing = []
    for key in PHRASES + WORDS:
        values = None if own is None else getattr(own, key)
        if values is None:
            values = None if base is None else getattr(base, key)
        if values is None:
            missing.append(key)
        lists[key] = values or ()
    limits = default_limits().with_changes(base.limits if base else None)
    sets = {key: frozenset(word.lower() for word in lists[key]) for key in WORDS}
    return Vocabulary(
        language=language,
        limits=limits.with_changes(own.limits if own else None),
        lists=lists,
        missing=tuple(missing),
        phrases=PhraseIndex({key: lists[key] for key in PHRASES}),
        **sets,
    )


def vocabulary_of(bank: Bank) -> Vocabulary:
    """Return the words and limits that dialogues of a bank are checked with."""
    return load_vocabulary(bank.language, bank.rules)


@lru_cache(maxsize=8)
def language_rules(language: str) -> RulesFile | None:
    """Read ``rules/<language>.yaml``; None if Earwitness has no words for the language.

    Raises
    ------
    DataError: the file is there and cannot be used.
    """
    path = FOLDER / f"{language}.yaml"
    if language == "limits" or not language.isalpha() or not path.is_file():
        return None
    try:
        value: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
        return RulesFile.model_validate(value)
    except (yaml.YAMLError, ValueError) as error:
        raise DataError(
            str(path), f"not words for the rules ({error})", "see docs/dialogue-rules.md"
        ) from error
