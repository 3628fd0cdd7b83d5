"""How long to wait."""

from __future__ import annotations

import math
from datetime import datetime
from email.utils import formatdate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earwitness.models.patience import LONGEST_WAIT_S, parse_retry_after

NOW = 1_795_000_000.0


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"Retry-After": "120"}, 120.0),
        ({"RETRY-AFTER": " 1.5 "}, 1.5),
        ({"Retry-After": "-3"}, 0.0),
        ({"Retry-After": "1e300"}, LONGEST_WAIT_S),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": ""}, None),
        ({"Retry-After": formatdate(NOW + 60, usegmt=True)}, 60.0),
        ({"Retry-After": formatdate(NOW - 60, usegmt=True)}, 0.0),
        # This machine's clock is an hour wrong, the service's own is what counts.
        ({"Retry-After": formatdate(NOW + 3660, usegmt=True), "Date": formatdate(NOW + 3600, usegmt=True)}, 60.0),
        ({"Retry-After": "20s"}, 20.0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"x-ms-retry-after-ms": "250", "Retry-After": "1"}, 0.25),
        ({"retry-after-ms": "x", "Retry-After": "3"}, 3.0),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m30s"}, 90.0),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "17ms"}, 0.017),
        ({"x-ratelimit-remaining-tokens": "12", "x-ratelimit-reset-tokens": "5s"}, None),
        ({"x-ratelimit-reset-tokens": "5s"}, None),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int((NOW + 9) * 1000))}, 9.0),
        (
            {
                "anthropic-ratelimit-requests-remaining": "0",
                "anthropic-ratelimit-requests-reset": "2026-11-18T11:06:50Z",
            },
            10.0,
        ),
        ({}, None),
    ],
)  # fmt: skip
def test_forms(headers: dict[str, str], wait_s: float | None) -> None:
    got = parse_retry_after(headers, now=NOW)
    assert got == (None if wait_s is None else pytest.approx(wait_s, abs=1e-3))


@settings(derandomize=True, deadline=None, max_examples=400)
@given(
    headers=st.dictionaries(
        st.sampled_from(
            ["Retry-After", "retry-after-ms", "Date", "x-ratelimit-reset", "x-ratelimit-remaining", "X-RateLimit-Reset-Tokens"]
        ),
        st.text(max_size=30)
        | st.floats().map(str)
        | st.integers().map(str)
        | st.datetimes().map(str)
        | st.datetimes(min_value=datetime(1970, 1, 2)).map(lambda d: d.strftime("%a, %d %b %Y %H:%M:%S GMT"))
        | st.from_regex(r"(\d{1,3}h)?(\d{1,3}m)?(\d{1,3}s)?", fullmatch=True),
    )
)  # fmt: skip
def test_any_header_gives_a_sane_wait_or_none(headers: dict[str, str]) -> None:
    wait = parse_retry_after(headers, now=NOW)
    assert wait is None or (math.isfinite(wait) and 0 <= wait <= LONGEST_WAIT_S)
