"""Who names a sound? One definition, used by the linter, the dialogue rules and the leak audit.

A bank lists for each sound the words that name it. They are looked for as whole words, whatever their case;
spaces in a phrase match hyphens too. A trailing ``*`` stands for any ending. In English banks the last word of
an entry is also found in its regular inflections (bark, barks, barked, barking); other languages write the
star or the forms.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from earwitness.scenes.bank import Bank

Tier = Literal["name", "hint", "weak"]
TIERS: tuple[Tier, ...] = ("name", "hint", "weak")
_VOWELS = "aeiou"


@dataclass(frozen=True, slots=True)
class Mention:
    """A stretch of text that names a sound: ``text[start:end]``, found by the bank's ``entry``."""

    sound: str
    tier: Tier
    entry: str
    start: int
    end: int


def spoken_forms(word: str, language: str) -> tuple[str, ...]:
    """Return a word with its regular inflections, longest first.

    Only English is inflected; in other languages the word itself is returned.

    Examples
    --------
    >>> spoken_forms("slam", "en")
    ('slamming', 'slammed', 'slams', 'slam')
    """
    if not language.lower().startswith("en") or len(word) < 3 or not word.isalpha():
        return (word,)
    forms = {word}
    if not word.endswith(("ing", "ed", "ss")):
        forms.add(word + ("es" if word.endswith(("s", "x", "z", "ch", "sh")) else "s"))
    if word.endswith("ss"):
        forms.add(word + "es")
    if not word.endswith(("ing", "ed", "s")) or word.endswith("ss"):
        forms.update(_verb_forms(word))
    return tuple(sorted(forms, key=lambda form: (-len(form), form)))


def _verb_forms(word: str) -> set[str]:
    if word.endswith("y") and word[-2] not in _VOWELS:
        return {word[:-1] + "ies", word[:-1] + "ied", word + "ing"}
    if word.endswith("e") and not word.endswith("ee"):
        return {word + "d", word[:-1] + "ing"}
    if (
        len(word) <= 5
        and word[-1] not in _VOWELS + "wxy"
        and word[-2] in _VOWELS
        and word[-3] not in _VOWELS
    ):
        doubled = word + word[-1]
        return {doubled + "ed", doubled + "ing"}
    return {word + "ed", word + "ing"}


def entry_pattern(entry: str, language: str) -> str:
    """Return the regular expression (a string, for lower-case text) of one entry of a bank."""
    words = entry.lower().replace("’", "'").split()
    parts = [re.escape(word).replace(r"\*", r"\w*").replace(r"\-", r"[\s-]+") for word in words]
    last = words[-1]
    if "*" not in last:
        head, dash, tail = last.rpartition("-")
        forms = "|".join(re.escape(form) for form in spoken_forms(tail, language))
        parts[-1] = (re.escape(head).replace(r"\-", r"[\s-]+") + r"[\s-]+" if dash else "") + (
            f"(?:{forms})"
        )
    return r"[\s-]+".join(parts)


class Namer:
    """Finds the words of a text that name a sound of a bank.

    Examples
    --------
    >>> from earwitness.scenes.bank import load_bank
    >>> namer = Namer(load_bank())
    >>> [m.entry for m in namer.mentions("Whose dog is that?", "dog_bark")]
    ['dog']
    """

    def __init__(self, bank: Bank) -> None:
        self._bank = bank
        self._compiled: dict[tuple[str, Tier], tuple[re.Pattern[str], tuple[str, ...]] | None] = {}

    def mentions(
        self,
        text: str,
        sound: str,
        *,
        tiers: Iterable[Tier] = ("name", "hint"),
        explained_by: Iterable[str] = (),
    ) -> tuple[Mention, ...]:
        """Return where a text names a sound.

        Parameters
        ----------
        text: what somebody says, without delivery tags.
        sound: id of the sound.
        tiers: which lists of the sound to look in. Take ``weak`` only for what is said right after it.
        explained_by: other sounds that may be named here; a word inside a mention of one of these is
            about that one ("church bell" does not give a bicycle bell away).

        Returns
        -------
        Mentions in order of place, at most one for each place and tier.
        """
        folded = text.lower().replace("’", "'")
        tiers = tuple(tiers)
        found = [m for tier in tiers for m in self._find(folded, sound, tier)]
        if found:
            others = [
                m for other in explained_by if other != sound for tier in tiers for m in self._find(folded, other, tier)
            ]
            found = [m for m in found if not any(o.start <= m.start and m.end <= o.end for o in others)]
        return tuple(sorted(found, key=lambda m: (m.start, m.end, m.tier)))

    def _find(self, folded: str, sound: str, tier: Tier) -> Iterable[Mention]:
        compiled = self._pattern(sound, tier)
        if compiled is None:
            return
        pattern, entries = compiled
        for match in pattern.finditer(folded):
            entry = entries[int(str(match.lastgroup)[1:])]
            yield Mention(sound, tier, entry, match.start(), match.end())

    def _pattern(self, sound: str, tier: Tier) -> tuple[re.Pattern[str], tuple[str, ...]] | None:
        key = (sound, tier)
        if key not in self._compiled:
            record = self._bank.sound(sound)
            entries = {"name": record.names, "hint": record.hints, "weak": record.weak}[tier]
            # Longer entries first, so that "car horn" is one mention and not a mention of "car".
            entries = tuple(sorted(entries, key=lambda e: (-len(e.split()), -len(e), e)))
            union = "|".join(
                f"(?P<e{n}>{entry_pattern(entry, self._bank.language)})"
                for n, entry in enumerate(entries)
            )
            self._compiled[key] = (
                (re.compile(rf"(?<!\w)(?:{union})(?!\w)"), entries) if entries else None
            )
        return self._compiled[key]
