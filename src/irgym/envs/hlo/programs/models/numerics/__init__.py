"""Numerical programs without weights: linear algebra, statistics, simulation, signals, orders and bits."""
