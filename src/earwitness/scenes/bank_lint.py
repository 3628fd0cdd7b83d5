"""The linter of banks: everything that would make a corpus drawn from a bank worse, with stable codes.

``B1xx`` faults of files (found while reading), ``B2xx`` of locations and sounds, ``B3xx`` of registers, ``B4xx`` of
role pairs, ``B5xx`` of topics, ``B6xx`` of a sound library against the bank. An error makes a bank or its
corpus unusable or unfair; a warning asks for a second look. :data:`CODES` says what each one means.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from earwitness.scenes.bank import Bank, BankError, assemble, structure
from earwitness.scenes.bank_names import Namer, Tier, spoken_forms
from earwitness.scenes.bank_reading import Finding, Severity, read_parts
from earwitness.scenes.bank_records import REACTED_TO, Location

MIN_SOUNDS = 12
"""Ordinary sounds a location needs, so that three events and their distractors vary between scenes."""

MIN_REGISTERS = 7
"""Registers a reaction needs, as in the paper (7 verbal, 8 pivot, 7 behavioral)."""

MIN_WORDLESS = 5
"""Behavioral registers that any voice can render, because they show in words and pauses."""

MIN_SITUATIONS = 10
MIN_FACETS = 12
TITLE_WORDS = (3, 8)
MAX_GENERAL_SHARE = 0.5
"""Above this share of a location's sounds, the general pool decides what is heard there."""

NAMES_ONLY: tuple[Tier, ...] = ("name",)

MAX_POOL_RATIO = 3.0
RT60_TOLERANCE = 1.5

CODES: Mapping[str, tuple[Severity, str]] = {
    "B101": ("error", "the file is not YAML or not UTF-8"),
    "B102": ("error", "a key that no bank has"),
    "B103": ("error", "a required key is missing"),
    "B104": ("error", "a value of the wrong kind or out of range"),
    "B105": ("error", "an id is given twice"),
    "B106": ("error", "a reference to what does not exist"),
    "B107": ("error", "a part of the bank is missing, or its header is there twice"),
    "B108": ("error", "a YAML file that belongs to no part"),
    "B109": ("error", "a key twice in one mapping"),
    "B201": ("error", f"a location with fewer than {MIN_SOUNDS} drawable sounds"),
    "B202": ("error", "a word that names two sounds of one location"),
    "B203": ("warning", "a word of everyday talk among the names or hints of a sound"),
    "B204": ("warning", "one pool dominates, or one location has far more own sounds than another"),
    "B205": ("error", "a sound that no location can draw"),
    "B206": ("warning", "a location without rare sounds"),
    "B207": ("warning", "a room whose absorption contradicts its reverberation time"),
    "B208": ("error", "two sounds or locations with one display name"),
    "B209": ("warning", "a display name that the sound's own names do not recognise"),
    "B210": ("warning", "a word in two lists of one sound"),
    "B301": ("error", "a register without a move"),
    "B302": ("error", f"a reaction with fewer than {MIN_REGISTERS} registers"),
    "B303": ("error", "a register whose naming contradicts its reaction"),
    "B304": ("error", "a register that renders in a tag and lists none, or the reverse"),
    "B305": ("warning", f"fewer than {MIN_WORDLESS} behavioral registers that need no tag"),
    "B306": ("error", "two registers with one move"),
    "B307": ("error", "two tags written alike"),
    "B401": ("error", "a role pair that is there twice"),
    "B402": ("error", "fewer than two role pairs"),
    "B501": ("error", "a title that is there twice"),
    "B502": ("error", "two situations with the same facets"),
    "B503": (
        "warning",
        f"a title shorter than {TITLE_WORDS[0]} or longer than {TITLE_WORDS[1]} words",
    ),
    "B504": ("warning", f"a theme with fewer than {MIN_SITUATIONS} situations"),
    "B505": ("warning", f"a theme with fewer than {MIN_FACETS} facets"),
    "B506": ("warning", "categories of very different size"),
    "B507": ("error", "a facet twice in one theme"),
    "B508": ("warning", "a topic that says the name of a sound"),
    "B601": ("error", "a location the sound library cannot serve"),
    "B602": ("warning", f"a location the sound library serves with fewer than {MIN_SOUNDS} sounds"),
    "B603": ("warning", "a sound of the library that the bank does not have"),
}
"""Code -> severity and meaning. Codes never change their meaning."""


@dataclass(frozen=True, slots=True)
class LintReport:
    """What the linter found. ``bank`` is None when faults of files keep it from being built."""

    folder: Path
    bank: Bank | None
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> tuple[Finding, ...]:
        """Findings that make the bank unusable or unfair."""
        return tuple(f for f in self.findings if f.severity == "error")

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """Findings that ask for a second look."""
        return tuple(f for f in self.findings if f.severity == "warning")


