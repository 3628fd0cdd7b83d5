"""The local web app for people's work: recording clips, reviewing them, labelling reactions.

A *review folder* holds one piece of work. Its files and commands are told in ``docs/review.md``.
"""

from __future__ import annotations
