"""Words in the form in which they are compared."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earwitness.models.transcribers.wording import comparable_words, spelled


@pytest.mark.parametrize(
    ("written", "heard"),
    [
        ("Forty euros for two, please!", "40 euros for 2, please."),
        ("It costs twelve hundred dollars.", "it costs twelve hundred dollars"),
        ("One dollar and five cents", "1 dollar and 5 cents"),
        ("five dollars", "$5"),
        ("twenty pounds fifty", "£20.50"),
        ("at seven thirty or eight", "at 7:30 or 8:00"),
        ("at nine oh five", "at 9:05"),
        ("the third of the twenty-first row", "the 3rd of the 21st row"),
        ("in nineteen ninety-nine and two thousand and four", "in 1999 and two thousand and 4"),
        ("in nineteen oh five", "in 1905"),
        ("nineteen hundred", "1900"),
        ("two point five percent", "2.5%"),
        ("one thousand two hundred fifty people", "1,250 people"),
        ("It’s well-known — isn’t it?", "it's well known isn't it"),
        ("Okay, Doctor Bell", "OK Dr. Bell"),
        ("my favourite colour", "my favorite color"),
        ("double oh seven is zero zero seven", "double oh seven is 007"),
        ("twelfth fortieth eighth", "12th 40th 8th"),
    ],
)
def test_the_same_words(written: str, heard: str) -> None:
    assert comparable_words(written) == comparable_words(heard)


@pytest.mark.parametrize(
    ("written", "heard"),
    [("He can", "He can't"), ("forty", "fourteen"), ("we walked", "we walk"), ("a car", "the car")],
)
def test_errors_stay_errors(written: str, heard: str) -> None:
    assert comparable_words(written) != comparable_words(heard)


def test_nothing() -> None:
    assert comparable_words("") == comparable_words(" — … !") == []


@given(st.integers(0, 999_999))
@settings(derandomize=True, max_examples=200, deadline=None)
def test_every_number_has_words_of_its_own(number: int) -> None:
    words = spelled(number)
    assert words.replace(" ", "").isalpha()
    assert spelled(number + 1) != words
    assert comparable_words(words) == words.split()


@given(st.text(max_size=60))
@settings(derandomize=True, max_examples=200, deadline=None)
def test_once_is_enough(text: str) -> None:
    words = comparable_words(text)
    assert comparable_words(" ".join(words)) == words
