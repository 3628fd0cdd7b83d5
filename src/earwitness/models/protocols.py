"""What answers and what speaks: the small protocols every adapter implements.

An adapter turns a :class:`Request` into a :class:`Reply` or raises :class:`earwitness.errors.ModelError`.
It makes **one** attempt: waiting, retrying and counting belong to :mod:`earwitness.runs`. A refusal, a
blocked answer, a length stop and an empty text are replies, not errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from earwitness.audio.types import Audio

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from earwitness.models.payload_store import PayloadStore

FinishReason = Literal["stop", "length", "content_filter", "refusal", "unknown"]
Transform = Literal["silence"]
"""Ways a stimulus is changed before it is sent; ``silence`` keeps the duration and removes the sound."""


@dataclass(frozen=True, slots=True)
class AudioRef:
    """A stimulus by reference: opened late, never held in memory longer than one call.

    ``sha256`` is of the file's bytes; ``seconds`` and ``rate`` come from the clip set or corpus.
    ``window`` is the part of the file that is sent, from and to in seconds; then ``seconds`` is its length. ``store``
    keeps what was encoded for further calls; it changes nothing that is sent.
    """

    path: Path
    sha256: str
    seconds: float
    rate: int
    channels: int = 1
    transform: Transform | None = None
    window: tuple[float, float] | None = None
    store: PayloadStore | None = field(default=None, compare=False, repr=False)

    @property
    def identity(self) -> str:
        """What the key of a reply depends on: content, part and transform, never the path."""
        text = self.sha256 if self.transform is None else f"{self.sha256}:{self.transform}"
        if self.window is None:
            return text
        return f"{text}:{self.window[0]:.3f}-{self.window[1]:.3f}"


@dataclass(frozen=True, slots=True)
class Prompt:
    """One question in words. ``choices`` are the allowed labels, for adapters that can constrain output."""

    user: str
    system: str | None = None
    choices: tuple[str, ...] = ()
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """Everything one call needs.

    ``item_id`` is for local models and logs; adapters of remote services must not send it.
    ``metadata`` is what a *local baseline* may know about the item (speaker, language): never its label,
    and never sent to a remote service.
    ``idempotency_key`` is sent where the provider has such a header.
    """

    item_id: str
    prompt: Prompt
    audio: AudioRef | None = None
    idempotency_key: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Usage:
    """What a call consumed, as the provider reports it; None where it does not say.

    ``audio_tokens``, ``cached_tokens`` (read from a prompt cache) and ``cache_written_tokens`` (written to one) are parts
    of ``input_tokens`` that services price apart; ``cache_written_1h_tokens`` are those written for an hour among the last.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    audio_seconds: float | None = None
    cost_usd: float | None = None
    audio_tokens: int | None = None
    cached_tokens: int | None = None
    cache_written_tokens: int | None = None
    cache_written_1h_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model returned, raw. Exactly one of ``text`` and ``scores`` is meaningful for a task.

    ``scores`` keeps native labels and native numbers, unmapped. ``finish`` is our word for the provider's
    ``finish_raw``. ``raw`` is the small remainder of the provider's answer worth keeping (never audio).
    """

    text: str | None = None
    scores: Mapping[str, float] | None = None
    finish: FinishReason = "stop"
    finish_raw: str | None = None
    usage: Usage = field(default_factory=Usage)
    latency_s: float = 0.0
    provider_id: str | None = None
    provider_model: str | None = None
    raw: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a model can take; checked for every item before the first call. None means no known limit."""

    formats: tuple[str, ...] = ("wav",)
    rates: tuple[int, ...] = ()
    """Accepted sample rates in Hz; empty means any."""
    max_seconds: float | None = None
    min_seconds: float | None = None
    max_bytes: int | None = None
    """Of the encoded file, before base64."""
    needs_audio: bool = False
    """True when an item without audio cannot be asked."""
    needs_choices: bool = False
    """True when it can only choose among the labels a prompt allows, so that no free text can be asked for."""
    tasks: tuple[str, ...] = ()
    """Tasks it answers; empty means any."""
    reads_times: bool = False
    """True of a model of words that goes by the times of a transcript."""

    @property
    def takes_audio(self) -> bool:
        """Whether items with audio can be asked; a model of words has no formats."""
        return bool(self.formats)


