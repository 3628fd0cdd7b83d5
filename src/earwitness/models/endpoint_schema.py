"""The description of a vendor's HTTP API, as YAML. ``docs/models.md`` explains every field.

Unknown fields are refused. Placeholders ``{option}`` in the URL, in fields and in headers are filled from
the description's own ``options``; a literal brace is written twice.
"""

from __future__ import annotations

import hashlib
import json
import os
import string
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from earwitness.errors import DataError, UsageError
from earwitness.models.json_path import PathError, parse_path

ENDPOINTS = Path(__file__).parent / "endpoints"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _checked_path(path: str | None) -> str | None:
    if path is not None:
        try:
            parse_path(path)
        except PathError as error:
            raise ValueError(str(error)) from None
    return path


class Auth(_Strict):
    """Where the key comes from and how it is sent. The key itself is never in a description."""

    env: str = Field(min_length=1)
    header: str = "Authorization"
    prefix: str = ""


class OptionSpec(_Strict):
    """An option of the description, filled in where ``{name}`` stands."""

    default: str | None = None
    help: str = ""


class RequestBody(_Strict):
    """How the audio is sent: as a file of a form, as base64 inside JSON, or as the body itself."""

    kind: Literal["multipart", "json", "raw"]
    audio: str = "file"
    filename: str = "audio"
    fields: dict[str, Any] = Field(default_factory=dict)
    data_uri: bool = False

    @model_validator(mode="after")
    def _fits(self) -> RequestBody:
        if self.kind == "json":
            steps = parse_path(self.audio)
            if not steps or not all(isinstance(step, str) for step in steps):
                raise ValueError("audio must be a path of plain keys, such as input.audio.data")
        if self.kind == "raw" and self.fields:
            raise ValueError("a raw body has no fields; put them into the url or into headers")
        if self.data_uri and self.kind != "json":
            raise ValueError("data_uri is for json bodies")
        return self


class StatedLimits(_Strict):
    """What the service takes."""

    formats: tuple[str, ...] = ("wav",)
    rates: tuple[int, ...] = ()
    max_seconds: float | None = Field(default=None, gt=0)
    min_seconds: float | None = Field(default=None, ge=0)
    max_bytes: int | None = Field(default=None, gt=0)


class Job(_Strict):
    """A service that answers later: where to ask, how often, and which words mean what."""

    url: str | None = None
    url_at: str | None = None
    id_at: str | None = None
    state_at: str
    done: tuple[str, ...] = Field(min_length=1)
    failed: tuple[str, ...] = ()
    error_at: str | None = None
    result_url: str | None = None
    every_s: float = Field(default=1.0, gt=0)
    give_up_s: float = Field(default=300.0, gt=0)

    _paths = field_validator("url_at", "id_at", "state_at", "error_at")(_checked_path)

    @model_validator(mode="after")
    def _has_address(self) -> Job:
        if (self.url is None) == (self.url_at is None):
            raise ValueError("give one of url (with {job_id}) and url_at")
        needs_id = "{job_id}" in (self.url or "") or "{job_id}" in (self.result_url or "")
        if needs_id and self.id_at is None:
            raise ValueError("{job_id} is used, so id_at must say where the id is")
        return self


class Answer(_Strict):
    """Where the label, the words or the scores are in the answer."""

    label_at: str | None = None
    text_at: str | None = None
    scores_at: str | None = None
    name_key: str = "name"
    score_key: str = "score"
    windows_at: str | None = None
    start_key: str = "start"
    end_key: str = "end"
    pool: Literal["mean", "max", "duration_weighted"] = "mean"
    absent: Literal["zero", "skip"] = "zero"
    cutoff: float | None = None
    empty_at: str | None = None
    error_at: str | None = None
    model_at: str | None = None
    id_at: str | None = None

    _paths = field_validator(
        "label_at", "text_at", "scores_at", "windows_at", "empty_at", "error_at", "model_at", "id_at",
        "start_key", "end_key",
    )(_checked_path)  # fmt: skip

    @model_validator(mode="after")
    def _one_thing(self) -> Answer:
        given = [name for name in ("label_at", "text_at", "scores_at") if getattr(self, name)]
        if len(given) != 1:
            raise ValueError("give exactly one of label_at, text_at and scores_at")
        if self.windows_at and not self.scores_at:
            raise ValueError("windows_at needs scores_at, relative to each window")
        return self


