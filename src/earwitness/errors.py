"""The named errors.

Every error a user can cause says where it happened, what was found, what was wanted and what to do next.
The command line prints it in one line and exits with ``exit_code``; nobody sees a traceback for a mistake
of their own.
"""

from __future__ import annotations


class EarwitnessError(Exception):
    """Base of all errors a user may meet.

    Parameters
    ----------
    where: the file, item, option or model it is about.
    found: what was there.
    wanted: what was expected instead.
    next_step: what the user can do now.
    """

    exit_code = 1

    def __init__(self, where: str, found: str, wanted: str = "", next_step: str = "") -> None:
        self.where = where
        self.found = found
        self.wanted = wanted
        self.next_step = next_step
        super().__init__(where, found, wanted, next_step)

    def __str__(self) -> str:
        text = f"{self.where}: {self.found}"
        if self.wanted:
            text += f"; wanted {self.wanted}"
        if self.next_step:
            text += f". {self.next_step}"
        return text


class UsageError(EarwitnessError):
    """The command or call does not fit together."""

    exit_code = 2


class MissingExtraError(EarwitnessError):
    """An optional dependency is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(
            feature,
            f"needs the optional packages of [{extra}]",
            next_step=f'Install them: pip install "earwitness[{extra}]"',
        )


class DataError(EarwitnessError):
    """A data file (clip set, label map, prompt, ledger, table) is not what it should be."""


class LicenceError(EarwitnessError):
    """The licence or permitted use of a set does not allow what was asked."""


class IncompleteRunError(EarwitnessError):
    """Some items were never answered by the model, so the run has bounds and no single figure."""

    exit_code = 3


class AudioFileError(EarwitnessError):
    """An audio file cannot be used. Subclasses say which way."""

    code = "unreadable"


class NotAudioError(AudioFileError):
    """Not audio at all: an empty file, a Git LFS pointer, an HTML page, text, random bytes."""

    code = "not_audio"


class BrokenHeaderError(AudioFileError):
    """It begins like audio, but its header contradicts itself or is cut."""

    code = "broken_header"


class UnsupportedAudioError(AudioFileError):
    """Real audio in a format that cannot be read here (M4A, unusual bit depths)."""

    code = "unsupported"


class TruncatedAudioError(AudioFileError):
    """The header promises more samples than the file holds."""

    code = "truncated"


class EmptyAudioError(AudioFileError):
    """A valid header and not one sample."""

    code = "empty"


class TooShortAudioError(AudioFileError):
    """So few samples that nothing can be heard in it."""

    code = "too_short"


class SilentAudioError(AudioFileError):
    """Silent throughout (zeros or a constant)."""

    code = "silent"


class NonFiniteAudioError(AudioFileError):
    """Contains NaN or infinite samples."""

    code = "non_finite"


class ModelError(Exception):
    """One call of a model failed without giving a reply. The runner decides whether to try again.

    Parameters
    ----------
    message: what happened, whole, free of keys and audio bytes.
    kind: a short stable word, such as ``rate_limit``, ``server``, ``timeout``, ``connection``,
        ``bad_reply``, ``auth``, ``too_large``, ``bad_request``, ``missing``.
    retryable: whether another try may succeed.
    status: HTTP status, if there was one.
    retry_after_s: seconds the service asked to wait.
    maybe_paid: True when the service may have done the work although no reply came (time-out, reset).
    """

    def __init__(
        self,
        message: str,
        *,
        kind: str,
        retryable: bool,
        status: int | None = None,
        retry_after_s: float | None = None,
        maybe_paid: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind
        self.retryable = retryable
        self.status = status
        self.retry_after_s = retry_after_s
        self.maybe_paid = maybe_paid
