"""Readers: one function a corpus, from its folder or table to :class:`~.listing.Listing`."""

from __future__ import annotations

from earwitness.clips.readers.listing import Listing, Options, Reader, SourceClip, Terms
from earwitness.clips.readers.registry import READERS, reader_for

__all__ = ["READERS", "Listing", "Options", "Reader", "SourceClip", "Terms", "reader_for"]
