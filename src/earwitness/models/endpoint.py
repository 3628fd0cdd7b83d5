"""``endpoint/FILE.yaml`` or ``endpoint/NAME``: a vendor's HTTP API by its description, without code.

The audio goes out as a form's file, as base64 in JSON or as the body itself; the answer is label, words or
scores, at once or from a job that is asked after. What comes back is native: mapping is for tasks.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urljoin, urlsplit

from earwitness.errors import ModelError, UsageError
from earwitness.models.adapter import AdapterInfo
from earwitness.models.http import (
    Body,
    HttpAnswer,
    HttpCaller,
    checked_url,
    error_codes,
    error_from,
    is_blocked,
    parsed,
    read_key,
)
from earwitness.models.json_path import first, parse_path
from earwitness.models.openai_chat import stimulus
from earwitness.models.options import Option, limits_from, read_options
from earwitness.models.patience import look_again_s, parse_retry_after
from earwitness.models.payload import Payload
from earwitness.models.protocols import Limits, Reply, Request
from earwitness.models.redaction import LONG_RUN, Redactor

if TYPE_CHECKING:
    from earwitness.models.endpoint_schema import Description, Job

INFO = AdapterInfo(
    name="endpoint",
    form="endpoint/FILE.yaml or endpoint/NAME",
    summary="A vendor's HTTP API, described in YAML: form, JSON or raw upload; label, words or scores",
    options=(Option("timeout_s", "number", "longest wait for one answer, in seconds", least=0.05),),
    examples=("endpoint/my_vendor.yaml", "endpoint/template-label -M host=api.example.com"),
)


@dataclass(eq=False)
class Endpoint:
    """A described service. Use :func:`open` to make one."""

    name: str
    limits: Limits
    description: Description
    options: tuple[Option, ...]
    _values: Mapping[str, str]
    _url: str
    _key: str | None = field(repr=False)
    _caller: HttpCaller

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @property
    def settings(self) -> Mapping[str, Any]:
        return {
            "description": self.description.id,
            "description_sha256": self.description.sha256,
            "options": dict(self._values),
            "formats": list(self.limits.formats),
            "rates": list(self.limits.rates),
        }

    @property
    def label_map(self) -> str | None:
        """The label map the description proposes for its native labels."""
        return self.description.label_map

    def preflight(self, requests: Sequence[Request]) -> None:
        """Refuse a run that would fail on every call.

        Raises
        ------
        UsageError: the key is not there.
        """
        del requests
        auth = self.description.auth
        if auth is not None and self._key is None:
            raise UsageError(
                self.name,
                f"no key: the environment variable {auth.env} is not set",
                "a key of this service",
                f"Set {auth.env}.",
            )

    async def ask(self, request: Request) -> Reply:
        """Send one clip and read the answer; a job is followed to its end.

        Raises
        ------
        ModelError: there is no reply.
        """
        if request.audio is None:
            raise ModelError(
                f"{self.name}: takes audio, and this item has none",
                kind="bad_request",
                retryable=False,
            )
        payload = await stimulus(self.name, request, self.limits)
        names = {**self._values, "prompt": request.prompt.user}
        headers = self._headers()
        header = self.description.idempotency_header
        if header and request.idempotency_key:
            headers[header] = request.idempotency_key
        body = request_body(self.description, payload, names)
        # Only the body holds the audio from here on.
        note = {"format": payload.format, "bytes": len(payload.data)}
        note |= {"note": payload.note} if payload.note else {}
        del payload
        answer = await self._caller.send(self.description.method, self._url, headers, body)
        del body
        seconds = answer.seconds
        blocked = self._checked(answer)
        if blocked is not None:
            return blocked
        if self.description.job is not None:
            loop = asyncio.get_running_loop()
            began = loop.time()
            answer = await self._followed(self.description.job, answer)
            seconds += loop.time() - began
        reply = self._reply(answer)
        return replace(reply, latency_s=seconds, raw={**reply.raw, "stimulus": note})

    async def aclose(self) -> None:
        """Close the connections."""
        await self._caller.aclose()

    def _headers(self) -> dict[str, str]:
        from earwitness.models.endpoint_schema import filled

        headers = {"Accept": "application/json"}
        headers |= filled(
            dict(self.description.headers), {**self._values, "prompt": "", "job_id": ""}
        )
        auth = self.description.auth
        if auth is not None and self._key is not None:
            headers[auth.header] = f"{auth.prefix}{self._key}"
        return headers

    def _checked(self, answer: HttpAnswer) -> Reply | None:
        """None for a good status, a blocked reply for a policy block.

        Raises
        ------
        ModelError: any other status.
        """
        if 200 <= answer.status < 300:
            return None
        body = parsed(answer.text)
        codes = error_codes(body)
        redact = self._caller.redact
        if is_blocked(answer.status, codes, body):
            return Reply(
                text="",
                finish="content_filter",
                finish_raw=redact(", ".join(sorted(codes))),
                latency_s=answer.seconds,
                raw={"status": answer.status, "message": redact.excerpt(answer.text)},
            )
        auth = self.description.auth
        hint = f"the key is read from {auth.env}" if auth else "the description names no key"
        raise error_from(self.name, answer, redact, hint=hint)

    async def _followed(self, job: Job, answer: HttpAnswer) -> HttpAnswer:
        """Ask after a job until it is done.

        Raises
        ------
        ModelError: it failed, or was not done in time.
        """
        from earwitness.models.endpoint_schema import filled

        loop = asyncio.get_running_loop()
        give_up = loop.time() + job.give_up_s
        body = self._json(answer)
        names = {**self._values, "prompt": ""}
        if job.id_at is not None:
            found = first(body, job.id_at)
            if not isinstance(found, str | int) or isinstance(found, bool):
                raise self._bad(answer, f"has no job id at {job.id_at!r}")
            names["job_id"] = quote(str(found), safe="")
        url = filled(job.url, names) if job.url is not None else first(body, job.url_at)
        if not isinstance(url, str):
            raise self._bad(answer, f"has no address at {job.url_at!r}")
        url = urljoin(self._url, url)
        while True:
            looked = await self._looked(url, "the job's state", job, give_up)
            body = self._json(looked)
            state = first(body, job.state_at)
            if state is not None and str(state) in job.done:
                break
            if state is not None and str(state) in job.failed:
                said = self._caller.redact.excerpt(str(first(body, job.error_at) or looked.text))
                raise ModelError(
                    f"{self.name}: the job ended as {state!r}: {said}",
                    kind="server",
                    retryable=True,
                    maybe_paid=True,
                )
            wait_s = look_again_s(parse_retry_after(looked.headers), job.every_s)
            if loop.time() + wait_s > give_up:
                raise ModelError(
                    f"{self.name}: the job was still {state!r} after {job.give_up_s:g} s",
                    kind="timeout",
                    retryable=True,
                    maybe_paid=True,
                )
            await asyncio.sleep(wait_s)
        if job.result_url is None:
            return looked
        result_url = urljoin(url, filled(job.result_url, names))
        return await self._looked(result_url, "the job's result", job, give_up)

    async def _looked(self, url: str, at: str, job: Job, give_up: float) -> HttpAnswer:
        """What a job says of itself; a look that fails in passing is followed by another, when the service allows it.

        The job goes on whatever becomes of a look, so asking anew would be a second job. It is never free.

        Parameters
        ----------
        at: what is looked for, for messages.
        give_up: the loop's time after which there is no further look.

        Raises
        ------
        ModelError: looking on will not help, or the service asks for more patience than there is.
        """
        loop = asyncio.get_running_loop()
        while True:
            try:
                answer = await self._caller.send("GET", url, self._headers_for(url))
                if self._checked(answer) is not None:
                    raise self._bad(answer, f"is a block in place of {at}")
                self._json(answer)
                return answer
            except ModelError as error:
                wait_s = look_again_s(error.retry_after_s, job.every_s)
                if not error.retryable or loop.time() + wait_s > give_up:
                    error.maybe_paid = True
                    raise
            await asyncio.sleep(wait_s)

    def _headers_for(self, url: str) -> dict[str, str]:
        """The usual headers, without the key for an address on another host than the service's."""
        headers = self._headers()
        auth = self.description.auth
        if auth is not None and _origin(url) != _origin(self._url):
            headers.pop(auth.header, None)
        return headers

    def _json(self, answer: HttpAnswer) -> Any:
        body = parsed(answer.text)
        if not isinstance(body, dict | list):
            what = "is empty" if not answer.body else "is not valid JSON"
            if answer.media_type == "text/html":
                what = "is a web page"
            raise self._bad(answer, what)
        return body

    def _reply(self, answer: HttpAnswer) -> Reply:
        from earwitness.models.endpoint_answer import AnswerError, read_answer

        body = self._json(answer)
        described = self.description.answer
        redact = self._caller.redact
        error = first(body, described.error_at)
        if error:
            raise ModelError(
                f"{self.name}: the service reports {redact.excerpt(_short(error))}",
                kind="server",
                retryable=True,
                status=answer.status,
                maybe_paid=True,
            )
        try:
            read = read_answer(described, body)
        except AnswerError as problem:
            raise self._bad(answer, f"has {problem}") from None
        model, identity = first(body, described.model_at), first(body, described.id_at)
        return Reply(
            text=None if read.text is None else redact(read.text, run=LONG_RUN),
            scores=None if read.scores is None else {redact(k): v for k, v in read.scores.items()},
            provider_id=redact(str(identity)) if identity is not None else None,
            provider_model=redact(str(model)) if model is not None else None,
            raw=redact.tree(dict(read.raw)),
        )

    def _bad(self, answer: HttpAnswer, what: str) -> ModelError:
        said = self._caller.redact.excerpt(answer.text) or "(empty)"
        return ModelError(
            f"{self.name}: HTTP {answer.status}, but the answer {what}: {said}",
            kind="bad_reply",
            retryable=True,
            status=answer.status,
            maybe_paid=True,
        )


