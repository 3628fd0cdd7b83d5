"""Words as they are compared: what was written and what was understood, brought to one form.

Transcribers write figures, contractions and hyphens as they like; none of it is an error of hearing.
"""

from __future__ import annotations

import re

# fmt: off
_ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
# fmt: on
_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}  # fmt: skip
_CURRENCY = {"$": "dollars", "€": "euros", "£": "pounds"}
_SIGNS = {"%": "percent", "&": "and", "@": "at", "+": "plus"}
_SAME = {
    "ok": "okay", "mr": "mister", "mrs": "missus", "dr": "doctor", "grey": "gray",
    "colour": "color", "favourite": "favorite", "neighbour": "neighbor", "neighbours": "neighbors",
    "towards": "toward", "alright": "all right", "cannot": "can not", "realise": "realize",
    "organise": "organize", "apologise": "apologize", "centre": "center", "theatre": "theater",
}  # fmt: skip
"""Spellings of one word. Not more: a wider table would hide errors."""

_MONEY = re.compile(r"([$€£])\s?(\d[\d,]*)(?:\.(\d\d))?")
_CLOCK = re.compile(r"\b(\d{1,2}):(\d\d)\b")
_GROUPED = re.compile(r"(?<![\d$€£])\d{1,3}(?:,\d{3})+\b(?!\.\d)")
_ORDINAL = re.compile(r"\b(\d+)(?:st|nd|rd|th)\b")
_DECIMAL = re.compile(r"\b(\d+)\.(\d+)\b")
_NUMBER = re.compile(r"\d+")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")


def comparable_words(text: str) -> list[str]:
    """A text as the list of words that word errors are counted on.

    Lower case, straight apostrophes, no punctuation, hyphens divide, figures in words. Four figures from
    1100 to 2099 that end in no 00 are read as a year, as they mostly are in talk.

    Examples
    --------
    >>> " ".join(comparable_words("It's well-known: $40 for 2 in 1999!"))
    "it's well known forty dollars for two in nineteen ninety nine"
    """
    text = text.replace("’", "'").replace("‘", "'").casefold()
    text = _MONEY.sub(_money, text)
    # Nobody writes a year with a comma.
    text = _GROUPED.sub(lambda m: f" {spelled(int(m[0].replace(',', '')))} ", text)
    text = _CLOCK.sub(lambda m: f" {spelled(int(m[1]))} {_minutes(int(m[2]))} ", text)
    text = _ORDINAL.sub(lambda m: f" {_ordinal(int(m[1]))} ", text)
    text = _DECIMAL.sub(
        lambda m: f" {spelled(int(m[1]))} point {' '.join(_ONES[int(d)] for d in m[2])} ", text
    )
    text = _NUMBER.sub(lambda m: f" {_figure(m[0])} ", text)
    for sign, word in _SIGNS.items():
        text = text.replace(sign, f" {word} ")
    words: list[str] = []
    for word in _WORD.findall(text):
        words += _SAME.get(word, word).split()
    return words


def spelled(number: int) -> str:
    """A whole number in words, American style, no hyphens; above a million by its figures.

    Examples
    --------
    >>> spelled(20345)
    'twenty thousand three hundred forty five'
    """
    if number < 20:
        return _ONES[number]
    if number < 100:
        rest = f" {_ONES[number % 10]}" if number % 10 else ""
        return _TENS[number // 10 - 2] + rest
    if number < 1000:
        rest = f" {spelled(number % 100)}" if number % 100 else ""
        return f"{_ONES[number // 100]} hundred{rest}"
    if number < 1_000_000:
        rest = f" {spelled(number % 1000)}" if number % 1000 else ""
        return f"{spelled(number // 1000)} thousand{rest}"
    return " ".join(_ONES[int(figure)] for figure in str(number))


def _figure(figures: str) -> str:
    number = int(figures)
    if len(figures) > 1 and figures[0] == "0":
        return " ".join(_ONES[int(figure)] for figure in figures)
    if len(figures) == 4 and 1100 <= number < 2100 and not 2000 <= number < 2010:
        high, low = divmod(number, 100)
        if low:
            return f"{spelled(high)} {f'oh {_ONES[low]}' if low < 10 else spelled(low)}"
        return f"{spelled(high)} hundred" if high != 20 else "two thousand"
    return spelled(number)


def _minutes(minutes: int) -> str:
    if minutes == 0:
        return ""
    return f"oh {_ONES[minutes]}" if minutes < 10 else spelled(minutes)


def _money(match: re.Match[str]) -> str:
    amount = int(match[2].replace(",", ""))
    unit = _CURRENCY[match[1]]
    whole = f" {spelled(amount)} {unit[:-1] if amount == 1 else unit} "
    cents = int(match[3] or 0)
    return f"{whole}{spelled(cents)} " if cents else whole


def _ordinal(number: int) -> str:
    *front, last = spelled(number).split()
    if last in _ORDINALS:
        ending = _ORDINALS[last]
    elif last.endswith("y"):
        ending = last[:-1] + "ieth"
    else:
        ending = last + "th"
    return " ".join([*front, ending])
