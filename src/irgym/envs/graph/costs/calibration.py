"""From what operators take by themselves to what a model takes: factors for classes of operators."""

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
"""The class of operators that are not known."""

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
    """What the time of a model is made of: `run_ns`, and for each operator `operator_ns` + factor * its own.

    The default is the plain sum of what operators take by themselves.

    Attributes:
        run_ns: What a run takes in itself.
        operator_ns: What an operator takes beyond what it takes by itself.
        factors: By class of operator; 1 for classes that are not there.
    """

    run_ns: float = 0.0
    operator_ns: float = 0.0
    factors: Mapping[str, float] = field(default_factory=dict[str, float])

    def factor(self, operator: str) -> float:
        """Return the factor of an operator's own time."""
        return self.factors.get(class_of(operator), 1.0)
