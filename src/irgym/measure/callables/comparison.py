"""Comparison of a function with the user's object that it replaces: structure, types, shapes, values.

The object, called as its user calls it, is the reference. Inputs are the user's example inputs and random
ones of the same kind. The tolerance for rounding comes from calls of the object on inputs (and with weights)
that differ in their last bits, and from the number of terms that sums may have: such differences cancel in a
long sum, but its rounding, in another order, may not.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np

from irgym.core.cost import Validation
from irgym.measure.checking.agreement import Agreement, agreement
from irgym.measure.checking.expected import Expected, rounded
from irgym.measure.checking.numbers import Array, Doubles, doubles, is_fractional, precision

LEEWAY = 4.0
"""Factor of the tolerance, since libraries approximate functions in different ways."""

NEAR_ZERO = 32.0
"""Tolerance of every number, in units of rounding of the result's median number."""

ENOUGH_S = 0.25
"""Processor time in seconds after which no further inputs are drawn."""

PATIENCE_S = 2.0
"""Seconds after which a function is not called again; the example inputs come first."""

CANCELLED = 1 / 64
"""Share of its worst rounding that is tolerated in a sum over several axes."""

SMALL = 2.0**-8
"""Factor of small inputs, to which the epsilon of a normalisation matters."""

NUDGE = 4.0
"""Perturbation of inputs that shows the effect of rounding, in units in the last place."""

SHARE = 4
"""One in this many elements becomes a special number."""


class Kind(Enum):
    """Kinds of inputs: like the example, with zeros and ties, ten times as large, with infinities and NaN."""

    USUAL = "usual"
    MIXED = "mixed"
    LARGE = "large"
    SPECIAL = "special"


@dataclass(frozen=True)
class Results:
    """Results of a call as plain data.

    Attributes:
        structure: Nesting of the results; equal structures are equal objects.
        kinds: Type and shape of each array in words, or the value of another leaf.
        arrays: The leaves that are arrays, in order.
    """

    structure: object
    kinds: tuple[str, ...]
    arrays: tuple[Array, ...]


Run = Callable[[Any, Sequence[Array]], Results]
"""Calls a function on arrays in place of the leaves of its example inputs; lets its exceptions through."""


@dataclass(frozen=True)
class Case:
    """Inputs, and the object's results for them.

    Attributes:
        inputs: Leaves of the inputs.
        wanted: The object's results.
        expected: Expected arrays among the results.
        kind: Kind of the inputs.
    """

    inputs: Sequence[Array]
    wanted: Results
    expected: tuple[Expected, ...]
    kind: Kind = Kind.USUAL

    @property
    def special(self) -> bool:
        """Whether infinities and NaN are among the inputs."""
        return self.kind is Kind.SPECIAL

    def judge(self, found: Results) -> Agreement:
        """Compare results with the object's."""
        if found.structure != self.wanted.structure:
            return Agreement(math.inf, f"it returns {found.structure} instead of {self.wanted.structure}")
        for place, (ours, theirs) in enumerate(zip(found.kinds, self.wanted.kinds, strict=True)):
            if ours != theirs:
                result = f"result {place} is" if len(found.kinds) > 1 else "the result is"
                return Agreement(math.inf, f"{result} {ours} instead of {theirs}")
        return agreement(self.expected, found.arrays)


@dataclass(frozen=True)
class Reference:
    """An object and its results for some inputs.

    Attributes:
        name: Name of the object.
        cases: Inputs with the object's results; the example inputs come first.
        run: Calls functions as the object is called.
    """

    name: str
    cases: Sequence[Case]
    run: Run

    def judge(self, function: Callable[..., Any]) -> Validation:
        """Compare a function with the object.

        Differences only on inputs with infinities or NaN are tolerated, and reported in the tolerance:
        libraries make different promises there.
        """
        agreements: list[Agreement] = []
        apart = ""
        started = time.monotonic()
        for case in self.cases:
            if agreements and time.monotonic() - started > PATIENCE_S:
                break
            found = case.judge(self.run(function, case.inputs))
            if case.special and not found.ok:
                apart = f" (not on infinities and NaN: {found.detail})"
            else:
                agreements.append(found)
            if not found.ok and not case.special:
                break
        detail = next((compared.detail for compared in agreements if not compared.ok), "")
        return Validation(
            ok=not detail,
            error=max(compared.error for compared in agreements),
            tolerance=f"it agrees with {self.name} when called in its place{apart}",
            inputs=len(agreements),
            detail=detail,
        )


