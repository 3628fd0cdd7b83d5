"""Engines that turn texts into vectors; opened by :func:`earwitness.models.embedders.registry.open_embedder`."""
