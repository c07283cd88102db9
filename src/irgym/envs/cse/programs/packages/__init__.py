"""Real C: source distributions of the Python Package Index, pinned, and the functions in them."""
