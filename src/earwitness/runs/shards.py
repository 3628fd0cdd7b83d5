"""Parts of a run for several machines: which items a shard has, and how shards become one run again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from earwitness.errors import DataError, UsageError
from earwitness.runs.folder import CARD, ITEMS, LEDGER, RunFolder, find_runs, write_atomically
from earwitness.runs.items import digest
from earwitness.runs.jsonlines import JsonLines
from earwitness.runs.ledger import Ledger

Entry = TypeVar("Entry")
_SUFFIX = re.compile(r"--shard-\d+-of-\d+$")
_OWN = frozenset({"started", "finished", "n_items", "shard", "versions", "long_audio", "batch"})
"""Fields of a card that may differ between parts of one run."""


@dataclass(frozen=True, slots=True)
class Shard:
    """Part ``index`` (from 1) of ``of``: every ``of``-th item, so that each part has all kinds."""

    index: int
    of: int

    @property
    def suffix(self) -> str:
        """What the name of a shard's folder ends in."""
        return f"--shard-{self.index}-of-{self.of}"

    def part(self, entries: Sequence[Entry]) -> tuple[Entry, ...]:
        """This part of a sequence.

        >>> Shard(2, 3).part("abcdefg")
        ('b', 'e')
        """
        return tuple(entries[self.index - 1 :: self.of])


def parse_shard(text: str) -> Shard:
    """Read ``1/4``.

    Raises
    ------
    UsageError: it is not of this form.
    """
    found = re.fullmatch(r"\s*(\d{1,6})\s*/\s*(\d{1,6})\s*", text)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise UsageError("--shard", repr(text), "I/N, such as 1/4 for the first of four")
    return Shard(int(found[1]), int(found[2]))


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge made. ``duplicates`` are replies to a key that another part had answered; the first stands."""

    folder: Path
    parts: int
    items: int
    replies: int
    failed: int
    duplicates: int


def merge_runs(paths: Sequence[Path], out: Path) -> tuple[Merged, ...]:
    """Join parts of runs: every run found at or below ``paths``, by its name without the shard.

    Parameters
    ----------
    out: folder for the joined runs.

    Raises
    ------
    DataError: cards that differ, an item asked in two ways, a shard that is missing, or damage.
    UsageError: a run of that name is already in ``out``, or a part is still being worked on.
    """
    groups: dict[str, list[Path]] = {}
    for folder in find_runs(paths):
        groups.setdefault(_SUFFIX.sub("", folder.name), []).append(folder)
    for name, folders in groups.items():
        target = out / name
        if (target / CARD).exists() or target.resolve() in folders:
            raise UsageError(
                str(target),
                "is already a run",
                "a folder without it",
                "Choose another --out, or remove that run first.",
            )
    return tuple(_merge(folders, out / name) for name, folders in sorted(groups.items()))


def _merge(folders: Sequence[Path], target: Path) -> Merged:
    cards = [RunFolder(folder).card() for folder in folders]
    folders, cards = _in_order(folders, cards)
    _check_cards(folders, cards)
    lines = _items(folders, cards)
    target.mkdir(parents=True, exist_ok=True)
    duplicates = _write_ledger(folders, target / LEDGER)
    text = "".join(json.dumps(line, ensure_ascii=False, sort_keys=True) + "\n" for line in lines)
    write_atomically(target / ITEMS, text)
    merged = RunFolder(target)
    with Ledger(target / LEDGER, read_only=True) as ledger:
        replied = sum(ledger.has_reply(line["key"]) for line in lines)
        failed = sum(ledger.get_entry(line["key"])[1] is not None for line in lines)
    merged.write_card(_joined_card(cards, folders, lines, complete=replied == len(lines)))
    return Merged(target, len(folders), len(lines), replied, failed, duplicates)


def _in_order(
    folders: Sequence[Path], cards: Sequence[dict[str, Any]]
) -> tuple[list[Path], list[dict[str, Any]]]:
    pairs = sorted(
        zip(folders, cards, strict=True),
        key=lambda pair: ((pair[1].get("shard") or {}).get("index", 0), str(pair[0])),
    )
    return [folder for folder, _ in pairs], [card for _, card in pairs]


def _comparable(card: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in card.items() if key not in _OWN}
    clips = kept.get("clips")
    if isinstance(clips, dict):
        # The set may lie elsewhere on another machine; its content is in its hash.
        kept["clips"] = {key: value for key, value in clips.items() if key != "folder"}
    return kept


def _check_cards(folders: Sequence[Path], cards: Sequence[dict[str, Any]]) -> None:
    first = _comparable(cards[0])
    for folder, card in zip(folders[1:], cards[1:], strict=True):
        other = _comparable(card)
        differing = sorted(
            key for key in first.keys() | other.keys() if first.get(key) != other.get(key)
        )
        if differing:
            raise DataError(
                str(folder),
                f"differs from {folders[0]} in {', '.join(differing)}",
                "parts of one run: the same task, model, settings, prompt and set",
                "Merge what belongs together, or run the part again with the same options.",
            )
    told = [card.get("shard") for card in cards]
    if not any(told):
        return
    of = {int((shard or {}).get("of", 0)) for shard in told}
    if len(of) != 1 or not all(told):
        raise DataError(
            str(folders[0]),
            f"was divided in another way than the others ({', '.join(str(n) for n in of)})",
            "shards of one division",
        )
    present = [shard["index"] for shard in told if shard]
    missing = [index for index in range(1, of.pop() + 1) if index not in present]
    if missing or len(set(present)) != len(present):
        what = f"shard {missing[0]} is missing" if missing else "a shard is there twice"
        raise DataError(str(folders[0].parent), what, f"each of {len(present) + len(missing)} once")
    if len({shard["sha256"] for shard in told if shard}) != 1:
        raise DataError(
            str(folders[0]), "and the others are parts of different item lists",
            "shards of the same set, asked in the same way",
        )  # fmt: skip


def _items(folders: Sequence[Path], cards: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The lines of all parts in the order of the whole run, each once."""
    parts = [list(_lines(folder / ITEMS)) for folder in folders]
    ordered = _interleaved(parts) if cards[0].get("shard") else [x for part in parts for x in part]
    seen: dict[tuple[str, str], dict[str, Any]] = {}
    for line in ordered:
        identity = (str(line.get("id")), str(line.get("condition")))
        before = seen.setdefault(identity, line)
        differing = [
            f for f in ("key", "gold", "cluster", "groups") if before.get(f) != line.get(f)
        ]
        if differing:
            raise DataError(
                f"item {identity[0]} ({identity[1]})",
                f"differs between the parts in {', '.join(differing)}",
                "the same question in each",
                "These are parts of different runs.",
            )
    lines = list(seen.values())
    shard = cards[0].get("shard")
    if shard and digest(_whole_keys(lines)) != shard["sha256"]:
        raise DataError(
            str(folders[0]), "and the other shards do not make up the run they were parts of",
            "shards as they were made",
        )  # fmt: skip
    return lines


