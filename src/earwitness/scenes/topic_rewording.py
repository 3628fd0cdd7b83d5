"""More topics with loose rewordings, written by a model: pairs to find tau on, in any language.

A corpus has topics, many of one template; a model that overheard the talk tells what each was about. What comes out
is a file like the one that ships (:mod:`earwitness.scenes.topic_pairs`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from earwitness.errors import DataError
from earwitness.models.protocols import Reply
from earwitness.runs.folder import write_atomically
from earwitness.runs.items import Item
from earwitness.scenes.bank import Bank
from earwitness.scenes.corpus import Corpus
from earwitness.scenes.topic_pairs import MAX_TOPIC_WORDS, MIN_TOPIC_WORDS, normalised
from earwitness.scenes.writers.calls import TextCaller
from earwitness.scenes.writers.extraction import NotUsableError, json_in
from earwitness.scenes.writers.prompts import REWORDINGS, WriterPrompts

TASK = "topic-rewording"
MAX_ASKS = 4
PER_TEMPLATE = 4
"""Topics of a template at most, as in the file that ships: more of one would weigh more."""
TOO_ALIKE = 0.6
"""Share of words a topic and its rewording may have in common (Jaccard index) before it is no rewording."""


@dataclass(frozen=True, slots=True)
class TopicSource:
    """The topics of one template, to be reworded together."""

    template: str
    category: str
    title: str
    facets: tuple[str, ...]
    topics: tuple[str, ...]


@dataclass(frozen=True)
class Reworded:
    """What came of it: rewordings by topic, what could not be reworded, what waits for another run."""

    sources: tuple[TopicSource, ...]
    rewordings: Mapping[str, str]
    given_up: Mapping[str, str] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)

    def to_file(self) -> dict[str, Any]:
        """As a file of topics and rewordings holds them; templates with fewer than two pairs are left out."""
        groups = []
        for source in self.sources:
            pairs = [
                {"topic": topic, "rewording": self.rewordings[topic]}
                for topic in source.topics
                if topic in self.rewordings
            ]
            if len(pairs) >= 2:
                groups.append(
                    {
                        "template": source.template,
                        "category": source.category,
                        "title": source.title,
                        "facets": list(source.facets),
                        "pairs": pairs,
                    }
                )
        return {"version": 1, "templates": groups}


def topics_of(corpus: Corpus, bank: Bank) -> tuple[TopicSource, ...]:
    """Topics of a written corpus, template by template, where a template has at least two.

    Raises
    ------
    DataError: no template has two topics.
    """
    category = {theme.id: group.id for group in bank.categories for theme in group.themes}
    texts = {template.id: template for template in corpus.templates()}
    topics: dict[str, list[str]] = {}
    seen: set[str] = set()
    for scenario, dialogue in corpus.scenes():
        length = len(dialogue.topic.split())
        said = normalised(dialogue.topic)
        if MIN_TOPIC_WORDS <= length <= MAX_TOPIC_WORDS and said not in seen:
            seen.add(said)
            topics.setdefault(scenario.template, []).append(dialogue.topic)
    found = tuple(
        TopicSource(
            template=name.replace(".", "-"),
            category=category[texts[name].theme],
            title=texts[name].title,
            facets=texts[name].facets,
            topics=tuple(own[:PER_TEMPLATE]),
        )
        for name, own in topics.items()
        if len(own) >= 2 and name in texts
    )
    if not found:
        raise DataError(
            str(corpus.folder),
            "no template has two topics",
            "a written corpus with several scenes a template",
        )
    return found


async def reword_topics(
    sources: Sequence[TopicSource], caller: TextCaller, prompts: WriterPrompts
) -> Reworded:
    """Ask for a rewording of every topic, template by template; what is none goes back with the reason.

    Raises
    ------
    UsageError: the model cannot be asked at all.
    """
    done: dict[str, str] = {}
    failed: dict[str, str] = {}
    taken = {normalised(topic) for source in sources for topic in source.topics}
    problems: dict[str, dict[str, str]] = {}
    for ask in range(1, MAX_ASKS + 1):
        todo = [
            (source, missing)
            for source in sources
            if source.template not in failed
            and (missing := [topic for topic in source.topics if topic not in done])
        ]
        if not todo:
            break
        items = [
            _item(source, missing, ask, problems.get(source.template, {}), prompts)
            for source, missing in todo
        ]
        answers = await caller.ask(items)
        for (source, missing), answer in zip(todo, answers, strict=True):
            if answer.reply is None:
                failed[source.template] = answer.failure
                continue
            good, bad = _read(answer.reply, missing, taken)
            done |= good
            taken |= {normalised(text) for text in good.values()}
            problems[source.template] = bad
    left = {
        topic: problems.get(source.template, {}).get(topic, "no rewording")
        for source in sources
        for topic in source.topics
        if topic not in done and source.template not in failed
    }
    return Reworded(tuple(sources), done, left, failed)


def write_pairs(path: Path, found: Reworded) -> int:
    """Put the pairs in place and return how many there are.

    Raises
    ------
    DataError: there are none.
    """
    content = found.to_file()
    count = sum(len(group["pairs"]) for group in content["templates"])
    if not count:
        raise DataError(str(path), "no template got two rewordings", "pairs to write")
    head = "# Topics of a corpus with loose rewordings by a model. For: earwitness scenes calibrate-topic --pairs\n"
    write_atomically(
        path, head + yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=110)
    )
    return count


def _item(
    source: TopicSource,
    topics: Sequence[str],
    ask: int,
    problems: Mapping[str, str],
    prompts: WriterPrompts,
) -> Item:
    told = [problems[topic] for topic in topics if topic in problems]
    return Item(
        id=f"{source.template}#{ask}",
        task=TASK,
        task_version=prompts.version(REWORDINGS),
        prompt=prompts.rewordings(topics, told),
        condition="text",
    )


def _read(
    reply: Reply, topics: Sequence[str], taken: set[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Rewordings in an answer by topic, and what is wrong with the others."""
    try:
        entries = json_in(reply, "rewordings")["rewordings"]
    except NotUsableError as error:
        return {}, {topics[0]: error.violation.message}
    given: dict[int, str] = {}
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("rewording"), str):
            number = entry.get("number")
            if isinstance(number, int):
                given.setdefault(number, " ".join(entry["rewording"].split()))
    good: dict[str, str] = {}
    bad: dict[str, str] = {}
    fresh = set(taken)
    for number, topic in enumerate(topics, start=1):
        text = given.get(number)
        fault = "There was no rewording of it." if text is None else _fault(text, topic, fresh)
        if text is None or fault:
            bad[topic] = f'"{topic}": {fault}'
        else:
            good[topic] = text
            fresh.add(normalised(text))
    return good, bad


def _fault(text: str, topic: str, taken: set[str]) -> str:
    words = normalised(text).split()
    if not MIN_TOPIC_WORDS <= len(words) <= MAX_TOPIC_WORDS:
        return f"The rewording has {len(words)} words; wanted are {MIN_TOPIC_WORDS} to {MAX_TOPIC_WORDS}."
    if " ".join(words) in taken:
        return "The rewording is the same as another topic or rewording."
    own, other = set(words), set(normalised(topic).split())
    if len(own & other) / len(own | other) > TOO_ALIKE:
        return "The rewording uses nearly the same words; use others."
    return ""
