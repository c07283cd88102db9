"""Problems to check programs on: integers for which results are exact, and random numbers. In a child.

Where a program only adds, multiplies, compares and moves, small enough integers make its results exact
(`exactness`), and any wrong, missing or doubled term shows. Other programs get random numbers; the tolerance
of their results comes from runs with coarser rounding, and with arguments that differ in their last bits.

Preparing a problem does not count against a candidate: each compilation and each run gets the full time limit
of a call.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.envs.linalg.checking.coarsening import coarse
from irgym.envs.linalg.checking.domains import Domains, domains
from irgym.envs.linalg.checking.intervals import Interval
from irgym.envs.linalg.compiling.compiler import lower_apart, lower_module
from irgym.envs.linalg.compiling.contexts import mlir
from irgym.envs.linalg.compiling.executable import Executable
from irgym.envs.linalg.compiling.plain import BRIEF, Plain
from irgym.envs.linalg.importing.description import describe
from irgym.envs.linalg.scheduling.operations import ELEMENTS, FLOATS, Program, element_bytes
from irgym.measure.arrays import aligned
from irgym.measure.checking.expected import exactly, rounded
from irgym.measure.checking.guarded import Buffers
from irgym.measure.checking.problem import Problem, best_problem, problem
from irgym.measure.machine import restart_clock
from irgym.measure.target import host_target

SEED = 20240916
"""Seed of the inputs on which candidates are checked and timed."""

ALLOWED = (
    "equal where nothing is rounded, else within 8 times the effect of coarser rounding, compared with the "
    "program lowered by MLIR's passes alone; also on infinities and NaN"
)
"""The tolerance, in words."""

FEW = 4
"""Greatest number of arguments of an operator; a program with more is taken for a network with weights."""

LONG = 100_000_000
"""Arithmetic operations beyond which a program is run as rarely as possible: its original takes at least
0.1 s."""

SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, -1e-40, 1e-25, 1e18, -1e18)
"""Numbers that arithmetic treats specially; sums of some products of the finite ones are finite."""

SMALL = 1 << 20
"""Greatest size of a small program: bytes of its arguments and results."""

NUDGE = 4.0
"""Relative perturbation of arguments, in units of their precision."""

Arrays = list[NDArray[Any]]


def prepared(text: str) -> tuple[Problem, Buffers]:
    """Return the problem and the memory on which a program's candidates are checked and timed.

    All candidates use the same memory: the last two programs, and many small ones, stay prepared.

    Args:
        text: The program, its operations numbered.
    """
    program = _program(text)
    arrays = (*program.arguments, *program.results)
    small = sum(math.prod(shape) * element_bytes(element) for shape, element in arrays) <= SMALL
    return (_prepared_small if small else _prepared_large)(text)


def _prepare(text: str) -> tuple[Problem, Buffers]:
    checked = _exact(text, SEED) if _domains(text).exact else _random(text, SEED)
    return checked, buffers_of(checked)


_prepared_small = lru_cache(maxsize=64)(_prepare)
_prepared_large = lru_cache(maxsize=2)(_prepare)


def prepare_again() -> None:
    """Prepare all programs again when they are next needed: one of them has damaged its memory."""
    _prepared_small.cache_clear()
    _prepared_large.cache_clear()


def verdict(checked: Problem, buffers: Buffers) -> str:
    """Describe what is wrong with the results of a candidate; empty if nothing is."""
    fault = buffers.faults()
    if fault:
        prepare_again()
    return fault or checked.judge(buffers.results).detail


def buffers_of(checked: Problem) -> Buffers:
    """Return memory to run a program on the inputs of a problem."""
    return Buffers(checked.inputs, [result.values for result in checked.expected])


def problems(text: str, count: int, seed: int) -> list[Problem]:
    """Return the problems on which the result of a search is validated.

    There is at least one problem of integers if results can be exact, and one of random numbers if the
    program has floating-point arguments. Long programs get no others. Short ones get `count` problems, and
    one more with special numbers.

    Args:
        text: The program, its operations numbered.
        count: Number of problems for a short program.
        seed: Seed of the first problem.
    """
    program, exact = _program(text), _domains(text).exact
    random = any(element in FLOATS for _, element in program.arguments)
    special = [_special(text, seed)] if random and program.flops <= LONG else []
    if program.flops > LONG:
        count = 1
    if not exact:
        return [*(_random(text, seed + place) for place in range(count)), *special]
    found = [_with_signs_of_zeros(_exact(text, seed + place)) for place in range(max(count - random, 1))]
    return [*found, _random(text, seed), *special] if random else found


def _with_signs_of_zeros(exact: Problem) -> Problem:
    """Return an exact problem in which signs of zeros count: no order of exact sums changes them."""
    return problem(exact.inputs, [replace(result, keeps_zeros=True) for result in exact.expected], {})


@lru_cache(maxsize=64)
def _program(text: str) -> Program:
    return describe(text)[1]


@lru_cache(maxsize=4)
def _domains(text: str) -> Domains:
    return domains(text, _program(text))


def arguments_of(text: str, seed: int) -> Arrays:
    """Return random arguments of a program.

    Args:
        text: The program, its operations numbered.
        seed: Seed of the random generator.
    """
    return _random_inputs(_program(text), _domains(text).whole, seed, 1.0)


class _Coarser:
    """A program with coarser rounding that runs on any arguments."""

    def __init__(self, text: str) -> None:
        self._program = program = _program(text)
        restart_clock()
        with mlir():
            module = coarse(text, program)
            if program.flops < BRIEF * len(program.operations):
                lower_module(module)
                self._code = Executable(module, (), level=0)
            else:
                self._code = Executable.assembled(lower_apart(module), host_target())

    def __call__(self, inputs: Sequence[NDArray[Any]]) -> Arrays:
        """Return the program's results."""
        restart_clock()
        results = [aligned(shape, ELEMENTS[element]) for shape, element in self._program.results]
        self._code.on([*inputs, *results]).run(1)
        return results


