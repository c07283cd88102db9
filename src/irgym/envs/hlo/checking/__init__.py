"""Checks of the results of modules: inputs, and tolerances for rounding."""
