"""Earwitness finds out what audio-language models really hear, beyond the words."""

__version__ = "0.1.0"
