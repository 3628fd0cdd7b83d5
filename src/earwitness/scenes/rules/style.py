"""D3: what is written is what is said, and nothing but delivery tags stands beside it."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterator

from earwitness.scenes.rules.reading import Line, Reading
from earwitness.scenes.rules.registry import Fault, rule, shown
from earwitness.scenes.tags import normalise_tag

DIRECTION = re.compile(r"[(（【][^)）】]*[)）】]?|<[^>]*>?|[{}][^{}]*\}?|\*[^*]*\*?|[)）】>]")
MARKUP = re.compile(
    r"[\n\r\t]|^\s*(?:#+\s|[-•]\s|\d{1,2}[.)]\s)|`+|__+|https?://\S*|\bwww\.\S*|\]\(", re.MULTILINE
)
_LABEL = re.compile(r"^\s*((?:[^\W\d_][\w.'’-]*)(?:\s+[\w.'’-]+)?)\s*[:：](?=\s|$)")
_LATER_LABEL = re.compile(r"(?<=[.!?…\"])\s+([AB])\s*:(?=\s)")
_PRINTABLE = re.compile(r"[ -~\n\r\t]*")
_PAIRED = re.compile(r"\[[^\[\]]*\]")
# A degree sign is read out; joiners belong to the spelling of several scripts.
_HARMLESS = frozenset("°\u200c\u200d")


@rule(
    "D301-stage-direction",
    "No stage directions: no parentheses, asterisks, braces or angle brackets.",
)
def stage_direction(reading: Reading) -> Iterator[Fault]:
    for line in reading.lines:
        for match in DIRECTION.finditer(line.plain):
            yield (
                line.where,
                f"{shown(match.group())} is not spoken; only delivery tags in square brackets may stand "
                "beside the words.",
            )


@rule("D302-speaker-label", "No utterance begins with a label that says who speaks.")
def speaker_label(reading: Reading) -> Iterator[Fault]:
    words = reading.vocabulary.label_words
    for line in reading.lines:
        match = _LABEL.match(line.plain)
        label = match.group(1) if match else ""
        first, _, rest = label.partition(" ")
        if (label and not rest) or first.lower() in words:
            yield (
                line.where,
                f"{shown(label + ':')} looks like a label for the speaker; who speaks is said by the field.",
            )
        for later in _LATER_LABEL.finditer(line.plain):
            yield (
                line.where,
                f"{shown(later.group(1) + ':')} within the text is a label for a speaker.",
            )


@rule("D303-markup", "No markup: no headings, lists, code, links or line breaks.")
def markup(reading: Reading) -> Iterator[Fault]:
    for line in reading.lines:
        # The plain text has its spaces evened out, so that line breaks are only in the written one.
        for match in MARKUP.finditer(line.text):
            found = match.group().strip()
            what = shown(found) if found else "A line break or tab"
            yield line.where, f"{what} is markup; an utterance is one line of plain words."


@rule("D304-symbols", "No emoji, pictographs or control characters.")
def symbols(reading: Reading) -> Iterator[Fault]:
    for line in reading.lines:
        if _PRINTABLE.fullmatch(line.text):
            continue
        found = sorted({c for c in line.text if unspeakable(c)})
        if found:
            names = ", ".join(
                unicodedata.name(c, "").lower() or f"U+{ord(c):04X}" for c in found[:3]
            )
            yield line.where, f"Nobody can say these characters: {names}."


def unspeakable(character: str) -> bool:
    """Whether a character is a picture or a control code that no voice can read."""
    if character in "\n\r\t":  # Told by D303.
        return False
    category = unicodedata.category(character)
    return category in ("So", "Cc", "Cf", "Co", "Cs", "Cn") and character not in _HARMLESS


@rule("D305-brackets", "Square brackets pair, are not nested and are not empty.")
def brackets(reading: Reading) -> Iterator[Fault]:
    for line in reading.lines:
        rest = _PAIRED.sub("", line.text)
        if "[" in rest or "]" in rest:
            yield line.where, f"The square brackets of {shown(line.text)} do not pair."
        if any(not tag.written for tag in line.tags):
            yield line.where, f"There is an empty delivery tag in {shown(line.text)}."


@rule("D306-unknown-tag", "Every delivery tag is one of the bank's.")
def unknown_tag(reading: Reading) -> Iterator[Fault]:
    known = [normalise_tag(tag.written) for tag in reading.bank.tags]
    for line in reading.lines:
        for mark in line.tags:
            if mark.tag is None and mark.written:
                close = difflib.get_close_matches(mark.written, known, n=1, cutoff=0.6)
                hint = (
                    f"did you mean [{close[0]}]?" if close else f"there are [{'], ['.join(known)}]."
                )
                yield line.where, f"No voice is asked to perform [{mark.written[:40]}]; {hint}"


def _listed(line: Line, kind: str, text: str) -> Iterator[Fault]:
    for hit in line.of(kind):
        yield line.where, f"{shown(line.plain[hit.start : hit.end])} {text}"


@rule("D307-filler", "No sounds of hesitation such as uh or erm.")
def filler(reading: Reading) -> Iterator[Fault]:
    for line in reading.lines:
        yield from _listed(line, "fillers", "is a filler; it would be heard as a disturbance.")


@rule("D308-phone-call", "The two are together: nothing that is said on the phone only.")
def phone_call(reading: Reading) -> Iterator[Fault]:
    for line in reading.lines:
        yield from _listed(line, "phone_call", "is said on the phone; the two stand side by side.")


@rule("D309-stock-phrase", "No worn phrases.")
def stock_phrase(reading: Reading) -> Iterator[Fault]:
    for line in reading.lines:
        yield from _listed(line, "stock_phrases", "is a stock phrase; say it in words of your own.")


RULES = (
    stage_direction,
    speaker_label,
    markup,
    symbols,
    brackets,
    unknown_tag,
    filler,
    phone_call,
    stock_phrase,
)
