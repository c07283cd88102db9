"""Fuzzers of loops."""
