"""Running, checking and timing of rewritten models. Runs in the child process."""

import math
import time
from dataclasses import replace

from irgym.base.errors import BaselineError, IrgymError
from irgym.core.baseline import Versus
from irgym.core.cost import Measurement, Outcome, Validation
from irgym.envs.graph.checking.checks import SEED, checked_on, checks_on
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.running.artefacts import model_at
from irgym.envs.graph.running.peers import Original, prepared
from irgym.envs.graph.running.session_options import OFF
from irgym.envs.graph.running.sessions import CompileError, Program
from irgym.envs.graph.running.timing import timing_of
from irgym.measure.machine import restart_clock, threads_text
from irgym.measure.timing import interleave, sample

STAGE_SAMPLE_NS = 10_000_000
"""Shortest sample when two states are timed in turn, since they may differ by little."""

REST_S = 0.05
"""Pause in seconds, before another program is timed, in which spinning threads fall asleep."""


def warm(path: str) -> None:
    """Compute the expected results of a measurement.

    Raises:
        IrgymError: The original does not run.
    """
    checked_on(path, SEED)


def prepare(path: str, inputs: int, seed: int) -> None:
    """Compute the expected results that no validation leaves out; the arguments are as `validate`'s.

    Raises:
        IrgymError: The original does not run.
    """
    checks_on(path, inputs, seed).prepare()


def measure(path: str, graph: Graph, threads: int, level: str = OFF) -> Measurement:
    """Run, check and time a rewritten model.

    Args:
        path: The cached original model.
        graph: The rewritten graph.
        threads: Threads of an operator.
        level: Level of ONNX Runtime's optimiser, a key of `LEVELS`.

    Returns:
        Samples in nanoseconds, or the failure: ONNX Runtime refuses the model, or a result is wrong.
    """
    checked, feeds = checked_on(path, SEED)
    restart_clock()  # the time limit is for the candidate alone
    started = time.perf_counter()
    try:
        bound = Program(graph, model_at(path).weights, threads, level).bound(feeds)
        compile_s = time.perf_counter() - started
        samples = sample(bound.run, timing_of(threads))
    except CompileError as error:
        return Measurement(Outcome.COMPILE_ERROR, detail=str(error))
    said = checked.judge(bound.results())
    if not said.ok:
        return Measurement(Outcome.WRONG_RESULT, compile_s=compile_s, detail=said.detail)
    return Measurement(Outcome.OK, samples, compile_s)


def validate(
    path: str,
    graph: Graph,
    inputs: int,
    seed: int,
    threads: int,
    level: str = OFF,
    seconds: float = math.inf,
) -> Validation:
    """Compare a rewritten model with the original on several random inputs, and on extreme ones.

    Args:
        path: The cached original model.
        graph: The rewritten graph.
        inputs: Number of ordinary random inputs.
        seed: Seed of the inputs.
        threads: Threads of an operator.
        level: Level of ONNX Runtime's optimiser, a key of `LEVELS`.
        seconds: Time for it; see `Checks.judge`.

    Raises:
        IrgymError: ONNX Runtime refuses the model or the original.
    """
    due = time.monotonic() + seconds
    # The original first: its errors are reported first, and sessions copy the weights.
    checks = checks_on(path, inputs, seed)
    restart_clock()
    program = Program(graph, model_at(path).weights, threads, level)
    return checks.judge(program.run, due - time.monotonic())


def compare(
    uri: str, path: str, graph: Graph, level: str, baseline: str, threads: int, rounds: int
) -> Versus:
    """Time a baseline of the original and a rewritten model in turn, on the same inputs.

    Args:
        uri: The program.
        path: The cached original model.
        graph: The rewritten graph.
        level: Level of ONNX Runtime's optimiser for it, a key of `LEVELS`.
        baseline: Name of the baseline.
        threads: Threads of an operator.
        rounds: Rounds of timings.

    Raises:
        BaselineError: The baseline is not installed, cannot run the program, or has wrong results.
        IrgymError: The rewritten model's results are wrong.
    """
    checked, feeds = checked_on(path, SEED)
    theirs = prepared(baseline, Original(uri, path, feeds, threads))
    theirs.run(1)
    said = checked.judge(theirs.results())
    if not said.ok:
        raise BaselineError(f"{baseline} gives another result for {uri} ({said.detail}): leave it out")
    ours = Program(graph, model_at(path).weights, threads, level).bound(feeds)
    ours.run(1)
    said = checked.judge(ours.results())
    if not said.ok:
        raise IrgymError(f"the rewriting gives wrong results ({said.detail}): please report a bug of irgym")

    def rest() -> None:
        if theirs.lingers:
            time.sleep(REST_S)

    pairs = interleave(ours.run, theirs.run, rounds, timing_of(threads), rest)
    return Versus.of(pairs, f"{theirs.detail}, {threads_text(threads)}")


def stages(
    path: str, before: tuple[Graph, str], after: tuple[Graph, str], threads: int, rounds: int
) -> list[tuple[float, float]]:
    """Time two states of a rewriting in turn, on the same inputs.

    Args:
        path: The cached original model.
        before: A rewritten graph, and the level of ONNX Runtime's optimiser for it, a key of `LEVELS`.
        after: Likewise, for a later state.
        threads: Threads of an operator.
        rounds: Rounds of timings.

    Returns:
        The times of both states in each round, in nanoseconds.

    Raises:
        CompileError: ONNX Runtime refuses one of them.
    """
    weights = model_at(path).weights
    _, feeds = checked_on(path, SEED)
    first, second = (Program(graph, weights, threads, level).bound(feeds) for graph, level in (before, after))
    timing = replace(timing_of(threads), sample_ns=STAGE_SAMPLE_NS)
    return interleave(first.run, second.run, rounds, timing)