def reference(
    name: str,
    inputs: Sequence[Array],
    run: Run,
    near: Sequence[Any],
    seed: int,
    more: Sequence[Sequence[Array]] = (),
) -> Reference:
    """Call an object on its example inputs and on random ones.

    Args:
        name: Name of the object.
        inputs: Leaves of the example inputs.
        run: Calls functions as the object is called.
        near: The object, then copies of it with weights that differ in their last bits.
        seed: Seed of the random inputs.
        more: Leaves of further example inputs.

    Raises:
        Exception: Any exception of the object on its example inputs.
    """
    random = np.random.default_rng(seed)
    started = time.process_time()
    cases = [_case(run, near, given, random) for given in (inputs, *more)]
    draws = (
        (_fresh, Kind.USUAL),
        (_finite_specials, Kind.MIXED),
        (_large, Kind.LARGE),
        (_small, Kind.USUAL),
        (_specials, Kind.SPECIAL),
    )
    for draw, kind in draws:
        if time.process_time() - started > ENOUGH_S and len(cases) > 1:
            break
        drawn = [draw(array, random) for array in inputs]
        if any(array is not None for array in drawn):
            given = [old if new is None else new for old, new in zip(inputs, drawn, strict=True)]
            cases += _drawn_case(run, near, given, inputs, random, kind)
    return Reference(name, cases, run)


def _drawn_case(
    run: Run,
    near: Sequence[Any],
    given: Sequence[Array],
    example: Sequence[Array],
    random: np.random.Generator,
    kind: Kind,
) -> list[Case]:
    """Return the case of random inputs; none if the object refuses them."""
    kept = [new if is_fractional(new.dtype) else old for old, new in zip(example, given, strict=True)]
    for inputs in (given, kept):
        try:
            case = _case(run, near, inputs, random, kind)
        except Exception:  # noqa: BLE001  # drawn inputs may break a rule that only the object knows
            continue
        return [case] if kind is Kind.SPECIAL or _tells(case) else []
    return []


def _tells(case: Case) -> bool:
    """Say whether each floating-point result has a finite number."""
    arrays = [array for array in case.wanted.arrays if array.size and is_fractional(array.dtype)]
    return all(bool(np.isfinite(array.astype(np.complex128)).any()) for array in arrays)


def _case(
    run: Run,
    near: Sequence[Any],
    inputs: Sequence[Array],
    random: np.random.Generator,
    kind: Kind = Kind.USUAL,
) -> Case:
    wanted = run(near[0], inputs)
    moved = [nudged(array, random) for array in inputs]
    others = [run(function, moved) for function in near]
    roundings = _roundings(inputs, wanted.arrays, kind)
    expected: list[Expected] = []
    for place, array in enumerate(wanted.arrays):
        # If sizes depend on values, only results of the same size show the effect of rounding.
        samples = [other.arrays[place] for other in others if other.arrays[place].shape == array.shape]
        expected.append(_expected(array, samples, kind, roundings))
    return Case(inputs, wanted, tuple(expected), kind)


def _expected(array: Array, samples: Sequence[Array], kind: Kind, roundings: float) -> Expected:
    """Return the expected result; numbers that reveal nothing for this kind of inputs are ignored."""
    found = rounded(array, samples)
    if found.allowance is not None:
        allowance = LEEWAY * found.allowance + _near_zero(array) + _of_sums(array, roundings, kind)
        if array.dtype.kind == "c":
            # Rounding of a complex number is relative to its modulus, however small one part is.
            allowance = np.broadcast_to(allowance.max(axis=0), allowance.shape)
        found = replace(found, allowance=allowance)
    if kind in (Kind.USUAL, Kind.MIXED) or not array.size:
        return found
    if not is_fractional(array.dtype):
        return replace(found, jumps=array.size, jump=math.inf) if kind is Kind.SPECIAL else found
    unknown = ~np.isfinite(found.numbers)
    return replace(found, ignored=unknown if found.ignored is None else unknown | found.ignored)


def _near_zero(array: Array) -> float:
    """Return the tolerance of sums that cancel to zero, given the other numbers of the result."""
    return NEAR_ZERO * precision(array.dtype)[0] * _median(np.abs(doubles(array)))


def _median(sizes: Doubles) -> float:
    found = sizes[np.isfinite(sizes) & (sizes > 0)]
    return float(np.median(found)) if found.size else 0.0


