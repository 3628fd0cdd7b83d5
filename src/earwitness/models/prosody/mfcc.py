"""The reference to beat: means and standard deviations of MFCCs, and a support vector machine as it comes.

What most tutorials and many papers call a speech emotion baseline: 20 (or 13) coefficients from 25 ms
frames every 10 ms of the whole file at 16 kHz, as recorded; scikit-learn's ``StandardScaler`` and ``SVC``
with their defaults (Gaussian kernel, C = 1, gamma = "scale"). Nothing is tuned, on either side.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from earwitness.models.prosody.analysis import FFT_SIZE, N_MELS, RATE_HZ, mel_filters
from earwitness.models.prosody.classifier import require_sklearn
from earwitness.models.prosody.pitch import STEP_S, centred_frames

COEFFICIENTS = 20


def mfcc_statistics(
    samples: NDArray[np.floating], coefficients: int = COEFFICIENTS
) -> NDArray[np.float32]:
    """Mean and standard deviation of each coefficient from the zeroth, (2 * coefficients,).

    Parameters
    ----------
    samples: (n,) mono signal at 16 kHz.
    """
    from scipy.fft import dct

    frames = centred_frames(np.asarray(samples, dtype=np.float64), 400, round(RATE_HZ * STEP_S))
    power = np.abs(np.fft.rfft(frames * np.hanning(400), FFT_SIZE, axis=1)) ** 2
    mel_db = 10 * np.log10(np.maximum(power @ mel_filters().T, 1e-10))
    cepstrum = dct(mel_db, type=2, norm="ortho", axis=1)[:, : min(coefficients, N_MELS)]
    return np.concatenate([cepstrum.mean(axis=0), cepstrum.std(axis=0)]).astype(np.float32)


def mfcc_svm_predictions(
    vectors: NDArray[np.floating], labels: Sequence[str], held_out: NDArray[np.bool_]
) -> list[str]:
    """Labels of the held-out clips by a machine trained on the others.

    Raises
    ------
    MissingExtraError: scikit-learn is not installed.
    """
    require_sklearn()
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    x, y = np.asarray(vectors, dtype=np.float64), np.asarray(labels)
    model = make_pipeline(StandardScaler(), SVC()).fit(x[~held_out], y[~held_out])
    return [str(label) for label in model.predict(x[held_out])]
