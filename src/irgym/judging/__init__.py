"""Judging after a search: measure the finalists again, validate the best, compare it with a baseline."""
