"""Mentions: where a reply names a label, and how it says so.

The text is cut into tokens once; phrases of the lexicon become events; every label among them becomes a
:class:`Mention` with what its surroundings say: denied, hedged, retracted, minor, quoted, part of a restated
list, inside a refusal, or the object of an answer phrase. Deciding is left to
:mod:`earwitness.tasks.closed_label`. Every step is one pass, so that time grows with the length only.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from earwitness.tasks.label_lexicon import LABEL, OUTSIDE, Lexicon, is_word

NEGATION_REACH = 8
"""Tokens a negation reaches forward within its clause. NegEx uses 5 words; spoken English that models write
("does not sound at all like they are angry") needs 8, and clauses end the reach earlier in most cases."""
CUE_REACH = 8
"""Tokens between an answer phrase and its label."""
NOUN_REACH = 10
"""Tokens between "emotion" and its "is"."""
MAX_DENIED = 12
"""Denied labels an answer phrase looks past ("the emotion is not anger but sadness")."""
MINOR_REACH = 4
MAJOR_REACH = 6
RUN_GAP = 6
"""Tokens between two labels of one enumeration."""

_OPENING = frozenset("*_`~|>[{")
_CLOSING = frozenset("*_`~|<]}")
_GLUE = frozenset("\"'“”«»「」()[]{}*_`~#-–—•·|/&+\n") | {"**", "***", "__", "``", "```"}
_QUOTE_SIGNS = frozenset('"“”«»「」„')
_SCORE_SIGNS = frozenset(":=(-–|→") | {"->"}
_LEAD_SIGNS = frozenset(":;,-–—(|")


@dataclass(slots=True)
class Mention:
    """One naming of a label. ``label`` is None for a known word outside the set; ``start`` and ``end`` are
    token positions, end exclusive; ``run`` numbers the enumeration it belongs to."""

    label: str | None
    start: int
    end: int
    order: int
    code: bool = False
    run: int = -1
    denied: bool = False
    listed: bool = False
    refused: bool = False
    earlier: bool = False
    hedged: bool = False
    offered: bool = False
    minor: bool = False
    major: bool = False
    quoted: bool = False
    tagged: bool = False
    alone: bool = False
    leading: bool = False
    cued: bool = False
    final: bool = False
    score: float | None = None

    @property
    def excluded(self) -> bool:
        return self.denied or self.listed or self.refused

    @property
    def tier(self) -> int:
        """How firmly it is said, from 0 (a hint of it) to 5 (the final answer)."""
        if self.code and not (self.alone or self.cued or self.final or self.leading):
            return -1
        if self.minor:
            return 0
        if self.offered or self.earlier or self.quoted:
            return 1
        if self.final:
            return 5
        if self.alone or self.cued or self.leading:
            return 3 if self.hedged else 4
        if self.hedged:
            return 1
        return 3 if self.major or self.tagged else 2


@dataclass(slots=True)
class Reading:
    """Tokens of a reply with its mentions in order."""

    tokens: list[str]
    folded: list[str]
    mentions: list[Mention]
    refusing: bool = False
    runs: dict[int, list[Mention]] = field(default_factory=dict)

    def native(self, mention: Mention) -> str:
        """The words of a mention as they stand in the reply."""
        return join_tokens(self.tokens[mention.start : mention.end])


@dataclass(slots=True)
class _Event:
    start: int
    end: int
    parts: Mapping[str, str]
    clause: int = 0
    sentence: int = 0
    segment: int = 0


def join_tokens(tokens: Sequence[str]) -> str:
    """Words with spaces, signs of scripts without spaces without."""
    text = ""
    for token in tokens:
        spaced = text and text[-1].isascii() is token[0].isascii() and token[0] < "\u2e80"
        text += f" {token}" if spaced or (text and token[0] < "\u2e80") else token
    return text


def read_mentions(
    tokens: list[str], lexicon: Lexicon, codes: Mapping[str, str], n_listed: int
) -> Reading:
    """All mentions of a token list with their circumstances.

    Parameters
    ----------
    tokens: from :func:`earwitness.tasks.label_lexicon.tokenise`.
    codes: numbers or letters the prompt gave its options, folded, to labels; may be empty.
    n_listed: distinct labels from which an enumeration is a restated list of options.
    """
    folded = [token.casefold() for token in tokens]
    events = _match(folded, lexicon)
    mentions = _mentions(folded, events, codes)
    reading = Reading(tokens, folded, mentions)
    _place(events)
    reading.refusing = _mark_refusals(events, mentions)
    if not mentions:
        return reading
    _mark_scores(folded, mentions)
    _mark_runs(reading, events, n_listed)
    _mark_polarity(reading, events)
    _mark_quotes(reading)
    _mark_shape(reading)
    _mark_cues(reading, events)
    _mark_retractions(mentions, events)
    return reading


def _match(folded: list[str], lexicon: Lexicon) -> list[_Event]:
    events: list[_Event] = []
    phrases = lexicon.phrases
    at, n = 0, len(folded)
    while at < n:
        entries = phrases.get(folded[at])
        if entries is not None:
            for wanted, parts in entries:
                size = len(wanted)
                if size == 1 or tuple(folded[at : at + size]) == wanted:
                    events.append(_Event(at, at + size, dict(parts)))
                    at += size - 1
                    break
        at += 1
    return events


def _mentions(folded: list[str], events: list[_Event], codes: Mapping[str, str]) -> list[Mention]:
    found: list[Mention] = []
    for event in events:
        if LABEL in event.parts:
            found.append(Mention(event.parts[LABEL], event.start, event.end, 0))
        elif OUTSIDE in event.parts:
            found.append(Mention(None, event.start, event.end, 0))
    if codes:
        taken = {position for m in found for position in range(m.start, m.end)}
        for at, token in enumerate(folded):
            ends = at + 1 == len(folded) or not is_word(folded[at + 1])
            if token in codes and at not in taken and ends:
                found.append(Mention(codes[token], at, at + 1, 0, code=True))
        found.sort(key=lambda mention: mention.start)
    for order, mention in enumerate(found):
        mention.order = order
    return found


def _place(events: list[_Event]) -> None:
    """Number clauses (end at commas and turns), segments (at turns) and sentences (at stops)."""
    clause = segment = sentence = 0
    for event in events:
        if "stop" in event.parts:
            clause, segment, sentence = clause + 1, segment + 1, sentence + 1
        elif "turn" in event.parts:
            clause, segment = clause + 1, segment + 1
        elif "comma" in event.parts:
            clause += 1
        event.clause, event.segment, event.sentence = clause, segment, sentence


def _mark_refusals(events: list[_Event], mentions: list[Mention]) -> bool:
    """Find segments that say "cannot" of the task itself; labels named after it there are no answer."""
    refusing = False
    starts = [mention.start for mention in mentions]
    by_segment: dict[int, dict[str, int]] = {}
    places: dict[int, list[_Event]] = {}
    for event in events:
        places.setdefault(event.segment, []).append(event)
        seen = by_segment.setdefault(event.segment, {})
        for part in event.parts:
            seen.setdefault(part, event.start)
        refusing = refusing or "refusal" in event.parts
    for segment, seen in by_segment.items():
        works = "task" in seen or "stimulus" in seen
        from_here: int | None = None
        if "inability" in seen and "task" in seen:
            from_here = seen["inability"]
        elif "neg" in seen and "ability" in seen and works:
            from_here = min(seen["neg"], seen["ability"])
        elif "neg" in seen and "stimulus" in seen and "supply" in seen:
            from_here = min(seen["neg"], seen["stimulus"])
        elif "inability_after" in seen and works:
            from_here = -1
        if from_here is None:
            continue
        refusing = True
        first, last = places[segment][0].start, places[segment][-1].end
        for at in range(bisect_left(starts, first), bisect_left(starts, last)):
            mentions[at].refused = starts[at] > from_here
    return refusing


def _mark_scores(folded: list[str], mentions: list[Mention]) -> None:
    """Numbers given to labels ("anger: 0.7", "70% anger", "| anger | 7/10 |"), kept if two labels have one."""
    used = -1
    for mention in mentions:
        at, separated = mention.end, False
        while at < min(mention.end + 4, len(folded)) and not folded[at][0].isalnum():
            separated = separated or folded[at] in _SCORE_SIGNS
            if folded[at] not in _SCORE_SIGNS and folded[at][0] not in _GLUE:
                break
            at += 1
        before = folded[mention.start - 1] if mention.start else ""
        if before == "of" and mention.start > 1:
            before = folded[mention.start - 2]
        if at < len(folded) and folded[at][0].isdigit() and (separated or _fraction(folded[at])):
            mention.score = _number(folded, at)
            used = at
        elif before and before[0].isdigit() and _fraction(before) and used < mention.start - 1:
            mention.score = _number(folded, mention.start - 1 - (folded[mention.start - 1] == "of"))
    if len({mention.label for mention in mentions if mention.score is not None}) < 2:
        for mention in mentions:
            mention.score = None


def _fraction(token: str) -> bool:
    return token[0].isdigit() and (token[-1] == "%" or not token.isdigit())


def _number(folded: list[str], at: int) -> float | None:
    def value(token: str) -> float:
        # A number that no float can hold (thousands of digits) becomes infinity, which is no score.
        return float(token.rstrip("%").replace(",", ".")) / (100 if token[-1] == "%" else 1)

    number = value(folded[at])
    if at + 2 < len(folded) and folded[at + 1] == "/" and folded[at + 2][0].isdigit():
        whole = value(folded[at + 2])
        number = number / whole if whole else math.inf
    return number if math.isfinite(number) else None


def _mark_runs(reading: Reading, events: list[_Event], n_listed: int) -> None:
    """Group labels joined by commas, "or", slashes, brackets or bullets into enumerations."""
    glue: set[int] = set()
    between = []
    for event in events:
        if "join" in event.parts or "comma" in event.parts:
            glue.update(range(event.start, event.end))
        if "between" in event.parts:
            between.append(event.end)
    folded = reading.folded
    run = -1
    before: Mention | None = None
    for mention in reading.mentions:
        gap = range(before.end, mention.start) if before else range(0)
        joined = (
            before is not None
            and len(gap) <= RUN_GAP
            and all(
                at in glue
                or folded[at] in _GLUE
                or folded[at][0].isdigit()
                or (
                    folded[at] in ".)" and (folded[at - 1][0].isdigit() or len(folded[at - 1]) == 1)
                )
                for at in gap
            )
        )
        run = run if joined else run + 1
        mention.run = run
        reading.runs.setdefault(run, []).append(mention)
        before = mention
    for group in reading.runs.values():
        labels = {mention.label for mention in group if mention.label is not None}
        at = bisect_left(between, group[0].start - 3)
        offered = at < len(between) and between[at] <= group[0].start
        for mention in group:
            mention.listed = len(labels) >= n_listed
            mention.offered = offered and len(labels) > 1


def _mark_polarity(reading: Reading, events: list[_Event]) -> None:
    """Denials before and after, hedges, retractions, more and less: whatever reaches a label in its clause."""
    at_start = {event.start: event for event in events}
    last: dict[str, _Event] = {}
    joins_words: set[int] = set()
    by_start = {mention.start: mention for mention in reading.mentions}
    previous: Mention | None = None
    pending_join: _Event | None = None
    for event in events:
        mention = by_start.get(event.start)
        if mention is None:
            if "join" in event.parts and is_word(reading.folded[event.start]):
                pending_join = event
            if "postneg" in event.parts and previous is not None:
                near = event.start - previous.end <= 1
                if near and event.clause == at_start[previous.start].clause:
                    for other in reading.runs[previous.run]:
                        other.denied = True
            for part in ("neg", "earlier", "hedge", "minor", "major"):
                if part in event.parts:
                    last[part] = event
            continue
        first = reading.runs[mention.run][0]
        if mention is first:
            neg = last.get("neg")
            mention.denied = mention.denied or (
                _reaches(neg, event, NEGATION_REACH)
                and not (
                    pending_join is not None and neg is not None and pending_join.start > neg.start
                )
            )
            mention.minor = _reaches(last.get("minor"), event, MINOR_REACH)
            mention.major = _reaches(last.get("major"), event, MAJOR_REACH)
            mention.earlier = _reaches(last.get("earlier"), event, CUE_REACH)
            mention.hedged = _reaches(last.get("hedge"), event, CUE_REACH)
        else:
            shares = mention.run in joins_words or pending_join is not None
            neg = last.get("neg")
            fresh = neg is not None and neg.start > first.start and neg.end <= mention.start
            mention.denied = mention.denied or fresh
            mention.earlier, mention.hedged = first.earlier, first.hedged
            mention.major = first.major
            if shares:
                joins_words.add(mention.run)
        # A denial is spent on the labels it meets first: "neither angry nor sad: the tone is neutral".
        last.pop("neg", None)
        previous, pending_join = mention, None
    for number in joins_words:
        group = reading.runs[number]
        if group[0].denied:
            for mention in group:
                mention.denied = True


def _reaches(cue: _Event | None, event: _Event, reach: int) -> bool:
    return cue is not None and cue.clause == event.clause and event.start - cue.end <= reach


def _mark_quotes(reading: Reading) -> None:
    """Labels inside longer quoted speech are what somebody said, not what the voice expresses."""
    signs = [at for at, token in enumerate(reading.folded) if token in _QUOTE_SIGNS]
    spans = list(zip(signs[::2], signs[1::2], strict=False))
    if not spans:
        return
    starts = [start for start, _ in spans]
    for mention in reading.mentions:
        at = bisect_left(starts, mention.start) - 1
        if at >= 0 and spans[at][1] >= mention.end:
            start, end = spans[at]
            mention.quoted = end - start - 1 - (mention.end - mention.start) >= 3


def _mark_shape(reading: Reading) -> None:
    """A label set apart: alone in its line or sentence, first in the reply, or in a tag or emphasis."""
    folded = reading.folded
    n = len(folded)
    first_word = next((at for at, token in enumerate(folded) if is_word(token)), 0)
    tabled = {
        mention.label
        for mention in reading.mentions
        if mention.end < n and folded[mention.end] in (":", "|")
    }
    for group in reading.runs.values():
        start, end = group[0].start, group[-1].end
        left, right = start - 1, end
        while left >= 0 and not is_word(folded[left]) and not _ends_line(folded[left]):
            left -= 1
        while right < n and not is_word(folded[right]) and not _ends_line(folded[right]):
            right += 1
        numbered = left >= 0 and folded[left][0].isdigit() and left + 1 < start
        alone = (left < 0 or _ends_line(folded[left]) or (numbered and _begins(folded, left))) and (
            right >= n or _ends_line(folded[right])
        )
        leading = start == first_word and end < n and folded[end] in _LEAD_SIGNS
        for mention in group:
            mention.alone = alone
            mention.leading = leading and len(tabled) < 2
            before = folded[mention.start - 1][0] if mention.start else ""
            after = folded[mention.end][0] if mention.end < n else ""
            mention.tagged = before in _OPENING and after in _CLOSING and bool(before and after)


def _ends_line(token: str) -> bool:
    return token in ".!?。।؟" or token[0] == "\n"


def _begins(folded: list[str], at: int) -> bool:
    return at == 0 or _ends_line(folded[at - 1])


def _mark_cues(reading: Reading, events: list[_Event]) -> None:
    """Bind answer phrases ("emotion is", "I'd say", "final answer:") to the label that follows them."""
    noun: _Event | None = None
    starts = [mention.start for mention in reading.mentions]
    for event in events:
        parts = event.parts
        if "stop" in parts or LABEL in parts or OUTSIDE in parts:
            noun = None if not _only_signs(reading.folded, noun, event) else noun
        if "noun" in parts:
            noun = event
        if "copula" in parts and noun is not None and event.start - noun.end <= NOUN_REACH:
            _bind(reading, starts, event, CUE_REACH, final=False)
            noun = None
        if "verdict" in parts:
            _bind(reading, starts, event, CUE_REACH, final=False)
        if "final" in parts:
            _bind(reading, starts, event, 4 * CUE_REACH, final=True)


def _only_signs(folded: list[str], noun: _Event | None, event: _Event) -> bool:
    if noun is None or event.end - noun.end > NOUN_REACH:
        return False
    return not any(is_word(token) for token in folded[noun.end : event.end])


def _bind(reading: Reading, starts: list[int], cue: _Event, reach: int, *, final: bool) -> None:
    folded = reading.folded
    begin = cue.end
    at = bisect_left(starts, cue.end)
    for mention in reading.mentions[at : at + MAX_DENIED]:
        if mention.start - begin > reach:
            return
        gap = folded[begin : mention.start]
        # A colon and line ends may stand between; a sentence end after further words may not.
        if any(_ends_line(token) for token in gap) and any(is_word(token) for token in gap):
            return
        if mention.excluded or mention.score is not None:
            begin = mention.end
            continue
        for other in reading.runs[mention.run]:
            if not other.excluded:
                other.cued, other.final = True, other.final or final
        return


def _mark_retractions(mentions: list[Mention], events: list[_Event]) -> None:
    """What was said before "actually", "wait", "correction" is superseded if a label comes after it."""
    firm = [mention.start for mention in mentions if not mention.excluded and not mention.minor]
    if not firm:
        return
    for event in reversed(events):
        if "retract" in event.parts and firm[-1] >= event.end:
            for mention in mentions:
                if mention.start >= event.start:
                    break
                mention.earlier, mention.final = True, False
            return
