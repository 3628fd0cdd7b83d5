"""Opening ONNX graphs so that they repeat: one thread, one provider, and one tensor more as output."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def with_output(model: bytes, tensor: str) -> bytes:
    """A serialised ONNX model with an inner tensor as one more output.

    A protobuf message followed by another of its kind reads as both merged, repeated fields in a row. So a
    ``ModelProto`` (field 7: graph) that holds nothing but ``graph.output`` (field 12) with a name (field 1)
    adds an output, and no ONNX library is needed. See "Last One Wins" and merging in the protobuf encoding.

    Examples
    --------
    >>> with_output(b"", "abc")
    b':\\x07b\\x05\\n\\x03abc'
    """
    name = tensor.encode()
    value = b"\x0a" + _length(len(name)) + name
    graph = b"\x62" + _length(len(value)) + value
    return model + b"\x3a" + _length(len(graph)) + graph


def _length(count: int) -> bytes:
    out = bytearray()
    while count > 0x7F:
        out.append(count & 0x7F | 0x80)
        count >>= 7
    out.append(count)
    return bytes(out)


def open_session(path: Path, extra_output: str) -> Any:
    """An onnxruntime session on one thread; the extra output comes last."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # One thread per synthesis: sums in another order are other samples.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    model = with_output(path.read_bytes(), extra_output)
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
