"""The card of a corpus: what it is, who wrote and judged it, what is known of both, and what it is not good for.

``CARD.md`` is made from the corpus's own files and nothing else, so that the same corpus has the same card. It is
written again by every stage that changes the words.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from earwitness.runs.folder import write_atomically
from earwitness.scenes.bank import REACTIONS, Bank
from earwitness.scenes.corpus import Corpus
from earwitness.scenes.corpus_config import CorpusConfig, WriterUsed
from earwitness.scenes.scenario import SPLITS, Scenario

CARD = "CARD.md"
RECOVERY = "recovery.json"
"""Figures of the filter's last run."""
_PHRASEBOOK, _READER = "offline/phrasebook", "offline/reader"
_TRIAL = Path(__file__).parent / "reader" / "trial.yaml"


@lru_cache(maxsize=1)
def reader_trial() -> Mapping[str, Any]:
    """How well the embedded reader reads snippets it never saw, with the version that was tried."""
    content: dict[str, Any] = yaml.safe_load(_TRIAL.read_text(encoding="utf-8"))
    return content


def write_card(corpus: Corpus, bank: Bank) -> None:
    """Put the card of a corpus in place.

    Raises
    ------
    DataError: a file of the corpus is broken.
    """
    fresh = Corpus(corpus.folder)
    write_atomically(fresh.path(CARD), corpus_card(fresh, bank))


def corpus_card(corpus: Corpus, bank: Bank) -> str:
    """The card as Markdown; the same corpus gives the same text.

    Parameters
    ----------
    bank: of the plan.
    """
    config = corpus.config
    scenarios, scenes = corpus.scenarios(), corpus.scenes()
    kept = corpus.path(RECOVERY)
    recovery = json.loads(kept.read_text(encoding="utf-8")) if kept.is_file() else None
    parts = [
        _head(scenarios, len(scenes), bank),
        _plan(config, scenarios, bank),
        _words(config, len(scenes), len(corpus.abandoned())),
        _judged(config, recovery),
        *filter(None, (_voices(corpus), _sounds(corpus))),
        _limits(config, bank),
    ]
    return "\n\n".join(parts) + "\n"


def _head(scenarios: Sequence[Scenario], written: int, bank: Bank) -> str:
    done = (
        f"dialogues stand in {written:,} of their places"
        if written
        else "there are no dialogues yet"
    )
    return (
        f"# A corpus of scenes: {len(scenarios):,} planned, {written:,} written\n\n"
        f"Two adults talk somewhere, sounds occur, and how the two react to each was fixed before the words "
        f"existed. {len(scenarios):,} are planned; {done}. Language: {bank.language}."
    )


def _plan(config: CorpusConfig, scenarios: Sequence[Scenario], bank: Bank) -> str:
    rows = [("split", "templates", "scenes", "events", *REACTIONS)]
    for split in SPLITS:
        own = [scenario for scenario in scenarios if scenario.split == split]
        events = Counter(event.reaction for scenario in own for event in scenario.events)
        templates = len({scenario.template for scenario in own})
        counts = (templates, len(own), events.total(), *(events[r] for r in REACTIONS))
        rows.append((split, *(f"{count:,}" for count in counts)))
    lines = [
        f"- preset `{config.preset.id}` {config.preset.version}, seed {config.seed}, {config.templates} templates "
        f"of {config.per_template} scenes",
        f"- bank `{bank.id}` {bank.version} ({bank.licence}), hash `{config.bank.hash[:12]}`",
    ]
    if config.library is not None:
        lines.append(
            f"- planned for a sound library with hash `{config.library.hash[:12]}`, at least "
            f"{config.library.min_takes} takes of a sound in a split"
        )
        if config.library.left_out:
            lines.append(
                f"- no scenes at {', '.join(config.library.left_out)}: the library has no ambience there"
            )
    if config.cast is not None:
        tags = ", ".join(config.cast.tags) or "none"
        lines.append(f"- planned for a cast of voices that render the delivery tags {tags}")
    return "## Plan\n\n" + "\n".join(lines) + "\n\n" + _table(rows)


