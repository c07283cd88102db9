"""Comparison of rewritten models with the original, with allowances for rounding errors."""
