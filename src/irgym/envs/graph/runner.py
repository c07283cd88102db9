"""What runs in the child: run a rewritten model, check its results, time it."""

import time

from irgym.core.cost import Measurement, Outcome, Validation
from irgym.core.environment import Versus
from irgym.core.errors import IrgymError
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.running.artefacts import model_at
from irgym.envs.graph.running.checking import ALLOWED, SEED, checked_on
from irgym.envs.graph.running.sessions import CompileError, Program, version
from irgym.measure.checking.agreement import Agreement
from irgym.measure.checking.problem import Problem, validation
from irgym.measure.timing import Timing, interleave, sample

ONE = Timing(budget_ns=300_000_000, slow_ns=200_000_000)
"""How models on one thread are timed: they take from one to hundreds of milliseconds."""

SEVERAL = Timing(budget_ns=300_000_000, slow_ns=200_000_000, clock="process")
"""The same on several threads."""


def timing_of(threads: int) -> Timing:
    """Return how models are timed."""
    return ONE if threads == 1 else SEVERAL


def measure(path: str, graph: Graph, threads: int) -> Measurement:
    """Run, check and time a rewritten model.

    Args:
        path: The model as it was read.
        graph: What became of it.
        threads: Threads of an operator.

    Returns:
        Samples in nanoseconds, or what failed: ONNX Runtime refuses the model, or its result is wrong.
    """
    checked, feeds = checked_on(path, SEED)
    started = time.perf_counter()
    try:
        bound = Program(graph, model_at(path).weights, threads).bound(feeds)
        compile_s = time.perf_counter() - started
        samples = sample(bound.run, timing_of(threads))
    except CompileError as error:
        return Measurement(Outcome.COMPILE_ERROR, detail=str(error))
    said = checked.judge(bound.results())
    if not said.ok:
        return Measurement(Outcome.WRONG_RESULT, compile_s=compile_s, detail=said.detail)
    return Measurement(Outcome.OK, samples, compile_s)


def validate(path: str, graph: Graph, inputs: int, seed: int, threads: int) -> Validation:
    """Compare a rewritten model with the original on several random inputs.

    Raises:
        IrgymError: ONNX Runtime refuses it, or the original.
    """
    checked_on(path, seed)  # what is wrong with the original is said of that one
    program = Program(graph, model_at(path).weights, threads)
    tried, said = list[Problem](), list[Agreement]()
    for place in range(inputs):
        checked, feeds = checked_on(path, seed + 2 * place)
        tried.append(checked)
        said.append(checked.judge(program.run(feeds)))
        if not said[-1].ok:
            break
    return validation(tried, said, ALLOWED)


def compare(path: str, graph: Graph, level: str, threads: int, rounds: int) -> Versus:
    """Time the original under ONNX Runtime's own optimiser and a rewritten model in turn, on the same inputs.

    Args:
        path: The model as it was read.
        graph: What became of it.
        level: How much the optimiser does, a key of `LEVELS`.
        threads: Threads of an operator.
        rounds: Rounds of timings.

    Raises:
        IrgymError: The rewritten model's results are wrong.
    """
    loaded = model_at(path)
    checked, feeds = checked_on(path, SEED)
    theirs = Program(loaded.graph, loaded.weights, threads, level).bound(feeds)
    ours = Program(graph, loaded.weights, threads).bound(feeds)
    ours.run(1)
    said = checked.judge(ours.results())
    if not said.ok:
        raise IrgymError(f"the rewriting gives wrong results ({said.detail}): please report a bug of irgym")
    pairs = interleave(ours.run, theirs.run, rounds, timing_of(threads))
    return Versus.of(pairs, f"{version()}, level {level}, {threads} thread{'s' if threads > 1 else ''}")
