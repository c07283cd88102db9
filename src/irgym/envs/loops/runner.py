"""Functions that the measuring child runs: compile a nest, check its result, time it."""

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import cast

from irgym.base.errors import IrgymError
from irgym.core.baseline import Versus
from irgym.core.cost import Measurement, Outcome, Validation
from irgym.core.target import Target
from irgym.envs.loops.baselines import prepared_baseline
from irgym.envs.loops.checking.inputs import EXACT, TOLERANCE, Draw, Prepared, prepared, tolerant
from irgym.envs.loops.compiling.backends import Backend, Generator, backend, threads_of
from irgym.envs.loops.compiling.executable import Executable
from irgym.envs.loops.compiling.lower import CodeTooLarge
from irgym.envs.loops.modelling.parts import growth, part_of
from irgym.envs.loops.nest import Nest
from irgym.envs.loops.programs.contraction import parse_uri
from irgym.envs.loops.programs.elements import F32
from irgym.measure.checking import agreement
from irgym.measure.checking.agreement import Agreement
from irgym.measure.checking.guarded import Buffers
from irgym.measure.checking.problem import Problem, validation
from irgym.measure.peak import peak_kernel
from irgym.measure.target import require
from irgym.measure.timing import DEFAULT_TIMING, Timing, interleave, sample
from irgym.measure.variables import REST_S

SEED = 20230904
"""Seed of the inputs for checking and timing candidates."""


def _bind(executable: Executable, buffers: Buffers) -> Callable[[int], None]:
    a, b, c = (array.ctypes.data for array in buffers.all)
    return lambda repetitions: executable.run(a, b, c, repetitions)


def _generator(name: str, target: Target) -> Backend:
    """Return a back end; an error if the machine (of a farm) lacks the target's instructions."""
    require(target)
    return backend(name, target)


def measure(uri: str, nest: Nest, backend_name: str, target: Target, timing: Timing) -> Measurement:
    """Compile, check and time a nest, on whole numbers if its sums are short enough.

    Returns:
        Samples in nanoseconds, or the outcome of a failure: the code is too large, or the result wrong.
    """
    program = prepared(uri, SEED, Draw.WHOLE)
    generator = _generator(backend_name, target)
    timed = _timed(lambda: generator.compile(program.contraction, nest), program, timing)
    # Judged after all runs, to find errors of later runs, and results that accumulate.
    found = program.judge() if timed.ok else None
    if found is not None and not found.ok:
        return Measurement(Outcome.WRONG_RESULT, compile_s=timed.compile_s, detail=found.detail)
    return timed


def estimate(uri: str, nest: Nest, backend_name: str, target: Target, timing: Timing) -> Measurement:
    """Time a part of a nest, and return about how long the whole takes, on one thread; nothing is checked.

    Returns:
        Samples in nanoseconds, or the outcome of a failure: the code is too large.
    """
    program = prepared(uri, SEED, Draw.WHOLE)
    generator = cast(Generator, _generator(backend_name, target))
    part = part_of(program.contraction, nest)
    timed = _timed(lambda: generator.compile(program.contraction, nest, part), program, timing)
    factor = growth(program.contraction, nest, target, part)
    return replace(timed, samples=tuple(factor * ns for ns in timed.samples))


def _timed(compiled: Callable[[], Executable], program: Prepared, timing: Timing) -> Measurement:
    """Compile a nest and time it."""
    started = time.perf_counter()
    try:
        executable = compiled()
    except CodeTooLarge as error:
        return Measurement(Outcome.COMPILE_ERROR, detail=str(error))
    compile_s = time.perf_counter() - started
    program.buffers.blank()
    with closing(executable):
        return Measurement(Outcome.OK, sample(_bind(executable, program.buffers), timing), compile_s)


def validate(uri: str, nest: Nest, backend_name: str, target: Target, inputs: int, seed: int) -> Validation:
    """Compare a nest with numpy in float64, on whole numbers, standard-normal numbers and special numbers.

    Args:
        uri: The program.
        nest: The nest.
        backend_name: The back end.
        target: Target of the code.
        inputs: Number of inputs, not counting the special ones.
        seed: Seed of the first input.
    """
    problems: list[Problem] = []
    agreements: list[Agreement] = []
    with closing(_generator(backend_name, target).compile(parse_uri(uri), nest)) as executable:
        usual = [Draw.WHOLE if place + 1 < max(inputs, 2) else Draw.NORMAL for place in range(inputs)]
        for place, draw in enumerate([*usual, Draw.SPECIAL]):
            program = prepared(uri, seed + place, draw)
            program.buffers.blank()
            _bind(executable, program.buffers)(1)
            problems.append(program.problem)
            agreements.append(program.judge(zeros=True))
    return validation(problems, agreements, EXACT if parse_uri(uri).elements.whole else TOLERANCE)


def compare(
    uri: str,
    nest: Nest,
    backend_name: str,
    target: Target,
    baseline: str,
    rounds: int,
    timing: Timing = DEFAULT_TIMING,
) -> Versus:
    """Time a nest and a baseline in turn, on the same inputs, in this process.

    Raises:
        IrgymError: The baseline is not installed, or its result is wrong.
    """
    program = prepared(uri, SEED, Draw.WHOLE)
    contraction, (a, b) = program.contraction, program.buffers.inputs
    theirs = prepared_baseline(baseline, contraction, a, b, threads_of(backend_name))
    theirs.run(1)
    found = agreement.compare(tolerant(contraction, a, b), theirs.result().reshape(contraction.shapes[2]))
    if not found.ok:
        raise IrgymError(f"{baseline} gives a wrong result for {uri} ({found.detail}): leave it out")
    with closing(_generator(backend_name, target).compile(contraction, nest)) as executable:
        ours = _bind(executable, program.buffers)
        rest_s = REST_S if threads_of(backend_name) > 1 else 0.0
        pairs = interleave(ours, theirs.run, rounds, timing, rest_s=rest_s)
    return Versus.of(pairs, theirs.detail)


def share_of_peak(uri: str, nest: Nest, backend_name: str, target: Target, rounds: int) -> Versus:
    """Time a nest and the core's peak in the target's instructions in turn, in this process.

    A core that runs wide vectors for long lowers its clock, so the share of the peak is meaningful only if
    the peak is measured at the same moment.

    Returns:
        Ratios are shares of the peak; `baseline_ns` is the time of the nest's operations at the peak.
    """
    program = prepared(uri, SEED, Draw.WHOLE)
    contraction = program.contraction
    with (
        peak_kernel(target) as peak,
        closing(_generator(backend_name, target).compile(contraction, nest)) as executable,
    ):
        iterations = max(1, contraction.flops // peak.flops)
        ours = _bind(executable, program.buffers)

        def at_peak(count: int) -> None:
            peak.run(count * iterations)

        pairs = interleave(ours, at_peak, rounds)
        scale = contraction.flops / (peak.flops * iterations * contraction.elements.share())
    method = peak.method
    if contraction.elements is not F32:
        method += f", as many instructions in {contraction.elements.sums}"
    return Versus.of([(ours_ns, scale * peak_ns) for ours_ns, peak_ns in pairs], method)