def _whole_keys(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    """Ids of the whole run's questions, in order, chunks of one taken together."""
    return list(dict.fromkeys(str(line.get("part_of") or line["id"]) for line in lines))


def _interleaved(parts: Sequence[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Lines of shards back in their order; chunks of one question stay together."""
    bundled = []
    for part in parts:
        bundles: dict[str, list[dict[str, Any]]] = {}
        for line in part:
            bundles.setdefault(str(line.get("part_of") or line["id"]), []).append(line)
        bundled.append(list(bundles.values()))
    longest = max((len(bundles) for bundles in bundled), default=0)
    return [
        line
        for row in range(longest)
        for bundles in bundled
        if row < len(bundles)
        for line in bundles[row]
    ]


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    from earwitness.runs.jsonlines import read_lines

    for _, line in read_lines(path, "a question of a run"):
        if "id" not in line or "key" not in line:
            raise DataError(
                str(path), f"has a line without id or key: {line}", "questions of a run"
            )
        yield line


def _write_ledger(folders: Sequence[Path], target: Path) -> int:
    """Copy the entries of all parts, whole lines only; returns how many replies were there twice."""
    replied: set[str] = set()
    duplicates = 0
    with target.open("wb") as file:
        for folder in folders:
            source = folder / LEDGER
            if not source.exists():
                continue
            offsets: list[int] = []
            with JsonLines(
                source,
                read_only=True,
                keys=("kind", "key"),
                entry="a ledger entry",
                note=lambda _, offset, into=offsets: into.append(offset),  # type: ignore[misc]
            ) as lines:
                for offset in offsets:
                    line = lines.read(offset)
                    if line["kind"] == "reply":
                        duplicates += line["key"] in replied
                        replied.add(line["key"])
                    text = json.dumps(line, ensure_ascii=False, separators=(",", ":"))
                    file.write(text.encode("utf-8", errors="backslashreplace") + b"\n")
    return duplicates


def _joined_card(
    cards: Sequence[dict[str, Any]],
    folders: Sequence[Path],
    lines: Sequence[Mapping[str, Any]],
    *,
    complete: bool,
) -> dict[str, Any]:
    joined = {key: value for key, value in cards[0].items() if key != "shard"}
    finished = [card.get("finished") for card in cards]
    long_audio = [card["long_audio"] for card in cards if card.get("long_audio")]
    if long_audio:
        joined["long_audio"] = {
            **long_audio[0],
            "longest_s": max(each["longest_s"] for each in long_audio),
            **{n: sum(each[n] for each in long_audio) for n in ("cropped", "chunked", "chunks")},
        }
    batches = [card["batch"] for card in cards if card.get("batch")]
    if batches:
        joined["batch"] = {n: sum(each[n] for each in batches) for n in ("jobs", "replies")}
    versions = [card.get("versions") for card in cards]
    return joined | {
        "n_items": len(_whole_keys(lines)),
        "started": min(str(card.get("started")) for card in cards),
        "finished": max(str(day) for day in finished) if complete and all(finished) else None,
        "merged_from": [folder.name for folder in folders],
        "versions": versions[0],
        **({} if all(v == versions[0] for v in versions) else {"versions_of_parts": versions}),
    }


def shard_entry(shard: Shard, ids: Sequence[str]) -> dict[str, Any]:
    """What a shard's card says of it. ``ids`` are those of the whole run's items, in order."""
    return {
        "index": shard.index,
        "of": shard.of,
        "n_items": len(ids),
        "sha256": digest(list(dict.fromkeys(ids))),
    }
