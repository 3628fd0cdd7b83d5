"""What must hold for any bytes whatever: the invariants that ``make fuzz`` and the tests look for an exception to."""

from __future__ import annotations

import importlib
import json
import re
import tempfile
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

KEY = "sk-fuzz-0123456789abcdefghijklmnop"
AUDIO = "UklGRiQAAABXQVZFZm10IBAAAAABAAEA" * 40
_STATUSES = (200, 200, 200, 201, 204, 400, 401, 403, 404, 408, 413, 429, 500, 502, 503, 529, 302)
_TYPES = ("application/json", "text/html", "text/event-stream", "", "application/octet-stream")


_CALLED = (
    "errors:DataError",
    "errors:ModelError",
    "models.anthropic_reply:read_message",
    "models.endpoint_answer:AnswerError",
    "models.endpoint_answer:read_answer",
    "models.endpoint_schema:Answer",
    "models.google_reply:read_generated",
    "models.http:HttpAnswer",
    "models.openai_realtime_reply:Listener",
    "models.openai_reply:read_reply",
    "models.openai_responses:read_response",
    "models.patience:LONGEST_WAIT_S",
    "models.patience:parse_retry_after",
    "models.protocols:Reply",
    "models.redaction:Redactor",
    "runs.ledger:Ledger",
    "runs.ledger:reply_from_json",
    "runs.ledger:reply_to_json",
    "runs.outcomes:OUTCOME_KINDS",
    "tasks.closed_label:read_reply as read_label",
    "tasks.label_lexicon:load_lexicon",
)


@lru_cache(maxsize=1)
def imported() -> SimpleNamespace:
    """What the targets call, imported once (under atheris with its instrumentation)."""
    found = {}
    for called in _CALLED:
        place, _, alias = called.partition(" as ")
        module, _, name = place.partition(":")
        found[alias or name] = getattr(importlib.import_module(f"earwitness.{module}"), name)
    return SimpleNamespace(**found)


def ledger(data: bytes) -> None:
    """A file of any bytes opens or is refused by name; reading changes nothing; whole lines survive an append."""
    it = imported()
    with tempfile.TemporaryDirectory(dir=_memory()) as folder:
        path = Path(folder) / "ledger.jsonl"
        path.write_bytes(data)
        try:
            with it.Ledger(path, read_only=True) as book:
                before = {key: _entry(book, key) for key in _keys(data)}
                counts = book.counts
        except it.DataError:
            assert path.read_bytes() == data
            return
        assert path.read_bytes() == data
        assert counts.replies >= 0
        with it.Ledger(path, shared=True) as book:
            torn = book.repaired_bytes
            book.reply("a new key", it.Reply(text="anger"), item="i", attempts=1)
        kept = path.read_bytes()
        assert kept.startswith(data[: len(data) - torn])
        with it.Ledger(path, read_only=True) as book:
            assert book.repaired_bytes == 0
            assert book.has_reply("a new key")
            for key, entry in before.items():
                assert _entry(book, key) == entry or key == "a new key"


def _entry(book: Any, key: str) -> Any:
    try:
        return repr(book.get_entry(key))
    except imported().DataError as error:
        return type(error)


def _keys(data: bytes) -> list[str]:
    return [text.decode("utf-8", "replace") for text in re.findall(rb'"key": ?"([^"\\]*)"', data)]


def _memory() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def answers(data: bytes) -> None:
    """An HTTP answer of any bytes is a reply or a named error of every adapter, and neither holds a key or audio."""
    it = imported()
    head, body = (data + b"\0\0\0")[:3], data[3:]
    body = body.replace(b"@K", KEY.encode()).replace(b"@A", AUDIO.encode())
    answer = it.HttpAnswer(
        status=_STATUSES[head[0] % len(_STATUSES)],
        headers={"content-type": _TYPES[head[1] % len(_TYPES)], "retry-after": str(head[2])},
        body=body,
        seconds=0.1,
    )
    redact = it.Redactor([KEY])
    for read in (it.read_reply, it.read_generated, it.read_message, it.read_response):
        try:
            reply = read("openai/m", answer, redact)
        except it.ModelError as problem:
            said, wait = problem.message, problem.retry_after_s
        else:
            said, wait = repr(reply), None
            _check_reply(reply)
        assert wait is None or 0 <= wait <= it.LONGEST_WAIT_S
        assert KEY not in said, said
        assert AUDIO not in said
    _realtime(body)
    _endpoint(body)


def _check_reply(reply: Any) -> None:
    it = imported()
    assert reply.finish in ("stop", "length", "content_filter", "refusal", "unknown")
    text = json.dumps(it.reply_to_json(reply), ensure_ascii=False)
    again = it.reply_from_json(json.loads(text.encode("utf-8", "backslashreplace")))
    assert again.finish == reply.finish


