"""Sounds made by procedure: seeded, marked synthetic, good enough to be recognised.

One module per kind of source; each has a table ``RECIPES`` from the id of a sound to a function that makes one
take of it from a random generator. They follow the physics where it is simple (struck modes, harmonic stacks,
shaped noise, Poisson grains) and known spectra where it is not.
"""

from __future__ import annotations
