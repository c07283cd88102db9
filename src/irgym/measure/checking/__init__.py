"""Checks of a program's results against the original's, and of the power of these checks."""
