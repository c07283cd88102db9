"""Fuzzers of cse."""
