"""``python/module:function``: a function of your own as a model.

The function is called as ``function(audio, prompt, **options)`` with an :class:`earwitness.audio.io.Audio`
(None for an item without audio) and the prompt's text, what it says to the system first. It returns the model's
words (str) or its scores (a dictionary of native label to number). It may be a coroutine function. A plain one
runs in a thread, one call at a time unless ``threads`` says it may run beside itself.

Its source file is hashed into the settings, so that items are asked anew after a change.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import importlib.util
import inspect
import math
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from earwitness.errors import EarwitnessError, ModelError, UsageError
from earwitness.models.adapter import AdapterInfo
from earwitness.models.options import LIMIT_OPTIONS, Option, limits_from, read_options
from earwitness.models.protocols import Limits, Message, Reply, Request

if TYPE_CHECKING:
    from earwitness.audio.io import Audio

OPTIONS: tuple[Option, ...] = (
    Option("rate", "integer", "resample to this rate in Hz before the call", least=1),
    Option("mono", "yes/no", "mix down to one channel before the call", True),
    Option("threads", "integer", "calls of a plain function at the same time", 1, least=1),
    *LIMIT_OPTIONS[2:4],
)
_OWN = tuple(option.name for option in OPTIONS)

INFO = AdapterInfo(
    name="python",
    form="python/MODULE:FUNCTION or python/FILE.py:FUNCTION",
    summary="A function of your own: audio and prompt in, words or scores out",
    options=OPTIONS,
    limits=Limits(formats=("wav", "flac", "mp3", "ogg", "aiff")),
    examples=("python/my_model:predict", "python/models/mine.py:predict -M rate=16000"),
)


@dataclass(eq=False)
class PythonFunction:
    """A function as a model. Use :func:`open` to make one."""

    name: str
    limits: Limits
    _function: Callable[..., Any]
    _values: Mapping[str, Any]
    _passed: Mapping[str, Any]
    _source_sha256: str
    _pool: ThreadPoolExecutor

    @property
    def settings(self) -> Mapping[str, Any]:
        return {
            "source_sha256": self._source_sha256,
            "rate": self._values["rate"],
            "mono": self._values["mono"],
            "options": dict(self._passed),
        }

    async def ask(self, request: Request) -> Reply:
        """Call the function once.

        Raises
        ------
        ModelError: ``audio`` (the clip cannot be read), ``bug`` (the function failed or returned
            something else), or whatever ModelError the function raises itself.
        """
        loop = asyncio.get_running_loop()
        audio = await loop.run_in_executor(self._pool, self._audio, request)
        prompt = request.prompt
        return await self._called(
            audio, f"{prompt.system}\n\n{prompt.user}" if prompt.system else prompt.user
        )

    async def complete(
        self, messages: Sequence[Message], schema: Mapping[str, Any] | None = None
    ) -> Reply:
        """Answer text with text: the function gets no audio, and all that was said as one text.

        Raises
        ------
        ModelError: as :meth:`ask`.
        """
        del schema  # The prompt says in words what form is wanted.
        return await self._called(None, "\n\n".join(message.text for message in messages))

    async def _called(self, audio: Audio | None, text: str) -> Reply:
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            if inspect.iscoroutinefunction(self._function):
                value = await self._function(audio, text, **self._passed)
            else:
                value = await loop.run_in_executor(
                    self._pool, lambda: self._function(audio, text, **self._passed)
                )
        except ModelError:
            raise
        except Exception as error:
            raise ModelError(
                f"{self.name} raised {type(error).__name__}: {error}{_line_of(error)}",
                kind="bug",
                retryable=False,
            ) from error
        return self._reply(value, loop.time() - began)

    def _audio(self, request: Request) -> Audio | None:
        if request.audio is None:
            return None
        try:
            return read_stimulus(request, rate=self._values["rate"], mono=self._values["mono"])
        except EarwitnessError as error:
            raise ModelError(f"{self.name}: {error}", kind="audio", retryable=False) from error

    def _reply(self, value: Any, seconds: float) -> Reply:
        if isinstance(value, Reply):
            return value
        if isinstance(value, str):
            return Reply(text=value, latency_s=seconds)
        if isinstance(value, Mapping):
            scores = {}
            for label, score in value.items():
                try:
                    scores[str(label)] = float(score)
                except (TypeError, ValueError):
                    raise self._wrong(f"a score {score!r} for {label!r}") from None
                if not math.isfinite(scores[str(label)]):
                    raise self._wrong(f"a score {score!r} for {label!r}")
            return Reply(scores=scores, latency_s=seconds)
        raise self._wrong(f"a {type(value).__name__}")

    def _wrong(self, what: str) -> ModelError:
        return ModelError(
            f"{self.name} returned {what}; wanted text, or a dictionary of label to finite number",
            kind="bug",
            retryable=False,
        )

    async def aclose(self) -> None:
        """End the threads; a call that still runs is not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def read_stimulus(request: Request, *, rate: int | None = None, mono: bool = True) -> Audio:
    """A request's audio as samples, its transform applied. Blocking.

    Raises
    ------
    DataError, AudioFileError: as :func:`earwitness.models.payload.encode_stimulus`.
    """
    import numpy as np

    from earwitness.audio.io import Audio, read_audio, resample, to_mono
    from earwitness.models.payload import windowed

    assert request.audio is not None
    audio = read_audio(request.audio.path)
    if request.audio.window is not None:
        audio = windowed(audio, request.audio.window)
    if mono:
        audio = to_mono(audio)
    if request.audio.transform == "silence":
        audio = Audio(np.zeros_like(audio.samples), audio.rate)
    return audio if rate is None or rate == audio.rate else resample(audio, rate)


