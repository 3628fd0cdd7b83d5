"""Figures and how sure they are: intervals, tests, agreement, confusion, calibration.

Everything here works on arrays and knows nothing of benchmarks. Random draws come from
:func:`earwitness.stats.streams.stream`, so that a figure depends on the seed and a stable name only.
"""
