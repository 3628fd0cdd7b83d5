"""Lexicons: the words that mean each label of a closed set, and the words around them, as versioned data.

A lexicon file holds what a task's labels are called in running text; ``lexicons/cues.yaml`` holds the parts of
speech around them (negations, hedges, answer phrases, refusals), shared by every closed-label task.

File format of a lexicon::

    id: reactions
    version: "1"
    label_map: own-words       # optional: take the words of this label map first
    except: [sadly]            # words of that map that running text must not take for an answer
    labels:                    # label -> words and phrases, in any language
      pivot: [pivot, change of subject]
    abbreviations: {pivot: [piv]}   # count only where they are the whole answer
    outside: [laughter]        # known words that are none of the labels
    idioms: [happy to help]    # phrases that hold such a word and mean something else
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from earwitness.errors import DataError
from earwitness.runs.items import digest

OUTSIDE = "outside"
"""Part of a word that is known and none of the labels."""
LABEL = "label"

# Scripts written without spaces are read sign by sign, all others word by word.
_UNSPACED = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_MARKS = "\u0300-\u036f\u064b-\u065f\u0900-\u0dff"
_TOKEN = re.compile(
    r"\d+(?:[.,]\d+)?%?"
    rf"|[{_UNSPACED}]"
    rf"|[^\W\d_{_UNSPACED}]+(?:[{_MARKS}]+[^\W\d_{_UNSPACED}]*)*(?:'(?:t|s|re|ve|ll|d|m)(?!\w))?"
    r"|\n[^\S\n]*\n\s*|\n|[*_`~#]+|->|[^\w\s]",
    re.IGNORECASE,
)
_QUOTES = str.maketrans(
    {"’": "'", "‘": "'", "ʼ": "'", "\u200b": None, "\ufeff": None, "\xad": None}
)

Phrase = tuple[tuple[str, ...], tuple[tuple[str, str], ...]]
"""Tokens of a phrase, and its (part, value) pairs."""


def normalise(text: str) -> str:
    """NFKC with plain apostrophes; case is kept."""
    return unicodedata.normalize("NFKC", text).translate(_QUOTES)


def tokenise(text: str) -> list[str]:
    """Tokens of normalised text: words, signs of scripts without spaces, numbers, punctuation, line ends.

    >>> tokenise("It isn't 愤怒: 0.7!")
    ['It', "isn't", '愤', '怒', ':', '0.7', '!']
    """
    return _TOKEN.findall(text)


def is_word(token: str) -> bool:
    """Whether a token has a letter or digit (also one in a script whose vowels are marks)."""
    return token[0].isalnum()


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Words of a closed label set, ready for matching.

    ``exact`` maps a whole short answer to ``(part, value)``; ``phrases`` maps a first token to the phrases
    that begin with it, longest first. ``hash`` is of everything that can change an outcome.
    """

    id: str
    version: str
    hash: str
    labels: tuple[str, ...]
    forms: Mapping[str, tuple[str, ...]]
    exact: Mapping[str, tuple[str, str]]
    phrases: Mapping[str, tuple[Phrase, ...]]
    reasoning: tuple[tuple[str, str], ...] = ()
    answer_keys: tuple[str, ...] = ()
    score_keys: frozenset[str] = field(default_factory=frozenset)

    @property
    def name(self) -> str:
        return f"{self.id}@{self.version}"

    def label_of(self, word: str) -> str | None:
        """The label that a word or phrase alone stands for.

        >>> load_lexicon("emotion").label_of("Furious!")
        'anger'
        """
        part, value = self.exact.get(exact_key(word), ("", ""))
        return value if part == LABEL else None


def exact_key(text: str) -> str:
    """A short answer without case, spacing, punctuation and markup."""
    return " ".join(
        token for token in tokenise(normalise(text).casefold()) if token[0].isalnum()
    ).strip()