class Description(_Strict):
    """One vendor's API."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")
    summary: str = ""
    documented: str = ""
    template: bool = False
    url: str
    method: Literal["POST", "PUT"] = "POST"
    auth: Auth | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    options: dict[str, OptionSpec] = Field(default_factory=dict)
    body: RequestBody
    limits: StatedLimits = StatedLimits()
    answer: Answer
    job: Job | None = None
    label_map: str | None = None
    idempotency_header: str | None = None
    timeout_s: float = Field(default=300.0, gt=0)

    @model_validator(mode="after")
    def _placeholders_exist(self) -> Description:
        texts: list[Any] = [self.url, *self.headers.values(), self.body.fields]
        if self.job:
            texts += [self.job.url, self.job.result_url]
        for text in texts:
            unknown = placeholders(text) - set(self.options) - {"job_id", "prompt"}
            if unknown:
                raise ValueError(
                    f"placeholder {{{sorted(unknown)[0]}}} is no option of this description"
                )
        return self

    @property
    def sha256(self) -> str:
        """Hash of what reaches the service and how its answer is read; not of names and help texts."""
        kept = self.model_dump(
            mode="json",
            exclude={
                "id",
                "summary",
                "documented",
                "template",
                "auth",
                "label_map",
                "limits",
                "timeout_s",
                "options",
            },
        )
        text = json.dumps(kept, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def placeholders(value: Any) -> set[str]:
    """Names in braces inside a text, or inside the texts of a structure.

    Raises
    ------
    ValueError: a brace that is not closed.
    """
    if isinstance(value, str):
        try:
            return {name for _, name, _, _ in string.Formatter().parse(value) if name is not None}
        except ValueError as error:
            raise ValueError(f"{value!r}: {error}; write a literal brace twice") from None
    if isinstance(value, dict):
        return set().union(*(placeholders(item) for item in value.values()))
    if isinstance(value, list | tuple):
        return set().union(*(placeholders(item) for item in value))
    return set()


def filled(value: Any, names: dict[str, str]) -> Any:
    """The same with every placeholder replaced, and doubled braces made single."""
    if isinstance(value, str):
        # Not str.format: an option's value must not reach attributes of objects.
        return "".join(
            literal + ("" if name is None else names[name])
            for literal, name, _, _ in string.Formatter().parse(value)
        )
    if isinstance(value, dict):
        return {key: filled(item, names) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [filled(item, names) for item in value]
    return value


def shipped() -> tuple[str, ...]:
    """Names of the descriptions that come with the package."""
    return tuple(sorted(path.stem for path in ENDPOINTS.glob("*.yaml")))


def missing_key(description: Description) -> str:
    """What is missing to use a description here and now; empty when nothing is."""
    auth = description.auth
    if auth is None or os.environ.get(auth.env, "").strip():
        return ""
    return f"the environment variable {auth.env}"


def load_description(name: str) -> Description:
    """Read a description: a file of yours, or one that comes with the package.

    Raises
    ------
    UsageError: there is neither.
    DataError: the file is not a description; the message names the field.
    """
    path = Path(name)
    if path.suffix not in (".yaml", ".yml"):
        path = ENDPOINTS / f"{name}.yaml"
        if "/" in name or not path.is_file():
            raise UsageError(
                f"model 'endpoint/{name}'",
                "there is no such description",
                f"a .yaml file, or one of {', '.join(shipped())}",
                "docs/models.md says how to write one.",
            )
    try:
        content = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(str(path), f"cannot be read ({error})", "an endpoint description") from None
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise DataError(
            str(path), f"is no valid YAML ({reason})", "an endpoint description"
        ) from None
    try:
        return Description.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise DataError(
            f"{path}: {where}",
            first["msg"].removeprefix("Value error, "),
            "an endpoint description",
            "docs/models.md lists the fields.",
        ) from None
