"""Any bytes against the ledger's reader and the reply parsers: a hundred or two here, far more by ``make fuzz``."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks._fuzz_targets import SEEDS, TARGETS

PIECES = (
    b"null", b"[", b"]", b"{", b"}", b'"', b",", b":", b"\n", b"1e999", b"-1", b"true", b"\\ud800", b"\xff", b'""', b"[]", b"{}",
    b"NaN", b"99999999999999999999", b"\\u0000",
)  # fmt: skip


def changed(name: str, seed: int) -> bytes:
    """A seed with a few pieces put in, cut out or doubled."""
    drawn = random.Random(seed)
    data = bytearray(drawn.choice(SEEDS[name]))
    for _ in range(drawn.randrange(1, 6)):
        at = drawn.randrange(len(data) + 1)
        how = drawn.randrange(4)
        if how == 0:
            data[at:at] = drawn.choice(PIECES)
        elif how == 1:
            del data[at : at + drawn.randrange(1, 25)]
        elif how == 2:
            data[at : at + drawn.randrange(1, 6)] = drawn.choice(PIECES)
        else:
            data[at:at] = data[at : at + 40]
    return bytes(data)


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_what_is_nearly_right_is_read_or_refused_by_name(name: str) -> None:
    for seed in range(120):
        TARGETS[name](changed(name, seed))


@pytest.mark.parametrize("name", sorted(TARGETS))
@given(data=st.binary(max_size=200))
@settings(
    max_examples=30, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)  # fmt: skip
def test_any_bytes_are_read_or_refused_by_name(name: str, data: bytes) -> None:
    TARGETS[name](data)
