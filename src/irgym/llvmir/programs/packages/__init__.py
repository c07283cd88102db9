"""Pinned source distributions of the Python Package Index."""
