"""From a name to a model: ``adapter/name`` split at the first slash, or an entry of a ``models.yaml``.

Adapters are those of :data:`BUILT_IN` and those that other packages register as entry points of the group
``earwitness.models``: each is a function ``open(name, options) -> AudioModel`` in a module that may also
hold an ``INFO`` (:class:`~earwitness.models.adapter.AdapterInfo`).
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from earwitness.errors import DataError, UsageError
from earwitness.models.adapter import AdapterInfo
from earwitness.models.batching import BatchApi, batch_api
from earwitness.models.options import parse_options
from earwitness.models.pace import Pace, split_pace
from earwitness.models.protocols import (
    AudioModel,
    Limits,
    Message,
    Preflight,
    Reply,
    Request,
    TextModel,
)

__all__ = [
    "AdapterStatus",
    "ModelEntry",
    "list_adapters",
    "open_model",
    "open_text_model",
    "parse_options",
    "read_models_file",
]

BUILT_IN: Mapping[str, str] = {
    "openai": "earwitness.models.openai_chat:open",
    "google": "earwitness.models.google_chat:open",
    "openai-realtime": "earwitness.models.openai_realtime_chat:open",
    "openai-responses": "earwitness.models.openai_responses:open",
    "hume-realtime": "earwitness.models.hume_realtime:open",
    "anthropic": "earwitness.models.anthropic_chat:open",
    "mistral": "earwitness.models.mistral_chat:open",
    "endpoint": "earwitness.models.endpoint:open",
    "hf": "earwitness.models.hf_pipeline:open",
    "python": "earwitness.models.python_function:open",
    "command": "earwitness.models.command:open",
    "cascade": "earwitness.models.cascade:open",
    "replay": "earwitness.models.replay:open",
    "baseline": "earwitness.models.baseline:open",
    # Read by name only: it needs the bank and word lists of scenes, which models know nothing of.
    "offline": "earwitness.tasks.reader_model:open",
}
TEXT_BUILT_IN: Mapping[str, str] = {
    "openai": "earwitness.models.text_chat:open",
    "openai-responses": "earwitness.models.text_chat:open_responses",
    "anthropic": "earwitness.models.text_chat:open_anthropic",
    "google": "earwitness.models.text_chat:open_google",
    "mistral": "earwitness.models.text_chat:open_mistral",
}
"""Adapters whose text models are opened apart; any other whose models have ``complete`` (``python``,
``command``) serves as it is."""
ENTRY_POINTS = "earwitness.models"
TEXT_ENTRY_POINTS = "earwitness.text_models"
MODELS_FILE = Path("models.yaml")
"""Looked for in the current folder when no other file is named."""

Opener = Callable[[str, Mapping[str, Any]], AudioModel]


@dataclass(frozen=True, slots=True)
class AdapterStatus:
    """An adapter and whether it can be used here and now.

    ``missing`` says what stands in the way (an extra, a key), empty when nothing does; ``installed`` is False where
    it is packages. ``origin`` is ``built in`` or the package it comes from.
    """

    info: AdapterInfo
    origin: str
    missing: str
    installed: bool = True


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A named entry of a ``models.yaml``."""

    name: str
    model: str
    options: Mapping[str, Any]


def open_model(
    name: str,
    options: Mapping[str, Any] | None = None,
    *,
    models_file: Path | None = None,
) -> AudioModel:
    """Open a model by name.

    Parameters
    ----------
    name: ``adapter/name``, or an entry of the models file.
    options: as text (from ``-M``) or typed; they go before those of the entry.
    models_file: None means ``models.yaml`` in the current folder, if there is one.

    Returns
    -------
    The model. One opened by its entry carries the entry's name, and what is behind it in its settings.

    Raises
    ------
    UsageError: no such adapter, entry or option.
    DataError: the models file is not what it should be.

    Examples
    --------
    >>> open_model("baseline/uniform", {"seed": "7"}).name
    'baseline/uniform'
    """
    entries = _entries(models_file)
    given = dict(options or {})
    entry = entries.get(name)
    if entry is not None:
        given = {**entry.options, **given}
    pace, behind = split_pace(name, given)
    if entry is not None:
        return _NamedModel(entry.name, _open(entry.model, behind, entries), pace)
    model = _open(name, behind, entries)
    return model if pace is None else _NamedModel(None, model, pace)


