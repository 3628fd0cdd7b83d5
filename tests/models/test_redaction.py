"""Keys and audio stay out of what is written."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earwitness.models.redaction import LONG_RUN, Redactor

DATA = base64.b64encode(bytes(range(256)) * 8).decode()


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("key my-key here", "key [key removed] here"),
        ("Authorization: Bearer abcdefgh12345", "Authorization: Bearer [key removed]"),
        ("sk-proj-abcdefgh0123456789", "[key removed]"),
        ("data:audio/wav;base64,QUJD rest", "[audio removed] rest"),
        (f"x {DATA} y", f"x [{len(DATA)} characters of data removed] y"),
        (
            DATA.replace("/", "\\/"),
            f"[{len(DATA.replace('/', chr(92) + '/'))} characters of data removed]",
        ),
        ("happiness 情感 " * 30, "happiness 情感 " * 30),
        ("a" * 79, "a" * 79),
    ],
)
def test_texts(text: str, clean: str) -> None:
    assert Redactor(["my-key"])(text) == clean


def test_answers_keep_shorter_runs() -> None:
    assert Redactor()("a" * 200, run=LONG_RUN) == "a" * 200


def test_a_secret_within_another_leaves_no_tail() -> None:
    assert Redactor(["abc", "abcdef"])("abcdef") == "[key removed]"


def test_structures_are_cleaned_throughout() -> None:
    assert Redactor(["k1"]).tree({"k1": ["k1", {"x": ("k1", 3, None)}]}) == {
        "[key removed]": ["[key removed]", {"x": ["[key removed]", 3, None]}]
    }


def test_excerpts_are_one_short_line() -> None:
    text = Redactor().excerpt("word \n\t word " * 200)
    assert len(text) == 500
    assert text.startswith("word word word")
    assert text.endswith("…")


def test_the_secret_is_not_in_its_own_description() -> None:
    assert "hush" not in repr(Redactor(["hush"]))


@settings(derandomize=True, deadline=None, max_examples=100)
@given(
    before=st.text(max_size=600),
    after=st.text(max_size=600),
    secret=st.text(alphabet="abcXYZ019-_", min_size=8, max_size=40),
)
def test_no_excerpt_holds_the_secret(before: str, after: str, secret: str) -> None:
    assert secret not in Redactor([secret]).excerpt(before + secret + after)