def open(name: str, options: Mapping[str, Any]) -> Endpoint:  # noqa: A001
    """Open ``endpoint/NAME``.

    Raises
    ------
    UsageError: no such description, an unknown option, or one without a value.
    DataError: the description is not one.
    """
    from earwitness.models.endpoint_schema import filled, load_description

    full = f"endpoint/{name}"
    description = load_description(name)
    declared = tuple(
        Option(key, "text", spec.help or "see the description", spec.default)
        for key, spec in description.options.items()
    )
    values = read_options(full, options, (*declared, *INFO.options))
    missing = [option.name for option in declared if values[option.name] is None]
    if missing:
        raise UsageError(
            full, f"option {missing[0]!r} has no value", next_step=f"Give -M {missing[0]}=..."
        )
    own = {option.name: values[option.name] for option in declared}
    stated = description.limits.model_dump()
    key = read_key(full, description.auth.env) if description.auth else None
    return Endpoint(
        name=full,
        limits=replace(limits_from(stated, Limits()), needs_audio=True),
        description=description,
        options=(*declared, *INFO.options),
        _values=own,
        _url=checked_url(
            f"{full}: url", filled(description.url, {**own, "prompt": "", "job_id": ""})
        ),
        _key=key,
        _caller=HttpCaller(
            full, values["timeout_s"] or description.timeout_s, Redactor([key] if key else [])
        ),
    )


