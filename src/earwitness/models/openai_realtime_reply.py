"""Reading the events of a realtime session: the answer, or why there is none.

Events may come twice or out of their order: they are told apart by ``event_id``, and the words are taken
from ``response.done``, which holds them whole; parts only stand in where it holds none.

An ``error`` event ends nothing by itself there: what had been asked for before it is worked on, and charged. It names the
event that caused it by ``error.event_id``, so that one about the request for a response can be told from others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from earwitness.errors import ModelError
from earwitness.models.http import classified, error_codes, is_blocked
from earwitness.models.openai_reply import count_or_none, dicts_in, status_of, text_or
from earwitness.models.protocols import FinishReason, Reply, Usage
from earwitness.models.redaction import LONG_RUN, Redactor

_INCOMPLETE: Mapping[str, FinishReason] = {
    "max_output_tokens": "length",
    "content_filter": "content_filter",
}
_PART_ENDS = ("response.output_text.done", "response.output_audio_transcript.done")
_PART_DELTAS = ("response.output_text.delta", "response.output_audio_transcript.delta")


_REFUSED_AS_A_WHOLE = frozenset({"auth", "quota", "rate_limit"})
"""Kinds of error that no response is begun beside."""


@dataclass
class Listener:
    """Takes the events of one session, in which one response was asked for by an event with the id ``mark``.

    ``asked`` is whether that event had gone out before anything was listened to.
    """

    service: str
    redact: Redactor
    mark: str
    asked: bool = True
    model: str | None = None
    session: str | None = None
    _begun: bool = False
    _seen: set[str] = field(default_factory=set)
    _whole: dict[tuple[int, int], str] = field(default_factory=dict)
    _pieces: dict[tuple[int, int], list[str]] = field(default_factory=dict)

    def take(self, event: Mapping[str, Any], seconds: float) -> Reply | None:
        """The reply, if this event completes it.

        Raises
        ------
        ModelError: the event says that there will be none.
        """
        identity = text_or(event.get("event_id"))
        if identity and identity in self._seen:
            return None
        self._seen.add(identity)
        kind = text_or(event.get("type"))
        if kind == "error":
            return self._error(event.get("error"), seconds)
        if kind.startswith("response."):
            about = event.get("response")
            self._begun |= not isinstance(about, dict) or self._is_ours(about)
        if kind in ("session.created", "session.updated"):
            session = event.get("session")
            if isinstance(session, dict):
                self.model = text_or(session.get("model")) or self.model
                self.session = text_or(session.get("id")) or self.session
        elif kind in _PART_DELTAS:
            self._pieces.setdefault(_place(event), []).append(text_or(event.get("delta")))
        elif kind in _PART_ENDS:
            said = event.get("text", event.get("transcript"))
            self._whole[_place(event)] = text_or(said)
        elif kind == "response.done":
            response = event.get("response")
            if isinstance(response, dict) and self._is_ours(response):
                return self._done(response, seconds)
        return None

    def _is_ours(self, response: Mapping[str, Any]) -> bool:
        metadata = response.get("metadata")
        if not isinstance(metadata, dict) or "asked" not in metadata:
            return True
        return bool(metadata["asked"] == self.mark)

    def _done(self, response: Mapping[str, Any], seconds: float) -> Reply:
        status = text_or(response.get("status"))
        details = response.get("status_details")
        details = details if isinstance(details, dict) else {}
        reason = text_or(details.get("reason"))
        if status == "failed":
            return self._error(details.get("error"), seconds)
        if status == "cancelled":
            raise self._failed(f"the response was cancelled ({reason or 'no reason'})", "server")
        finish: FinishReason = "stop" if status == "completed" else "unknown"
        if status == "incomplete":
            finish = _INCOMPLETE.get(reason, "unknown")
        text, refusal = _said(response)
        raw: dict[str, Any] = {}
        if refusal:
            raw["refusal"] = refusal
            text, finish = text or refusal, "refusal"
        usage, counts = _usage(response.get("usage"))
        text = text or self._parts()
        return Reply(
            text=self.redact(text, run=LONG_RUN),
            finish=finish,
            finish_raw=self.redact(": ".join(filter(None, (status, reason)))) or None,
            usage=usage,
            latency_s=seconds,
            provider_id=self.redact(text_or(response.get("id"))) or None,
            provider_model=self.redact(self.model or "") or None,
            raw=self.redact.tree({**raw, **counts}, run=LONG_RUN),
        )

    def _parts(self) -> str:
        joined = {place: "".join(pieces) for place, pieces in self._pieces.items()}
        return "".join(text for _, text in sorted((joined | self._whole).items()))

    def _error(self, error: Any, seconds: float) -> Reply:
        fields = error if isinstance(error, dict) else {}
        codes = error_codes({"error": fields})
        if is_blocked(200, codes, {}):
            return Reply(
                text="",
                finish="content_filter",
                finish_raw=self.redact(", ".join(sorted(codes))),
                latency_s=seconds,
                provider_model=self.redact(self.model or "") or None,
                raw={"message": self.redact.excerpt(text_or(fields.get("message")))},
            )
        status = status_of(codes) or 500
        kind, retryable = classified(status, codes)
        said = text_or(fields.get("message")) or "no reason"
        named = ", ".join(sorted(codes)) or "error"
        raise ModelError(
            f"{self.service}: the service reports {self.redact.excerpt(f'{named}: {said}')}",
            kind=kind,
            retryable=retryable,
            status=status,
            maybe_paid=self._may_be_paid(fields.get("event_id"), kind),
        )

    def _may_be_paid(self, cause: Any, kind: str) -> bool:
        """Whether a response had begun, or may all the same, when an error came.

        Parameters
        ----------
        cause: id of the event that the error is about, None where it names none.
        """
        if self._begun or not self.asked:
            return self._begun
        if kind in _REFUSED_AS_A_WHOLE:
            return False
        # One about an earlier event does not keep the service from answering what it did take.
        return cause != self.mark or kind == "server"

    def _failed(self, what: str, kind: str) -> ModelError:
        return ModelError(
            f"{self.service}: {self.redact.excerpt(what)}",
            kind=kind,
            retryable=True,
            maybe_paid=True,
        )


def _place(event: Mapping[str, Any]) -> tuple[int, int]:
    output, content = (
        count_or_none(event.get(name)) or 0 for name in ("output_index", "content_index")
    )
    return output, content


def _said(response: Mapping[str, Any]) -> tuple[str, str]:
    """Words (of text, or of speech by its transcript) and refusals in the output of a response."""
    words, refusals = [], []
    for item in dicts_in(response.get("output")):
        if item.get("type") != "message":
            continue
        for part in dicts_in(item.get("content")):
            kind = part.get("type")
            if kind in ("output_text", "text"):
                words.append(text_or(part.get("text")))
            elif kind in ("output_audio", "audio"):
                words.append(text_or(part.get("transcript")))
            elif kind == "refusal":
                refusals.append(text_or(part.get("refusal")))
    return "".join(words), "".join(refusals)


def _usage(usage: Any) -> tuple[Usage, dict[str, Any]]:
    if not isinstance(usage, dict):
        return Usage(), {}
    counts: dict[str, Any] = {}
    inner = usage.get("input_token_details")
    if isinstance(inner, dict):
        for name in ("audio_tokens", "cached_tokens"):
            count = count_or_none(inner.get(name))
            if count is not None:
                counts[name] = count
    return (
        Usage(
            count_or_none(usage.get("input_tokens")),
            count_or_none(usage.get("output_tokens")),
            audio_tokens=counts.get("audio_tokens"),
            cached_tokens=counts.get("cached_tokens"),
        ),
        counts,
    )
