"""CARES: two-speaker scenes, one module per stage."""
