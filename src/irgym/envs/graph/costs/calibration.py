"""Calibration of the cost model: from times of single operators to the time of a model."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from irgym.envs.graph.reference import (
    activations,
    attention,
    convolution,
    elementwise,
    generation,
    layout,
    movement,
    normalisation,
    pooling,
    products,
    reductions,
    resizing,
    selection,
)

OTHER = "other"
"""The class of unknown operators."""

_CLASSES = {
    "elementwise": elementwise,
    "activation": activations,
    "reduction": reductions,
    "normalisation": normalisation,
    "product": products,
    "attention": attention,
    "convolution": convolution,
    "pooling": pooling,
    "movement": movement,
    "selection": selection,
    "resizing": resizing,
    "generation": generation,
    "layout": layout,
}

CLASSES = (*_CLASSES, OTHER)
"""The classes of operators."""

_OF = {operator: name for name, module in _CLASSES.items() for operator in module.OPERATORS}


def class_of(operator: str) -> str:
    """Return the class of an operator, one of `CLASSES`."""
    return _OF.get(operator, OTHER)


@dataclass(frozen=True)
class Calibration:
    """Parameters of the cost model: `run_ns`, plus `operator_ns` + factor * time of each operator.

    The default is the plain sum of the times of single operators.

    Attributes:
        run_ns: Overhead of a run.
        operator_ns: Overhead of an operator within a model.
        factors: By class of operator; 1 for classes that are missing.
    """

    run_ns: float = 0.0
    operator_ns: float = 0.0
    factors: Mapping[str, float] = field(default_factory=dict[str, float])

    def factor(self, operator: str) -> float:
        """Return the factor of an operator's time."""
        return self.factors.get(class_of(operator), 1.0)
