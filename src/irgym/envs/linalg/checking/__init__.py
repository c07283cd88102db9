"""Inputs to check programs on, and the effects of rounding on their results."""
