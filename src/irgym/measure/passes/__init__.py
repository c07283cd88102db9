"""Passes of a compiler, run in child processes that keep the modules of earlier passes."""
