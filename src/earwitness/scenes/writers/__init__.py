"""Writers: chat models, and the one that needs no model."""