def open_text_model(
    name: str,
    options: Mapping[str, Any] | None = None,
    *,
    models_file: Path | None = None,
) -> DeclaredTextModel:
    """Open a text model by name, as writers, judges and the text-only control use them.

    Parameters
    ----------
    name: ``adapter/name``, or an entry of the models file.
    options: as text (from ``-M``) or typed; they go before those of the entry. ``family`` declares the family
        of models it is of, for rules that keep a judge apart from a writer; it is never sent.
    models_file: None means ``models.yaml`` in the current folder, if there is one.

    Raises
    ------
    UsageError: no such adapter, entry or option, or an adapter without text models.
    DataError: the models file is not what it should be.

    Examples
    --------
    >>> open_text_model("openai/m", {"family": "m", "base_url": "http://127.0.0.1:1/v1"}).family
    'm'
    """
    entries = _entries(models_file)
    given = dict(options or {})
    entry = entries.get(name)
    target, behind = name, given
    if entry is not None:
        target, behind = entry.model, {**entry.options, **given}
    family = str(behind.pop("family", "")).strip().casefold() or None
    pace, behind = split_pace(name, behind)
    adapter, _, rest = target.partition("/")
    openers = {point: value for point, (value, _) in _adapters(TEXT_ENTRY_POINTS).items()}
    openers |= TEXT_BUILT_IN
    model: Any
    if rest and adapter in openers:
        model = _opener(adapter, openers[adapter])(rest, behind)
    else:
        model = _open(target, behind, entries)
    if not isinstance(model, TextModel):
        raise UsageError(
            f"model {name!r}",
            f"{adapter!r} has no text models",
            f"one of {', '.join(sorted(f'{each}/...' for each in openers))}",
        )
    return DeclaredTextModel(
        entry.name if entry else model.name, model, family, entry is not None, pace
    )


def list_adapters() -> tuple[AdapterStatus, ...]:
    """Every adapter there is, in alphabetical order, with what is missing to use it."""
    found = []
    for name, (target, origin) in sorted(_adapters().items()):
        try:
            info = _info(name, target)
            installed = _installed(info)
            missing = _missing(info, installed)
        except ImportError as error:
            info = AdapterInfo(name, f"{name}/NAME", "cannot be loaded")
            missing, installed = str(error), False
        found.append(AdapterStatus(info, origin, missing, installed))
    return tuple(found)


def adapter_info(adapter: str) -> AdapterInfo:
    """What one adapter says of itself.

    Raises
    ------
    UsageError: there is no such adapter.
    """
    return _info(adapter, _target(adapter, adapter, {}))


def read_models_file(path: Path) -> dict[str, ModelEntry]:
    """Read named entries: ``NAME: {model: adapter/name, options: {...}}``.

    Raises
    ------
    DataError: not readable, not YAML, or an entry without a model.
    """
    import yaml

    try:
        content = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(str(path), f"cannot be read ({error})", "a models file") from None
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise DataError(str(path), f"is no valid YAML ({reason})", "a models file") from None
    form = "a mapping of names to {model: adapter/name, options: {...}}"
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise DataError(str(path), f"holds a {type(content).__name__}", form)
    entries = {}
    for name, value in content.items():
        where = f"{path}: entry {name!r}"
        fields = {"model": value} if isinstance(value, str) else value
        if not isinstance(fields, dict) or not isinstance(fields.get("model"), str):
            raise DataError(where, "has no model", form)
        unknown = sorted(set(fields) - {"model", "options"})
        if unknown:
            raise DataError(where, f"has unknown fields {', '.join(map(str, unknown))}", form)
        options = fields.get("options") or {}
        if not isinstance(options, dict):
            raise DataError(where, "has options that are no mapping", form)
        # A value left empty in YAML is an option left unset.
        given = {str(key): item for key, item in options.items() if item is not None}
        entries[str(name)] = ModelEntry(str(name), fields["model"], given)
    return entries


def _entries(models_file: Path | None) -> dict[str, ModelEntry]:
    if models_file is not None:
        return read_models_file(models_file)
    return read_models_file(MODELS_FILE) if MODELS_FILE.is_file() else {}


def _open(name: str, options: Mapping[str, Any], entries: Mapping[str, ModelEntry]) -> AudioModel:
    adapter, slash, rest = name.partition("/")
    target = _target(adapter, name, entries)
    if not slash or not rest:
        info = _info(adapter, target)
        example = f"Such as {info.examples[0]}." if info.examples else ""
        raise UsageError(f"model {name!r}", "names an adapter but no model", info.form, example)
    return _opener(adapter, target)(rest, options)


def _target(adapter: str, name: str, entries: Mapping[str, ModelEntry]) -> str:
    adapters = _adapters()
    if adapter in adapters:
        return adapters[adapter][0]
    known = [f"{each}/..." for each in sorted(adapters)]
    wanted = f"one of {', '.join(known)}"
    if entries:
        wanted += f", or an entry of the models file ({', '.join(sorted(entries))})"
    close = difflib.get_close_matches(adapter.lower(), [*adapters, *entries], n=1)
    hint = f"Did you mean {close[0]!r}?" if close else "See: earwitness models list"
    found = f"there is no adapter {adapter!r}" if "/" in name else "there is no such model"
    raise UsageError(f"model {name!r}", found, wanted, hint)


