"""What runs in the child: compile a scheduled program, check its results, time it."""

import time
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.core.cost import Measurement, Outcome, Validation
from irgym.core.environment import Versus
from irgym.core.errors import IrgymError
from irgym.envs.linalg.bindings import llvm
from irgym.envs.linalg.compiler import CompileError, Executable, apply, lower, mlir, parse
from irgym.envs.linalg.description import describe
from irgym.envs.linalg.openmp import PARALLEL_TIMING, require_cores, runtime_calls
from irgym.envs.linalg.operations import ELEMENTS, Program
from irgym.envs.linalg.peers import PEERS
from irgym.envs.linalg.programs import parse_uri
from irgym.measure.arrays import aligned
from irgym.measure.timing import DEFAULT_TIMING, Timing, interleave, sample

SEED = 20240916
"""Seed of the inputs on which candidates are checked and timed."""

TOLERANCE = 1e-4
"""Greatest error allowed, as a share of the result's greatest element (or of 1, where that is less).

A sum of K products in float32 errs by about 1e-7 sqrt(K) of its size; one product left out of 10,000 shows.
"""

FEW = 4
"""Greatest number of arguments of an operator; a program with more is taken for a network with weights."""

Arrays = list[NDArray[Any]]


@lru_cache(maxsize=4)
def _program(text: str) -> Program:
    return describe(text)[1]


def _array(shape: tuple[int, ...], element: str) -> NDArray[Any]:
    return aligned(shape, ELEMENTS[element])


def _inputs(program: Program, seed: int) -> Arrays:
    """Return random arguments that keep results in range: what arguments are for is not known.

    Vectors are between 0.5 and 1.5, for variances are among them; other floats are standard normal, whole
    numbers 0 or 1. Where there are more than `FEW` arguments all but the last count as weights of a network
    and are divided by the square root of their fan-in, so that its layers neither blow up nor vanish.
    """
    rng = np.random.default_rng(seed)
    arrays: Arrays = []
    for place, (shape, element) in enumerate(program.arguments):
        array = _array(shape, element)
        if array.dtype.kind != "f":
            array[...] = rng.integers(0, 2, shape)
        elif len(shape) < 2:
            array[...] = rng.uniform(0.5, 1.5, shape)
        else:
            weight = FEW < len(program.arguments) > place + 1
            array[...] = rng.standard_normal(shape, dtype=np.float32)
            if weight:
                array /= np.sqrt(np.prod(shape[1:]))
        arrays.append(array)
    return arrays


def _outputs(program: Program) -> Arrays:
    return [_array(shape, element) for shape, element in program.results]


def _compile(text: str, script: str, arrays: Arrays, threads: int | None = None) -> Executable:
    with mlir():
        module = lower(text, script, threads)
    return Executable(module, arrays, runtime_calls() if threads else None)


@lru_cache(maxsize=2)
def _problem(text: str, seed: int) -> tuple[Arrays, Arrays]:
    """Return inputs and what the program as written makes of them."""
    program = _program(text)
    inputs, results = _inputs(program, seed), _outputs(program)
    _compile(text, "", [*inputs, *results]).run(1)
    return inputs, results


@lru_cache(maxsize=2)
def _results(text: str) -> Arrays:
    """Return arrays for results, kept so that all candidates of a program write to the same memory."""
    return _outputs(_program(text))


def _error(found: Arrays, wanted: Arrays) -> float:
    """Return the greatest error in the unit of `TOLERANCE`; infinite where an element is no number."""
    worst = 0.0
    for one, other in zip(found, wanted, strict=True):
        scale = max(1.0, float(np.max(np.abs(other), initial=0.0)))
        error = float(np.max(np.abs(one.astype(np.float64) - other), initial=0.0)) / scale
        worst = max(worst, error if np.isfinite(error) else np.inf)
    return worst


def _spoil(arrays: Arrays) -> None:
    """Fill results with what no program computes, so that elements never written show."""
    for array in arrays:
        array[...] = np.nan if array.dtype.kind == "f" else -77


