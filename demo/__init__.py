"""The demonstration: everything from nothing, with packaged voices."""