def _adapters(group: str = ENTRY_POINTS) -> dict[str, tuple[str, str]]:
    """Name -> (``module:function``, where it comes from). The built-in ones cannot be replaced."""
    from importlib.metadata import entry_points

    found = {}
    for point in entry_points(group=group):
        origin = point.dist.name if point.dist is not None else "a plug-in"
        found[point.name] = (point.value, origin)
    if group != ENTRY_POINTS:
        return found
    return found | {name: (target, "built in") for name, target in BUILT_IN.items()}


def _opener(adapter: str, target: str) -> Opener:
    module, _, function = target.partition(":")
    try:
        opener: Opener = getattr(importlib.import_module(module), function or "open")
    except (ImportError, AttributeError) as error:
        raise UsageError(
            f"adapter {adapter!r}", f"cannot be loaded: {error}", f"a function at {target}"
        ) from error
    return opener


def _info(adapter: str, target: str) -> AdapterInfo:
    info = getattr(importlib.import_module(target.partition(":")[0]), "INFO", None)
    return info if isinstance(info, AdapterInfo) else AdapterInfo(adapter, f"{adapter}/NAME", "")


def _installed(info: AdapterInfo) -> bool:
    return all(importlib.util.find_spec(name) is not None for name in info.modules)


def _missing(info: AdapterInfo, installed: bool) -> str:
    wanted = []
    if not installed and info.extra:
        wanted.append(f'packages: pip install "earwitness[{info.extra}]"')
    if info.key_variable and not os.environ.get(info.key_variable, "").strip():
        wanted.append(
            f"the environment variable {info.key_variable} (for the service it belongs to)"
        )
    return "; ".join(wanted)


class DeclaredTextModel:
    """A text model with its declared family; ``family`` is None where nothing was declared."""

    def __init__(
        self,
        name: str,
        model: TextModel,
        family: str | None,
        named: bool,
        pace: Pace | None = None,
    ) -> None:
        self._name = name
        self._model = model
        self._named = named
        self.family = family
        self.pace = pace

    def __repr__(self) -> str:
        return f"<{self._name}: {self._model.name}>"

    @property
    def name(self) -> str:
        return self._name

    @property
    def settings(self) -> Mapping[str, Any]:
        if self._named:
            return {"model": self._model.name, **self._model.settings}
        return self._model.settings

    @property
    def limits(self) -> Limits:
        """What it can be asked; of a plain text model, words alone."""
        limits = getattr(self._model, "limits", None)
        return limits if isinstance(limits, Limits) else Limits(formats=())

    def preflight(self) -> None:
        """Refuse before the first call what would fail on every one, where the adapter can tell."""
        check = getattr(self._model, "preflight", None)
        if isinstance(self._model, AudioModel):
            check = (
                (lambda: self._model.preflight(())) if isinstance(self._model, Preflight) else None
            )
        if check is not None:
            check()

    async def complete(
        self, messages: Sequence[Message], schema: Mapping[str, Any] | None = None
    ) -> Reply:
        return await self._model.complete(messages, schema)

    async def ask(self, request: Request) -> Reply:
        """Ask a prompt without audio; the key of the reply goes along where the adapter can send it."""
        ask = getattr(self._model, "ask", None)
        if ask is not None:
            reply: Reply = await ask(request)
            return reply
        prompt = request.prompt
        system = [Message("system", prompt.system)] if prompt.system else []
        return await self.complete([*system, Message("user", prompt.user)], prompt.schema)

    async def aclose(self) -> None:
        await self._model.aclose()


class _NamedModel:
    """A model under the name of its entry (None: its own), with the pace it is to be asked at."""

    def __init__(self, name: str | None, model: AudioModel, pace: Pace | None) -> None:
        self._name = name or model.name
        self._model = model
        self._is_entry = name is not None
        self.pace = pace

    def __repr__(self) -> str:
        return f"<{self._name}: {self._model.name}>"

    @property
    def name(self) -> str:
        return self._name

    @property
    def limits(self) -> Limits:
        return self._model.limits

    @property
    def settings(self) -> Mapping[str, Any]:
        if self._is_entry:
            return {"model": self._model.name, **self._model.settings}
        return self._model.settings

    @property
    def label_map(self) -> str | None:
        return getattr(self._model, "label_map", None)

    def preflight(self, requests: Sequence[Request]) -> None:
        if isinstance(self._model, Preflight):
            self._model.preflight(requests)

    def batches(self) -> BatchApi | None:
        """The batch API of the model behind the name, None where it has none."""
        return batch_api(self._model)

    async def ask(self, request: Request) -> Reply:
        return await self._model.ask(request)

    async def aclose(self) -> None:
        await self._model.aclose()
