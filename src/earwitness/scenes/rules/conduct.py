"""D6: what a disturbance looks like, and that there is none where nobody reacts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from earwitness.scenes.bank_records import RendersIn
from earwitness.scenes.rules.limits import BREAK
from earwitness.scenes.rules.reading import Line, Reading
from earwitness.scenes.rules.registry import Fault, rule, shown

_BEFORE_REPAIR = re.compile(r"(?:[,;:.…—–]|-)\s*$")
LONGEST_RESTART = 6
"""Words of the longest restart looked for ("I told her, I told her")."""


def breaks_in_words(line: Line, harmless: frozenset[str]) -> str | None:
    """How the words of the first sentence break: a cut-off, a restart or a repair. None if they do not."""
    start, end = line.first_sentence
    cut = BREAK.search(line.plain, start, end)
    if cut is not None:
        return shown(cut.group())
    words = [word for word in line.words if start <= word.start < end]
    repeated = repeats([word.text for word in words], harmless)
    if repeated:
        return shown(repeated)
    for hit in line.of("repairs"):
        mended = any(word.start >= hit.end for word in words)
        if mended and _BEFORE_REPAIR.search(line.plain, start, hit.start):
            return shown(line.plain[hit.start : hit.end])
    return None


def repeats(words: list[str], harmless: frozenset[str]) -> str | None:
    """Return a phrase that is said again at once, the longest there is.

    With words between ("in the hall or in the yard") a phrase is repeated in fluent talk too.

    Examples
    --------
    >>> repeats("in the hall or in the yard".split(), frozenset()) is None
    True
    >>> repeats("i told her i told her twice".split(), frozenset())
    'i told her'
    """
    for length in range(LONGEST_RESTART, 0, -1):
        for at in range(len(words) - 2 * length + 1):
            phrase = words[at : at + length]
            if all(word in harmless for word in phrase):
                continue
            if words[at + length : at + 2 * length] == phrase:
                return " ".join(phrase)
    return None


def pauses(line: Line) -> str | None:
    """What holds up the first sentence: an ellipsis, a dash or a pause tag. None if nothing does."""
    start, end = line.first_sentence
    cut = BREAK.search(line.plain, start, end)
    if cut is not None:
        return shown(cut.group())
    for mark in line.tags:
        if mark.tag is not None and mark.tag.renders == "pause" and start < mark.place < end:
            return f"[{mark.written}]"
    return None


@rule(
    "D601-no-break",
    "The first sentence after a sound that disturbs the talk is visibly disturbed.",
    needs_scenario=True,
)
def no_break(reading: Reading) -> Iterator[Fault]:
    harmless = reading.vocabulary.harmless_repeats
    for placed in reading.placed:
        if placed.event.reaction != "behavioral" or placed.register is None:
            continue
        ways: tuple[RendersIn, ...] = placed.register.renders_in
        for line in reading.following(placed, 1):
            if "words" in ways and breaks_in_words(line, harmless):
                continue
            if "pause" in ways and pauses(line):
                continue
            if "tag" in ways and placed.register.tags:  # Told by D405.
                continue
            start, end = line.first_sentence
            yield (
                line.where,
                f"{shown(line.plain[start:end])} runs on undisturbed after event {placed.event.id}; "
                f"{_asked(ways)}.",
            )


def _asked(ways: tuple[RendersIn, ...]) -> str:
    texts = {
        "words": "break it off, begin it anew, repeat or correct a word",
        "pause": "hold it up with a dash, an ellipsis or a pause tag",
        "tag": "put a delivery tag inside it",
    }
    return ", or ".join(texts[way] for way in ("words", "pause", "tag") if way in ways)


@rule(
    "D602-stated-cause",
    "Nobody says why the talk was disturbed.",
    needs_scenario=True,
)
def stated_cause(reading: Reading) -> Iterator[Fault]:
    for placed in reading.placed:
        if placed.event.reaction != "behavioral":
            continue
        for line in reading.following(placed, 2):
            # In the second utterance a pivot may go on about its own sound.
            talk = line.sound_talk if line.index == placed.before else ()
            seen: set[int] = set()
            for hit in sorted((*line.of("causes"), *talk), key=lambda h: (h.start, -h.end)):
                if hit.start in seen:
                    continue
                seen.update(range(hit.start, hit.end))
                yield (
                    line.where,
                    f"{shown(line.plain[hit.start : hit.end])} gives a cause for the disturbance after event "
                    f"{placed.event.id}; a stated cause takes the place of the sound.",
                )


@rule(
    "D603-ambient-break",
    "The first sentence after an ambient sound runs on undisturbed.",
    needs_scenario=True,
)
def ambient_break(reading: Reading) -> Iterator[Fault]:
    harmless = reading.vocabulary.harmless_repeats
    telling = {tag for register in reading.bank.registers_of("behavioral") for tag in register.tags}
    for placed in reading.placed:
        if placed.event.reaction != "ambient":
            continue
        for line in reading.following(placed, 1):
            start, end = line.first_sentence
            found = breaks_in_words(line, harmless) or pauses(line)
            for mark in line.tags:
                if mark.tag is not None and mark.tag.id in telling and start < mark.place < end:
                    found = found or f"[{mark.written}]"
            if found:
                yield (
                    line.where,
                    f"{found} disturbs the first sentence after event {placed.event.id}, which nobody "
                    "takes notice of.",
                )


RULES = (no_break, stated_cause, ambient_break)
