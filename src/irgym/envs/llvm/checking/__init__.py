"""Comparison of optimised modules with the original by execution."""