def _words(config: CorpusConfig, written: int, abandoned: int) -> str:
    if config.writer is None:
        return "## Words\n\nNot written yet."
    lines = [f"- dialogues: {_author(config.writer)}"]
    if config.writer.name == _PHRASEBOOK:
        lines[0] += (
            ". This is the **embedded default**: sentences composed from a grammar by a program, no person and no "
            "language model. Wordings of a reaction are disjoint between splits"
        )
    else:
        lines.append(f"- topics: {_author(config.topic_writer or config.writer)}")
        own = config.templates_writer
        lines.append(f"- situations: {_author(own) if own else 'those of the bank'}")
    if config.loop is not None:
        lines.append(
            f"- up to {config.loop.max_attempts} drafts of a scene and {config.loop.max_refills} fresh scenes in "
            f"its place; {abandoned:,} were abandoned on the way to {written:,}"
        )
    return "## Words\n\n" + "\n".join(lines)


def _author(used: WriterUsed) -> str:
    settings = ", ".join(f"{key} {value}" for key, value in used.settings.items())
    told = f"`{used.name}`" + (f" ({settings})" if settings else "")
    told += f", family {used.family}" if used.family else ", family not declared"
    if used.prompts:
        told += ", prompts " + ", ".join(f"{name} `{h[:8]}`" for name, h in used.prompts.items())
    return told


def _judged(config: CorpusConfig, recovery: Mapping[str, Any] | None) -> str:
    judge = config.judge
    if judge is None:
        return "## Recovery filter\n\nNot filtered yet: nobody but the writer has read these dialogues."
    # A gate of the user's own says of itself what it likes; what it leaves out is left out here.
    family = f", family {judge['family']}" if judge.get("family") else ""
    lines = [
        f"- judge `{judge.get('judge', 'unnamed')}`{family}; it saw transcripts with marks where sounds occur, "
        "never the plan",
        _known_of(judge),
    ]
    if "tau" in judge and "embedder" in judge:
        lines.append(_topic_rule(judge))
    text = "## Recovery filter\n\n" + "\n".join(lines)
    if recovery is None or recovery.get("judge") != judge:
        return text
    stands = "exactly as planned" if recovery["as_planned"] else "not as planned"
    text += (
        f"\n- of {recovery['accepted']['of']:,} first drafts {_share(recovery['accepted'])} were accepted; "
        f"{recovery['mean_attempts']:.2f} drafts per standing scene; the distribution is {stands}"
    )
    rows = [("planned, read as", *REACTIONS, "recovered")]
    for name, row in zip(REACTIONS, recovery["confusion"], strict=True):
        share = recovery["recovered"].get(name)
        rows.append((name, *(f"{n:,}" for n in row), _share(share) if share else "-"))
    text += "\n\nSounds of first drafts:\n\n" + _table(rows)
    shapes = [("pivot-verbal-behavioral-ambient", "first drafts", "accepted")]
    for name, share in recovery["compositions"].items():
        shapes.append((name, f"{share['of']:,}", _share(share)))
    return text + "\n\nBy composition:\n\n" + _table(shapes)


def _known_of(judge: Mapping[str, Any]) -> str:
    trial = reader_trial()
    settings = judge.get("settings") or {}
    if judge.get("judge") == _READER and settings.get("version") == trial["version"]:
        return (
            f"- on {trial['sounds']} labelled sounds in {trial['snippets']} hand-written snippets it was not fitted "
            f"to, its balanced accuracy is {_share(trial['balanced_accuracy'])}; chance is 25 %"
        )
    return "- how well it reads is not recorded here; `earwitness scenes judge-test` tells"


