"""Observations of a scheduled program for policies and Gymnasium, and features for cost models."""
