"""One vector a clip: pitch, energy, rhythm, spectrum, voice quality and modulation, each feature named.

Conventions
-----------
- Mono, 16 kHz. Frames every 10 ms.
- Only the ``level_*`` features depend on the gain of the recording; all others do not.
- A feature that a clip does not have (the pitch of a whisper) is 0, and ``rhythm_voiced_share`` and its like
  say so. Every value is finite for every input.
- Values are rounded to 32 bits, so that the last bits of a mathematics library decide nothing.

The choice follows what the field's standard sets hold (Eyben et al. 2016, "The Geneva minimalistic acoustic
parameter set", IEEE Trans. Affective Computing 7; Schuller et al. 2013, ComParE); the code is our own.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from earwitness.models.prosody.analysis import N_MFCC, RATE_HZ, Analysis, analyse
from earwitness.models.prosody.pitch import STEP_S, Bools, Floats
from earwitness.models.prosody.quality import cycle_changes, runs, voice_quality

FEATURE_VERSION = "prosody-1"
"""Changes whenever any feature of any clip changes; a model file of another version is refused."""

_F0_REFERENCE_HZ = 55.0
_BAND_EDGES_HZ = (0, 150, 300, 500, 700, 1000, 1400, 2000, 2700, 3500, 4500, 6000, 8000)
_MODULATION_BANDS_HZ = ((50, 500), (500, 1500), (1500, 3500), (3500, 7600))
_MODULATION_EDGES_HZ = (0.5, 1.5, 3, 5, 8, 12, 18, 30)

Named = dict[str, float]


def extract(samples: NDArray[np.floating]) -> NDArray[np.float32]:
    """Feature vector of one clip.

    Parameters
    ----------
    samples: (n,) mono signal at 16 kHz, n >= 1.

    Returns
    -------
    (len(feature_names()),) finite float32.

    Raises
    ------
    ValueError: not a non-empty one-dimensional array of finite numbers.

    Examples
    --------
    >>> import numpy as np
    >>> tone = np.sin(2 * np.pi * 110 * np.arange(16000) / 16000)
    >>> vector = extract(tone)
    >>> float(vector[feature_names().index("f0_mean_st")].round(2))  # one octave above 55 Hz
    12.0
    """
    mono = np.asarray(samples, dtype=np.float64)
    if mono.ndim != 1 or not len(mono) or not np.isfinite(mono).all():
        raise ValueError(f"wanted a non-empty mono array of finite samples, got {mono.shape}")
    values = np.fromiter(_describe(analyse(mono)).values(), dtype=np.float64)
    return values.astype(np.float32)


@lru_cache(maxsize=1)
def feature_names() -> tuple[str, ...]:
    """Names of the features in the order of :func:`extract`, units last (``st`` semitones re 55 Hz)."""
    return tuple(_describe(analyse(np.zeros(RATE_HZ))))


def _describe(clip: Analysis) -> Named:
    return {
        **_level(clip),
        **_pitch(clip),
        **_energy(clip),
        **_rhythm(clip),
        **_spectrum(clip),
        **_cepstrum(clip),
        **_quality(clip),
        **_modulation(clip),
    }


def _summary(
    name: str, unit: str, values: Floats, *, percentiles: tuple[int, ...] = (10, 90)
) -> Named:
    """Mean, standard deviation and percentiles of what is finite in ``values``; zeros if nothing is."""
    values = values[np.isfinite(values)]
    tail = f"_{unit}" if unit else ""
    if not len(values):
        values = np.zeros(1)
    found = {f"{name}_mean{tail}": float(values.mean()), f"{name}_std{tail}": float(values.std())}
    for q, value in zip(percentiles, np.percentile(values, percentiles), strict=True):
        found[f"{name}_p{q:02d}{tail}"] = float(value)
    return found


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else 0.0


def _std(values: Floats) -> float:
    return float(values.std()) if len(values) else 0.0


def _slope_per_s(times_s: NDArray[np.floating], values: Floats) -> float:
    """Least-squares slope; 0 for fewer than five points."""
    if len(values) < 5:
        return 0.0
    centred = times_s - times_s.mean()
    return float(centred @ values / (centred @ centred))


def _changes(values: Floats, flags: Bools) -> Floats:
    """Differences between neighbouring frames where both are flagged."""
    return np.diff(values)[flags[1:] & flags[:-1]]


def _level(clip: Analysis) -> Named:
    return {
        "level_active_rms_dbfs": clip.levels.active_rms_dbfs,
        "level_peak_dbfs": clip.levels.peak_dbfs,
        "level_floor_dbfs": clip.levels.floor_dbfs,
        "level_contrast_db": clip.levels.contrast_db,
    }


def _pitch(clip: Analysis) -> Named:
    voiced = clip.voiced
    f0 = np.where(voiced, clip.pitch.f0_hz, _F0_REFERENCE_HZ)
    semitones = 12 * np.log2(f0 / _F0_REFERENCE_HZ)
    heard = semitones[voiced]
    times = np.flatnonzero(voiced) * STEP_S
    values = _summary("f0", "st", heard, percentiles=(5, 25, 50, 75, 95))
    values["f0_range_p05_p95_st"] = values["f0_p95_st"] - values["f0_p05_st"]
    values["f0_range_p25_p75_st"] = values["f0_p75_st"] - values["f0_p25_st"]
    values["f0_slope_st_per_s"] = _slope_per_s(times, heard)
    thirds = np.array_split(heard, 3)
    values["f0_first_third_st"] = _mean(thirds[0]) - values["f0_mean_st"]
    values["f0_middle_third_st"] = _mean(thirds[1]) - values["f0_mean_st"]
    values["f0_last_third_st"] = _mean(thirds[2]) - values["f0_mean_st"]
    deviation = heard - values["f0_mean_st"]
    spread = values["f0_std_st"] or 1.0
    values["f0_skewness"] = _mean(deviation**3) / spread**3
    values["f0_kurtosis"] = _mean(deviation**4) / spread**4
    peak = int(heard.argmax()) if len(heard) else 0
    values["f0_peak_position"] = peak / len(heard) if len(heard) else 0.0
    change = _changes(semitones, voiced)
    # Steps above three semitones in 10 ms are octave errors, not movements.
    change = change[np.abs(change) < 3] / STEP_S
    values["f0_rise_mean_st_per_s"] = _mean(change[change > 0])
    values["f0_fall_mean_st_per_s"] = _mean(change[change < 0])
    values["f0_change_std_st_per_s"] = _std(change)
    values["f0_rising_share"] = _mean((change > 0).astype(np.float64))
    slopes, starts, ends, spans = [], [], [], []
    for start, stop in runs(voiced):
        if stop - start >= 5:
            part = semitones[start:stop]
            slopes.append(_slope_per_s(np.arange(stop - start) * STEP_S, part))
            starts.append(float(part[:3].mean()))
            ends.append(float(part[-3:].mean()))
            spans.append(float(np.ptp(part)))
    of_slopes = np.clip(np.asarray(slopes), -200, 200)
    values["f0_segment_slope_mean_st_per_s"] = _mean(of_slopes)
    values["f0_segment_slope_std_st_per_s"] = _std(of_slopes)
    values["f0_segment_span_mean_st"] = _mean(np.asarray(spans))
    values["f0_final_fall_st"] = ends[-1] - values["f0_mean_st"] if ends else 0.0
    values["f0_onset_st"] = starts[0] - values["f0_mean_st"] if starts else 0.0
    values["f0_last_segment_slope_st_per_s"] = float(of_slopes[-1]) if slopes else 0.0
    return values


def _energy(clip: Analysis) -> Named:
    speech = clip.energy_db[clip.speech]
    active = clip.energy_db[clip.active]
    values = _summary("energy", "db", active, percentiles=(10, 25, 50, 75, 95))
    del values["energy_mean_db"]  # the reference of all the others
    values["energy_range_p10_p95_db"] = values["energy_p95_db"] - values["energy_p10_db"]
    times = np.flatnonzero(clip.active) * STEP_S
    values["energy_slope_db_per_s"] = _slope_per_s(times, active)
    thirds = np.array_split(active, 3)
    for name, third in zip(("first", "middle", "last"), thirds, strict=True):
        values[f"energy_{name}_third_db"] = _mean(third)
    values["energy_peak_position"] = float(speech.argmax()) / len(speech)
    change = np.diff(speech) / STEP_S
    values["energy_rise_mean_db_per_s"] = _mean(change[change > 0])
    values["energy_fall_mean_db_per_s"] = _mean(change[change < 0])
    values["energy_change_std_db_per_s"] = _std(change)
    values.update(_summary("energy_voiced", "db", clip.energy_db[clip.voiced]))
    values["energy_voiced_over_unvoiced_db"] = _mean(clip.energy_db[clip.voiced]) - _mean(
        clip.energy_db[clip.unvoiced]
    )
    both = clip.voiced
    f0 = np.log2(np.maximum(clip.pitch.f0_hz[both], 1.0))
    values["energy_f0_correlation"] = _correlation(f0, clip.energy_db[both])
    return values


def _correlation(a: Floats, b: Floats) -> float:
    if len(a) < 5 or a.std() < 1e-9 or b.std() < 1e-9:
        return 0.0
    return float(np.mean((a - a.mean()) * (b - b.mean())) / (a.std() * b.std()))


def _rhythm(clip: Analysis) -> Named:
    from scipy.signal import find_peaks

    speech_s = (clip.last - clip.first + 1) * STEP_S
    active, voiced = clip.active[clip.speech], clip.pitch.voiced[clip.speech]
    spoken_s = max(STEP_S, float(active.sum()) * STEP_S)
    voiced_s = np.asarray([stop - start for start, stop in runs(voiced)]) * STEP_S
    voiced_s = voiced_s[voiced_s >= 0.03]
    unvoiced_s = np.asarray([stop - start for start, stop in runs(active & ~voiced)]) * STEP_S
    pauses_s = np.asarray([stop - start for start, stop in runs(~active)]) * STEP_S
    pauses_s = pauses_s[pauses_s >= 0.08]
    values: Named = {
        "rhythm_speech_log_s": float(np.log(speech_s)),
        "rhythm_voiced_share": _mean(voiced.astype(np.float64)),
        "rhythm_voiced_segments_per_s": len(voiced_s) / speech_s,
        "rhythm_pauses_per_s": len(pauses_s) / speech_s,
        "rhythm_pause_share": float(pauses_s.sum()) / speech_s,
        "rhythm_pause_mean_s": _mean(pauses_s),
        "rhythm_pause_max_s": float(pauses_s.max()) if len(pauses_s) else 0.0,
    }
    values.update(_summary("rhythm_voiced_segment", "s", voiced_s, percentiles=(90,)))
    values.update(_summary("rhythm_unvoiced_segment", "s", unvoiced_s, percentiles=(90,)))
    # Syllable nuclei after de Jong & Wempe (2009): intensity peaks 2 dB out of their surroundings, voiced.
    smooth = np.hanning(9)
    band = 10 * np.log10(np.maximum(clip.power[clip.speech, 10:113].sum(axis=1), 1e-12))
    contour = np.convolve(np.pad(band, 4, mode="edge"), smooth / smooth.sum(), mode="valid")
    places, properties = find_peaks(contour, prominence=2.0, height=contour.max() - 25)
    keep = voiced[places]
    places, prominences = places[keep], properties["prominences"][keep]
    gaps_s = np.diff(places) * STEP_S
    values["rhythm_nuclei_per_s"] = len(places) / speech_s
    values["rhythm_nuclei_per_spoken_s"] = len(places) / spoken_s
    values["rhythm_nucleus_gap_mean_s"] = _mean(gaps_s)
    values["rhythm_nucleus_gap_std_s"] = _std(gaps_s)
    # Normalised pairwise variability (Grabe & Low 2002) of the gaps between nuclei.
    pairs = np.abs(np.diff(gaps_s)) / np.maximum((gaps_s[1:] + gaps_s[:-1]) / 2, STEP_S)
    values["rhythm_nucleus_gap_npvi"] = _mean(pairs)
    values["rhythm_nucleus_prominence_mean_db"] = _mean(prominences)
    values["rhythm_nucleus_prominence_std_db"] = _std(prominences)
    return values


def _spectrum(clip: Analysis) -> Named:
    values: Named = {}
    hz = np.arange(clip.power.shape[1]) * RATE_HZ / 512
    for name, flags in (("voiced", clip.voiced), ("unvoiced", clip.unvoiced)):
        power = clip.power[flags]
        long_term = power.mean(axis=0) if len(power) else np.ones(len(hz))
        whole = float(long_term.sum()) or 1.0
        for low, high in pairwise(_BAND_EDGES_HZ):
            share = float(long_term[(hz >= low) & (hz < high)].sum()) / whole
            values[f"spectrum_{name}_{low}_{high}hz_db"] = 10 * float(np.log10(share + 1e-8))
    for name, flags in (("voiced", clip.voiced), ("unvoiced", clip.unvoiced)):
        few = () if name == "unvoiced" else (10, 90)
        for what, (unit, contour) in _spectral_contours(clip.power[flags], hz).items():
            values.update(_summary(f"spectrum_{name}_{what}", unit, contour, percentiles=few))
    flux = np.sqrt(np.mean(np.diff(clip.mel_db[clip.speech], axis=0) ** 2, axis=1))
    values.update(_summary("spectrum_flux", "db", flux))
    shape = clip.mel_db - clip.mel_db.mean(axis=1, keepdims=True)
    steady = np.sqrt(np.mean(np.diff(shape, axis=0) ** 2, axis=1))
    both = clip.voiced[1:] & clip.voiced[:-1]
    values.update(_summary("spectrum_voiced_shape_flux", "db", steady[both]))
    return values


def _spectral_contours(power: Floats, hz: Floats) -> dict[str, tuple[str, Floats]]:
    """Per-frame spectral measures as (unit, values); definitions as in Eyben et al. (2016)."""
    floor = 1e-12

    def band(low: float, high: float) -> Floats:
        return power[:, (hz >= low) & (hz < high)]

    def level(low: float, high: float) -> Floats:
        return np.asarray(10 * np.log10(band(low, high).sum(axis=1) + floor))

    def strongest(low: float, high: float) -> Floats:
        return 10 * np.log10(band(low, high).max(axis=1) + floor) if len(power) else np.zeros(0)

    def slope(low: float, high: float) -> Floats:
        part = 10 * np.log10(band(low, high) + floor)
        at = hz[(hz >= low) & (hz < high)] / 1000
        centred = at - at.mean()
        return np.asarray(part @ centred / (centred @ centred))

    total = power.sum(axis=1) + floor
    centroid = power @ hz / total
    above = power[:, hz >= 100] + floor
    flatness = np.log(above).mean(axis=1) - np.log(above.mean(axis=1))
    cumulative = np.cumsum(power, axis=1) / total[:, None]
    rolloff = hz[np.minimum((cumulative < 0.85).sum(axis=1), len(hz) - 1)]
    return {
        "alpha_ratio": ("db", level(1000, 5000) - level(50, 1000)),
        "hammarberg": ("db", strongest(0, 2000) - strongest(2000, 5000)),
        "slope_0_500": ("db_per_khz", slope(0, 500)),
        "slope_500_1500": ("db_per_khz", slope(500, 1500)),
        "centroid": ("octaves", np.log2(np.maximum(centroid, 50) / 1000)),
        "rolloff_85": ("octaves", np.log2(np.maximum(rolloff, 50) / 1000)),
        "flatness": ("db", 10 / np.log(10) * flatness),
    }


def _cepstrum(clip: Analysis) -> Named:
    values: Named = {}
    speech = clip.mfcc[clip.speech]
    velocity = _regression(speech)
    acceleration = _regression(velocity)
    active = clip.active[clip.speech]
    for k in range(1, N_MFCC + 1):
        values[f"mfcc_active_{k:02d}_mean"] = _mean(speech[active, k])
        values[f"mfcc_active_{k:02d}_std"] = _std(speech[active, k])
        values[f"mfcc_voiced_{k:02d}_mean"] = _mean(clip.mfcc[clip.voiced, k])
        values[f"mfcc_voiced_{k:02d}_std"] = _std(clip.mfcc[clip.voiced, k])
        values[f"mfcc_delta_{k:02d}_std"] = _std(velocity[:, k])
        values[f"mfcc_delta2_{k:02d}_std"] = _std(acceleration[:, k])
    return values


def _regression(contours: Floats) -> Floats:
    """Slope of each column over five frames, the usual delta coefficients."""
    padded = np.pad(contours, ((2, 2), (0, 0)), mode="edge")
    count = len(contours)
    near = padded[3 : 3 + count] - padded[1 : 1 + count]
    far = padded[4 : 4 + count] - padded[:count]
    return (near + 2 * far) / 10


def _quality(clip: Analysis) -> Named:
    chosen = np.flatnonzero(clip.voiced)
    found = voice_quality(clip.samples, RATE_HZ, clip.pitch, chosen)
    strength = np.clip(clip.pitch.strength[chosen], 1e-3, 1 - 1e-4)
    values = _summary("quality_hnr", "db", 10 * np.log10(strength / (1 - strength)))
    values.update(_summary("quality_cpp", "db", found.cpp_db))
    values.update(_summary("quality_h1_h2", "db", found.h1_h2_db))
    values.update(_summary("quality_h1_a3", "db", found.h1_a3_db))
    for k in range(3):
        octaves = np.log2(found.formants_hz[:, k] / 500)
        values.update(_summary(f"quality_f{k + 1}", "octaves", octaves))
    cycles = cycle_changes(clip.samples, RATE_HZ, clip.pitch)
    values["quality_jitter_percent"] = 100 * cycles.jitter
    values["quality_shimmer_db"] = cycles.shimmer_db
    return values


def _modulation(clip: Analysis) -> Named:
    """How fast the envelopes of four bands move: shares of their power by modulation frequency, in dB."""
    values: Named = {}
    hz = np.arange(clip.power.shape[1]) * RATE_HZ / 512
    count = clip.last - clip.first + 1
    size = max(1024, 1 << int(np.ceil(np.log2(count))))
    rates = np.fft.rfftfreq(size, STEP_S)
    window = np.hanning(count + 2)[1:-1]
    for low, high in _MODULATION_BANDS_HZ:
        envelope = np.sqrt(clip.power[clip.speech, :][:, (hz >= low) & (hz < high)].sum(axis=1))
        mean = float(envelope.mean()) or 1.0
        power = np.abs(np.fft.rfft((envelope / mean - 1) * window, size)) ** 2
        within = (rates >= _MODULATION_EDGES_HZ[0]) & (rates < _MODULATION_EDGES_HZ[-1])
        total = float(power[within].sum()) + 1e-9
        name = f"modulation_{low}_{high}hz"
        values[f"{name}_depth"] = float(envelope.std()) / mean
        for slow, fast in pairwise(_MODULATION_EDGES_HZ):
            share = float(power[(rates >= slow) & (rates < fast)].sum()) / total
            values[f"{name}_{slow:g}_{fast:g}hz_db"] = 10 * float(np.log10(share + 1e-6))
    return values
