"""Costs of operators: measured, each once, and estimated."""
