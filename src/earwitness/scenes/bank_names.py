"""Who names a sound? One definition, used by the linter, the dialogue rules and the leak audit.

A bank lists for each sound the words that name it. They are looked for as whole words, whatever their case;
spaces in a phrase match hyphens too. A trailing ``*`` stands for any ending. In English banks the last word of
an entry is also found in its regular inflections (bark, barks, barked, barking); other languages write the
star or the forms.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from earwitness.scenes.bank import Bank

Tier = Literal["name", "hint", "weak"]
TIERS: tuple[Tier, ...] = ("name", "hint", "weak")
Word = tuple[str, int, int]
"""A lower-case word with the places where it begins and ends."""

_VOWELS = "aeiou"
_WORD = re.compile(r"\w+(?:['’]\w+)*\*?")


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
    if word.endswith(("ing", "ed")) or (word.endswith("s") and not word.endswith(("ss", "us"))):
        return (word,)
    sibilant = word.endswith(("ss", "us", "x", "z", "ch", "sh"))
    forms = {word, *_verb_forms(word)}
    if not (word.endswith("y") and word[-2] not in _VOWELS):
        forms.add(word + ("es" if sibilant else "s"))
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


@lru_cache(maxsize=32)
def words_of(text: str) -> tuple[Word, ...]:
    """Split a text into lower-case words with their places; hyphens divide, a possessive 's is cut.

    Examples
    --------
    >>> words_of("The dog's bow-wow")
    (('the', 0, 3), ('dog', 4, 7), ('bow', 10, 13), ('wow', 14, 17))
    """
    found = []
    for match in _WORD.finditer(text.lower()):
        word = match.group().replace("’", "'")
        if word.endswith("'s"):
            word = word[:-2]
        found.append((word, match.start(), match.start() + len(word)))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Entry:
    """An entry ready to be compared: for each of its words the forms, or the prefix before a star."""

    sound: str
    tier: Tier
    text: str
    steps: tuple[frozenset[str] | str, ...]

    def follows(self, words: Sequence[Word], at: int) -> bool:
        """Say whether the words from ``at`` on are this entry; the first one is known to be."""
        if at + len(self.steps) > len(words):
            return False
        for step, (word, _, _) in zip(self.steps[1:], words[at + 1 :], strict=False):
            if not (word.startswith(step) if isinstance(step, str) else word in step):
                return False
        return True


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
        index: dict[str, list[_Entry]] = {}
        self._stars: list[tuple[str, _Entry]] = []
        for sound in bank.sounds:
            lists: tuple[tuple[Tier, tuple[str, ...]], ...] = (
                ("name", sound.names),
                ("hint", sound.hints),
                ("weak", sound.weak),
            )
            for tier, texts in lists:
                for text in texts:
                    entry = _Entry(sound.id, tier, text, _steps(text, bank.language))
                    if not entry.steps:
                        continue
                    first = entry.steps[0]
                    if isinstance(first, str):
                        self._stars.append((first, entry))
                    else:
                        for form in first:
                            index.setdefault(form, []).append(entry)
        self._index = {form: tuple(entries) for form, entries in index.items()}

    def mentions(
        self,
        text: str,
        sound: str,
        *,
        tiers: Collection[Tier] = ("name", "hint"),
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

        Raises
        ------
        BankError: the bank has no such sound.
        """
        self._bank.sound(sound)
        others = set(explained_by) - {sound}
        found = self._find(text, {sound, *others}, tiers)
        about = [mention for mention in found if mention.sound in others]
        return tuple(
            m
            for m in found
            if m.sound == sound and not any(o.start <= m.start and m.end <= o.end for o in about)
        )

    def named_in(
        self,
        text: str,
        *,
        tiers: Collection[Tier] = ("name", "hint"),
        sounds: Collection[str] | None = None,
    ) -> tuple[Mention, ...]:
        """Return the mentions of every sound of the bank, or of some, in a text, in order of place."""
        return tuple(self._find(text, sounds, tiers))

    def _find(
        self, text: str, sounds: Collection[str] | None, tiers: Collection[Tier]
    ) -> list[Mention]:
        words = words_of(text)
        longest: dict[tuple[int, str, Tier], _Entry] = {}
        for at, (word, _, _) in enumerate(words):
            candidates = self._index.get(word, ())
            if self._stars:
                candidates += tuple(e for prefix, e in self._stars if word.startswith(prefix))
            for entry in candidates:
                if entry.tier not in tiers or not (sounds is None or entry.sound in sounds):
                    continue
                # Of "car horn" and "car", the longer one is what was said.
                key = (at, entry.sound, entry.tier)
                held = longest.get(key)
                if (held is None or len(held.steps) < len(entry.steps)) and entry.follows(
                    words, at
                ):
                    longest[key] = entry
        covered = {
            (at + n, sound, tier)
            for (at, sound, tier), entry in longest.items()
            for n in range(1, len(entry.steps))
        }
        found = [
            Mention(sound, tier, entry.text, words[at][1], words[at + len(entry.steps) - 1][2])
            for (at, sound, tier), entry in longest.items()
            if (at, sound, tier) not in covered
        ]
        return sorted(found, key=lambda m: (m.start, m.end, m.sound, m.tier))


def _steps(entry: str, language: str) -> tuple[frozenset[str] | str, ...]:
    words = [word for word, _, _ in words_of(entry)]
    steps: list[frozenset[str] | str] = []
    for n, word in enumerate(words):
        if word.endswith("*"):
            steps.append(word[:-1])
        elif n == len(words) - 1:
            steps.append(frozenset(spoken_forms(word, language)))
        else:
            steps.append(frozenset((word,)))
    return tuple(steps)