@lru_cache(maxsize=4)
def _coarser(text: str) -> _Coarser:
    return _Coarser(text)


@lru_cache(maxsize=4)
def _original(text: str) -> Plain:
    return Plain(text, _program(text))


@lru_cache(maxsize=2)
def _exact(text: str, seed: int) -> Problem:
    """Return a problem of integers whose results must be equal.

    Wrong answers are not tried on it, which would take an eighth of a measurement's time.
    """
    inputs = _whole_inputs(_program(text), _domains(text), seed)
    return Problem(inputs, [exactly(result) for result in _original(text)(inputs)])


@lru_cache(maxsize=3)
def _random(text: str, seed: int) -> Problem:
    """Return a problem of random numbers on which wrong answers show, if there is one."""
    if _program(text).flops > LONG:
        return _drawn(text, seed, 1.0)
    return best_problem(lambda scale: _drawn(text, seed, scale))


def _drawn(text: str, seed: int, scale: float) -> Problem:
    program, original, coarser = _program(text), _original(text), _coarser(text)
    inputs = _random_inputs(program, _domains(text).whole, seed, scale)
    moved = [nudged(array, seed) for array in inputs]
    results = original(inputs)
    if program.flops > LONG:
        samples, wrong, slight = [coarser(moved)], dict[str, Arrays](), dict[str, Arrays]()
    else:
        samples = [coarser(inputs), original(moved)]
        wrong = {"its results for reversed arguments": original([_turned(array) for array in inputs])}
        least = [_without_greatest(array) for array in inputs]
        slight = {"its results for arguments without their greatest elements": original(least)}
    expected = [rounded(result, near) for result, *near in zip(results, *samples, strict=True)]
    return problem(inputs, expected, wrong, slight)


@lru_cache(maxsize=2)
def _special(text: str, seed: int) -> Problem:
    """Return a problem of random numbers mixed with `SPECIAL` ones.

    Wrong answers are tried on the other problems only.
    """
    inputs = _special_inputs(_program(text), _domains(text).whole, seed)
    original = _original(text)
    samples = [_coarser(text)(inputs), original([nudged(array, seed) for array in inputs])]
    expected = [rounded(result, moved) for result, *moved in zip(original(inputs), *samples, strict=True)]
    return Problem(
        inputs, expected, dict.fromkeys(range(len(expected)), "any result except at special numbers")
    )