def build_lexicon(
    lexicon_id: str,
    version: str,
    forms: Mapping[str, Sequence[str]],
    *,
    abbreviations: Mapping[str, Sequence[str]] | None = None,
    outside: Iterable[str] = (),
    idioms: Iterable[str] = (),
) -> Lexicon:
    """A lexicon from words by label; every label is also a word for itself.

    Raises
    ------
    DataError: a word stands for two labels.
    """
    where = f"lexicon {lexicon_id}"
    cues = _cues()
    table: dict[tuple[str, ...], dict[str, str]] = {}
    exact: dict[str, tuple[str, str]] = {}

    def add(phrase: str, part: str, value: str, *, running: bool = True) -> None:
        tokens = tuple(tokenise(normalise(phrase).casefold())) if phrase.strip() else (phrase,)
        if not tokens:
            raise DataError(where, f"the phrase {phrase!r} is empty", "a word or phrase")
        if part in (LABEL, OUTSIDE):
            key = exact_key(phrase)
            part_before, value_before = exact.get(key, (part, value))
            if part == LABEL and part_before == LABEL and value_before != value:
                raise DataError(
                    where,
                    f"{phrase!r} stands for both {value_before} and {value}",
                    "one label a word",
                )
            if part_before == LABEL:
                part, value = LABEL, value_before if part == OUTSIDE else value
            exact[key] = (part, value)
        if running:
            table.setdefault(tokens, {})[part] = value

    for label, words in forms.items():
        for word in dict.fromkeys((label, *words)):
            add(word, LABEL, label)
    for label, words in (abbreviations or {}).items():
        for word in words:
            add(word, LABEL, label, running=False)
    for word in outside:
        add(word, OUTSIDE, word)
    for phrase in idioms:
        add(phrase, "skip", phrase)
    for part, phrases in cues["parts"].items():
        for phrase in phrases:
            add(phrase, part, phrase)
    by_first: dict[str, list[Phrase]] = {}
    for tokens, parts in table.items():
        # A label's word is never anything else: French "triste" stays an answer whatever cues are added.
        pairs = ((LABEL, parts[LABEL]),) if LABEL in parts else tuple(parts.items())
        by_first.setdefault(tokens[0], []).append((tokens, pairs))
    fingerprint = digest(
        {
            "id": lexicon_id,
            "version": version,
            "cues": cues,
            "exact": {key: list(value) for key, value in exact.items()},
            "phrases": sorted(
                [list(tokens), sorted(parts.items())] for tokens, parts in table.items()
            ),
        }
    )
    return Lexicon(
        id=lexicon_id,
        version=version,
        hash=fingerprint,
        labels=tuple(forms),
        forms={label: tuple(dict.fromkeys((label, *words))) for label, words in forms.items()},
        exact=exact,
        phrases={
            first: tuple(sorted(entries, key=lambda entry: -len(entry[0])))
            for first, entries in by_first.items()
        },
        reasoning=tuple((pair[0], pair[1]) for pair in cues["reasoning"]),
        answer_keys=tuple(exact_key(key) for key in cues["answer_keys"]),
        score_keys=frozenset(cues["score_keys"]),
    )


@lru_cache(maxsize=8)
def load_lexicon(name_or_path: str) -> Lexicon:
    """A packaged lexicon by name, or one's own YAML file by path.

    Raises
    ------
    DataError: no such lexicon, or the file is not one.
    """
    if "/" in name_or_path or name_or_path.endswith((".yaml", ".yml")):
        path = Path(name_or_path)
        if not path.is_file():
            raise DataError(name_or_path, "no such lexicon file", "a YAML file with id and labels")
        text, where = path.read_text(encoding="utf-8-sig"), name_or_path
    else:
        source = resources.files("earwitness.tasks") / "lexicons" / f"{name_or_path}.yaml"
        if not source.is_file():
            raise DataError(
                f"lexicon {name_or_path!r}", "there is no packaged lexicon of that name"
            )
        text, where = source.read_text("utf-8"), f"lexicon {name_or_path}"
    data = _strings_only(text, where)
    for key in ("id", "version", "labels"):
        if not data.get(key):
            raise DataError(where, f"has no {key}", "id, version and labels")
    forms: dict[str, list[str]] = {label: [] for label in data["labels"]}
    if data.get("label_map"):
        from earwitness.clips.labels import load_label_map, normalise_label

        left_out = {normalise_label(word) for word in data.get("except", [])}
        for native, label in load_label_map(data["label_map"]).mapping.items():
            if native not in left_out and label in forms:
                forms[label].append(native)
    for label, words in data["labels"].items():
        forms[label].extend(words or [])
    return build_lexicon(
        data["id"],
        data["version"],
        forms,
        abbreviations=data.get("abbreviations"),
        outside=data.get("outside", []),
        idioms=data.get("idioms", []),
    )


@lru_cache(maxsize=1)
def _cues() -> dict[str, Any]:
    source = resources.files("earwitness.tasks") / "lexicons" / "cues.yaml"
    return _strings_only(source.read_text("utf-8"), "lexicons/cues.yaml")


def _strings_only(text: str, where: str) -> dict[str, Any]:
    """YAML in which nothing becomes a number or a truth value, so that ``no`` stays a word."""
    import yaml

    try:
        data = yaml.load(text, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader))
    except yaml.YAMLError as error:
        raise DataError(where, f"not YAML ({' '.join(str(error).split())})", "a lexicon") from error
    if not isinstance(data, dict):
        raise DataError(where, f"holds {type(data).__name__}", "a mapping")
    return data
