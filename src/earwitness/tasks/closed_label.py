"""From a model's reply text to an outcome over a closed set of labels. Shared by every closed-label task.

Conventions, in the order they are applied (:data:`PARSER_VERSION` changes with any of them or with a lexicon):

1. Text between reasoning marks (``<think>``) is not the answer. If the marks never close and nothing else is
   there, the reply is ``truncated``.
2. Nothing but punctuation is ``empty``.
3. JSON, whole, fenced or inside prose, is read by its answer keys (``final answer`` before ``emotion``); numbers
   by label are probabilities, the largest wins, equal ones are ``ambiguous``; ``null`` is ``empty``.
4. A reply that is one label in any spelling, or option code of the prompt, is that label.
5. Otherwise every mention of a label is weighed by how it is said. Excluded: denied ("not angry"), part of a
   restated option list, named in a clause that refuses the task. The rest, firmest first: object of a final
   answer, of an answer phrase or alone in its line; tagged or "primarily"; plainly said; hedged, quoted or
   retracted; "a hint of". The firmest tier decides: one label there is the answer, several are ``ambiguous``
   (of several final answers the last one counts).
6. Numbers by label in running text decide where no answer phrase does.
7. Without a usable mention: ``refused`` where the reply declines the task, ``ambiguous`` where it only restates
   options, else ``unmapped`` with the model's own words in ``native``.

A label is never inferred: it is answered only if one of its words in the lexicon stands in the reply. The
order and the lexicon are this project's own; denial follows the idea of NegEx (Chapman et al. 2001).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from earwitness.runs.outcomes import Outcome
from earwitness.tasks.label_lexicon import (
    LABEL,
    Lexicon,
    exact_key,
    is_word,
    normalise,
    tokenise,
)
from earwitness.tasks.reply_mentions import Mention, Reading, join_tokens, read_mentions

PARSER_VERSION = "1"

_MAX_NATIVE = 120
_MAX_PROSE = 50_000
"""Characters of prose that are read, half from the start and half from the end: an answer stands at one of
the two, and a reply of this length is a model that cannot stop."""
_MAX_DOCUMENTS = 8
"""JSON documents looked for in one reply; a bound that keeps hostile text linear."""
_MAX_DEPTH = 8
_SHORT = 64
_TIERS = {5: "final answer", 4: "answer", 3: "stressed", 2: "said", 1: "hedged", 0: "hint"}
_FENCE = re.compile(r"```[a-zA-Z0-9]*")


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """An outcome, and whether the reply gave it explicitly (so that a cut after it changes nothing)."""

    outcome: Outcome
    explicit: bool


def parse_text(text: str, lexicon: Lexicon, *, codes: Mapping[str, str] | None = None) -> Outcome:
    """What a reply text amounts to; never raises, never guesses.

    Parameters
    ----------
    text: the raw reply.
    lexicon: words of the labels.
    codes: ``{"A": "anger", ...}`` where the prompt numbered or lettered its options.

    >>> from earwitness.tasks.label_lexicon import load_lexicon
    >>> parse_text("Not angry but sad.", load_lexicon("emotion")).label
    'sadness'
    """
    return read_reply(text, lexicon, codes=codes).outcome


def read_reply(
    text: str, lexicon: Lexicon, *, codes: Mapping[str, str] | None = None
) -> ParsedReply:
    """As :func:`parse_text`, with whether the answer was explicit."""
    said, unfinished = _without_reasoning(text, lexicon)
    if unfinished and not said.strip():
        return ParsedReply(Outcome("truncated", rule="reasoning never ends"), False)
    folded = {key.casefold(): label for key, label in (codes or {}).items()}
    structured: ParsedReply | None = None
    if "{" in said or "[" in said or said[:1] == '"':
        structured, whole = _from_json(said, lexicon, folded)
        if structured is not None and (
            whole or structured.outcome.kind in ("answered", "ambiguous")
        ):
            return structured
    prose = _decide(said, lexicon, folded)
    if structured is not None and prose.outcome.kind in ("empty", "unmapped"):
        return structured
    return prose


def option_codes(prompt_text: str, lexicon: Lexicon) -> dict[str, str]:
    """The numbers or letters a prompt gave its options, one option a line, or nothing.

    >>> from earwitness.tasks.label_lexicon import load_lexicon
    >>> option_codes("Choose:\\nA) anger\\nB) fear", load_lexicon("emotion"))
    {'A': 'anger', 'B': 'fear'}
    """
    codes: dict[str, str] = {}
    for line in prompt_text.splitlines():
        found = re.match(r"\s*[(\[]?([A-Za-z]|\d{1,2})[.):\]]\s*(\S.{0,60})$", line)
        label = lexicon.label_of(found[2]) if found else None
        if found and label:
            codes[found[1]] = label
    return codes if len(codes) > 1 else {}


def argmax(scores: Mapping[str, float], *, cutoff: float = 0.0) -> tuple[str | None, str]:
    """The label with the largest score above ``cutoff``, or why there is none: ``tie`` or ``nothing``.

    Two scores are equal within one part in a thousand million, so that a sum taken in another order is
    still a tie.
    """
    above = {label: score for label, score in scores.items() if score > cutoff}
    if not above:
        return None, "nothing"
    top = max(above.values())
    best = [label for label, score in above.items() if math.isclose(score, top, rel_tol=1e-9)]
    return (best[0], "argmax") if len(best) == 1 else (None, "tie")


def _without_reasoning(text: str, lexicon: Lexicon) -> tuple[str, bool]:
    unfinished = False
    if "<" not in text and "◁" not in text:
        return text, unfinished
    for opening, closing in lexicon.reasoning:
        lowered = text.lower()
        # A lower-cased text of another length (rare capitals) would shift positions: compare as is.
        lowered = lowered if len(lowered) == len(text) else text
        end = lowered.rfind(closing)
        if end >= 0:
            start = lowered.find(opening, 0, end)
            text = (text[:start] if start >= 0 else "") + text[end + len(closing) :]
            lowered = text.lower() if len(text.lower()) == len(text) else text
        start = lowered.find(opening)
        if start >= 0:
            text, unfinished = text[:start], True
    return text, unfinished


def _short(text: str) -> str:
    text = " ".join(text[: 2 * _MAX_NATIVE].split())
    return text if len(text) <= _MAX_NATIVE else text[: _MAX_NATIVE - 1] + "…"


def _answered(label: str, mechanism: str, native: str, **more: Any) -> Outcome:
    same = native.casefold() == label
    rule = mechanism if same else f"{mechanism}: {native.casefold()} -> {label}"
    return Outcome("answered", label, rule=rule, native=native, **more)


def _decide(text: str, lexicon: Lexicon, codes: Mapping[str, str]) -> ParsedReply:
    if len(text) <= _SHORT:
        part, value = lexicon.exact.get(exact_key(text), ("", ""))
        if part:
            words = join_tokens([t for t in tokenise(normalise(text)) if is_word(t)])
            if part == LABEL:
                return ParsedReply(_answered(value, "bare", words), True)
            return ParsedReply(Outcome("unmapped", rule="outside the labels", native=words), True)
    if len(text) > _MAX_PROSE:
        text = f"{text[: _MAX_PROSE // 2]}\n\n{text[-_MAX_PROSE // 2 :]}"
    tokens = tokenise(normalise(text))
    if not any(is_word(token) for token in tokens):
        return ParsedReply(Outcome("empty", rule="no words", native=_short(text) or None), False)
    n_listed = min(4, max(3, (len(lexicon.labels) + 1) // 2))
    reading = read_mentions(tokens, lexicon, codes, n_listed)
    return _from_mentions(reading, text)


def _from_mentions(reading: Reading, text: str) -> ParsedReply:
    usable = [m for m in reading.mentions if not m.excluded and m.tier >= 0]
    labelled = [m for m in usable if m.label is not None and m.score is None]
    outside = [m for m in usable if m.label is None and m.score is None]
    tier = max((m.tier for m in labelled), default=-1)
    if outside and max(m.tier for m in outside) > max(tier, 3):
        word = next(m for m in outside if m.tier > max(tier, 3))
        return ParsedReply(
            Outcome("unmapped", rule="outside the labels", native=reading.native(word)), True
        )
    scored = [m for m in reading.mentions if m.score is not None]
    if scored and tier < 4:
        return _from_numbers(reading, scored)
    if reading.refusing and tier < 2:
        return ParsedReply(Outcome("refused", rule="declines", native=_short(text)), False)
    if labelled:
        return _from_tier(reading, [m for m in labelled if m.tier == tier], tier)
    if any(m.listed for m in reading.mentions):
        return ParsedReply(
            Outcome("ambiguous", rule="only restates options", native=_short(text)), False
        )
    if outside:
        return ParsedReply(
            Outcome("unmapped", rule="outside the labels", native=reading.native(outside[0])), False
        )
    rule = "only denied" if any(m.denied and m.label for m in reading.mentions) else "no label"
    return ParsedReply(Outcome("unmapped", rule=rule, native=_short(text)), False)


def _from_tier(reading: Reading, firmest: list[Mention], tier: int) -> ParsedReply:
    if tier == 5:
        firmest = [m for m in firmest if m.run == firmest[-1].run]
    labels = sorted({m.label for m in firmest if m.label is not None})
    n_words = sum(is_word(token) for token in reading.tokens)
    covered = sum(m.end - m.start for m in reading.mentions)
    mechanism = "bare" if covered == n_words else _TIERS[tier]
    if len(labels) > 1:
        native = ", ".join(dict.fromkeys(reading.native(m) for m in firmest))
        return ParsedReply(
            Outcome("ambiguous", rule=f"several labels ({mechanism})", native=_short(native)), False
        )
    # A label that ends the text may have been cut before "or fear"; only a reply of nothing else counts.
    ends = firmest[-1].end == len(reading.tokens)
    explicit = mechanism == "bare" or (tier >= 4 and not ends)
    named = next((m for m in firmest if not m.code), firmest[0])
    return ParsedReply(_answered(labels[0], mechanism, reading.native(named)), explicit)


def _from_numbers(reading: Reading, scored: Sequence[Mention]) -> ParsedReply:
    scores: dict[str, float] = {}
    natives: dict[str, str] = {}
    outside: dict[str, float] = {}
    for mention in scored:
        value = mention.score or 0.0
        native = reading.native(mention)
        if mention.label is None:
            outside[native] = max(value, outside.get(native, 0.0))
        elif value >= scores.get(mention.label, 0.0):
            scores[mention.label] = value
            natives[mention.label] = native
    return ParsedReply(from_scores(scores, natives, outside), False)


def from_scores(
    scores: Mapping[str, float], natives: Mapping[str, str], outside: Mapping[str, float]
) -> Outcome:
    """The outcome of numbers a model wrote by label; ``outside`` are numbers of words outside the set."""
    kept = dict(scores)
    best, why = argmax({**outside, **scores})
    if best is None:
        if why == "tie":
            return Outcome("ambiguous", rule="equal numbers", scores=kept)
        return Outcome("empty", rule="all numbers zero", scores=kept)
    if best in outside and best not in scores:
        return Outcome("unmapped", rule="outside the labels", native=best, scores=kept)
    return _answered(best, "largest number", natives.get(best, best), scores=kept)


# --- JSON -------------------------------------------------------------------------------------------


def _from_json(
    text: str, lexicon: Lexicon, codes: Mapping[str, str]
) -> tuple[ParsedReply | None, bool]:
    """Outcome of the JSON in a reply, and whether the reply is nothing but JSON."""
    documents, whole = _documents(text)
    found = [
        result
        for result in (_from_value(document, lexicon, codes, 0) for document in documents)
        if result is not None
    ]
    if not found:
        return None, False
    labels = {result.outcome.label for result in found if result.outcome.label}
    if len(labels) > 1:
        native = ", ".join(sorted(labels))
        return (
            ParsedReply(Outcome("ambiguous", rule="several JSON answers", native=native), False),
            whole,
        )
    first = next((result for result in found if result.outcome.label), found[0])
    return first, whole


def _documents(text: str) -> tuple[list[Any], bool]:
    stripped = _FENCE.sub("", text).strip()
    try:
        return [json.loads(stripped)], True
    except (ValueError, RecursionError):
        pass
    decoder = json.JSONDecoder()
    documents: list[Any] = []
    at = tries = covered = 0
    while tries < _MAX_DOCUMENTS:
        starts = [place for place in (stripped.find("{", at), stripped.find("[", at)) if place >= 0]
        if not starts:
            break
        at = min(starts)
        tries += 1
        try:
            value, end = decoder.raw_decode(stripped, at)
        except (ValueError, RecursionError):
            at += 1
            continue
        documents.append(value)
        covered += end - at
        at = end
    return documents, covered >= len(stripped) - len(documents)


def _from_value(
    value: Any, lexicon: Lexicon, codes: Mapping[str, str], depth: int
) -> ParsedReply | None:
    if depth > _MAX_DEPTH:
        return None
    if isinstance(value, str):
        return _said_in_json(value, lexicon, codes)
    if isinstance(value, int) and not isinstance(value, bool) and str(value) in codes:
        return ParsedReply(_answered(codes[str(value)], "json code", str(value)), True)
    if isinstance(value, list):
        return _from_list(value, lexicon, codes, depth)
    if isinstance(value, dict) and value:
        return _from_object(value, lexicon, codes, depth)
    return None


def _said_in_json(text: str, lexicon: Lexicon, codes: Mapping[str, str]) -> ParsedReply:
    found = _decide(text, lexicon, codes)
    outcome = found.outcome
    if outcome.kind == "answered":
        rule = f"json {outcome.rule}"
        outcome = Outcome("answered", outcome.label, rule, outcome.native, dict(outcome.scores))
        return ParsedReply(outcome, True)
    return found


def _from_list(
    values: list[Any], lexicon: Lexicon, codes: Mapping[str, str], depth: int
) -> ParsedReply | None:
    pairs: dict[str, Any] = {}
    for value in values:
        keys = {exact_key(str(key)): key for key in value} if isinstance(value, dict) else {}
        score = next((keys[key] for key in keys if key in lexicon.score_keys), None)
        name = next((keys[key] for key in lexicon.answer_keys if key in keys), None)
        if score is not None and name is not None and isinstance(value[name], str):
            pairs[value[name]] = value[score]
    if len(pairs) > 1 and len(pairs) == len(values):
        return _from_table(pairs, lexicon)
    found = [_from_value(value, lexicon, codes, depth + 1) for value in values[:64]]
    present = [result for result in found if result is not None]
    labels = sorted({result.outcome.label for result in present if result.outcome.label})
    if len(labels) > 1:
        native = ", ".join(labels)
        return ParsedReply(Outcome("ambiguous", rule="several labels (json)", native=native), False)
    return next((result for result in present if result.outcome.label), None) or next(
        iter(present), None
    )


def _from_object(
    value: dict[str, Any], lexicon: Lexicon, codes: Mapping[str, str], depth: int
) -> ParsedReply | None:
    table = _from_table(value, lexicon)
    if table is not None:
        return table
    keys = {exact_key(str(key)): key for key in value}
    for key in lexicon.answer_keys:
        if key in keys:
            answer = value[keys[key]]
            if answer is None or (isinstance(answer, str | list | dict) and not answer):
                return ParsedReply(Outcome("empty", rule=f"json {key} is empty"), False)
            found = _from_value(answer, lexicon, codes, depth + 1)
            if found is not None:
                return found
    nested = [entry for entry in value.values() if isinstance(entry, dict | list)]
    inner = [_from_value(entry, lexicon, codes, depth + 1) for entry in nested[:64]]
    present = [result for result in inner if result is not None]
    if len(present) == 1:
        return present[0]
    strings = [entry for entry in value.values() if isinstance(entry, str)]
    return _said_in_json("\n\n".join(strings), lexicon, codes) if strings else None


def _from_table(value: Mapping[str, Any], lexicon: Lexicon) -> ParsedReply | None:
    """Numbers (or true and false) by label."""
    scores: dict[str, float] = {}
    natives: dict[str, str] = {}
    outside: dict[str, float] = {}
    for key, number in value.items():
        if not isinstance(number, int | float) or not abs(number) < 1e300 or len(str(key)) > _SHORT:
            continue
        part, label = lexicon.exact.get(exact_key(str(key)), ("", ""))
        if part == LABEL and number >= scores.get(label, -math.inf):
            scores[label], natives[label] = float(number), str(key)
        elif part and part != LABEL:
            outside[str(key)] = float(number)
    if not scores or len(scores) + len(outside) < 2:
        return None
    return ParsedReply(from_scores(scores, natives, outside), True)
