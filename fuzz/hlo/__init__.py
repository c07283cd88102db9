"""Fuzzers of hlo."""
