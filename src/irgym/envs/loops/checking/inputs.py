"""Inputs for checking nests: whole numbers with exact sums, normal numbers, and special numbers."""

import math
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from irgym.envs.loops.programs.contraction import Contraction, Tensor, parse_uri
from irgym.envs.loops.programs.elements import BF16, F32, F64, I8
from irgym.measure.arrays import aligned
from irgym.measure.checking.agreement import Agreement, agreement
from irgym.measure.checking.expected import Expected, exactly, within
from irgym.measure.checking.guarded import Buffers
from irgym.measure.checking.problem import Problem, problem

GREATEST = 100
"""Greatest of the whole numbers: large enough to make equal products rare."""

ROUNDINGS = 4.0
"""See `_allowance`."""

TOLERANCE = (
    "equal on whole numbers with exact sums, within a few roundings of each sum on standard-normal numbers"
    " and beside infinities, NaN, subnormal and large numbers; against numpy in float64"
)
"""The tolerance of floating-point numbers, in words."""

EXACT = "equal, on small, random and extreme whole numbers; against numpy"
"""That of whole numbers."""

GREATEST_FLOAT = float(np.finfo(np.float32).max)

_SINGLE = (np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, -1e-40, 1e-25, 1e18, -1e18, GREATEST_FLOAT)

SPECIAL = {
    F32.name: _SINGLE,
    # Squares of the numbers, which bound the rounding, stay below the greatest one.
    F64.name: (np.nan, np.inf, -np.inf, -0.0, 0.0, 5e-310, -5e-310, 1e-160, 1e70, -1e70, 1e150),
    BF16.name: _SINGLE,
    I8.name: (-128, 127, 0),
}
"""Numbers that arithmetic treats specially, by the name of the elements."""

SPARSE = 1.5
"""Mean number of special factors in a sum; some sums have none."""

ENDS = 0.125
"""Share of rows that end in infinity."""


VANISHING = 1e-290
"""Sums of squares below this may lack some that underflowed, in float64. Sums of absolute products, which are
at least as large, then stand for their roots."""


class Draw(Enum):
    """Kinds of inputs."""

    WHOLE = "whole"
    NORMAL = "normal"
    SPECIAL = "special"


def terms(contraction: Contraction) -> int:
    """Return the number of products in a sum."""
    return math.prod(contraction.sizes[dim] for dim in contraction.reductions)


