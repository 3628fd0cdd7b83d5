"""Walking the chunks of a WAV file, and the rule for sizes that lie.

The rule
--------
- A size of 0 with audio following, or one of 0x7FFF0000 and above (``0xFFFFFFFF`` of ffmpeg, ``0x7FFFF000``
  of espeak-ng and SoX), which no file that large stands behind, was never filled in: the file is a stream
  and is read to its end.
- Any other size beyond the end of the file: the file is truncated.
- A size below the bytes that follow, when these are no chunks: flagged as ``hidden_data``.
- Bytes at the end that make no whole frame are dropped and flagged as ``partial_frame``.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from earwitness.audio.source import Source, Window
from earwitness.audio.types import Problem
from earwitness.audio.wav_format import GSM, WavFormat, parse_format

STREAM_SIZE = 0x7FFF0000
"""Sizes from here on are placeholders of programs that write to a pipe, unless the file is that large."""

STREAM_SIZE_64 = 1 << 62
"""The same for the 64-bit sizes of RF64."""

MAX_CHUNKS = 10_000
KNOWN_IDS = (b"data", b"fmt ", b"LIST", b"fact", b"bext", b"JUNK", b"PEAK", b"cue ", b"id3 ")
AGAIN = "Fetch or export the recording again."


@dataclass(frozen=True, slots=True)
class Chunk:
    id: bytes
    offset: int
    """Of the body."""
    size: int
    """As declared; for RF64 data the size of the ds64 chunk."""


@dataclass(frozen=True, slots=True)
class WavLayout:
    """Where the audio of a WAV file lies, as the rule above finds it.

    ``start`` and ``length`` say where whole frames are; ``missing`` counts the bytes that were promised
    and are not there.
    """

    endian: str
    magic: str
    form: WavFormat | None = None
    fact: bytes = b""
    start: int = 0
    length: int = 0
    missing: int = 0
    declared: int = 0
    problems: tuple[Problem, ...] = ()

    @property
    def frame_limit(self) -> int | None:
        """Frames that are really coded, where a decoder may give more; None where it does not.

        Block codecs fill up their last block, and the fact chunk says where the audio ends. For GSM
        libsndfile 1.2.2 also decodes one block of old memory behind the last one.
        """
        if self.form is None or not self.form.block_frames:
            return None
        blocks, rest = divmod(self.length, self.form.frame_bytes)
        total = blocks * self.form.block_frames
        coded = int.from_bytes(self.fact[:4], "little") if len(self.fact) >= 4 else 0
        if not rest and total - self.form.block_frames < coded <= total:
            return coded
        return total if self.form.tag == GSM else None

    @property
    def failed(self) -> bool:
        return any(p.severity == "error" and p.code != "truncated" for p in self.problems)


@dataclass(slots=True)
class _Walk:
    """State of one walk over the chunks."""

    source: Source
    endian: str
    wide: bool
    position: int
    end: int
    """Where the RIFF size says the file ends."""
    data_size_64: int | None = None
    problems: list[Problem] = field(default_factory=list)

    def error(self, code: str, message: str, next_step: str = AGAIN) -> None:
        self.problems.append(Problem(code, "error", message, next_step))

    def warn(self, code: str, message: str, next_step: str = "") -> None:
        self.problems.append(Problem(code, "warning", message, next_step))


def read_layout(source: Source, offset: int = 0) -> WavLayout:
    """Walk the chunks of a RIFF, RIFX, RF64 or BW64 file.

    Parameters
    ----------
    offset: where the RIFF begins (after a leading tag).
    """
    head = source.at(offset, 12)
    magic = head[:4].decode("ascii")
    endian = ">" if magic == "RIFX" else "<"
    if len(head) < 12:
        problem = Problem(
            "broken_header",
            "error",
            f"the file ends after {source.size} bytes, inside its header",
            AGAIN,
        )
        return WavLayout(endian, magic, problems=(problem,))
    riff_size = struct.unpack(endian + "I", head[4:8])[0]
    walk = _Walk(source, endian, magic in ("RF64", "BW64"), offset + 12, offset + 8 + riff_size)
    if offset:
        walk.warn(
            "leading_tag",
            f"an ID3 tag of {offset} bytes lies before the RIFF header; it was skipped",
            "Remove the tag, as many programs refuse the file.",
        )
    form, fact, data = _walk_to_data(walk)
    if form is None or data is None:
        return WavLayout(endian, magic, form, fact, problems=tuple(walk.problems))
    walk.problems.extend(form.warnings)
    start, length, missing = _apply_rule(walk, form, data, riff_size)
    return WavLayout(
        endian, magic, form, fact, start, length, missing, data.size, tuple(walk.problems)
    )


def _walk_to_data(walk: _Walk) -> tuple[WavFormat | None, bytes, Chunk | None]:
    """Read chunks up to ``data``; what is None afterwards has an error in ``walk.problems``."""
    form: WavFormat | None = None
    fact = b""
    for _ in range(MAX_CHUNKS):
        chunk = _chunk_at(walk, walk.position)
        if chunk is None:
            break
        if chunk.id == b"data":
            if form is None:
                where = "no fmt chunk before its data chunk"
                walk.error("broken_header", f"{where}, so nothing says what the samples are")
                return None, fact, None
            return form, fact, chunk
        if chunk.offset + chunk.size > walk.source.size:
            name = chunk.id.decode("ascii", "replace").strip()
            walk.error(
                "broken_header",
                f"its {name} chunk claims {chunk.size} bytes and the file ends after {walk.source.size}, before any audio",
            )
            return form, fact, None
        if chunk.id == b"fmt ":
            parsed = parse_format(
                walk.source.at(chunk.offset, min(chunk.size, 4096)), walk.endian, walk.source.name
            )
            if isinstance(parsed, Problem):
                walk.problems.append(parsed)
                return None, fact, None
            form = parsed
        elif chunk.id == b"fact":
            fact = walk.source.at(chunk.offset, min(chunk.size, 64))
        elif chunk.id == b"ds64" and walk.wide and chunk.size >= 24:
            walk.data_size_64 = struct.unpack("<Q", walk.source.at(chunk.offset + 8, 8))[0]
        walk.position = _next_position(walk, chunk)
    _explain_no_data(walk, form)
    return form, fact, None


def _chunk_at(walk: _Walk, position: int) -> Chunk | None:
    """The chunk header at a position, or None where there is none."""
    head = walk.source.at(position, 8)
    if len(head) < 8 or not all(32 <= byte < 127 for byte in head[:4]):
        return None
    size = struct.unpack(walk.endian + "I", head[4:])[0]
    if walk.wide and head[:4] == b"data" and size == 0xFFFFFFFF and walk.data_size_64 is not None:
        size = walk.data_size_64
    return Chunk(head[:4], position + 8, size)


def _next_position(walk: _Walk, chunk: Chunk) -> int:
    """Where the next chunk begins: after a pad byte if the size is odd, unless the writer forgot it."""
    end = chunk.offset + chunk.size
    if chunk.size % 2 == 0:
        return end
    if _chunk_at(walk, end + 1) is None and walk.source.at(end, 4) in KNOWN_IDS:
        name = chunk.id.decode("ascii").strip()
        walk.warn(
            "unpadded_chunk",
            f"its {name} chunk of odd size lacks the pad byte; the chunk after it was found all the same",
            "Re-write the file, as most programs refuse it.",
        )
        return end
    return end + 1


def _explain_no_data(walk: _Walk, form: WavFormat | None) -> None:
    size = walk.source.size
    if walk.position + 8 <= size:
        head = walk.source.at(walk.position, 4).hex(" ")
        walk.error("broken_header", f"no chunk begins at byte {walk.position} (found {head})")
    elif walk.end > size or walk.position != size:
        promised = f"; its header promised {walk.end}" if walk.end > size else ""
        walk.error("broken_header", f"the file ends after {size} bytes, before any audio{promised}")
    elif form is None:
        walk.error("empty", "a RIFF header and nothing after it: no sample")
    else:
        walk.error("empty", "it has no data chunk: not one sample")


def _apply_rule(walk: _Walk, form: WavFormat, data: Chunk, riff_size: int) -> tuple[int, int, int]:
    """Start and length of the whole frames, and the number of missing bytes."""
    present = max(0, walk.source.size - data.offset)
    placeholder = STREAM_SIZE_64 if walk.wide and data.size > 0xFFFFFFFF else STREAM_SIZE
    if walk.wide and data.size == walk.data_size_64:
        placeholder = STREAM_SIZE_64
    missing = 0
    if data.size == 0 and present > 1 and not _only_chunks_from(walk, data.offset):
        length = present
        _warn_stream(walk, "0 with audio following")
    elif data.size >= placeholder and data.size > present:
        length = present
        _warn_stream(walk, f"0x{data.size:X}")
    elif data.size > present:
        length, missing = present, data.size - present
        walk.error("truncated", _missing_text(form, data.size, missing))
    else:
        length = data.size
        _check_tail(walk, data, riff_size)
    rest = length % form.frame_bytes if form.counts_frames else 0
    if rest and not missing:
        walk.warn(
            "partial_frame",
            f"the last {rest} of {length} bytes of its data are less than a frame of {form.frame_bytes} and were dropped",
            "Compare with the source: the file may have been cut, or its data chunk padded.",
        )
    return data.offset, length - rest, missing


def _warn_stream(walk: _Walk, found: str) -> None:
    walk.warn(
        "stream_sizes",
        f"its data size is {found}: it was streamed and its header never filled in; read to the end of the file",
        "Whether its end is missing cannot be known from such a file; re-write it to fix the header.",
    )


def _missing_text(form: WavFormat, declared: int, missing: int) -> str:
    text = f"{missing} of {declared} bytes of audio are missing"
    lost, whole = form.seconds(missing), form.seconds(declared)
    if lost is None or whole is None:
        return text
    return text + f" ({lost:.3f} of {whole:.3f} s)"


def _only_chunks_from(walk: _Walk, position: int) -> bool:
    """Whether chunks, and nothing else, fill the file from here to its end."""
    for _ in range(MAX_CHUNKS):
        if walk.source.size - position <= 1:
            return True
        chunk = _chunk_at(walk, position)
        if chunk is None or chunk.offset + chunk.size > walk.source.size:
            return False
        position = chunk.offset + chunk.size + chunk.size % 2
    return False


def _check_tail(walk: _Walk, data: Chunk, riff_size: int) -> None:
    """Look at what follows the data chunk."""
    size = walk.source.size
    position = _next_position(walk, data)
    for _ in range(MAX_CHUNKS):
        if size - position <= 1:
            break
        chunk = _chunk_at(walk, position)
        if chunk is not None and chunk.id == b"data":
            walk.error(
                "broken_header",
                "it has more than one data chunk; programs differ in which of them they play",
                "Find out which is meant, and re-write the file with one.",
            )
            return
        cut = chunk is None and size - position < 8
        if chunk is None or chunk.offset + chunk.size > size:
            if walk.end > size and (cut or chunk is not None):
                position = size
                break
            walk.warn(
                "hidden_data",
                f"{size - position} bytes follow its data chunk that are no chunk: more audio than the header says, or rubbish",
                "Listen to its end; if audio is missing, repair the data size.",
            )
            return
        position = _next_position(walk, chunk)
    filled_in = 0 < riff_size < STREAM_SIZE and not walk.wide
    # The pad byte of a last chunk of odd size may be missing, or not be counted.
    wrong = walk.end < size - 1 or walk.end > max(size, position)
    if filled_in and wrong:
        walk.warn(
            "riff_size",
            f"its header says {walk.end} bytes and the file has {size}; its data chunk is whole",
        )


def wav_window(source: Source, layout: WavLayout) -> Window:
    """The file as a decoder shall see it: a plain header and exactly the whole frames found.

    Raises
    ------
    ValueError: the layout has no format.
    """
    if layout.form is None:
        raise ValueError("a layout without a format has no audio")
    chunk = layout.form.chunk
    e = layout.endian
    body = b"WAVEfmt " + struct.pack(e + "I", len(chunk)) + chunk + b"\0" * (len(chunk) % 2)
    if layout.fact:
        body += b"fact" + struct.pack(e + "I", len(layout.fact)) + layout.fact
        body += b"\0" * (len(layout.fact) % 2)
    if layout.length >= STREAM_SIZE and e == "<":
        sizes = struct.pack("<QQQI", len(body) + 44 + layout.length, layout.length, 0, 0)
        body = b"WAVE" + b"ds64" + struct.pack("<I", 28) + sizes + body[4:]
        header = b"RF64\xff\xff\xff\xff" + body + b"data\xff\xff\xff\xff"
    else:
        magic = b"RIFX" if e == ">" else b"RIFF"
        length = min(layout.length, 0xFFFFFFFF)
        total = min(len(body) + 8 + length, 0xFFFFFFFF)
        header = magic + struct.pack(e + "I", total) + body + b"data" + struct.pack(e + "I", length)
    return Window(source, layout.start, layout.length, header)
