"""WAV files made by hand, so that tests know every byte of them."""

from __future__ import annotations

import struct

import numpy as np

RATE = 16000


def tone(frames: int = 1600, channels: int = 1, level: float = 0.5) -> np.ndarray:
    """A sine with a different pitch in every channel, as int16, shape (frames, channels)."""
    time = np.arange(frames)[:, None] / RATE
    pitch = 300.0 * (1 + np.arange(channels))
    return np.round(level * 32767 * np.sin(2 * np.pi * pitch * time)).astype("<i2")


def fmt(
    *,
    tag: int = 1,
    channels: int = 1,
    rate: int = RATE,
    bits: int = 16,
    block: int | None = None,
    order: str = "<",
) -> bytes:
    block = channels * bits // 8 if block is None else block
    return struct.pack(
        order + "HHIIHH", tag, channels, rate, rate * block & 0xFFFFFFFF, block, bits
    )


def chunk(
    name: bytes, body: bytes, size: int | None = None, pad: bool = True, order: str = "<"
) -> bytes:
    head = name + struct.pack(order + "I", len(body) if size is None else size)
    return head + body + (b"\0" if pad and len(body) % 2 else b"")


def riff(*chunks: bytes, size: int | None = None, magic: bytes = b"RIFF") -> bytes:
    body = b"WAVE" + b"".join(chunks)
    order = ">" if magic == b"RIFX" else "<"
    return magic + struct.pack(order + "I", len(body) if size is None else size) + body


def plain(samples: np.ndarray | None = None, **numbers: int) -> bytes:
    """A faultless 16-bit WAV file."""
    samples = tone() if samples is None else samples
    channels = samples.shape[1]
    return riff(
        chunk(b"fmt ", fmt(channels=channels, **numbers)), chunk(b"data", samples.tobytes())
    )


def as_float(samples: np.ndarray) -> np.ndarray:
    """What a reader returns for int16 samples."""
    wide = samples.astype(np.float32) / np.float32(32768)
    return wide[:, 0] if wide.shape[1] == 1 else wide
