"""The sound of scenes on a page: what may travel along, where it is, and its outline drawn without sending it.

Licences: a scene is made of takes and of voices. It may travel where every take of the library it was mixed from is
in the public domain and every voice was made by an engine that ships or runs locally; or where the corpus folder has
a ``licence.yaml`` that says ``redistribute: true`` (with ``licence`` and, where one is due, ``credit``).
"""

from __future__ import annotations

import base64
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from earwitness.errors import DataError, LicenceError, UsageError
from earwitness.report.players import MAX_EMBEDDED_BYTES, address_of

if TYPE_CHECKING:
    from earwitness.scenes.mixing.manifest import Manifest
    from earwitness.tasks.scene_items import MixedCorpus, MixedScene

BINS = 600
"""Columns of a drawn waveform."""
LOCAL_ENGINES = ("hibari", "kokoro", "espeak", "piper")
"""Adapters whose voices may be passed on: packaged, or run on one's own machine."""
PUBLIC_DOMAIN = ("cc0", "public domain", "pdm", "cc-pddc")
MEDIA_TYPES = {".wav": "audio/wav", ".flac": "audio/flac"}
Way = Literal["none", "link", "bundle", "embed"]


@dataclass(frozen=True, slots=True)
class SceneSound:
    """Where a page finds a version of a scene. ``variant`` is ``audible`` for the mix itself."""

    variant: str
    source: str


@dataclass(frozen=True, slots=True)
class SceneAudio:
    """Sounds of the scenes of a page by (corpus key, scene); empty where no sound travels along."""

    way: Way = "none"
    sounds: Mapping[tuple[str, str], tuple[SceneSound, ...]] = field(default_factory=dict)
    total_bytes: int = 0
    credit: str = ""


def may_travel(folder: Path) -> tuple[bool, str, str]:
    """Whether the sound of a corpus may be passed on.

    Returns
    -------
    Yes or no, the reason in words, and the credit to print.

    Raises
    ------
    DataError: a card of the corpus cannot be read.
    """
    own = _card(folder / "licence.yaml")
    if own:
        yes = own.get("redistribute") is True
        said = f"licence.yaml says {own.get('licence') or 'nothing'} of the licence"
        return yes, said, str(own.get("credit") or "")
    mixes, voices = _card(folder / "mixes.yaml"), _card(folder / "voices.yaml")
    library = mixes.get("library")
    licences = library.get("licences") if isinstance(library, Mapping) else None
    if not licences:
        return False, "mixes.yaml names no licences of its takes", ""
    closed = sorted(name for name in licences if not _public(str(name)))
    if closed:
        return False, f"takes under {', '.join(map(str, closed))}", ""
    named = voices.get("voices")
    engines = sorted({str(name).partition("/")[0] for name in named or ()})
    if not engines:
        return False, "voices.yaml names no voices", ""
    foreign = [name for name in engines if name not in LOCAL_ENGINES]
    if foreign:
        return False, f"voices of {', '.join(foreign)}", ""
    return True, "takes in the public domain, voices made locally", ""


def library_of(folder: Path) -> str:
    """Name, version and licences of the sound library a corpus was mixed from, and whether splits share its takes.

    Empty where that is not written down.
    """
    library = _card(folder / "mixes.yaml").get("library")
    if not isinstance(library, Mapping):
        return ""
    words = " ".join(str(library[key]) for key in ("name", "version") if library.get(key))
    licences = library.get("licences")
    words += f" ({', '.join(map(str, licences))})" if licences else ""
    return words + (
        "; its takes are shared by the splits" if library.get("takes_shared_by_splits") else ""
    )


def cast_of(folder: Path) -> str:
    """Name of the cast that speaks in a corpus, and whether splits share its voices; empty where that is not known."""
    cast = _card(folder / "voices.yaml").get("cast")
    if not isinstance(cast, Mapping) or not cast.get("name"):
        return ""
    shared = cast.get("split_policy") == "shared"
    return str(cast["name"]) + ("; its voices are shared by the splits" if shared else "")


def _public(licence: str) -> bool:
    return licence.casefold().startswith(PUBLIC_DOMAIN)


def _card(path: Path) -> Mapping[str, Any]:
    import yaml

    if not path.is_file():
        return {}
    try:
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise DataError(
            str(path), f"cannot be read ({' '.join(str(error).split())})", "YAML"
        ) from None
    return value if isinstance(value, Mapping) else {}


def check_licence(mixed: MixedCorpus, option: str) -> str:
    """The credit to print, where the sound of a corpus may travel.

    Raises
    ------
    LicenceError: it may not, or nothing says so.
    """
    yes, why, credit = may_travel(mixed.folder)
    if not yes:
        raise LicenceError(
            f"corpus {mixed.folder.resolve().name!r}",
            f"its sound is not marked as allowing copies ({why})",
            wanted=f"takes in the public domain and local voices, or redistribute: true in licence.yaml, for {option}",
            next_step=f"Leave {option} out, or use --link-audio for a page on this machine; if you may pass the"
            f" sound on, write {mixed.folder / 'licence.yaml'} with licence, credit and redistribute: true.",
        )
    return credit


