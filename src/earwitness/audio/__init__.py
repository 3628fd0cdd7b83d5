"""Sound as arrays; knows nothing of benchmarks."""

from __future__ import annotations

from earwitness.audio.io import (
    Audio,
    Inspection,
    Problem,
    atomic_write_bytes,
    atomic_write_text,
    decode_audio,
    encode_audio,
    file_sha256,
    full_scale_policy,
    inspect_audio,
    read_audio,
    resample,
    samples_at,
    to_mono,
    to_mono_with_policy,
    write_audio,
)

__all__ = [
    "Audio",
    "Inspection",
    "Problem",
    "atomic_write_bytes",
    "atomic_write_text",
    "decode_audio",
    "encode_audio",
    "file_sha256",
    "full_scale_policy",
    "inspect_audio",
    "read_audio",
    "resample",
    "samples_at",
    "to_mono",
    "to_mono_with_policy",
    "write_audio",
]
