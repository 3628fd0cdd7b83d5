"""Label maps: from the words a corpus or a model uses to the seven emotions.

A map is a versioned YAML file, so that changing what a word means needs no Python and shows up in every
report. What a map does not know is never guessed: :meth:`LabelMap.map` answers ``None`` with a rule that
says whether the word was known and left out on purpose (``calm -> none``) or is unknown (``unknown``).

File format::

    id: ravdess
    version: "1"
    description: what it is for
    source: where the rules come from
    extends: [own-words]          # optional: rules of other packaged maps, taken first
    words:                        # label -> its native words
      anger: [angry, "05"]
    mapping:                      # the same the other way round, native -> label
      fearful: fear
    dropped:                      # native -> why it maps to none of the labels
      calm: an eighth label of its own

Words are compared after NFKC, case folding and turning punctuation, symbols and white space into single
spaces, so that ``Surprise (negative)``, ``surprise_negative`` and ``SURPRISE-NEGATIVE`` are one word.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from earwitness.clips.corpus import EMOTIONS
from earwitness.errors import DataError, UsageError
from earwitness.runs.items import digest

UNKNOWN = "unknown"
"""The rule of a word that no map mentions."""

_KEYS = {
    "id",
    "version",
    "description",
    "source",
    "extends",
    "targets",
    "words",
    "mapping",
    "dropped",
}


def normalise_label(text: str) -> str:
    """One spelling for what differs only in case, width, punctuation or white space.

    >>> normalise_label("  Surprise_(Negative)! ")
    'surprise negative'
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    spaced = (" " if unicodedata.category(c)[0] in "PSZC" else c for c in folded)
    return " ".join("".join(spaced).split())


@dataclass(frozen=True, slots=True)
class LabelMap:
    """A versioned map from native words to labels.

    ``mapping`` and ``dropped`` have normalised keys (:func:`normalise_label`). ``hash`` is of everything
    that changes an answer: id, version, targets and rules; not of descriptions or file layout.
    """

    id: str
    version: str
    hash: str
    targets: tuple[str, ...]
    mapping: Mapping[str, str]
    dropped: Mapping[str, str] = field(default_factory=dict)
    description: str = ""
    source: str = ""

    @property
    def name(self) -> str:
        """``id@version``, as it stands in cards and reports."""
        return f"{self.id}@{self.version}"

    def map(self, native: str) -> tuple[str | None, str]:
        """What a native word means.

        Returns
        -------
        (label, rule): the rule is ``word -> label``, ``word -> none`` for words left out on purpose, or
        ``unknown``.

        >>> load_label_map("ravdess").map("Fearful")
        ('fear', 'fearful -> fear')
        >>> load_label_map("ravdess").map("calm")
        (None, 'calm -> none')
        """
        word = normalise_label(native)
        label = self.mapping.get(word)
        if label is not None:
            return label, f"{word} -> {label}"
        if word in self.dropped:
            return None, f"{word} -> none"
        return None, UNKNOWN

    def words_of(self, label: str) -> tuple[str, ...]:
        """The native words of one label, in the order of the file."""
        return tuple(word for word, target in self.mapping.items() if target == label)


def list_label_maps() -> tuple[str, ...]:
    """Names of the packaged maps, sorted."""
    folder = resources.files("earwitness.clips") / "maps"
    return tuple(
        sorted(entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".yaml"))
    )


def load_label_map(name_or_path: str | Path) -> LabelMap:
    """Read a packaged map by name, or a map of your own by path.

    A string without a slash and without a ``.yaml`` or ``.yml`` ending is a packaged name.

    Raises
    ------
    UsageError: no such map.
    DataError: the file contradicts itself or is not a label map.

    >>> load_label_map("emodb").map("W")
    ('anger', 'w -> anger')
    """
    return _load(str(name_or_path), ())


def _load(name: str, loading: tuple[str, ...]) -> LabelMap:
    where = name
    if "/" in name or name.lower().endswith((".yaml", ".yml")):
        path = Path(name)
        if not path.is_file():
            raise UsageError(
                name, "no such label map file", "a YAML file with id, version and words"
            )
        try:
            text = path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise DataError(name, f"not UTF-8 text ({error.reason})", "a YAML label map") from error
    else:
        if name not in list_label_maps():
            raise UsageError(
                f"label map {name!r}",
                "there is no packaged map of that name",
                f"one of {', '.join(list_label_maps())}, or the path of a .yaml file",
            )
        text = (resources.files("earwitness.clips") / "maps" / f"{name}.yaml").read_text("utf-8")
        where = f"label map {name}"
    if name in loading:
        raise DataError(where, f"extends itself through {' -> '.join((*loading, name))}")
    return _build(_parse_yaml(text, where), where, (*loading, name))


