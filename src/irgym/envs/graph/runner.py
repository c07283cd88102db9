"""Running, checking and timing of rewritten models. Runs in the child process."""

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from irgym.base.errors import BaselineError, IrgymError
from irgym.core.baseline import AtSizes, Versus
from irgym.core.cost import Measurement, Outcome, Validation
from irgym.envs.graph.checking.cases import SEED, Case, cases_on
from irgym.envs.graph.checking.checks import checks_on
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.running.artefacts import model_at
from irgym.envs.graph.running.peers import Original, prepared
from irgym.envs.graph.running.session_options import OFF
from irgym.envs.graph.running.sessions import Bound, CompileError, Program
from irgym.envs.graph.running.timing import timing_of
from irgym.measure.machine import restart_clock, threads_text
from irgym.measure.timing import interleave, sample
from irgym.measure.variables import REST_S

Pairs: TypeAlias = list[tuple[float, float]]
"""Times of two programs in each round, in nanoseconds."""

STAGE_SAMPLE_NS = 10_000_000
"""Shortest sample when two states are timed in turn, since they may differ by little."""


def warm(path: str) -> None:
    """Compute the expected results of a measurement.

    Raises:
        IrgymError: The original does not run.
    """
    cases_on(path, SEED)


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
        Samples in nanoseconds, a single mean over the calls where there are several profiles; or the failure:
        ONNX Runtime refuses the model, or a result is wrong.
    """
    cases = cases_on(path, SEED)
    restart_clock()  # the time limit is for the candidate alone
    started = time.perf_counter()
    compile_s = 0.0
    timed: list[tuple[float, ...]] = []
    try:
        program = Program(graph, model_at(path).weights, threads, level)
        for case in cases:
            bound = program.bound(case.feeds)
            compile_s = compile_s or time.perf_counter() - started
            timed.append(sample(bound.run, timing_of(threads)))
            said = case.problem.judge(bound.results())
            if not said.ok:
                return Measurement(Outcome.WRONG_RESULT, compile_s=compile_s, detail=_at(case, said.detail))
    except CompileError as error:
        return Measurement(Outcome.COMPILE_ERROR, detail=str(error))
    mean = sum(case.share * min(samples) for case, samples in zip(cases, timed, strict=True))
    return Measurement(Outcome.OK, timed[0] if len(cases) == 1 else (mean,), compile_s)


def _at(case: Case, detail: str) -> str:
    """Return what differs, with the sizes where a model is run at several."""
    return f"at {case.sizes}: {detail}" if case.sizes else detail


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

    Where the model is called at several sizes, times are means over the calls.

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
    cases = cases_on(path, SEED)
    theirs = prepared(baseline, Original(uri, path, cases, threads))
    program = Program(graph, model_at(path).weights, threads, level)

    timed: list[Pairs] = []
    rest_s = REST_S if threads > 1 else 0.0
    for case, their in zip(cases, theirs.on, strict=True):
        their.run(1)
        said = case.problem.judge(their.results())
        if not said.ok:
            detail = _at(case, said.detail)
            raise BaselineError(f"{baseline} gives another result for {uri} ({detail}): leave it out")
        ours = program.bound(case.feeds)
        ours.run(1)
        said = case.problem.judge(ours.results())
        if not said.ok:
            detail = _at(case, said.detail)
            raise IrgymError(f"the rewriting gives wrong results ({detail}): please report a bug of irgym")
        timed.append(interleave(ours.run, their.run, rounds, timing_of(threads), rest_s=rest_s))
    versus = Versus.of(_means(cases, timed), f"{theirs.detail}, {threads_text(threads)}")
    if len(cases) == 1:
        return versus
    return replace(versus, at=tuple(map(_at_sizes, cases, timed)))


def _means(cases: Sequence[Case], timed: Sequence[Pairs]) -> Pairs:
    """Return both times of each round as means over the calls, in nanoseconds.

    Args:
        cases: Inputs that two programs were timed on.
        timed: Both times in each round, for each of these.
    """
    if len(cases) == 1:
        return timed[0]
    rounds = zip(*timed, strict=False)  # of slow models there may be fewer rounds at some sizes
    return [
        (
            sum(case.share * ours for case, (ours, _) in zip(cases, pairs, strict=True)),
            sum(case.share * theirs for case, (_, theirs) in zip(cases, pairs, strict=True)),
        )
        for pairs in rounds
    ]


def _at_sizes(case: Case, pairs: Pairs) -> AtSizes:
    versus = Versus.of(pairs, "")
    return AtSizes(case.sizes, case.share, versus.ratio, versus.baseline_ns, versus.ours_ns)


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
        The times of both states in each round, in nanoseconds; means over the calls at several sizes.

    Raises:
        CompileError: ONNX Runtime refuses one of them.
    """
    weights = model_at(path).weights
    cases = cases_on(path, SEED)
    first, second = (Program(graph, weights, threads, level) for graph, level in (before, after))
    timing = replace(timing_of(threads), sample_ns=STAGE_SAMPLE_NS)
    timed: list[Pairs] = []
    for case in cases:
        ours, theirs = (program.bound(case.feeds).run for program in (first, second))
        timed.append(interleave(ours, theirs, rounds, timing))
    return _means(cases, timed)


def beside(
    open_model: tuple[str, Graph, str], fixed_model: tuple[str, Graph, str], threads: int, rounds: int
) -> Versus:
    """Time a model with fixed sizes in turn with one that leaves them open, on the same inputs.

    Args:
        open_model: The cached original with open sizes, a rewritten graph, and the level of ONNX Runtime's
            optimiser for it, a key of `LEVELS`.
        fixed_model: Likewise, with fixed sizes.
        threads: Threads of an operator.
        rounds: Rounds of timings.

    Raises:
        CompileError: ONNX Runtime refuses one of them.
        IrgymError: The results of one are wrong.
    """
    case, *_ = cases_on(open_model[0], SEED)
    bound: list[Bound] = []
    for path, graph, level in (fixed_model, open_model):
        bound.append(Program(graph, model_at(path).weights, threads, level).bound(case.feeds))
        bound[-1].run(1)
        said = case.problem.judge(bound[-1].results())
        if not said.ok:
            raise IrgymError(
                f"the rewriting gives wrong results ({said.detail}): please report a bug of irgym"
            )
    fixed, left_open = bound
    pairs = interleave(fixed.run, left_open.run, rounds, timing_of(threads))
    return Versus.of(pairs, f"the same with open sizes, {threads_text(threads)}")
