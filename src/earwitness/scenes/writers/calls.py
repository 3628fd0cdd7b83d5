"""Asking text models for a corpus: see :mod:`earwitness.runs.text_calls`."""

from earwitness.runs.text_calls import Answer, CallTotals, Meter, TextCaller, call_totals

__all__ = ["TASK", "Answer", "CallTotals", "Meter", "TextCaller", "call_totals"]

TASK = "scene-writing"