def lint_folder(folder: Path) -> LintReport:
    """Lint a bank folder.

    Parameters
    ----------
    folder: the bank; a fault in it is a finding, never an exception.

    Raises
    ------
    BankError: there is no such folder.

    Examples
    --------
    >>> from earwitness.scenes.bank import DEFAULT_BANK
    >>> lint_folder(DEFAULT_BANK).findings
    ()
    """
    if not folder.is_dir():
        raise BankError(
            str(folder),
            "no such folder" if not folder.exists() else "not a folder",
            "a bank: a folder with bank.yaml",
            "Write one to start from: earwitness scenes bank new DIR",
        )
    parts, findings = read_parts(folder)
    # An unknown key is left out when reading, so the rest can still be looked at.
    if all(f.code in ("B102", "B108") for f in findings):
        findings += structure(parts)
    if any(f.code not in ("B102", "B108") for f in findings):
        return LintReport(folder, None, findings)
    bank = assemble(parts)
    files = {sound.id: file for file, group in parts.sounds() for sound in group.sounds}
    topics = {theme.id: file for file, group in parts.topics() for theme in group.themes}
    return LintReport(folder, bank, findings + tuple(lint_bank(bank, files, topics)))


def lint_bank(
    bank: Bank,
    sound_files: Mapping[str, str] | None = None,
    topic_files: Mapping[str, str] | None = None,
) -> Iterator[Finding]:
    """Yield the faults ``B2xx`` to ``B5xx`` of a bank.

    Parameters
    ----------
    bank: the bank.
    sound_files, topic_files: id of a sound or theme -> the file it is from, for the messages.
    """
    place = _Places(sound_files or {}, topic_files or {})
    yield from _locations(bank)
    yield from _sounds(bank, place)
    yield from _naming(bank, place)
    yield from _registers(bank)
    yield from _roles(bank)
    yield from _topics(bank, place)
    yield from _topic_words(bank, place)


@dataclass(frozen=True, slots=True)
class _Places:
    sounds: Mapping[str, str]
    topics: Mapping[str, str]

    def sound(self, identifier: str) -> str:
        return self.sounds.get(identifier, "sounds.yaml")

    def theme(self, identifier: str) -> str:
        return self.topics.get(identifier, "topics")


def finding(
    code: str, file: str, path: str, found: str, wanted: str, next_step: str = ""
) -> Finding:
    """Return a finding with the severity of its code."""
    return Finding(code, CODES[code][0], file, path, found, wanted, next_step)


def rt60_of(location: Location) -> float:
    """Return the reverberation time in seconds of a location's box by Eyring's formula (1930)."""
    x, y, z = location.room.size_m
    surface = 2 * (x * y + y * z + x * z)
    return 0.161 * x * y * z / (-surface * math.log(1 - location.room.absorption))


def _locations(bank: Bank) -> Iterator[Finding]:
    file = "locations.yaml"
    for location in bank.locations:
        path = f"locations[{location.id}]"
        drawable = bank.sounds_at(location.id)
        if len(drawable) < MIN_SOUNDS:
            yield finding(
                "B201", file, path, f"{len(drawable)} drawable sounds", f"at least {MIN_SOUNDS}",
                "Add sounds of its own, or name it in `at` of others",
            )  # fmt: skip
        general = sum(bank.sound(s).pool == "general" for s in drawable)
        if drawable and general / len(drawable) > MAX_GENERAL_SHARE:
            yield finding(
                "B204", file, path,
                f"{general} of {len(drawable)} sounds are general ones",
                f"at most {MAX_GENERAL_SHARE:.0%}, or the place cannot be told from its sounds",
            )  # fmt: skip
        if not bank.rare_at(location.id):
            yield finding("B206", file, path, "no rare sound", "at least one for alarm-like pivots")
        rt60 = rt60_of(location)
        if not 1 / RT60_TOLERANCE <= rt60 / location.room.rt60_s <= RT60_TOLERANCE:
            yield finding(
                "B207", file, f"{path}.room",
                f"rt60_s {location.room.rt60_s:g} with size and absorption that give {rt60:.2f}",
                f"values within a factor of {RT60_TOLERANCE:g} of each other",
            )  # fmt: skip
    yield from _same_names(file, "locations", [(x.id, x.name) for x in bank.locations])
    own = Counter(s.at[0] for s in bank.sounds if s.pool == "own")
    counts = {location.id: own[location.id] for location in bank.locations}
    if counts:
        least, most = min(counts, key=lambda k: counts[k]), max(counts, key=lambda k: counts[k])
        if counts[most] > MAX_POOL_RATIO * max(1, counts[least]):
            yield finding(
                "B204", file, "locations",
                f"{counts[most]} own sounds of {most} beside {counts[least]} of {least}",
                f"at most {MAX_POOL_RATIO:g} times as many",
            )  # fmt: skip


