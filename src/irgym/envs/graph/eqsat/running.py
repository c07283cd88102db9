"""What runs in the child: equality saturation of a model, and its result in turn with ours."""

from collections.abc import Mapping
from dataclasses import replace

from irgym.core.environment import Versus
from irgym.core.errors import BaselineError, IrgymError
from irgym.envs.graph.actions import RULES
from irgym.envs.graph.eqsat.costs import NodeCost, counted, estimated
from irgym.envs.graph.eqsat.optimising import optimised
from irgym.envs.graph.eqsat.saturation import Limits
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.running.artefacts import model_at
from irgym.envs.graph.running.checking import SEED, checked_on
from irgym.envs.graph.running.sessions import Program, version
from irgym.envs.graph.running.timing import timing_of
from irgym.envs.graph.session_options import OFF
from irgym.measure.machine import threads_text
from irgym.measure.timing import interleave

COSTS: Mapping[str, NodeCost] = {"time": estimated, "nodes": counted}
"""What is minimised under each objective."""

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
        objective: What is compared, a key of `COSTS`: times in turn, or costs, once.
        rules: Names of the rules.
        block: Channels of a block in the layout of ONNX Runtime's nchwc operators.
        limits: What stops the saturation.

    Raises:
        BackendError: egglog or scipy is not installed.
        BaselineError: Equality saturation does not take the model, or has no costs under the objective.
        IrgymError: The results are wrong.
    """
    if objective not in COSTS:
        raise BaselineError(f"eqsat has no costs under {objective}: compare under {' or '.join(COSTS)}")
    loaded, cost = model_at(path), COSTS[objective]
    known = {rule.name: rule for rule in RULES}
    found = optimised(loaded.graph, [known[name] for name in rules], cost, block, limits)
    checked, feeds = checked_on(path, SEED)

    def program(of: Graph, level: str) -> Program:
        made = Program(of, loaded.weights, threads, level)
        said = checked.judge(made.run(feeds))
        if not said.ok:
            raise IrgymError(f"eqsat gives wrong results ({said.detail}): please report a bug of irgym")
        return made

    ours = program(graph, level).bound(feeds)
    how = f"egglog, {found.words}; {found.seconds:.1f} s"
    if objective != "time":
        for name in LEVELS:
            program(found.graph, name)
        costs = [sum(cost(one, node) for node in one.nodes.values()) for one in (graph, found.graph)]
        return Versus.of([(costs[0], costs[1])], how)
    timed = [
        Versus.of(
            interleave(ours.run, program(found.graph, name).bound(feeds).run, rounds, timing_of(threads)),
            f"{how}; {version()}, level {name}",
        )
        for name in LEVELS  # one at a time: each session has a copy of the weights
    ]
    best = min(timed, key=lambda versus: versus.ratio)
    return replace(best, detail=f"{best.detail}, {threads_text(threads)}")