def _parse_yaml(text: str, where: str) -> dict[str, Any]:
    """A YAML mapping of strings, lists and mappings. Nothing is read as a number or a truth value, so that
    ``05``, ``N`` and ``no`` stay the words they are."""
    import yaml

    class Loader(yaml.BaseLoader):
        pass

    def mapping(loader: yaml.BaseLoader, node: yaml.MappingNode) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = str(loader.construct_object(key_node, deep=True))
            if key in found:
                line = key_node.start_mark.line + 1
                raise DataError(f"{where}:{line}", f"{key!r} is there twice", "each key once")
            found[key] = loader.construct_object(value_node, deep=True)
        return found

    Loader.add_constructor("tag:yaml.org,2002:map", mapping)
    try:
        value = yaml.load(
            text, Loader=Loader
        )  # a BaseLoader: builds strings, lists and mappings only
    except yaml.YAMLError as error:
        raise DataError(
            where, f"not YAML ({' '.join(str(error).split())})", "a label map"
        ) from error
    if not isinstance(value, dict):
        raise DataError(
            where, f"holds {type(value).__name__}", "a mapping with id, version and words"
        )
    return value


def _build(data: dict[str, Any], where: str, loading: tuple[str, ...]) -> LabelMap:
    unknown = sorted(set(data) - _KEYS)
    if unknown:
        raise DataError(where, f"unknown key {unknown[0]!r}", f"only {', '.join(sorted(_KEYS))}")
    for key in ("id", "version"):
        if not isinstance(data.get(key), str) or not data[key].strip():
            raise DataError(where, f"has no {key}", f"a line such as {key}: my-map")
    targets = tuple(_strings(data.get("targets", list(EMOTIONS)), f"{where}: targets"))
    rules: dict[str, str | None] = {}
    reasons: dict[str, str] = {}
    for parent in _strings(data.get("extends", []), f"{where}: extends"):
        inherited = _load(parent, loading)
        for word, label in inherited.mapping.items():
            _check_target(label, targets, f"{where}: extends {parent}")
            reasons.pop(word, None)
            rules[word] = label
        for word, reason in inherited.dropped.items():
            rules[word] = None
            reasons[word] = reason
    own: dict[str, str | None] = {}

    def add(native: str, label: str | None) -> None:
        word = normalise_label(native)
        if not word:
            raise DataError(where, f"the word {native!r} has no letter or digit", "a native word")
        if word in own and own[word] != label:
            raise DataError(
                where,
                f"{native!r} maps to both {own[word] or 'none'} and {label or 'none'}",
                "one rule a word",
            )
        own[word] = label

    for label, natives in _table(data, "words", where).items():
        _check_target(label, targets, f"{where}: words")
        for native in _strings(natives, f"{where}: words: {label}"):
            add(native, label)
    for native, label in _table(data, "mapping", where).items():
        if not isinstance(label, str):
            raise DataError(f"{where}: mapping: {native}", f"found {label!r}", "one label")
        _check_target(label, targets, f"{where}: mapping: {native}")
        add(native, label)
    for native, reason in _table(data, "dropped", where).items():
        if not isinstance(reason, str) or not reason.strip():
            raise DataError(f"{where}: dropped: {native}", "no reason given", "a short sentence")
        add(native, None)
        reasons[normalise_label(native)] = " ".join(reason.split())
    rules |= own
    if not any(rules.values()):
        raise DataError(where, "maps no word at all", "words: or mapping:")
    mapping = {word: label for word, label in rules.items() if label is not None}
    dropped = {word: reasons[word] for word, label in rules.items() if label is None}
    fingerprint = digest(
        {
            "id": data["id"],
            "version": data["version"],
            "targets": list(targets),
            "mapping": mapping,
            "dropped": sorted(dropped),
        }
    )
    return LabelMap(
        id=data["id"],
        version=data["version"],
        hash=fingerprint,
        targets=targets,
        mapping=mapping,
        dropped=dropped,
        description=" ".join(str(data.get("description", "")).split()),
        source=" ".join(str(data.get("source", "")).split()),
    )


def _check_target(label: str, targets: tuple[str, ...], where: str) -> None:
    if label not in targets:
        raise DataError(where, f"found the label {label!r}", f"one of {', '.join(targets)}")


def _strings(value: Any, where: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise DataError(where, f"found {value!r}", "a list of words")
    return value


def _table(data: dict[str, Any], key: str, where: str) -> dict[str, Any]:
    value = data.get(key) or {}
    if not isinstance(value, dict):
        raise DataError(f"{where}: {key}", f"found {type(value).__name__}", "a mapping")
    return value
