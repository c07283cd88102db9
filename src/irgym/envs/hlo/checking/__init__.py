"""Inputs for checking the results of modules, and the rounding errors allowed in them."""
