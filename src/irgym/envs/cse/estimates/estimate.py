"""The estimated cost of a choice, split into its parts."""

from dataclasses import dataclass, fields
from functools import cached_property
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Machine:
    """Registers and addressing of a target.

    Attributes:
        lasting: Callee-saved integer registers, without the frame pointer.
        integers: All integer registers, without the frame pointer.
        folds: Whether instructions take memory operands and overwrite one of their operands, as on x86.
    """

    lasting: int
    integers: int
    folds: bool


@dataclass(frozen=True)
class Estimate:
    """Estimated cost of a choice, in the unit of the score.

    Attributes:
        cost: Total cost.
        work: Cost of the instructions.
        copies: Cost of copying operands that are needed after an instruction overwrites them.
        stack: Cost of values on the stack.
        frame: Cost of saving and restoring registers.
        entered: How often a call of the function sets up the frame.
        lasting: Greatest number of integer values that are live across one call.
        across: Number of values that are live across any call.
        floats: How many of those are in floating-point registers, none of which is callee-saved.
        crossing: Integer values live across calls, weighted by how often the calls run.
        needed: Greatest number of integer values that are live at once.
        crowded: Values in excess of the registers, weighted by how often the instructions run.
        early: Number of values that are live where the frame is set up.
    """

    cost: float
    work: float
    copies: float
    stack: float
    frame: float
    entered: float
    lasting: int
    across: int
    floats: int
    crossing: float
    needed: int
    crowded: float
    early: int

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """All attributes in order, shape [ESTIMATED]."""
        return np.array(_NUMBERS(self), dtype=np.float64)


_NUMBERS = attrgetter(*(field.name for field in fields(Estimate)))

ESTIMATED = len(fields(Estimate))
"""Length of `Estimate.numbers`."""
