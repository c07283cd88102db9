"""Fuzzers, and the driver that runs them: see `run.py`."""
