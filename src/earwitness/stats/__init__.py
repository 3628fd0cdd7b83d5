"""Intervals, tests, confusion, calibration, agreement."""
