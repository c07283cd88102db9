"""Fuzzers of llvm."""
