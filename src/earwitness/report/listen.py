"""The browser of scenes: as a part of a report, and as a page of its own for a corpus nobody was asked about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from earwitness import __version__
from earwitness.report.numbers import count, plural
from earwitness.report.scene_audio import SceneAudio

if TYPE_CHECKING:
    from earwitness.report.scene_audio import Way
    from earwitness.tasks.scene_items import MixedCorpus

LEGEND = (
    ("pivot", "the talk turns to the sound for good"),
    ("verbal", "named in passing"),
    ("behavioral", "speaking is disturbed, nobody names it"),
    ("ambient", "no reaction"),
)
_WAYS = {
    "link": "Sound is played from the files where they are on this machine; the page refers to them.",
    "bundle": "The recordings are bundled with the page ({size}).",
    "embed": "The recordings are embedded in the page ({size}).",
}


def listen_view(
    rows: Mapping[str, Any], audio: SceneAudio, *, files: str = "", title: str = ""
) -> dict[str, Any]:
    """Heading, explanations and which filters the browser has.

    Parameters
    ----------
    rows: what :mod:`earwitness.report.scene_pack` packed.
    files: the file beside the page that has all replies whole.
    """
    words = (
        "A scene's waveform, who speaks when, and its sounds, marked by how the speakers react. Press anywhere in the"
        " picture to play from there; with the keyboard, arrows move a second, page keys ten, space plays."
    )
    if audio.way in _WAYS:
        words += " " + _WAYS[audio.way].format(size=f"{audio.total_bytes / 1e6:,.1f} MB")
    if audio.credit:
        words += f" {audio.credit}"
    if rows["cut"]:
        words += (
            f" {count(rows['cut'])} long texts are cut to {count(rows['limit'])} characters here;"
            f" {files} has them whole."
        )
    return {
        "title": title or "Listen to the scenes",
        "intro": words,
        "legend": LEGEND,
        "several": len(rows["corpora"]) > 1,
        "answers": bool(rows["answers"]),
        "silent": "No sound travels with this page. Make it again with --link-audio to hear the files of this machine,"
        " or with --bundle or --embed-audio where the licence allows copies."
        if audio.way == "none"
        else "The recording of this scene was not found.",
    }


def listen_page(
    mixed: MixedCorpus,
    page: Path,
    *,
    way: Way = "link",
    title: str | None = None,
    on_scene: Callable[[int, int], None] | None = None,
) -> Path:
    """Write a page to listen to a corpus, without any run.

    Parameters
    ----------
    page: where it is written; with ``link`` it refers to the corpus's files from there.
    way: see :func:`earwitness.report.scene_audio.scene_audio`.
    on_scene: called with (done, all) while waveforms are read.

    Returns
    -------
    The page's path. The same corpus gives the same bytes.

    Raises
    ------
    LicenceError: copies were asked for and are not allowed.
    DataError: a recording cannot be read.
    """
    from earwitness.report.page import render, template_file
    from earwitness.report.rows import script_json
    from earwitness.report.scene_audio import outlines, scene_audio
    from earwitness.report.scene_pack import pack_corpus
    from earwitness.runs.folder import write_atomically

    name = mixed.folder.resolve().name
    audio = scene_audio({"listen": mixed}, way, page)
    drawn = {("listen", scene): text for scene, text in outlines(mixed, on_scene=on_scene).items()}
    rows = pack_corpus(mixed, name, audio, drawn)
    minutes = sum(scene.manifest.audio.duration_s for scene in mixed.scenes) / 60
    n_sounds = sum(len(scene.manifest.events) for scene in mixed.scenes)
    html = render(
        "listen.html.j2",
        title=title or f"Scenes of {name}",
        lead=f"{plural(len(mixed.scenes), 'scene')}, {minutes:,.1f} minutes, {plural(n_sounds, 'sound')}"
        f" that somebody does or does not react to.",
        listen=listen_view(rows, audio, title="Scenes"),
        scene_rows=script_json(rows),
        css=Markup("".join(map(template_file, ("figures.css", "page.css", "scenes.css")))),
        scripts=[template_file("scenes.js")],
        footer=f"Made by earwitness {__version__}.",
    )
    page.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(page, html)
    return page
