"""``offline/phrasebook``: dialogues from a grammar in data files, without any model.

See ``docs/phrasebook.md`` for the files and for how to write a phrasebook in another language.
"""

from __future__ import annotations

from earwitness.scenes.phrasebook.compose import Composer, compose, compose_topic
from earwitness.scenes.phrasebook.grammar import Book, load_phrasebook
from earwitness.scenes.phrasebook.subject import compose_template_text

VERSION = "1.0"
"""Changes whenever the same scenario and seed would give other words."""

__all__ = [
    "VERSION",
    "Book",
    "Composer",
    "compose",
    "compose_template_text",
    "compose_topic",
    "load_phrasebook",
]
