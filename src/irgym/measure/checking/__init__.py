"""Checking: whether a program computed what the original does, and whether the check would have noticed."""
