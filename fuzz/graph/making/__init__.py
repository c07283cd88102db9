"""Modules of the fuzzers: checks that are slow, and independent of the code under test."""
