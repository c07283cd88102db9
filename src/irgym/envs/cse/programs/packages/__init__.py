"""Pinned source distributions of the Python Package Index, and the C functions in them."""
