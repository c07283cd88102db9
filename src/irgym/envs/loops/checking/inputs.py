"""Inputs that nests are checked on: whole numbers whose sums no rounding touches, others, special ones."""

import math
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from irgym.envs.loops.programs.contraction import Contraction, Floats, parse_uri
from irgym.measure.arrays import aligned
from irgym.measure.checking.agreement import Agreement, agreement
from irgym.measure.checking.expected import Expected, exactly, within
from irgym.measure.checking.guarded import Buffers
from irgym.measure.checking.problem import Problem, problem

EXACT_BELOW = 2**24
"""float32 holds all whole numbers up to this one, so sums that stay below are exact in whatever order."""

GREATEST = 100
"""Greatest of the whole numbers: enough of them that two products are hardly ever alike."""

ROUNDINGS = 4.0
"""See `_allowance`."""

TOLERANCE = (
    "equal on whole numbers whose sums nothing rounds, within a few roundings of each sum on standard-normal"
    " ones and beside infinities, NaN, subnormal and large numbers; against numpy in float64"
)
"""What is allowed, in words."""

GREATEST_FLOAT = float(np.finfo(np.float32).max)
LEAST_FLOAT = float(np.finfo(np.float32).smallest_subnormal)

SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, -1e-40, 1e-25, 1e18, -1e18, GREATEST_FLOAT)
"""Numbers that arithmetic treats in a way of its own."""

SPARSE = 1.5
"""Number of special factors of a sum on average: some have none."""

ENDS = 0.125
"""Share of rows that end in an infinity."""


class Draw(Enum):
    """Kinds of inputs."""

    WHOLE = "whole"
    NORMAL = "normal"
    SPECIAL = "special"


def terms(contraction: Contraction) -> int:
    """Return the number of products in a sum."""
    return math.prod(contraction.sizes[dim] for dim in contraction.reductions)


