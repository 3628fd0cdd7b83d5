"""Items out of what there is: a clip set, recordings, a corpus of scenes, assignments of scripts.

Each item is divided here, once, into what people are shown and what they must not see. Shown of a scene are its words
and where its sounds occur; of a clip the asked emotion and the text, and nothing at all in the blind review. Ids, file
names and labels of the data set stay behind: ids of scenes and clips often tell the label.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from earwitness.clips.corpus import EMOTIONS, clip_path, load_clip_set, safe_id
from earwitness.errors import DataError, UsageError
from earwitness.review.project import (
    CONSENT_TEXT,
    CONSENT_VERSION,
    DATABASE,
    Project,
    Show,
    checked,
    read_project,
    stored_path,
    write_project,
)
from earwitness.review.store import Item, add_items, opened, transaction
from earwitness.runs.jsonlines import read_lines

if TYPE_CHECKING:
    from earwitness.scenes.bank import Bank
    from earwitness.scenes.dialogue_records import Dialogue
    from earwitness.scenes.mixing.manifest import Manifest
    from earwitness.scenes.scenario import Scenario

ASSIGNMENTS = "assignments.jsonl"
LONGEST_SCRIPT = 2000
_ACCOUNT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


def create_record(
    assignments: Path,
    out: Path,
    *,
    title: str = "",
    consent: Path | None = None,
    consent_version: str = "",
    seconds: tuple[float, float] = (0.5, 30.0),
    seed: int = 0,
) -> Project:
    """A folder in which every account records the scripts assigned to it.

    Parameters
    ----------
    assignments: ``assignments.jsonl``, or a folder that holds one; ``account``, ``script_id``, ``text``, ``emotion``
        a line. Written by ``earwitness clips assign``.
    consent: text that speakers agree to first; the packaged one otherwise.
    consent_version: of that text; given together with it.
    seconds: shortest and longest recording that is accepted.

    Raises
    ------
    DataError: a line is no assignment, or is there twice.
    UsageError: a consent text without its version.
    """
    path = assignments / ASSIGNMENTS if assignments.is_dir() else assignments
    if (consent is None) != (not consent_version):
        raise UsageError(
            "--consent", "goes with --consent-version", "both or neither", "Name its version."
        )
    text = CONSENT_TEXT
    if consent is not None:
        try:
            text = consent.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(str(consent), f"cannot be read ({error})", "a text in UTF-8") from None
    items = []
    seen: dict[str, int] = {}
    for number, line in read_lines(path, "an assignment"):
        item = _assignment(line, f"{path}:{number}")
        first = seen.setdefault(item.key.casefold(), number)
        if first != number:
            raise DataError(
                f"{path}:{number}", f"{item.key} is already on line {first}", "each take once"
            )
        items.append(item)
    project = Project(
        kind="record",
        title=title or "Record your voice",
        seed=seed,
        source=stored_path(out, path),
        consent_version=consent_version or CONSENT_VERSION,
        consent_text=text,
        min_seconds=seconds[0],
        max_seconds=seconds[1],
    )
    return _create(out, project, items)


def create_review(
    source: Path,
    out: Path,
    *,
    title: str = "",
    per_item: int = 1,
    blind: bool = False,
    limit: int | None = None,
    seed: int = 0,
) -> Project:
    """A folder in which reviewers hear clips.

    Parameters
    ----------
    source: a clip set, or a record folder whose recordings are to be reviewed.
    blind: ask which of the seven emotions is heard, and tell nothing about the clip.
    limit: only so many clips, drawn by ``seed``; more contain fewer.
    """
    items = (
        _recordings(source, out, blind)
        if (source / DATABASE).is_file()
        else _clips(source, out, blind)
    )
    project = Project(
        kind="review",
        title=title or ("Which emotion do you hear?" if blind else "Review recordings"),
        seed=seed,
        per_item=per_item,
        source=stored_path(out, source),
        blind=blind,
    )
    return _create(out, project, _drawn(items, limit, seed))


def create_label(
    corpus: Path,
    out: Path,
    *,
    title: str = "",
    per_item: int = 3,
    show: Show = "transcript",
    split: str | None = None,
    bank: Path | None = None,
    limit: int | None = None,
    seed: int = 0,
    on_scene: Callable[[], None] | None = None,
) -> Project:
    """A folder in which annotators label how speakers react to each sound of a scene.

    Parameters
    ----------
    show: ``transcript``, ``audio`` or ``both``; the last two need mixed scenes.
    split: only scenes of this split.
    limit: only so many scenes, drawn by ``seed``; more contain fewer.

    Raises
    ------
    UsageError: no such split, or no scene left.
    DataError: with audio, a scene was not mixed.
    """
    from earwitness.scenes.corpus import Corpus
    from earwitness.scenes.scenario import SPLITS

    if split is not None and split not in SPLITS:
        raise UsageError("--split", repr(split), ", ".join(SPLITS))
    known = Corpus(corpus)
    read = known.bank(bank)
    pairs = [(s, d) for s, d in known.scenes() if split in (None, s.split) and s.events]
    chosen = set(_drawn_names([s.id for s, _ in pairs], limit, seed, "scene"))
    items = []
    for scenario, dialogue in pairs:
        if scenario.id in chosen:
            manifest = _manifest(corpus, scenario.id) if show != "transcript" else None
            items.append(_scene(scenario, dialogue, read, manifest, corpus, out, show))
            if on_scene is not None:
                on_scene()
    project = Project(
        kind="label",
        title=title or "How do the speakers react?",
        seed=seed,
        per_item=per_item,
        source=stored_path(out, corpus),
        show=show,
    )
    return _create(out, project, items)


def _create(out: Path, project: Project, items: Sequence[Item]) -> Project:
    if not items:
        raise UsageError(str(out), "nothing to ask about", "at least one item")
    out.mkdir(parents=True, exist_ok=True)
    checked(project, str(out))
    if (out / DATABASE).exists():
        there = read_project(out)
        if there.kind != project.kind or there.source != project.source:
            raise UsageError(
                str(out),
                f"is a review folder already ({there.kind}, of {there.source})",
                "a folder of its own for each piece of work",
            )
        raise UsageError(
            str(out),
            "is a review folder already",
            "a new folder",
            "People's answers are in it. See: earwitness review status " + str(out),
        )
    write_project(out, project)
    with opened(out, create=True) as db, transaction(db):
        add_items(db, items)
    return project


def _assignment(line: dict[str, Any], where: str) -> Item:
    for name in ("account", "script_id", "text", "emotion"):
        if not isinstance(line.get(name), str) or not line[name].strip():
            raise DataError(
                f"{where}: {name}", f"found {line.get(name)!r}", "account, script_id, text, emotion"
            )
    account, script, emotion = line["account"], line["script_id"], line["emotion"]
    for name in ("account", "script_id"):
        # They become names of folders and files.
        if not _ACCOUNT.fullmatch(line[name]) or safe_id(line[name]):
            raise DataError(
                f"{where}: {name}", f"found {line[name]!r}", "letters, digits, dots, - and _"
            )
    if emotion not in EMOTIONS:
        raise DataError(f"{where}: emotion", f"found {emotion!r}", ", ".join(EMOTIONS))
    if len(line["text"]) > LONGEST_SCRIPT:
        raise DataError(
            f"{where}: text", f"{len(line['text'])} characters", f"at most {LONGEST_SCRIPT}"
        )
    return Item(
        key=f"{account}/{script}--{emotion}",
        cluster=account,
        owner=account,
        shown={"text": line["text"], "emotion": emotion},
        gold={},
    )


def _clips(source: Path, out: Path, blind: bool) -> list[Item]:
    clip_set = load_clip_set(source)
    return [
        Item(
            key=clip.id,
            cluster=clip.cluster,
            shown={} if blind else _told(clip.emotion, clip.metadata.get("text", "")),
            gold={"clip": clip.emotion},
            audio=stored_path(out, clip_path(clip_set, clip)),
            sha256=clip.sha256,
        )
        for clip in clip_set.clips
    ]


def _recordings(source: Path, out: Path, blind: bool) -> list[Item]:
    from earwitness.review.recordings import recordings_of

    if read_project(source).kind != "record":
        raise UsageError(
            str(source), "is a review folder without recordings", "a record folder or a clip set"
        )
    found = recordings_of(source)
    if not found:
        raise UsageError(str(source), "nothing was recorded yet", "recordings to review")
    return [
        Item(
            key=row["id"],
            cluster=row["account"],
            shown={} if blind else _told(row["emotion"], row["text"]),
            gold={"clip": row["emotion"]},
            audio=stored_path(out, source / row["path"]),
            sha256=row["sha256"],
        )
        for row in found
    ]


def _told(emotion: str, text: str) -> dict[str, str]:
    return {"emotion": emotion, "text": text} if text else {"emotion": emotion}


def _manifest(corpus: Path, scene: str) -> Manifest:
    from earwitness.scenes.mixing.manifest import read_manifest
    from earwitness.scenes.mixing.stage import manifest_file

    path = manifest_file(corpus, scene)
    if not path.is_file():
        raise DataError(
            str(path),
            "no such file: the scene was not mixed",
            "a mixed scene to label from audio",
            f"Mix it (earwitness scenes mix {corpus}) or label from the transcript: --show transcript.",
        )
    return read_manifest(path)


def _scene(
    scenario: Scenario,
    dialogue: Dialogue,
    bank: Bank,
    manifest: Manifest | None,
    corpus: Path,
    out: Path,
    show: Show,
) -> Item:
    from earwitness.scenes.dialogue_records import Utterance

    planned = {event.id: event for event in scenario.events}
    sounds: list[dict[str, Any]] = []
    gold: dict[str, str] = {}
    lines: list[dict[str, Any]] = []
    for part in dialogue.timeline:
        if isinstance(part, Utterance):
            lines.append({"speaker": part.speaker, "said": _said(part.text, bank)})
        elif part.id in planned:
            # Numbered by their place in the talk; ids of the plan stay behind.
            name = f"s{len(sounds) + 1}"
            sound: dict[str, Any] = {
                "id": name,
                "name": bank.sound(planned[part.id].sound).name,
            }
            if manifest is not None:
                sound["at_s"] = round(manifest.event(part.id).salient_s, 1)
            sounds.append(sound)
            lines.append({"sound": name})
            gold[name] = planned[part.id].reaction
    shown: dict[str, Any] = {"sounds": sounds}
    if show != "audio":
        shown["lines"] = lines
    if manifest is None:
        return Item(scenario.id, scenario.id, shown, gold)
    audio = corpus / manifest.audio.file
    shown["seconds"] = round(manifest.audio.duration_s, 1)
    return Item(
        scenario.id, scenario.id, shown, gold, stored_path(out, audio), manifest.audio.sha256
    )


def _said(text: str, bank: Bank) -> list[list[str]]:
    """Pieces of an utterance, ``speech`` or ``heard``: in place of a tag what a listener hears of it."""
    from earwitness.scenes.tags import split_tags, tag_of

    pieces: list[list[str]] = []
    for piece in split_tags(text):
        tag = tag_of(bank, piece.content) if piece.kind == "tag" else None
        if piece.kind == "speech":
            close = piece.content[:1] in ",.!?;:…"
            pieces.append(["speech", piece.content if close or not pieces else f" {piece.content}"])
        elif tag is not None:
            pieces.append(["heard", tag.heard if not pieces else f" {tag.heard}"])
    return pieces


def _drawn(items: list[Item], limit: int | None, seed: int) -> list[Item]:
    chosen = set(_drawn_names([item.key for item in items], limit, seed, "clip"))
    return [item for item in items if item.key in chosen]


def _drawn_names(names: Sequence[str], limit: int | None, seed: int, what: str) -> list[str]:
    if limit is None:
        return list(names)
    if limit < 1:
        raise UsageError("--limit", f"found {limit}", "at least 1")
    if limit > len(names):
        raise UsageError("--limit", f"{limit} of {len(names)} {what}s", f"at most {len(names)}")

    def draw(name: str) -> bytes:
        return hashlib.sha256(f"{seed}\x00{what}\x00{name}".encode()).digest()

    return sorted(names, key=draw)[:limit]