def open(name: str, options: Mapping[str, Any]) -> PythonFunction:  # noqa: A001
    """Open ``python/module:function``; options that are not the adapter's own go to the function.

    Raises
    ------
    UsageError: no such module or function, or it does not take what it would be given.
    """
    full = f"python/{name}"
    place, _, attribute = name.rpartition(":")
    if not place or not attribute:
        raise UsageError(f"model {full!r}", "names no function", INFO.form)
    module = _module(full, place)
    function = getattr(module, attribute, None)
    if not callable(function):
        raise UsageError(f"model {full!r}", f"{place} has no function {attribute!r}", "a function")
    values = read_options(full, {key: options[key] for key in options if key in _OWN}, OPTIONS)
    passed = {key: value for key, value in options.items() if key not in _OWN}
    _check_signature(full, function, passed)
    source = Path(module.__file__) if module.__file__ else None
    digest = hashlib.sha256(source.read_bytes()).hexdigest() if source and source.is_file() else ""
    return PythonFunction(
        name=full,
        limits=limits_from(values, INFO.limits),
        _function=function,
        _values=values,
        _passed=passed,
        _source_sha256=digest,
        _pool=ThreadPoolExecutor(values["threads"], thread_name_prefix="earwitness-function"),
    )


def _module(full: str, place: str) -> ModuleType:
    """Import a module by name (the current folder counts) or by its file."""
    try:
        if place.endswith(".py"):
            path = Path(place)
            if not path.is_file():
                raise UsageError(f"model {full!r}", f"there is no file {place}", "a Python file")
            spec = importlib.util.spec_from_file_location(path.stem, path)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
        here = str(Path.cwd())
        if here not in sys.path:
            # A console script does not look into the current folder, where a user's module usually is.
            sys.path.append(here)
        return importlib.import_module(place)
    except UsageError:
        raise
    except ModuleNotFoundError as error:
        raise UsageError(
            f"model {full!r}",
            f"cannot import {place}: no module {error.name!r}",
            "a module on the path or in the current folder",
        ) from error
    except Exception as error:
        raise UsageError(
            f"model {full!r}",
            f"importing {place} raised {type(error).__name__}: {error}{_line_of(error)}",
            "a module that can be imported",
        ) from error


def _check_signature(full: str, function: Callable[..., Any], passed: Mapping[str, Any]) -> None:
    try:
        signature = inspect.signature(function)
        signature.bind(None, "", **passed)
    except ValueError:
        return
    except TypeError as error:
        raise UsageError(
            f"model {full!r}",
            f"the function cannot be called as function(audio, prompt{''.join(f', {key}=...' for key in passed)}): {error}",
            f"options it has, or the adapter's own ({', '.join(_OWN)})",
        ) from None


def _line_of(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
