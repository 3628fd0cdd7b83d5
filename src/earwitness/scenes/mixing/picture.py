"""A page that shows one scene: waveform, who speaks when, sounds with their levels, and the spectrogram."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from earwitness.audio.files import atomic_write_bytes, atomic_write_text
from earwitness.audio.types import Audio
from earwitness.scenes.mixing.describing import describe, describe_audio
from earwitness.scenes.mixing.manifest import Manifest, manifest_text
from earwitness.scenes.mixing.planning import ScenePlan
from earwitness.scenes.mixing.render import make_scene, mastered
from earwitness.scenes.mixing.stage import encode, inputs_of
from earwitness.scenes.mixing.twins import AUDIBLE

if TYPE_CHECKING:
    from earwitness.audio.types import Samples

SPEAKERS = {"A": "#3b6ea5", "B": "#b5651d"}
REACTIONS = {
    "pivot": "#b02a4c",
    "verbal": "#7a4fa3",
    "behavioral": "#2e7d4f",
    "ambient": "#6b6b6b",
}
COLUMNS = 1600
WINDOW = 1024
FLOOR_DB = -90.0


def render_page(
    plan: ScenePlan, corpus: Path, library: Path, out: Path, form: str = "svg"
) -> tuple[Path, ...]:
    """Render a scene into a folder: audio, manifest and page.

    Parameters
    ----------
    form: ``svg`` or ``png``.

    Returns
    -------
    The three files.
    """
    scene, samples = mastered(make_scene(plan, corpus, library))
    data = encode(samples, scene.rate, "wav")
    sound = out / f"{plan.id}.wav"
    audio = describe_audio(sound.name, data, len(samples), scene.rate)
    manifest = describe(scene, audio, inputs=inputs_of(plan, AUDIBLE), variant=AUDIBLE)
    atomic_write_bytes(sound, data)
    atomic_write_text(out / f"{plan.id}.json", manifest_text(manifest))
    page = out / f"{plan.id}.{form}"
    atomic_write_bytes(page, draw_page(manifest, Audio(samples, scene.rate), form))
    return sound, out / f"{plan.id}.json", page


def draw_page(manifest: Manifest, audio: Audio, form: str = "svg") -> bytes:
    """The page as a file's bytes; the same bytes for the same scene."""
    import io

    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context(
        {"svg.hashsalt": manifest.scene, "font.size": 8, "font.family": "DejaVu Sans"}
    ):
        figure = Figure(figsize=(14, 7.5), layout="constrained")
        FigureCanvasAgg(figure)
        wave, talk, spectrum = figure.subplots(
            3, 1, sharex=True, gridspec_kw={"height_ratios": [2, 1.4, 3]}
        )
        _waveform(wave, manifest, audio)
        _timeline(talk, manifest)
        _spectrogram(spectrum, audio)
        figure.suptitle(_title(manifest), ha="left", x=0.01)
        out = io.BytesIO()
        figure.savefig(out, format=form, dpi=130, metadata={"Date": None} if form == "svg" else {})
    return out.getvalue()


def _title(manifest: Manifest) -> str:
    levels = manifest.levels
    limited = " (limited by the peak)" if levels.peak_limited else ""
    peak = levels.true_peak_dbtp if levels.true_peak_dbtp is not None else levels.sample_peak_dbfs
    kind = "dBTP" if levels.true_peak_dbtp is not None else "dBFS"
    return (
        f"{manifest.scene} · {manifest.location} · {manifest.audio.duration_s:.1f} s · preset {manifest.preset}\n"
        f"{levels.loudness_lufs or 0:.1f} LUFS{limited}, peak {peak or 0:.1f} {kind}, "
        f"ambience {manifest.ambience.loudness_lufs:.1f} LUFS, "
        f"voices {levels.voice_lufs:.1f} LUFS"
    )


def _waveform(axes: Any, manifest: Manifest, audio: Audio) -> None:
    low, high = _envelope(audio.samples)
    place = np.linspace(0, audio.seconds, len(low))
    axes.fill_between(place, low, high, color="#444444", linewidth=0)
    for event in manifest.events:
        color = REACTIONS[event.reaction]
        axes.axvspan(event.start_s, event.end_s, color=color, alpha=0.25, linewidth=0)
        axes.axvline(event.salient_s, color=color, linewidth=0.8)
    for time_s in manifest.catch_times_s:
        axes.plot([time_s], [0.95], marker="v", color="#999999", markersize=4, clip_on=False)
    axes.set(ylim=(-1, 1), ylabel="waveform", xlim=(0, audio.seconds))


def _envelope(samples: Samples) -> tuple[Samples, Samples]:
    size = max(1, -(-len(samples) // COLUMNS))
    padded = np.pad(samples, (0, -len(samples) % size)).reshape(-1, size)
    return padded.min(axis=1), padded.max(axis=1)


def _timeline(axes: Any, manifest: Manifest) -> None:
    rows = {"A": 2.0, "B": 1.0}
    for turn in manifest.turns:
        span = [(turn.start_s, turn.end_s - turn.start_s)]
        row = rows.get(turn.speaker, 1.0)
        axes.broken_barh(span, (row - 0.35, 0.7), color=SPEAKERS.get(turn.speaker, "#777777"))
        middle = (turn.start_s + turn.end_s) / 2
        axes.text(middle, row, str(turn.index), ha="center", va="center", color="white", fontsize=7)
    for event in manifest.events:
        color = REACTIONS[event.reaction]
        axes.broken_barh([(event.start_s, event.end_s - event.start_s)], (-0.35, 0.7), color=color)
        over = "" if event.over_ambience_db is None else f", {event.over_ambience_db:+.0f} dB"
        text = f"{event.id} {event.heard or 'muted ' + event.sound} ({event.reaction}{over})"
        axes.text(event.start_s, -0.75, text, va="top", color=color, fontsize=7)
    axes.set(ylim=(-1.6, 2.5), yticks=[2, 1, 0], yticklabels=["A", "B", "sounds"])


def _spectrogram(axes: Any, audio: Audio) -> None:
    hop = max(WINDOW // 2, audio.frames // COLUMNS)
    starts = np.arange(0, max(audio.frames - WINDOW, 1), hop)
    padded = np.pad(audio.samples, (0, WINDOW))
    frames = padded[starts[:, None] + np.arange(WINDOW)] * np.hanning(WINDOW).astype(np.float32)
    power = np.abs(np.fft.rfft(frames, axis=1)) * (4 / WINDOW)
    level = 20 * np.log10(np.maximum(power, 10 ** (FLOOR_DB / 20)))
    axes.imshow(
        level.T,
        origin="lower",
        aspect="auto",
        cmap="magma",
        vmin=FLOOR_DB,
        vmax=-20,
        extent=(0, audio.seconds, 0, audio.rate / 2000),
        interpolation="nearest",
    )
    axes.set(ylabel="kHz", xlabel="seconds")
