"""Observations and drawings of graphs."""
