"""Checking modules against the original and timing them on XLA:CPU. Imports jax: for child processes only."""

import math
from collections.abc import Sequence

from irgym.core.baseline import Versus
from irgym.core.cost import Measurement, Outcome, Validation
from irgym.envs.hlo.checking.checks import TOLERANCE, compiled_alike, problem_of, special_problems_of
from irgym.envs.hlo.checking.inputs import random_arguments
from irgym.envs.hlo.compiling.executable import CompileFailure, Executable, compile_module
from irgym.measure.checking.agreement import Agreement
from irgym.measure.checking.numbers import Array
from irgym.measure.checking.problem import Problem, validation
from irgym.measure.timing import DEFAULT_TIMING, Timing, interleave, sample

SEED = 20230828
"""Seed of the inputs for timing."""


def compare(
    original: bytes, optimised: bytes, inputs: int = 3, seed: int = SEED, passes: bool = True
) -> Validation:
    """Run two modules on the same random inputs on XLA:CPU and compare their results.

    Args:
        original: Serialized HloModuleProto.
        optimised: The same program after passes.
        inputs: Number of random inputs.
        seed: Seed of the first; the others follow it.
        passes: Whether XLA:CPU runs its `SIMPLIFICATIONS` too.

    Raises:
        ProgramError: The original cannot run.
        CompileFailure: XLA:CPU rejected one of them.
    """
    ours = compile_module(optimised, passes)
    problems: list[Problem] = []
    agreements: list[Agreement] = []
    for place in range(inputs):
        problems.append(problem_of(original, seed + place, passes))
        agreements.append(_judged(problems[-1], ours))
        if not agreements[-1].ok:
            break
    else:
        agreements.append(_judged_specially(original, ours, seed, passes))
    special = "NaN, infinities, zeros and extremes tried too, where the original's results are stable"
    without = "no special numbers tried, as a loop may not end on them or the original rejects them"
    tried = special if special_problems_of(original, seed, passes) else without
    return validation(problems, agreements, f"{TOLERANCE}; {tried}")


def time_module(
    proto: bytes, timing: Timing = DEFAULT_TIMING, original: bytes | None = None, passes: bool = True
) -> Measurement:
    """Compile, check and time a module on one thread of the CPU.

    Args:
        proto: Serialized HloModuleProto.
        timing: The timing protocol.
        original: The program before passes, whose results the module must match; None for no check.
        passes: Whether XLA:CPU runs its `SIMPLIFICATIONS` too.

    Returns:
        Samples in nanoseconds, or the outcome of a failure.

    Raises:
        ProgramError: The original cannot run.
    """
    try:
        executable = compile_module(proto, passes)
    except CompileFailure as failure:
        return Measurement(Outcome.COMPILE_ERROR, detail=str(failure))
    if original is None:
        arguments: Sequence[Array] = random_arguments(proto, SEED)
    else:
        problem = problem_of(original, SEED, passes)
        found = _judged(problem, executable)
        if found.ok:
            found = _judged_specially(original, executable, SEED, passes)
        if not found.ok:
            return Measurement(Outcome.WRONG_RESULT, compile_s=executable.compile_s, detail=found.detail)
        arguments = problem.inputs
    return Measurement(Outcome.OK, sample(executable.bind(arguments), timing), executable.compile_s)


def time_in_turn(
    ours: bytes,
    baseline: bytes,
    rounds: int = 15,
    timing: Timing = DEFAULT_TIMING,
    passes: bool = True,
    detail: str = "XLA:CPU, one thread",
) -> Versus:
    """Time two modules of a program in turn, on the same inputs.

    Args:
        ours: Serialized HloModuleProto of the module to judge.
        baseline: The same program after other passes, or none.
        rounds: Number of rounds.
        timing: The timing protocol.
        passes: Whether XLA:CPU runs its `SIMPLIFICATIONS` too.
        detail: Description of the baseline.

    Raises:
        CompileFailure: XLA:CPU rejected one of them.
        ProgramError: They take different arguments.
    """
    arguments = random_arguments(baseline, SEED)
    runs = [compile_module(proto, passes).bind(arguments) for proto in (ours, baseline)]
    return Versus.of(interleave(runs[0], runs[1], rounds, timing), detail)


def _judged_specially(original: bytes, executable: Executable, seed: int, passes: bool) -> Agreement:
    """Run a candidate on special numbers and compare its results; return the first comparison that fails.

    A comparison that fails is repeated, ignoring results that change when the original is compiled like the
    candidate.
    """
    for special in special_problems_of(original, seed, passes):
        found = _judged(special.problem, executable)
        if not found.ok:
            found = _judged(compiled_alike(original, passes, special), executable)
        if not found.ok:
            return Agreement(found.error, f"on special numbers (NaN, zeros, extremes): {found.detail}")
    return Agreement()


def _judged(problem: Problem, executable: Executable) -> Agreement:
    """Run a candidate and compare its results; a candidate with other parameters fails."""
    if not executable.takes(problem.inputs):
        return Agreement(math.inf, "it takes arguments of other shapes or types")
    return problem.judge(executable.run(problem.inputs))
