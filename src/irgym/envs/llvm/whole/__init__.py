"""Whole programs: modules with a `main`, linked as executables, run and timed."""
