"""Sets of single-speaker clips with one expressed emotion each."""
