"""Observations of HLO modules."""
