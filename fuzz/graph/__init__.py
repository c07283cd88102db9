"""Fuzzers of graph."""