def request_body(description: Description, payload: Payload, names: Mapping[str, str]) -> Body:
    """The request's body around the audio, ready to be streamed."""
    from earwitness.models.endpoint_schema import filled

    kind = description.body.kind
    if kind == "raw":
        return Body(payload.media_type, b"", payload.data, as_base64=False)
    fields = filled(description.body.fields, {"job_id": "", **names})
    if kind == "multipart":
        return _multipart(description, payload, fields)
    mark = uuid.uuid4().hex
    prefix = f"data:{payload.media_type};base64," if description.body.data_uri else ""
    *outer, last = (str(step) for step in parse_path(description.body.audio))
    holder = fields
    for step in outer:
        inner = holder.setdefault(step, {})
        if not isinstance(inner, dict):
            raise UsageError(
                f"endpoint {description.id!r}", f"field {step!r} is no object", "room for the audio"
            )
        holder = inner
    holder[last] = prefix + mark
    before, _, after = json.dumps(fields, separators=(",", ":")).partition(mark)
    return Body("application/json", before.encode(), payload.data, after.encode())


def _multipart(description: Description, payload: Payload, fields: Mapping[str, Any]) -> Body:
    """``multipart/form-data`` of RFC 7578: fields first, then the file."""
    boundary = hashlib.sha256(payload.data[:4096] + uuid.uuid4().bytes).hexdigest()[:40]
    parts = []
    for name, value in fields.items():
        text = value if isinstance(value, str) else json.dumps(value)
        parts.append(
            f'--{boundary}\r\nContent-Disposition: form-data; name="{_quoted(name)}"\r\n\r\n{text}\r\n'
        )
    filename = f"{description.body.filename}.{payload.format}"
    parts.append(
        f'--{boundary}\r\nContent-Disposition: form-data; name="{_quoted(description.body.audio)}"; '
        f'filename="{_quoted(filename)}"\r\nContent-Type: {payload.media_type}\r\n\r\n'
    )
    return Body(
        f"multipart/form-data; boundary={boundary}",
        "".join(parts).encode(),
        payload.data,
        f"\r\n--{boundary}--\r\n".encode(),
        as_base64=False,
    )


def _quoted(name: str) -> str:
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port


def _short(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
