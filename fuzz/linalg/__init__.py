"""Fuzzers of linalg."""
