"""Equality saturation, as in Tensat: all graphs that rules lead to at once, and the cheapest of them."""