def greatest(contraction: Contraction) -> int:
    """Return the greatest whole number that inputs may hold for all sums to be exact; 0 where none may."""
    return min(GREATEST, math.isqrt(EXACT_BELOW // terms(contraction)))


def whole_inputs(contraction: Contraction, seed: int) -> tuple[Floats, Floats]:
    """Return inputs of whole numbers, none of them 0, whose sums float32 holds exactly.

    A product that is missing, doubled or wrong then changes a sum by at least 1, however long it is.
    """
    rng = np.random.default_rng(seed)
    top = greatest(contraction)
    a, b, _ = (aligned(shape) for shape in contraction.shapes)
    for one in (a, b):
        signs = rng.integers(0, 2, one.shape, np.int8) * 2 - 1
        np.multiply(rng.integers(1, top + 1, one.shape, np.int32), signs, out=one, casting="unsafe")
    return a, b


def special_inputs(contraction: Contraction, seed: int) -> tuple[Floats, Floats]:
    """Return standard-normal inputs, a few of them `SPECIAL` in their place.

    They are so few that some sums have none, and most not more than one: NaN would hide what else is wrong.
    """
    rng = np.random.default_rng(seed)
    a, b = contraction.random_inputs(seed)
    share = min(0.25, SPARSE / (2.0 * terms(contraction)))
    for one in (a, b):
        places = rng.random(one.shape) < share
        one[places] = rng.choice(np.array(SPECIAL, np.float32), int(np.count_nonzero(places)))
        # Padding and remainders begin where rows end.
        ends = one[..., -1]
        if ends.size > 1:
            ends[rng.random(ends.shape) < ENDS] = np.inf
    return a, b


def problem_of(contraction: Contraction, seed: int, draw: Draw) -> Problem:
    """Return inputs and what a nest must make of them.

    Args:
        contraction: The program.
        seed: Seed of the inputs.
        draw: Kind of inputs; standard-normal ones where sums are too long for whole numbers.
    """
    if draw is Draw.SPECIAL:
        a, b = special_inputs(contraction, seed)
        # Whether wrong answers show is for the other inputs to say.
        return Problem([a, b], [expected_of_special(contraction, a, b)], {0: "anything beside these"})
    whole = draw is Draw.WHOLE and greatest(contraction) > 0
    a, b = whole_inputs(contraction, seed) if whole else contraction.random_inputs(seed)
    reference = contraction.reference(a, b)
    values = reference.astype(np.float32)
    expected = exactly(values) if whole else within(values, reference, _allowance(contraction, a, b))
    wrong = {
        "sums without their first product": [reference - first_products(contraction, a, b)],
        "the results on reversed inputs": [contraction.reference(a[::-1], b)],
    }
    return problem([a, b], [expected], wrong)


def expected_of_special(contraction: Contraction, a: Floats, b: Floats) -> Expected:
    """Return what a nest must make of inputs with infinities, NaN and numbers of all magnitudes.

    A sum with NaN, with a product of 0 and an infinity or with infinities of either sign is NaN in whatever
    order; one whose products may exceed the greatest number depends on the order, and says nothing.
    """
    with np.errstate(all="ignore"):
        reference = contraction.reference(a, b)
        finite_a, finite_b = (np.where(np.isfinite(one), one, 0.0).astype(np.float32) for one in (a, b))
        size = contraction.reference(np.abs(finite_a), np.abs(finite_b))
        # An infinity meets a number that float32 takes for 0 only where that is 0 in float64, too.
        allowance = _allowance(contraction, finite_a, finite_b) + terms(contraction) * LEAST_FLOAT
        values = reference.astype(np.float32)
    return replace(
        within(values, reference, allowance),
        ignored=size > GREATEST_FLOAT * (1.0 - 2.0**-10),
    )


def tolerant(contraction: Contraction, a: Floats, b: Floats) -> Expected:
    """Return what a baseline must compute, which may round on its way whatever the inputs."""
    reference = contraction.reference(a, b)
    return within(reference.astype(np.float32), reference, _allowance(contraction, a, b))


def _allowance(contraction: Contraction, a: Floats, b: Floats) -> NDArray[np.float64]:
    """Return how far float32 may take each sum from its value.

    One after the other, K products of either sign make partial sums of about sqrt(k) r, r being their root
    mean square, each rounded by some 0.2 x 2^-23 of itself: 0.15 x 2^-23 x K r in all, in the root mean
    square. `ROUNDINGS` is well above what the greatest of a million sums needs.
    """
    squares = (np.square(one, dtype=np.float64) for one in (a, b))  # those of 1e-25 are 0 in float32
    norm = np.sqrt(contraction.reference(*squares))
    return ROUNDINGS * 2.0**-23 * np.maximum(math.sqrt(terms(contraction)), 4.0) * norm


def first_products(contraction: Contraction, a: Floats, b: Floats) -> NDArray[np.float64]:
    """Return the product of each sum in which all that is summed over has index 0."""
    subscripts, left, right = contraction.einsum_operands(a, b)
    (left_dims, right_dims), output = subscripts.partition("->")[0].split(","), subscripts.partition("->")[2]
    views: list[NDArray[np.floating]] = []
    for dims, view in ((left_dims, left), (right_dims, right)):
        views.append(view[tuple(slice(None) if dim in output else 0 for dim in dims)].astype(np.float64))
    kept = ["".join(dim for dim in dims if dim in output) for dims in (left_dims, right_dims)]
    return np.einsum(f"{kept[0]},{kept[1]}->{output}", *views)


@dataclass(frozen=True)
class Prepared:
    """A program, what it is checked on, and the memory that its candidates compute in."""

    contraction: Contraction
    problem: Problem
    buffers: Buffers

    def judge(self, zeros: bool = False) -> Agreement:
        """Say whether the results are right and nothing else was written.

        Args:
            zeros: Whether results that must be equal must have the signs of their zeros, too.
        """
        fault = self.buffers.faults()
        if not fault:
            wanted = [
                replace(one, keeps_zeros=zeros and one.allowance is None) for one in self.problem.expected
            ]
            return agreement(wanted, self.buffers.results)
        prepared.cache_clear()  # what was damaged may be damaged for good
        return Agreement(math.inf, fault)


@lru_cache(maxsize=4)
def prepared(uri: str, seed: int, draw: Draw) -> Prepared:
    """Return what a program is checked on; the last few are kept, so that all candidates use one memory."""
    contraction = parse_uri(uri)
    found = problem_of(contraction, seed, draw)
    return Prepared(contraction, found, Buffers(found.inputs, [one.values for one in found.expected]))
