"""The best episodes so far: examples to learn from, and prefixes that new episodes start with."""
