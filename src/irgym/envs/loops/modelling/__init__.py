"""Reasoning about nests without running them: an analytical model of their time, and its best nest."""
