"""Equality saturation, as in Tensat: an e-graph of all rewritten graphs, and the cheapest of them."""
