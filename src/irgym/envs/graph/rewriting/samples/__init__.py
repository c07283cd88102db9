"""Random instances of patterns, which verify the rules of several groups."""
