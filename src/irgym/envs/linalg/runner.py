"""Calls that run in the child process: compile a scheduled program, check its results, time it."""

import math
import time
from functools import lru_cache

from irgym.base.errors import IrgymError
from irgym.core.baseline import Versus
from irgym.core.cost import Measurement, Outcome, Validation
from irgym.core.target import Target
from irgym.envs.linalg.baselines import BASELINES
from irgym.envs.linalg.checking.prepared import ALLOWED, buffers_of, prepared, problems, verdict
from irgym.envs.linalg.compiling.bindings import llvm
from irgym.envs.linalg.compiling.compiler import lower, lower_apart, make_for, scheduled
from irgym.envs.linalg.compiling.contexts import CompileError, mlir
from irgym.envs.linalg.compiling.executable import Executable
from irgym.envs.linalg.compiling.openmp import require_cores
from irgym.envs.linalg.programs.uris import parse_uri
from irgym.measure.checking.agreement import Agreement, agreement
from irgym.measure.checking.problem import validation
from irgym.measure.machine import restart_clock
from irgym.measure.target import require
from irgym.measure.timing import DEFAULT_TIMING, Timing, interleave, sample
from irgym.measure.variables import REST_S

KEPT = 10
"""Number of compiled programs that a process keeps: the finalists of a search are measured several times."""


@lru_cache(maxsize=KEPT)
def _compiled(text: str, script: str, target: Target, threads: int | None) -> tuple[Executable, float]:
    """Return a scheduled program compiled, cached, and the seconds that compiling took.

    Raises:
        CompileError: MLIR or LLVM refuses it.
        BackendError: The processor lacks the target's instructions.
    """
    # A farm's worker may lack the target's instructions.
    require(target)
    started = time.perf_counter()
    with mlir(reuse=True):
        executable = Executable.assembled(lower_apart(scheduled(text, script), threads), target, threads)
    return executable, time.perf_counter() - started


def measure(
    text: str, script: str, target: Target, timing: Timing, threads: int | None = None
) -> Measurement:
    """Compile, check and time a scheduled program.

    Args:
        text: The program, its operations numbered.
        script: The schedule as a transform module; empty for none.
        target: Target of the code.
        timing: The timing protocol.
        threads: Threads of parallel loops, by OpenMP; None makes them sequential.

    Returns:
        Samples in nanoseconds, or the failure: MLIR refuses the schedule, or a result is wrong.

    Raises:
        BackendError: There are fewer cores than threads, no OpenMP, or the processor lacks the target's
            instructions.
    """
    if threads:
        require_cores(threads)
    checked, buffers = prepared(text)
    restart_clock()
    try:
        unbound, compile_s = _compiled(text, script, target, threads)
    except CompileError as error:
        return Measurement(Outcome.COMPILE_ERROR, detail=str(error))
    executable = unbound.on(buffers.all)
    buffers.blank()
    # Timed before checked: a slow candidate runs only once, and results that accumulate over runs show.
    samples = sample(executable.run, timing)
    wrong = verdict(checked, buffers)
    if wrong:
        return Measurement(Outcome.WRONG_RESULT, compile_s=compile_s, detail=wrong)
    return Measurement(Outcome.OK, samples, compile_s)


def validate(
    text: str, script: str, target: Target, inputs: int, seed: int, threads: int | None = None
) -> Validation:
    """Compare a scheduled program with the original program, on several inputs.

    Args:
        text: The program, its operations numbered.
        script: The schedule; empty for none.
        target: Target of the code.
        inputs: Number of inputs; see `irgym.envs.linalg.checking.prepared.problems`.
        seed: Seed of the first inputs.
        threads: Threads of parallel loops; None makes them sequential.

    Raises:
        IrgymError: MLIR refuses it.
    """
    tried = problems(text, inputs, seed)
    agreements: list[Agreement] = []
    restart_clock()
    unbound, _ = _compiled(text, script, target, threads)
    for checked in tried:
        restart_clock()
        buffers = buffers_of(checked)
        unbound.on(buffers.all).run(1)
        fault = buffers.faults()
        agreements.append(Agreement(math.inf, fault) if fault else checked.judge(buffers.results))
        if not agreements[-1].ok:
            break
    return validation(tried, agreements, ALLOWED)


def written(text: str, script: str, form: str, target: Target, threads: int | None = None) -> str:
    """Return a program as text.

    Args:
        text: The program, its operations numbered.
        script: The schedule; empty for none.
        form: `mlir` for the program after the schedule, `llvm` for its LLVM code.
        target: Target of the LLVM code; code for this machine's level names no target.
        threads: Threads of parallel loops in the LLVM code; None makes them sequential.

    Raises:
        IrgymError: MLIR refuses the schedule.
    """
    with mlir():
        if form == "llvm":
            module = lower(text, script, threads)
            make_for(module, target)
            return str(llvm.translate_module_to_llvmir(module.operation))
        return str(scheduled(text, script))


def compare(
    uri: str,
    text: str,
    script: str,
    target: Target,
    baseline: str,
    rounds: int,
    threads: int | None = None,
    timing: Timing = DEFAULT_TIMING,
) -> Versus:
    """Check a baseline's result, and time the baseline and a scheduled program in turn on the same inputs.

    Raises:
        IrgymError: The baseline is not installed or cannot compute the program, its result or the schedule's
            is wrong, there are fewer cores than threads, or OpenMP is missing.
    """
    if threads:
        require_cores(threads)
    checked, buffers = prepared(text)
    theirs = BASELINES[baseline](parse_uri(uri), buffers.inputs, threads or 1)
    restart_clock()
    theirs.run(1)
    wanted = checked.expected[:1]
    compared = agreement(wanted, [theirs.result().reshape(wanted[0].values.shape)])
    if not compared.ok:
        raise IrgymError(f"{baseline} gives another result for {uri} ({compared.detail}): leave it out")
    restart_clock()
    ours = _compiled(text, script, target, threads)[0].on(buffers.all)
    buffers.blank()
    pairs = interleave(ours.run, theirs.run, rounds, timing, rest_s=REST_S if threads else 0.0)
    wrong = verdict(checked, buffers)
    if wrong:
        raise IrgymError(
            f"the schedule gives wrong results for {uri} ({wrong}): please report a bug of irgym"
        )
    return Versus.of(pairs, theirs.detail)
