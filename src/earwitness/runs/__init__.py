"""Asking anything of anyone; knows only the Item protocol."""