@runtime_checkable
class AudioModel(Protocol):
    """Anything that answers about audio. ``name`` is ``adapter/name``; ``settings`` enter the reply's key."""

    @property
    def name(self) -> str: ...

    @property
    def limits(self) -> Limits: ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that changes the answer (temperature, token limits, weights' hash); JSON-serialisable, no secrets."""
        ...

    async def ask(self, request: Request) -> Reply:
        """Ask once.

        Raises
        ------
        ModelError: there is no reply.
        """
        ...

    async def aclose(self) -> None: ...


@runtime_checkable
class Preflight(Protocol):
    """A model that wants to see all requests before the first call, and may refuse the run."""

    def preflight(self, requests: Sequence[Request]) -> None:
        """Look at everything that will be asked.

        Raises
        ------
        EarwitnessError: the run must not start (a baseline trained on the clips it would be scored on).
        """
        ...


@dataclass(frozen=True, slots=True)
class Message:
    role: Literal["system", "user", "assistant"]
    text: str


@runtime_checkable
class TextModel(Protocol):
    """Anything that answers text with text (writers, judges, the text-only control)."""

    @property
    def name(self) -> str: ...

    @property
    def settings(self) -> Mapping[str, Any]: ...

    async def complete(
        self, messages: Sequence[Message], schema: Mapping[str, Any] | None = None
    ) -> Reply: ...

    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Word:
    """A word and its place in the audio, in seconds."""

    text: str
    start_s: float
    end_s: float


Gender = Literal["F", "M"]


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words to say, never with a bracket in them. ``manner`` is the id of the delivery tag they are under."""

    text: str
    manner: str | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    """Silence inside what is said."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Vocalisation:
    """A delivery tag that is a sound of its own (a sigh, a laugh). ``written`` stands between its brackets."""

    tag: str
    written: str


Segment = Phrase | Pause | Vocalisation


@dataclass(frozen=True, slots=True)
class Mark:
    """Where something other than words lies: ``kind`` is ``pause`` or the id of a delivery tag."""

    kind: str
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Spoken:
    """One utterance as sound. ``words`` is empty where the engine gives no times; it never guesses them."""

    audio: Audio
    words: tuple[Word, ...] = ()
    marks: tuple[Mark, ...] = ()


@runtime_checkable
class Voice(Protocol):
    """Somebody who speaks, opened by :func:`earwitness.models.voices.registry.open_voice`."""

    @property
    def name(self) -> str:
        """``engine/name``."""
        ...

    @property
    def gender(self) -> Gender | None:
        """None where nobody knows; a cast file says it then."""
        ...

    @property
    def language(self) -> str: ...

    @property
    def renders(self) -> frozenset[str]:
        """Ids of the delivery tags that are heard when this voice performs them; ``pause`` always."""
        ...

    @property
    def deterministic(self) -> bool:
        """Whether the same segments give the same samples on one machine."""
        ...

    @property
    def remote(self) -> bool:
        """Whether a service is called, which may cost money and can be called many times at once."""
        ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that changes the sound, hash of the weights included; JSON-serialisable, no secrets."""
        ...

    def speak(self, segments: Sequence[Segment], seed: int = 0) -> Spoken:
        """Say one utterance.

        Raises
        ------
        ModelError: a service gave no sound.
        EarwitnessError: the engine cannot say it.
        """
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Transcript:
    """What was understood. ``words`` is empty where the engine gives no times."""

    text: str
    words: tuple[Word, ...] = ()


@runtime_checkable
class Transcriber(Protocol):
    """Writes down what is said in a recording."""

    @property
    def name(self) -> str: ...

    @property
    def settings(self) -> Mapping[str, Any]: ...

    def transcribe(self, audio: Audio) -> Transcript:
        """Words of a recording of any rate, any number of channels."""
        ...


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors whose cosine says how near their meanings are.

    Opened by :func:`earwitness.models.embedders.registry.open_embedder`.
    """

    @property
    def name(self) -> str:
        """``engine/name``."""
        ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that changes a vector, hash of the weights included; JSON-serialisable, no secrets."""
        ...

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of unit length, (n, d); a text's vector does not depend on the others.

        Raises
        ------
        ModelError: a service gave none.
        """
        ...

    async def aclose(self) -> None: ...