def _topic_rule(judge: Mapping[str, Any]) -> str:
    told = (
        f"- accepted where every reaction was read as planned and the topic's cosine is at least {judge['tau']:.4f} "
        f"under `{judge['embedder']}` (hash `{str(judge.get('embedder_hash', ''))[:12]}`)"
    )
    found = judge.get("calibration")
    if not found:
        return told + ", a threshold that was set by hand"
    return (
        told
        + f", found on {found['positives']} rewordings against {found['negatives']} other topics (AUC {found['auc']:.3f})"
    )


def _stage_card(corpus: Corpus, name: str) -> Mapping[str, Any]:
    path = corpus.path(name)
    content = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else None
    return content if isinstance(content, Mapping) else {}


def _voices(corpus: Corpus) -> str:
    """Who speaks, and whether a voice is heard in several splits; empty before the scenes are spoken."""
    card = _stage_card(corpus, "voices.yaml")
    cast = card.get("cast")
    if not cast:
        return ""
    shared = (
        "**voices are shared by the splits**: figures are not for voices never heard"
        if cast["split_policy"] == "shared"
        else "no voice is in two splits"
    )
    lines = [
        f"- cast `{cast['name']}` of {len(card['voices'])} voices, hash `{cast['hash'][:12]}`; {shared}",
        f"- {card['turns']:,} turns of {card['scenes']:,} scenes, {card['seconds'] / 60:,.1f} minutes",
    ]
    if card["removed_tags"]:
        removed = ", ".join(f"{tag} {count:,}" for tag, count in card["removed_tags"].items())
        lines.append(f"- delivery tags left out, as their voices cannot render them: {removed}")
    return "## Voices\n\n" + "\n".join(lines)


def _sounds(corpus: Corpus) -> str:
    """Whose takes are heard, and whether splits share them; empty before the scenes are mixed."""
    card = _stage_card(corpus, "mixes.yaml")
    library, preset = card.get("library"), card.get("preset")
    if not library or not preset:
        return ""
    shared = (
        "**takes are shared by the splits**: figures are not for recordings never heard"
        if library["takes_shared_by_splits"]
        else "no take is in two splits"
    )
    how = "the same" if preset["same_for_all_reactions"] else "**not the same**"
    lines = [
        f"- library `{library['name']}` {library['version']}, hash `{library['hash'][:12]}`; {shared}",
        f"- takes under {'; '.join(map(str, library['licences']))}",
        f"- mixed by preset `{preset['id']}` {preset['version']}: placing, length and ducking of sounds are drawn "
        f"in {how} way whatever the reaction; {card['scenes']:,} scenes",
    ]
    return "## Sounds\n\n" + "\n".join(lines)


def _limits(config: CorpusConfig, bank: Bank) -> str:
    lines = [
        "Everybody in it is invented. Speakers are adults in private talk; no phone calls, no third voices.",
    ]
    if config.writer is not None and config.writer.name == _PHRASEBOOK:
        lines.append(
            "Its dialogues can be followed and labelled, and they are not literature: facts about a subject are "
            "general, and the same stories turn up in many scenes. Do not read quality of talk into results on it."
        )
    if config.judge is not None and config.judge.get("judge") == _READER:
        lines.append(
            "Its judge is a program of word lists and small regressions. What passed was read as planned by something "
            "that did not write it; where a corpus matters, let a language model and then people judge."
        )
    lines.append(f"The plan's data (bank) is under {bank.licence}.")
    if config.writer is not None and config.writer.name != _PHRASEBOOK:
        lines.append("The terms of the models that wrote may bind the words.")
    lines.append(
        "`earwitness scenes validate` checks every promise again, `earwitness scenes audit` whether reactions can be "
        "guessed without the conduct."
    )
    return "## Limits and use\n\n" + "\n".join(f"- {line}" for line in lines)


def _share(share: Mapping[str, Any]) -> str:
    return f"{share['value']:.1%} ({share['low']:.1%} to {share['high']:.1%})"


def _table(rows: Iterable[Sequence[str]]) -> str:
    head, *body = rows
    lines = [head, tuple("---" for _ in head), *body]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines)
