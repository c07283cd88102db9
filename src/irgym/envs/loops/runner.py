"""What runs in the child: compile a nest, check its result, time it."""

import time
from collections.abc import Callable
from contextlib import closing

from irgym.core.cost import Measurement, Outcome, Validation
from irgym.core.environment import Versus
from irgym.core.errors import IrgymError
from irgym.core.target import Target
from irgym.envs.loops.baselines import BASELINES
from irgym.envs.loops.checking import TOLERANCE, Prepared, prepared, tolerant
from irgym.envs.loops.codegen.backends import Generator, ThreadedBackend, backend, threads_of
from irgym.envs.loops.codegen.executable import Executable
from irgym.envs.loops.codegen.lower import CodeTooLarge, rows_of
from irgym.envs.loops.contraction import parse_uri
from irgym.envs.loops.nest import Nest, initial_nest
from irgym.measure.checking import agreement
from irgym.measure.checking.agreement import Agreement
from irgym.measure.checking.guarded import Buffers
from irgym.measure.checking.problem import Problem, validation
from irgym.measure.peak import peak_kernel
from irgym.measure.target import require
from irgym.measure.timing import DEFAULT_TIMING, Timing, interleave, sample

SEED = 20230904
"""Seed of the inputs on which candidates are checked and timed."""

LANE_GFLOPS = 12.0
"""Two multiply-adds a cycle at 3 GHz, in each lane: about the peak of a core."""

LARGE_NS = 5_000_000
"""A program that takes longer than this at that peak is large: see `_estimated`."""

PART = 16
"""Of a large program one row in so many is run first."""

FAR = 16
"""How many times as long as at the peak a large program must seem to take not to be run as a whole."""


def _bind(executable: Executable, buffers: Buffers) -> Callable[[int], None]:
    a, b, c = (array.ctypes.data for array in (*buffers.inputs, *buffers.results))
    return lambda repetitions: executable.run(a, b, c, repetitions)


def _generator(name: str, target: Target) -> Generator | ThreadedBackend:
    """Return a back end; on another machine than the run's, this process may lack what the target needs."""
    require(target)
    return backend(name, target)


def measure(uri: str, nest: Nest, backend_name: str, target: Target, timing: Timing) -> Measurement:
    """Compile, check and time a nest, on whole numbers where its sums are short enough.

    Returns:
        Samples in nanoseconds, or the outcome of what failed: the code is too large, or the result wrong.
    """
    program = prepared(uri, SEED, whole=True)
    generator = _generator(backend_name, target)
    started = time.perf_counter()
    try:
        executable = generator.compile(program.contraction, nest)
    except CodeTooLarge as error:
        return Measurement(Outcome.COMPILE_ERROR, detail=str(error))
    compile_s = time.perf_counter() - started
    if nest != initial_nest(program.contraction):
        estimate = _estimated(generator, program, nest, target)
        if estimate is not None:
            executable.close()
            return Measurement(Outcome.OK, (estimate,), compile_s)
    program.buffers.blank()
    with closing(executable):
        samples = sample(_bind(executable, program.buffers), timing)
    # After all runs: what only a later one spoils shows too, and so does a result that adds up.
    found = program.judge()
    if not found.ok:
        return Measurement(Outcome.WRONG_RESULT, compile_s=compile_s, detail=found.detail)
    return Measurement(Outcome.OK, samples, compile_s)


def _estimated(
    generator: Generator | ThreadedBackend, program: Prepared, nest: Nest, target: Target
) -> float | None:
    """Return about how many nanoseconds a nest takes that is far too slow; None for all others.

    A search meets nests that take a second where the best take 20 ms, and it has few seconds. So of large
    programs the first rows are computed first, once. A nest that would take `FAR` times as long as at the
    peak, going by these, is not run as a whole, nor are its results checked. On several threads all is run.
    """
    contraction = program.contraction
    rows = contraction.sizes[rows_of(contraction)]
    ideal_ns = contraction.flops / (LANE_GFLOPS * target.lanes)
    if ideal_ns < LARGE_NS or rows < PART or isinstance(generator, ThreadedBackend):
        return None
    with closing(generator.compile(contraction, nest, rows // PART)) as first:
        run = _bind(first, program.buffers)
        begin = time.perf_counter_ns()
        run(1)
        whole = (time.perf_counter_ns() - begin) * rows / (rows // PART)
    return whole if whole > FAR * ideal_ns else None


def validate(uri: str, nest: Nest, backend_name: str, target: Target, inputs: int, seed: int) -> Validation:
    """Compare a nest with numpy in float64: on whole numbers, and last on standard-normal numbers."""
    problems: list[Problem] = []
    agreements: list[Agreement] = []
    with closing(_generator(backend_name, target).compile(parse_uri(uri), nest)) as executable:
        for place in range(inputs):
            program = prepared(uri, seed + place, whole=place + 1 < max(inputs, 2))
            program.buffers.blank()
            _bind(executable, program.buffers)(1)
            problems.append(program.problem)
            agreements.append(program.judge())
    return validation(problems, agreements, TOLERANCE)


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
    program = prepared(uri, SEED, whole=True)
    contraction, (a, b) = program.contraction, program.buffers.inputs
    theirs = BASELINES[baseline](contraction, a, b, threads_of(backend_name))
    theirs.run(1)
    found = agreement.compare(tolerant(contraction, a, b), theirs.result().reshape(contraction.shapes[2]))
    if not found.ok:
        raise IrgymError(f"{baseline} gives a wrong result for {uri} ({found.detail}): leave it out")
    with closing(_generator(backend_name, target).compile(contraction, nest)) as executable:
        ours = _bind(executable, program.buffers)
        pairs = interleave(ours, theirs.run, rounds, timing)
    return Versus.of(pairs, theirs.detail)


def share_of_peak(uri: str, nest: Nest, backend_name: str, target: Target, rounds: int) -> Versus:
    """Time a nest and the core's peak in the target's instructions in turn, in this process.

    A core that runs wide vectors for long lowers its clock: only a peak measured at the same moment tells
    which share of it a nest reaches.

    Returns:
        Ratios that are shares of the peak; `baseline_ns` is the time of the nest's operations at the peak.
    """
    program = prepared(uri, SEED, whole=True)
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
        scale = contraction.flops / (peak.flops * iterations)
    return Versus.of([(ours_ns, scale * peak_ns) for ours_ns, peak_ns in pairs], peak.method)