def _realtime(body: bytes) -> None:
    it = imported()
    event = _parsed(body)
    if not isinstance(event, dict):
        return
    listener = it.Listener("openai-realtime/m", it.Redactor([KEY]), "mark")
    for each in (event, {"type": "response.done", "response": event}):
        try:
            reply = listener.take(each, 0.1)
        except it.ModelError as problem:
            said = problem.message
        else:
            said = repr(reply)
        assert KEY not in said


def _endpoint(body: bytes) -> None:
    it = imported()
    parsed = _parsed(body)
    for described in (
        it.Answer(text_at="content[0].text"),
        it.Answer(windows_at="a[*]", scores_at="b"),
    ):
        try:
            found = it.read_answer(described, parsed)
        except it.AnswerError:
            continue
        assert (found.text is None) != (found.scores is None)


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def labels(data: bytes) -> None:
    """A text of any characters has exactly one outcome, and a label only of the set."""
    it = imported()
    text = data.decode("utf-8", errors="surrogateescape" if data[:1] > b"\x80" else "replace")
    lexicon = it.load_lexicon("emotion")
    for codes in ({}, {"A": "anger", "B": "fear", "1": "neutral"}):
        outcome = it.read_label(text, lexicon, codes=codes).outcome
        assert outcome.kind in it.OUTCOME_KINDS
        assert outcome.kind != "failed"
        assert outcome.label is None or outcome.label in lexicon.labels


def waits(data: bytes) -> None:
    """Headers of any characters ask for a bounded wait or none."""
    it = imported()
    names = ("Retry-After", "retry-after-ms", "x-ratelimit-reset-tokens", "Date")
    parts = data.decode("latin-1").split("\n")
    headers = dict(zip(names, parts, strict=False)) | {"x-ratelimit-remaining-tokens": "0"}
    found = it.parse_retry_after(headers, now=1_795_000_000.0)
    assert found is None or 0.0 <= found <= it.LONGEST_WAIT_S


TARGETS: Mapping[str, Callable[[bytes], None]] = {
    "ledger": ledger,
    "answers": answers,
    "labels": labels,
    "waits": waits,
}
SEEDS: Mapping[str, tuple[bytes, ...]] = {
    "ledger": (
        b'{"kind":"started","key":"k","item":"i","attempt":1,"at":"x","estimate_usd":0.1}\n'
        b'{"kind":"attempt_failed","key":"k","maybe_paid":true,"error":"server","status":500,"message":"m"}\n'
        b'{"kind":"reply","key":"k","attempts":1,"cost_usd":0.1,"reply":{"text":"anger","scores":null,'
        b'"finish":"stop","finish_raw":null,"usage":{"input_tokens":1},"latency_s":0.1,"provider_id":null,'
        b'"provider_model":null,"raw":{}}}\n',
        b'{"kind":"failed","key":"k","item":"i","attempts":1,"error":"auth","status":401,"message":"no"}\n{"k',
    ),
    "answers": (
        b'\0\0\0{"choices":[{"message":{"content":"anger @K @A","refusal":null},"finish_reason":"stop"}],'
        b'"usage":{"prompt_tokens":3,"completion_tokens":1,"prompt_tokens_details":{"audio_tokens":2}}}',
        b'\0\0\0{"candidates":[{"content":{"parts":[{"text":"fear"}]},"finishReason":"MAX_TOKENS"}],'
        b'"usageMetadata":{"promptTokenCount":3,"promptTokensDetails":[{"modality":"AUDIO","tokenCount":2}]}}',
        b'\0\0\0{"content":[{"type":"text","text":"joy"}],"stop_reason":"end_turn","usage":{"input_tokens":1}}',
        b'\0\0\0{"output":[{"type":"message","content":[{"type":"output_text","text":"x"}]}],"status":"completed"}',
        b'\5\0\0{"error":{"message":"bad @K @A","type":"invalid_request_error","code":"content_policy_violation"}}',
        b'\0\2\0data: {"choices":[{"delta":{"content":"an"}}]}\n\ndata: [DONE]\n\n',
        b'\0\0\0{"type":"response.done","event_id":"e","response":{"status":"incomplete","status_details":'
        b'{"reason":"max_output_tokens"},"output":[{"content":[{"type":"output_text","text":"y"}]}]}}',
        b'\0\0\0{"a":[{"b":[{"name":"Anger","score":0.5}]}],"content":[{"text":"z"}]}',
        b"\0\1\0<html>@K",
    ),
    "labels": (
        b"Final answer: not angry but sad.",
        b'```json\n{"emotion": "fear", "scores": {"anger": 0.2, "joy": 0.7}}\n```',
        "<think>A) anger?</think> 悲伤".encode(),
    ),
    "waits": (
        b"Sun, 29 Nov 2026 23:00:00 GMT\n1500\n6m0s\nSun, 29 Nov 2026 22:00:00 GMT",
        b"7\n\n1e400\n2026-11-29T10:00:00Z",
    ),
}