def measure(text: str, script: str, timing: Timing, threads: int | None = None) -> Measurement:
    """Compile, check and time a scheduled program.

    Args:
        text: The program, its operations numbered.
        script: The schedule as a transform module; empty for none.
        timing: How to time it.
        threads: Threads that parallel loops run on, by OpenMP; None makes them sequential.

    Returns:
        Samples in nanoseconds, or the outcome of what failed: MLIR refuses it, or its result is wrong.

    Raises:
        BackendError: There are fewer cores than threads, or no OpenMP.
    """
    if threads:
        require_cores(threads)
    inputs, wanted = _problem(text, SEED)
    results = _results(text)
    started = time.perf_counter()
    try:
        executable = _compile(text, script, [*inputs, *results], threads)
    except CompileError as error:
        return Measurement(Outcome.COMPILE_ERROR, detail=str(error))
    compile_s = time.perf_counter() - started
    _spoil(results)
    # Timed first: a slow candidate then runs once in all, and a result that adds up from run to run shows.
    samples = sample(executable.run, timing)
    error = _error(results, wanted)
    if not error <= TOLERANCE:
        detail = f"the greatest error is {error:.3g} of the result's scale, more than {TOLERANCE:g}"
        return Measurement(Outcome.WRONG_RESULT, compile_s=compile_s, detail=detail)
    return Measurement(Outcome.OK, samples, compile_s)


def validate(text: str, script: str, inputs: int, seed: int, threads: int | None = None) -> Validation:
    """Compare a scheduled program with the program as written on random inputs.

    Raises:
        IrgymError: MLIR refuses it.
    """
    results = _outputs(_program(text))
    worst = 0.0
    for place in range(inputs):
        arguments, wanted = _problem(text, seed + place)
        executable = _compile(text, script, [*arguments, *results], threads)
        _spoil(results)
        executable.run(1)
        worst = max(worst, _error(results, wanted))
    words = f"error of {TOLERANCE:g} of the result's scale on random inputs, against the program as written"
    return Validation(worst <= TOLERANCE, worst, words, inputs)


def written(text: str, script: str, form: str, threads: int | None = None) -> str:
    """Return a program as text.

    Args:
        text: The program, its operations numbered.
        script: The schedule; empty for none.
        form: `mlir` for the program after the schedule, `llvm` for its LLVM code.
        threads: Threads of the LLVM code's parallel loops; None makes them sequential.

    Raises:
        IrgymError: MLIR refuses the schedule.
    """
    with mlir():
        if form == "llvm":
            return str(llvm.translate_module_to_llvmir(lower(text, script, threads).operation))
        module = parse(text)
        if script:
            apply(module, script)
        return str(module)


def compare(uri: str, text: str, script: str, peer: str, rounds: int, threads: int | None = None) -> Versus:
    """Check a peer's result, and time it and a scheduled program in turn, on the same inputs.

    Raises:
        IrgymError: The peer is not installed, cannot compute the program, or its result differs; or there
            are fewer cores than threads, or no OpenMP.
    """
    if threads:
        require_cores(threads)
    inputs, wanted = _problem(text, SEED)
    theirs = PEERS[peer](parse_uri(uri), inputs, threads or 1)
    theirs.run(1)
    error = _error([theirs.result().reshape(wanted[0].shape)], wanted[:1])
    if not error <= TOLERANCE:
        raise IrgymError(f"{peer} gives another result for {uri} (error {error:.3g}): leave it out")
    ours = _compile(text, script, [*inputs, *_results(text)], threads)
    pairs = interleave(ours.run, theirs.run, rounds, PARALLEL_TIMING if threads else DEFAULT_TIMING)
    return Versus(
        ratios=tuple(theirs_ns / ours_ns for ours_ns, theirs_ns in pairs),
        peer_ns=min(theirs_ns for _, theirs_ns in pairs),
        ours_ns=min(ours_ns for ours_ns, _ in pairs),
        detail=theirs.detail,
    )