def _roundings(inputs: Sequence[Array], results: Sequence[Array], kind: Kind) -> float:
    """Return the rounding of the longest sums, relative to a result, in halves of its machine epsilon.

    A sum of n numbers that are added one by one errs by n such halves in the worst case (Higham 1993, "The
    accuracy of floating point summation"). Softmax over a long axis comes near it: a few numbers are far
    greater than all others, which are lost. So do equal numbers. In a sum over several axes, of a
    normalisation or a pooling, most errors cancel. Such a sum has no more terms than an array without its
    first axis has elements.
    """
    arrays = [array for array in (*inputs, *results) if array.size and array.ndim]
    axis = max((max(array.shape) for array in arrays), default=1)
    terms = max((array.size // array.shape[0] for array in arrays), default=1)
    return axis + CANCELLED * terms if kind is Kind.USUAL else max(axis, terms)


def _of_sums(array: Array, roundings: float, kind: Kind) -> Doubles:
    """Return the tolerance of each number of a result for the rounding of sums."""
    sizes = np.abs(doubles(array))
    if kind is not Kind.USUAL:
        sizes = np.maximum(sizes, _median(sizes))  # great sums may cancel
    # Narrower types are added up in float32.
    unit = min(precision(array.dtype)[0], float(np.finfo(np.float32).eps)) / 2
    return unit * roundings * np.where(np.isfinite(sizes), sizes, 0.0)


def nudged(array: Array, random: np.random.Generator) -> Array:
    """Return floating-point numbers perturbed in their last bits; whole numbers and infinities stay."""
    if not array.size or not is_fractional(array.dtype):
        return array
    step = NUDGE * precision(array.dtype)[0]
    with np.errstate(all="ignore"):
        moved = (array * random.choice([1.0 - step, 1.0 + step], array.shape)).astype(array.dtype)
    # Numbers with fractions have been rounded before; masks and exponents have not.
    kept = ~np.isfinite(moved) | (array == np.round(array))
    return np.where(kept, array, moved)


def _fresh(array: Array, random: np.random.Generator) -> Array | None:
    """Return random elements in the range of an array; standard normal ones if all elements are equal."""
    if not array.size:
        return None
    if array.dtype.kind == "b":
        return random.integers(0, 2, array.shape).astype(np.bool_)
    if array.dtype.kind in "iu":
        low, high = int(array.min()), int(array.max())
        return None if low == high else random.integers(low, high, array.shape, array.dtype, endpoint=True)
    if not is_fractional(array.dtype):  # integers of fewer than 8 bits
        return None
    if array.dtype.kind == "c":
        parts = [_fresh(np.asarray(part(array)), random) for part in (np.real, np.imag)]
        real, imaginary = (np.zeros(array.shape) if part is None else part for part in parts)
        return np.asarray(real + 1j * imaginary, array.dtype)
    finite = array[np.isfinite(array)].astype(np.float64)
    if not finite.size or finite.min() == finite.max():
        drawn = random.standard_normal(array.shape)
    else:
        drawn = random.uniform(finite.min(), finite.max(), array.shape)
    # Infinities of a mask stay in place.
    return np.where(np.isfinite(array), drawn, array).astype(array.dtype)


def _large(array: Array, random: np.random.Generator) -> Array | None:
    """Return random floating-point numbers ten times as large; their overflows are not compared."""
    drawn = _fresh(array, random) if is_fractional(array.dtype) else None
    with np.errstate(all="ignore"):
        return None if drawn is None else (_half(drawn, upper=True) * 10).astype(array.dtype)


def _small(array: Array, random: np.random.Generator) -> Array | None:
    """Return random floating-point numbers that are small beside those of the example."""
    drawn = _fresh(array, random) if is_fractional(array.dtype) else None
    return None if drawn is None else (drawn * SMALL).astype(array.dtype)


def _half(drawn: Array, upper: bool) -> Array:
    """Return numbers in the upper or lower half of their range, so that sums differ in size or sign."""
    finite = drawn[np.isfinite(drawn)]
    if drawn.dtype.kind == "c" or not finite.size:
        return drawn
    end = finite.max() if upper else finite.min()
    return np.where(np.isfinite(drawn), (drawn + end) / 2, drawn).astype(drawn.dtype)


def _finite_specials(array: Array, random: np.random.Generator) -> Array | None:
    """Return random floating-point numbers mixed with signed zeros, subnormal numbers and ties."""
    if array.dtype.kind != "f":
        return None
    tiny = float(np.finfo(array.dtype).tiny)
    return _mixed(array, random, (0.0, -0.0, tiny / 4, -tiny / 4, 1.0, -1.0))


def _specials(array: Array, random: np.random.Generator) -> Array | None:
    """Return random floating-point numbers with one infinity of each sign and one NaN."""
    if array.dtype.kind != "f" or (drawn := _fresh(array, random)) is None:
        return None
    places = random.choice(drawn.size, min(3, drawn.size), replace=False)
    drawn.reshape(-1)[places] = np.array([np.inf, -np.inf, np.nan])[: len(places)]
    return drawn


def _mixed(array: Array, random: np.random.Generator, numbers: Sequence[float]) -> Array | None:
    drawn = _fresh(array, random)
    if drawn is None:
        return None
    low, high = float(np.nanmin(drawn)), float(np.nanmax(drawn))
    drawn = _half(drawn, upper=False)
    allowed = [number for number in numbers if low <= number <= high]  # a logarithm takes no negative numbers
    if not allowed:
        return None
    count = max(drawn.size // SHARE, min(len(allowed), drawn.size // 2))
    mixed = drawn.reshape(-1).copy()
    mixed[random.choice(drawn.size, count, replace=False)] = np.resize(allowed, count)
    return mixed.reshape(drawn.shape)
