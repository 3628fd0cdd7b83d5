"""One module per question asked of a model."""
