"""Learned cost models: what programs will cost, told from what was measured, to measure fewer of them.

As in AutoTVM (arXiv 1805.08166) and Ansor (arXiv 2006.06762). A prediction decides what is measured, and may
reward a learner; it is never recorded, and never a result.
"""

from irgym.cost_model.model import CostModel, Samples
from irgym.cost_model.screen import Screen

__all__ = ["CostModel", "Samples", "Screen"]