def greatest(contraction: Contraction) -> int:
    """Return the greatest whole number in inputs for which all sums are exact; 0 if there is none."""
    elements = contraction.elements
    return min(GREATEST, elements.greatest, math.isqrt(elements.exact // terms(contraction)))


def whole_inputs(contraction: Contraction, seed: int) -> tuple[Tensor, Tensor]:
    """Return inputs of nonzero whole numbers with exact sums.

    A missing, doubled or wrong product then changes a sum of any length by at least 1.
    """
    rng = np.random.default_rng(seed)
    top = greatest(contraction)
    a, b, _ = (aligned(shape, contraction.elements.input_type) for shape in contraction.shapes)
    for array in (a, b)[: contraction.inputs]:
        signs = rng.integers(0, 2, array.shape, np.int8) * 2 - 1
        array[...] = rng.integers(1, top + 1, array.shape, np.int32) * signs
    return a, b if contraction.inputs > 1 else contraction.unit


def special_inputs(contraction: Contraction, seed: int) -> tuple[Tensor, Tensor]:
    """Return random inputs with a few elements replaced by `SPECIAL` numbers.

    Most sums have at most one and some have none, since NaN would hide other errors.
    """
    rng = np.random.default_rng(seed)
    a, b = contraction.random_inputs(seed)
    share = min(0.25, SPARSE / (2.0 * terms(contraction)))
    special = np.array(SPECIAL[contraction.elements.name], np.float64).astype(a.dtype)
    for array in (a, b)[: contraction.inputs]:
        places = rng.random(array.shape) < share
        array[places] = rng.choice(special, int(np.count_nonzero(places)))
        # Padding and remainders begin where rows end.
        ends = array[..., -1:] if array.ndim else array
        if ends.size > 1 and not contraction.elements.whole:
            ends[rng.random(ends.shape) < ENDS] = np.inf
    return a, b


def problem_of(contraction: Contraction, seed: int, draw: Draw) -> Problem:
    """Return inputs and the expected results.

    Args:
        contraction: The program.
        seed: Seed of the inputs.
        draw: Kind of inputs; random ones if sums are too long for whole numbers.
    """
    if draw is Draw.SPECIAL:
        a, b = special_inputs(contraction, seed)
        # The other inputs show whether wrong results are noticed.
        return Problem([a, b], [expected_of_special(contraction, a, b)], {0: "anything beside these"})
    whole = draw is Draw.WHOLE and greatest(contraction) > 0
    a, b = whole_inputs(contraction, seed) if whole else contraction.random_inputs(seed)
    reference = contraction.reference(a, b)
    values = _rounded(contraction, reference)
    exact = whole or contraction.elements.whole
    expected = exactly(values) if exact else within(values, reference, _allowance(contraction, a, b))
    changed = (a[::-1], b) if a.ndim else (a, b[::-1])
    wrong = {
        "sums without their first product": [np.asarray(reference - first_products(contraction, a, b))],
        "the results on reversed inputs": [contraction.reference(*changed)],
    }
    return problem([a, b], [expected], wrong)


def expected_of_special(contraction: Contraction, a: Tensor, b: Tensor) -> Expected:
    """Return the expected results for inputs with infinities, NaN and numbers of all magnitudes.

    A sum with NaN, with a product of 0 and infinity or with infinities of both signs is NaN in any order.
    Sums that may overflow depend on the order and are ignored.
    """
    if contraction.elements.whole:
        return exactly(_rounded(contraction, contraction.reference(a, b)))
    kind = contraction.elements.sum_type
    info = np.finfo(kind)
    with np.errstate(all="ignore"):
        reference = contraction.reference(a, b)
        a, b = (np.asarray(array).astype(kind) for array in (a, b))
        finite_a, finite_b = (np.where(np.isfinite(array), array, kind.type(0)) for array in (a, b))
        size = contraction.reference(np.abs(finite_a), np.abs(finite_b))
        # A factor of an infinity is 0 in float32 only if it is 0 in float64 too.
        allowance = _allowance(contraction, finite_a, finite_b)
        allowance = allowance + terms(contraction) * float(info.smallest_subnormal)
        values = reference.astype(kind)
    return replace(
        within(values, reference, allowance),
        ignored=np.asarray(size > float(info.max) * (1.0 - 2.0**-10)),
    )


def tolerant(contraction: Contraction, a: Tensor, b: Tensor) -> Expected:
    """Return the expected results of a baseline, which may round even on whole numbers."""
    reference = contraction.reference(a, b)
    values = _rounded(contraction, reference)
    if contraction.elements.whole:
        return exactly(values)
    return within(values, reference, _allowance(contraction, a, b))


def _rounded(contraction: Contraction, reference: NDArray[np.float64]) -> Tensor:
    """Return results in the type of the output; sums begin with 0.0, so that none is -0.0."""
    return np.asarray((reference + 0.0).astype(contraction.elements.sum_type))


def _allowance(contraction: Contraction, a: Tensor, b: Tensor) -> NDArray[np.float64]:
    """Return the greatest permitted error of each sum in floating point.

    In float32 and in sequence, K products of either sign with root mean square r have partial sums of about
    sqrt(k) r. Each is rounded by about 0.2 x 2^-23 of its size, which adds up to an error of 0.15 x 2^-23 x K
    r (root mean square). `ROUNDINGS` is well above the need of the largest of a million sums. In float64 the
    reference rounds as much as the result.
    """
    epsilon = 2.0**-51 if contraction.elements == F64 else 2.0**-23
    squares = (np.square(array.astype(np.float64)) for array in (a, b))  # 1e-50 is 0 in float32
    squared = contraction.reference(*squares)
    norm = np.sqrt(squared)
    vanishing = squared < VANISHING
    if vanishing.any():
        norm = np.where(vanishing, contraction.reference(np.abs(a), np.abs(b)), norm)
    return np.asarray(ROUNDINGS * epsilon * np.maximum(math.sqrt(terms(contraction)), 4.0) * norm)


def first_products(contraction: Contraction, a: Tensor, b: Tensor) -> NDArray[np.float64]:
    """Return the product of each sum at index 0 of all reductions."""
    subscripts, operands = contraction.einsum_operands(a, b)
    inputs, _, output = subscripts.partition("->")
    views: list[NDArray[np.float64]] = []
    for dims, view in zip(inputs.split(","), operands, strict=True):
        kept = view[tuple(slice(None) if dim in output else 0 for dim in dims)]
        views.append(np.asarray(kept, np.float64))
    names = ["".join(dim for dim in dims if dim in output) for dims in inputs.split(",")]
    return np.asarray(np.einsum(f"{','.join(names)}->{output}", *views), np.float64)


@dataclass(frozen=True)
class Prepared:
    """A program, its problem, and the memory that its candidates compute in."""

    contraction: Contraction
    problem: Problem
    buffers: Buffers

    def judge(self, zeros: bool = False) -> Agreement:
        """Say whether the results are correct and the memory around them is untouched.

        Args:
            zeros: Whether exact results must also match in the signs of zeros.
        """
        fault = self.buffers.faults()
        if not fault:
            wanted = [
                replace(expected, keeps_zeros=zeros and expected.allowance is None)
                for expected in self.problem.expected
            ]
            return agreement(wanted, self.buffers.results)
        prepared.cache_clear()  # the damage may be permanent
        return Agreement(math.inf, fault)


@lru_cache(maxsize=4)
def prepared(uri: str, seed: int, draw: Draw) -> Prepared:
    """Return the prepared program; recent ones are cached, so that all candidates share one memory."""
    contraction = parse_uri(uri)
    found = problem_of(contraction, seed, draw)
    buffers = Buffers(found.inputs, [expected.values for expected in found.expected])
    return Prepared(contraction, found, buffers)