def _same_names(file: str, kind: str, names: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for identifier, name in names:
        first = seen.setdefault(name.casefold(), identifier)
        if first != identifier:
            yield finding(
                "B208", file, f"{kind}[{identifier}].name", f"{name!r}, as {first} has",
                "names that tell the answers of a question apart",
            )  # fmt: skip


def _sounds(bank: Bank, place: _Places) -> Iterator[Finding]:
    drawable = {s for x in bank.locations for s in (*bank.sounds_at(x.id), *bank.rare_at(x.id))}
    for sound in bank.sounds:
        file, path = place.sound(sound.id), f"sounds[{sound.id}]"
        if sound.id not in drawable:
            yield finding(
                "B205", file, f"{path}.implausible_in", "every location", "one where it can occur"
            )
        words = [*sound.names, *sound.hints, *sound.weak]
        for word, count in Counter(word.casefold() for word in words).items():
            if count > 1:
                yield finding(
                    "B210", file, path, f"{word!r} {count} times", "each word in one list"
                )
    yield from _same_names("sounds.yaml", "sounds", [(s.id, s.name) for s in bank.sounds])


def _naming(bank: Bank, place: _Places) -> Iterator[Finding]:
    namer = Namer(bank)
    for sound in bank.sounds:
        file, path = place.sound(sound.id), f"sounds[{sound.id}]"
        if not namer.mentions(sound.name, sound.id, tiers=("name", "hint", "weak")):
            yield finding(
                "B209", file, f"{path}.name", f"{sound.name!r}, in which none of its words occurs",
                "names that recognise it",
            )  # fmt: skip
        for key, words in (("names", sound.names), ("hints", sound.hints)):
            for word in words:
                if bank.common_words.intersection(spoken_forms(word.casefold(), bank.language)):
                    yield finding(
                        "B203", file, f"{path}.{key}", f"{word!r}, a word of everyday talk",
                        "words that name the sound", "Move it to weak",
                    )  # fmt: skip
    places = {
        sound.id: {
            x.id for x in bank.locations if sound.id in bank.sounds_at(x.id) + bank.rare_at(x.id)
        }
        for sound in bank.sounds
    }
    shared: dict[tuple[str, str], set[str]] = {}
    for sound in bank.sounds:
        for word in sound.names:
            for mention in namer.named_in(word, tiers=NAMES_ONLY):
                if mention.sound != sound.id and places[sound.id] & places[mention.sound]:
                    a, b = sorted((sound.id, mention.sound))
                    shared.setdefault((a, b), set()).add(word)
    for (a, b), both in sorted(shared.items()):
        yield finding(
            "B202", place.sound(a), f"sounds[{a}].names",
            f"{', '.join(map(repr, sorted(both)))} for {a} and {b}, which occur in one place",
            "names that say which of the two is meant",
            "Move the shared word to hints, or name it more exactly",
        )  # fmt: skip


def _registers(bank: Bank) -> Iterator[Finding]:
    file = "registers.yaml"
    moves: dict[str, str] = {}
    for register in bank.registers:
        path = f"registers[{register.id}]"
        if not register.move.strip():
            yield finding("B301", file, f"{path}.move", "nothing", "what the speaker does")
        else:
            first = moves.setdefault(_plain(register.move), register.id)
            if first != register.id:
                yield finding(
                    "B306", file, f"{path}.move", f"the move of {first}", "one of its own"
                )
        silent = register.reaction == "behavioral"
        if silent != (register.naming == "forbidden"):
            yield finding(
                "B303", file, f"{path}.naming", f"{register.naming} for {register.reaction}",
                "forbidden" if silent else "required or allowed: unnamed it passes for behavioral",
            )  # fmt: skip
        if bool(register.tags) != ("tag" in register.renders_in):
            yield finding(
                "B304", file, path,
                f"renders_in {list(register.renders_in)} with tags {list(register.tags)}",
                "tags where renders_in has tag, and none elsewhere",
            )  # fmt: skip
    for reaction in REACTED_TO:
        count = len(bank.registers_of(reaction))
        if count < MIN_REGISTERS:
            yield finding(
                "B302",
                file,
                "registers",
                f"{count} registers of {reaction}",
                f"at least {MIN_REGISTERS}",
            )
    wordless = sum(not register.tags for register in bank.registers_of("behavioral"))
    if wordless < MIN_WORDLESS:
        yield finding(
            "B305", file, "registers", f"{wordless} behavioral registers without a tag",
            f"at least {MIN_WORDLESS}, for voices that render no tags",
        )  # fmt: skip
    written: dict[str, str] = {}
    for tag in bank.tags:
        first = written.setdefault(tag.written.casefold(), tag.id)
        if first != tag.id:
            yield finding(
                "B307",
                "tags.yaml",
                f"tags[{tag.id}].written",
                f"{tag.written!r}, as {first}",
                "its own words",
            )


def _roles(bank: Bank) -> Iterator[Finding]:
    seen: dict[tuple[str, ...], str] = {}
    if len(bank.roles) < 2:
        yield finding("B402", "roles.yaml", "roles", f"{len(bank.roles)} role pairs", "at least 2")
    for pair in bank.roles:
        key = tuple(sorted((pair.a.casefold(), pair.b.casefold())))
        first = seen.setdefault(key, pair.id)
        if first != pair.id:
            yield finding(
                "B401", "roles.yaml", f"roles[{pair.id}]", f"{pair.a} and {pair.b}, as {first}",
                "a pair of its own",
            )  # fmt: skip


def _topics(bank: Bank, place: _Places) -> Iterator[Finding]:
    titles: dict[str, str] = {}
    facet_sets: dict[frozenset[str], str] = {}
    for template in bank.templates:
        file, path = (
            place.theme(template.theme),
            f"themes[{template.theme}].situations[{template.index - 1}]",
        )
        first = titles.setdefault(_plain(template.title), template.id)
        if first != template.id:
            yield finding(
                "B501",
                file,
                f"{path}.title",
                f"{template.title!r}, as {first}",
                "a title of its own",
            )
        words = len(template.title.split())
        if not TITLE_WORDS[0] <= words <= TITLE_WORDS[1]:
            yield finding(
                "B503", file, f"{path}.title", f"{template.title!r}: {words} words",
                f"{TITLE_WORDS[0]} to {TITLE_WORDS[1]}",
            )  # fmt: skip
        facets = frozenset(_plain(facet) for facet in template.facets)
        first = facet_sets.setdefault(facets, template.id)
        if first != template.id:
            yield finding(
                "B502", file, f"{path}.facets", f"the facets of {first}", "facets of its own"
            )
    for theme in (theme for category in bank.categories for theme in category.themes):
        file, path = place.theme(theme.id), f"themes[{theme.id}]"
        if len(theme.situations) < MIN_SITUATIONS:
            yield finding(
                "B504",
                file,
                path,
                f"{len(theme.situations)} situations",
                f"at least {MIN_SITUATIONS}",
            )
        if len(theme.facets) < MIN_FACETS:
            yield finding(
                "B505", file, path, f"{len(theme.facets)} facets", f"at least {MIN_FACETS}"
            )
        for facet, count in Counter(_plain(facet) for facet in theme.facets).items():
            if count > 1:
                yield finding("B507", file, f"{path}.facets", f"{facet!r} {count} times", "once")
    sizes = {category.id: len(category.themes) for category in bank.categories}
    if sizes and max(sizes.values()) > 2 * min(sizes.values()):
        least, most = min(sizes, key=lambda k: sizes[k]), max(sizes, key=lambda k: sizes[k])
        yield finding(
            "B506", "topics", "themes", f"{sizes[most]} themes of {most} beside {sizes[least]} of {least}",
            "at most twice as many",
        )  # fmt: skip


def _topic_words(bank: Bank, place: _Places) -> Iterator[Finding]:
    """Topics that say a sound's name make a scene impossible in which that sound must not be named."""
    namer = Namer(bank)
    texts = {t.id: " | ".join((t.title, *t.facets)) for t in bank.templates}
    themes = {
        theme.id: " | ".join(theme.facets)
        for category in bank.categories
        for theme in category.themes
    }
    wanted, advice = "topics that name no sound", "Say it otherwise, or move the word to weak"
    for template in bank.templates:
        text = texts[template.id]
        for m in namer.named_in(text):
            yield finding(
                "B508", place.theme(template.theme),
                f"themes[{template.theme}].situations[{template.index - 1}]",
                f"{text[m.start : m.end]!r}, which names {m.sound}", wanted, advice,
            )  # fmt: skip
    for theme, text in themes.items():
        for m in namer.named_in(text):
            yield finding(
                "B508", place.theme(theme), f"themes[{theme}].facets",
                f"{text[m.start : m.end]!r}, which names {m.sound}", wanted, advice,
            )  # fmt: skip


def _plain(text: str) -> str:
    return " ".join("".join(c if c.isalnum() else " " for c in text.casefold()).split())