def scene_audio(
    corpora: Mapping[str, MixedCorpus],
    way: Way,
    page: Path,
    *,
    on_scene: Callable[[int, int], None] | None = None,
) -> SceneAudio:
    """Make the sound of corpora available to a page.

    Parameters
    ----------
    corpora: by the key of their board.
    way: ``link`` refers to the files where they are, twins included; ``bundle`` copies the mixes into ``scenes/``
        beside the page; ``embed`` puts them into the page.
    page: the page's path.

    Raises
    ------
    LicenceError: copies are not allowed. DataError: a file is gone. UsageError: too much to embed.
    """
    if way == "none" or not corpora:
        return SceneAudio("none")
    if way == "link":
        return SceneAudio("link", _linked(corpora, page))
    option = f"--{way}" if way == "bundle" else "--embed-audio"
    owed = [check_licence(mixed, option) for mixed in corpora.values()]
    files = [
        (key, scene, mixed.folder / scene.manifest.audio.file)
        for key, mixed in corpora.items()
        for scene in mixed.scenes
    ]
    for _, scene, path in files:
        if not path.is_file():
            raise DataError(
                str(path), f"the mix of scene {scene.id!r} is missing",
                next_step="Mix it again (earwitness scenes mix), or leave the option out.",
            )  # fmt: skip
    total = sum(path.stat().st_size for _, _, path in files)
    if way == "embed" and total > MAX_EMBEDDED_BYTES:
        raise UsageError(
            "--embed-audio",
            f"{len(files):,} scenes are {total / 1e6:,.0f} MB",
            wanted=f"at most {MAX_EMBEDDED_BYTES / 1e6:,.0f} MB in one page",
            next_step="Use --bundle, which writes a folder.",
        )
    sounds = {}
    for number, (key, scene, path) in enumerate(files, start=1):
        source = _copied(path, key, page.parent) if way == "bundle" else _embedded(path)
        sounds[key, scene.id] = (SceneSound("audible", source),)
        if on_scene is not None:
            on_scene(number, len(files))
    return SceneAudio(way, sounds, total, " ".join(filter(None, owed)))


def _linked(
    corpora: Mapping[str, MixedCorpus], page: Path
) -> dict[tuple[str, str], tuple[SceneSound, ...]]:
    found = {}
    for key, mixed in corpora.items():
        for scene in mixed.scenes:
            versions = [scene.manifest, *_twins(mixed, scene)]
            sounds = [
                SceneSound(manifest.variant, address_of(mixed.folder / manifest.audio.file, page))
                for manifest in versions
                if (mixed.folder / manifest.audio.file).is_file()
            ]
            if sounds:
                found[key, scene.id] = tuple(sounds)
    return found


def _twins(mixed: MixedCorpus, scene: MixedScene) -> list[Manifest]:
    """Manifests of the twins of a scene that belong to its mix."""
    variants = [f"mute-{event.id}" for event in scene.manifest.events]
    variants += [
        "mute-all",
        *(f"swap-{event.id}" for event in scene.manifest.events),
        "speech-only",
    ]
    found = (mixed.manifest(scene, name) for name in variants)
    return [m for m in found if m and m.audible_sha256 == scene.manifest.audio.sha256]


def _copied(path: Path, key: str, folder: Path) -> str:
    target = folder / "scenes" / key / path.name
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.part")
    shutil.copyfile(path, part)
    part.replace(target)
    return quote(target.relative_to(folder).as_posix())


def _embedded(path: Path) -> str:
    media_type = MEDIA_TYPES.get(path.suffix.lower(), "audio/wav")
    return f"data:{media_type};base64,{base64.b64encode(path.read_bytes()).decode('ascii')}"


def outline(path: Path, bins: int = BINS) -> str:
    """A waveform to draw: the largest absolute sample of each of ``bins`` stretches, as base64 of one byte each.

    255 is full scale; empty where the file is not there. The file is read in blocks.

    Raises
    ------
    DataError: it is no audio file.
    """
    import numpy as np
    import soundfile

    if not path.is_file():
        return ""
    try:
        with soundfile.SoundFile(path) as file:
            n = file.frames
            edges = np.linspace(0, n, min(bins, max(n, 1)) + 1).astype(np.int64)
            peaks = np.zeros(len(edges) - 1)
            for k in range(0, len(peaks), 50):
                last = min(k + 50, len(peaks))
                block = file.read(int(edges[last] - edges[k]), dtype="int16", always_2d=True)
                loud = np.abs(block.astype(np.int32)).max(axis=1)
                starts = edges[k:last] - edges[k]
                if len(loud):
                    peaks[k:last] = np.maximum.reduceat(loud, np.minimum(starts, len(loud) - 1))
    except soundfile.LibsndfileError as error:
        raise DataError(str(path), f"cannot be read ({error})", "an audio file") from None
    return base64.b64encode(np.round(peaks / 32768 * 255).astype(np.uint8).tobytes()).decode()


def outlines(
    mixed: MixedCorpus, *, on_scene: Callable[[int, int], None] | None = None
) -> dict[str, str]:
    """Waveforms of all scenes of a corpus by id."""
    found = {}
    scenes: Sequence[MixedScene] = mixed.scenes
    for number, scene in enumerate(scenes, start=1):
        found[scene.id] = outline(mixed.folder / scene.manifest.audio.file)
        if on_scene is not None:
            on_scene(number, len(scenes))
    return found
