"""Learned cost models: they predict costs from past measurements, to save measurements.

As in AutoTVM (arXiv 1805.08166) and Ansor (arXiv 2006.06762). Predictions select the candidates to measure,
and may serve as rewards in training; they are never recorded, and never results.
"""

from irgym.cost_model.model import CostModel, Samples
from irgym.cost_model.screen import Screen

__all__ = ["CostModel", "Samples", "Screen"]