def _special_inputs(program: Program, whole: Mapping[int, Interval], seed: int) -> Arrays:
    """Return random arguments with special numbers; in networks only the last argument, since they spread.

    They are rare enough that most sums have at most one: more NaN would hide other errors.
    """
    arrays = _random_inputs(program, whole, seed, 1.0)
    rng = np.random.default_rng(seed)
    for place, array in enumerate(arrays):
        weight = FEW < len(arrays) > place + 1
        if array.dtype.kind == "f" and array.size and not weight:
            count = max(array.size // max(array.shape, default=1), min(len(SPECIAL), array.size // 2))
            # In arguments of one shape, special numbers share places: 0 meets infinity, for example.
            places = np.random.default_rng([seed, *array.shape]).choice(array.size, count, replace=False)
            array.reshape(-1)[places] = np.resize(np.roll(SPECIAL, 3 * place), count)
            if array.ndim and len(array) > 1:  # padding and remainders begin where arrays end
                array[(-1,) * array.ndim] = rng.choice(np.array([np.inf, -np.inf, np.nan]))
    return arrays


def _whole_inputs(program: Program, allowed: Domains, seed: int) -> Arrays:
    """Return integer arguments for which nothing is rounded; those of floating-point type are nonzero."""
    rng = np.random.default_rng(seed)
    arrays: Arrays = []
    for place, (shape, element) in enumerate(program.arguments):
        array = aligned(shape, ELEMENTS[element])
        if array.dtype.kind == "f":
            array[...] = rng.integers(1, allowed.exact + 1, shape)
            array[rng.integers(0, 2, shape, np.bool_)] *= -1
        else:
            _fill(array, allowed.whole[place], rng)
        arrays.append(array)
    return arrays


def _random_inputs(program: Program, whole: Mapping[int, Interval], seed: int, scale: float) -> Arrays:
    """Return random arguments that keep results in range, without knowing the arguments' roles.

    Vectors are between 0.5 and 1.5, since they may be variances; other floats are standard normal. With more
    than `FEW` arguments, all but the last are taken for weights of a network and divided by the square root
    of their fan-in, so that activations neither explode nor vanish.
    """
    rng = np.random.default_rng(seed)
    arrays: Arrays = []
    for place, (shape, element) in enumerate(program.arguments):
        array = aligned(shape, ELEMENTS[element])
        if array.dtype.kind != "f":
            _fill(array, whole[place], rng)
        elif len(shape) < 2:
            array[...] = rng.uniform(0.5, 1.5, shape)
        else:
            weight = FEW < len(program.arguments) > place + 1
            array[...] = rng.standard_normal(shape, dtype=array.dtype.type)
            if weight:
                array /= np.sqrt(np.prod(shape[1:]))
        if array.dtype.kind == "f" and scale != 1.0:
            array *= scale
        arrays.append(array)
    return arrays


def _fill(array: NDArray[Any], values: Interval, rng: np.random.Generator) -> None:
    array[...] = rng.integers(int(values.low), int(values.high), array.shape, endpoint=True)


def nudged(array: NDArray[Any], seed: int) -> NDArray[Any]:
    """Return floating-point numbers perturbed in their last bits."""
    if array.dtype.kind != "f":
        return array
    up = np.random.default_rng(seed).integers(0, 2, array.shape, np.bool_)
    step = NUDGE * float(np.finfo(array.dtype).eps)
    with np.errstate(under="ignore"):
        return np.asarray(array * np.where(up, 1 + step, 1 - step).astype(array.dtype))


def _turned(array: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(array.reshape(-1)[::-1]).reshape(array.shape)


def _without_greatest(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype.kind != "f" or not array.size:
        return array
    array = array.copy()
    array.reshape(-1)[np.argmax(np.abs(array))] = 0.0
    return array
