"""The program that speaks for :mod:`earwitness.models.voices.espeak`, in a process of its own.

eSpeak NG is GPL-3 and keeps global state, so it runs apart: one JSON request a line on standard input,
one JSON answer a line on standard output, the sound in the WAV file that the request names.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import wave
from typing import Any

_SYNCHRONOUS_RETRIEVAL = 2
_POSITION_CHARACTER = 1
_UTF8 = 1
_SSML = 0x10
_WORD = 1
_SEED = 1
_PARAMETERS = {"rate_wpm": 1, "volume": 2, "pitch": 3, "pitch_range": 4}


class _Event(ctypes.Structure):
    """``espeak_EVENT`` of speak_lib.h; the list ends with type 0."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", ctypes.c_char * 8),
    )


def open_engine() -> tuple[ctypes.CDLL, int]:
    """Load the packaged library; returns it with its sample rate in Hz."""
    import espeakng_loader

    library = ctypes.CDLL(espeakng_loader.get_library_path())
    rate = library.espeak_Initialize(
        _SYNCHRONOUS_RETRIEVAL, 0, str(espeakng_loader.get_data_path()).encode(), 0
    )
    if rate <= 0:
        raise RuntimeError(f"eSpeak NG did not start (code {rate})")
    # It draws breath noise and flutter from a generator seeded with the clock, and some from the C library's.
    library.espeak_ng_SetRandSeed(ctypes.c_long(_SEED))
    if os.name == "posix":
        ctypes.CDLL(None).srand(_SEED)
    return library, int(rate)


class Engine:
    """eSpeak NG with its sound and its words collected."""

    def __init__(self) -> None:
        self._library, self.rate = open_engine()
        self._chunks: list[bytes] = []
        self.words: list[tuple[int, int]] = []
        """Of the last text: place of each word (from 0) and the sample it begins at."""
        # The callback must outlive the library's use of it, so it is kept as an attribute.
        self._callback = ctypes.CFUNCTYPE(
            ctypes.c_int,
            ctypes.POINTER(ctypes.c_short),
            ctypes.c_int,
            ctypes.POINTER(_Event),
        )(self._collect)
        self._library.espeak_SetSynthCallback(self._callback)

    def _collect(
        self,
        samples: ctypes._Pointer[ctypes.c_short],
        count: int,
        events: ctypes._Pointer[_Event],
    ) -> int:
        if samples and count > 0:
            self._chunks.append(ctypes.string_at(samples, count * 2))
        number = 0
        while events and events[number].type:
            if events[number].type == _WORD:
                self.words.append((events[number].text_position - 1, events[number].sample))
            number += 1
        return 0

    def speak(
        self, text: str, voice: str, parameters: dict[str, int], *, ssml: bool = True
    ) -> bytes:
        """16-bit samples of ``text``; raises ValueError for a voice that does not exist."""
        if self._library.espeak_SetVoiceByName(voice.encode()) != 0:
            raise ValueError(f"no voice {voice!r}")
        for name, value in parameters.items():
            self._library.espeak_SetParameter(_PARAMETERS[name], int(value), 0)
        data = text.encode()
        self._chunks.clear()
        self.words = []
        flags = _UTF8 | (_SSML if ssml else 0)
        self._library.espeak_Synth(
            data, len(data) + 1, 0, _POSITION_CHARACTER, 0, flags, None, None
        )
        self._library.espeak_Synchronize()
        return b"".join(self._chunks)


def answer(engine: Engine, request: dict[str, Any]) -> dict[str, object]:
    """Speak one request into its file."""
    try:
        samples = engine.speak(
            request["text"],
            request["voice"],
            request["parameters"],
            ssml=request.get("ssml", True),
        )
        with wave.open(request["path"], "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(engine.rate)
            file.writeframes(samples)
    except (ValueError, OSError, KeyError) as error:
        return {"ok": False, "error": str(error)}
    return {
        "ok": True,
        "seconds": len(samples) / 2 / engine.rate,
        "words": [[place, sample / engine.rate] for place, sample in engine.words],
    }


def answer_afresh(engine: Engine, request: dict[str, Any]) -> None:
    """Answer from a copy of this process, which has said nothing before.

    The engine carries noise and flutter from one text to the next, so that the same words after others are
    other samples. A copy of the engine as it was opened always says them alike.
    """
    child = os.fork()
    if child == 0:
        try:
            sys.stdout.write(json.dumps(answer(engine, request)) + "\n")
            sys.stdout.flush()
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def main() -> None:
    """Answer requests until standard input ends."""
    engine = Engine()
    for line in sys.stdin:
        request = json.loads(line)
        if request.get("afresh") and hasattr(os, "fork"):
            answer_afresh(engine, request)
        else:
            sys.stdout.write(json.dumps(answer(engine, request)) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
