"""A part of a large nest, whose time tells about how long the whole takes."""

from collections.abc import Mapping

from irgym.core.target import Target
from irgym.envs.loops.modelling.model import slots
from irgym.envs.loops.nest import Nest
from irgym.envs.loops.programs.contraction import Contraction

LARGE = 1 << 29
"""Least number of operations of a program of which parts are run: some milliseconds."""

PART = 1 << 27
"""Approximate number of operations of a part."""

ENOUGH = 1.25
"""A part with this many times as many is not made smaller."""


def part_of(contraction: Contraction, nest: Nest) -> Mapping[str, int]:
    """Return how much of dimensions to compute: as few whole iterations of the outermost loops as will do.

    What these loops contain runs as it does in the whole nest, at the same strides.
    """
    part: dict[str, int] = {}
    wanted = PART / contraction.flops
    kept = 1.0
    for place, loop in enumerate(nest.loops):
        if kept <= ENOUGH * wanted:
            break
        span = min(nest.span(contraction, place), part.get(loop.dim, contraction.sizes[loop.dim]))
        some = min(span, loop.step * max(1, round(span / loop.step * wanted / kept)))
        if some < span:
            part[loop.dim] = some
            kept *= some / span
    return part


def growth(contraction: Contraction, nest: Nest, target: Target, part: Mapping[str, int]) -> float:
    """Return about how many times as long the whole nest takes as a part, by the analytical model."""
    return slots(contraction, nest, target) / slots(contraction, nest, target, part)
