"""Observations of modules."""
