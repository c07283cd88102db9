"""Sizes of the elements of weights."""

from typing import Any

import numpy as np
import pytest

from irgym.envs.graph.ir.finiteness import Size, size_of_weight
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Computed, Weight, literal


@pytest.mark.parametrize(
    ("element", "size"), [(1.0, Size.ORDINARY), (-1e30, Size.UNKNOWN), (np.inf, Size.UNKNOWN)]
)
def test_a_weight_that_is_in_another_many_times_over(element: Any, size: Size):
    """Without a cache, the first weight would be visited 2 ** 60 times."""
    weight: Weight = literal(np.array([element]), "float32")
    for _ in range(60):
        weight = Computed("add", (weight, weight), TensorType("float32", (1,)))
    assert size_of_weight(weight) is size


def test_functions_that_may_make_infinities():
    unit, kind = literal(np.ones(1), "float32"), TensorType("float32", (1,))
    assert size_of_weight(Computed("deviation", (unit, unit), kind)) is Size.UNKNOWN
    assert size_of_weight(Computed("divide", (unit, unit), kind)) is Size.ORDINARY
    nought = literal(np.zeros(1), "float32")
    assert size_of_weight(Computed("divide", (unit, nought), kind)) is Size.UNKNOWN
