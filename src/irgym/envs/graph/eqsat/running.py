"""What runs in the child: equality saturation of a model, and its result in turn with ours."""

from dataclasses import replace

from irgym.base.errors import BaselineError, IrgymError
from irgym.core.environment import Versus
from irgym.envs.graph.actions import RULES
from irgym.envs.graph.checking.checks import SEED, checked_on
from irgym.envs.graph.eqsat.costs import Measured, Prices, counted
from irgym.envs.graph.eqsat.optimising import optimised
from irgym.envs.graph.eqsat.saturation import Limits
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.running.artefacts import model_at
from irgym.envs.graph.running.session_options import OFF
from irgym.envs.graph.running.sessions import CompileError, Program, version
from irgym.envs.graph.running.timing import timing_of
from irgym.measure.machine import threads_text
from irgym.measure.timing import interleave

LEVELS = (OFF, "all")
"""What ONNX Runtime's own optimiser may do to the result; the faster one counts."""


def against(
    path: str,
    graph: Graph,
    level: str,
    threads: int,
    rounds: int,
    objective: str,
    rules: tuple[str, ...],
    block: int,
    limits: Limits,
) -> Versus:
    """Compare what equality saturation makes of a model with a rewritten one, both checked on random inputs.

    Args:
        path: The model as it was read.
        graph: What became of it.
        level: What ONNX Runtime's own optimiser does to it then, a key of `session_options.LEVELS`.
        threads: Threads of an operator.
        rounds: Rounds of timings.
        objective: What is compared: times in turn, or costs, once. Operators are chosen by what they take
            by themselves; under `nodes` by their number.
        rules: Names of the rules.
        block: Channels of a block in the layout of ONNX Runtime's nchwc operators.
        limits: What stops the saturation.

    Raises:
        BackendError: egglog or scipy is not installed.
        BaselineError: Equality saturation does not take the model.
        IrgymError: The results are wrong.
    """
    loaded = model_at(path)
    measured = Measured(loaded.graph, threads)
    prices: Prices = counted if objective == "nodes" else measured
    known = {rule.name: rule for rule in RULES}
    found = optimised(loaded.graph, [known[name] for name in rules], prices, block, limits)
    checked, feeds = checked_on(path, SEED)

    def program(of: Graph, level: str) -> Program:
        made = Program(of, loaded.weights, threads, level)
        said = checked.judge(made.run(feeds))
        if not said.ok:
            raise IrgymError(f"eqsat gives wrong results ({said.detail}): please report a bug of irgym")
        return made

    ours = program(graph, level).bound(feeds)
    chosen_by = "" if prices is counted else f", {measured.words}"
    how = f"egglog, {found.words}{chosen_by}; {found.seconds:.1f} s"
    if objective != "time":
        program(found.graph, OFF)  # checks the results
        return Versus.of([(_total(graph, prices), _total(found.graph, prices))], how)
    timed: list[Versus] = []
    refused = ""
    for name in LEVELS:  # one at a time: each session has a copy of the weights
        try:
            theirs = program(found.graph, name).bound(feeds)
            theirs.run(1)
        except CompileError as error:
            refused = str(error)
            continue
        pairs = interleave(ours.run, theirs.run, rounds, timing_of(threads))
        timed.append(Versus.of(pairs, f"{how}; {version()}, level {name}"))
    if not timed:
        raise BaselineError(f"eqsat makes what does not run ({refused}): leave it out")
    best = min(timed, key=lambda versus: versus.ratio)
    return replace(best, detail=f"{best.detail}, {threads_text(threads)}")


def _total(graph: Graph, prices: Prices) -> float:
    """Return the cost of a graph's operators together, all of which have one."""
    nodes = list(graph.nodes.values())
    return sum(prices([(graph, one) for one in nodes], len(nodes)))
