"""Observations of functions and of their candidates."""
