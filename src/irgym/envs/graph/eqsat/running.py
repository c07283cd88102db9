"""The baselines `tensat` and `mcts-geb` in a child process: their results, in turn with ours."""

from dataclasses import replace

from irgym.base.errors import BaselineError, IrgymError
from irgym.core.baseline import Versus
from irgym.envs.graph.checking.cases import SEED, cases_on
from irgym.envs.graph.eqsat.costs import Measured, Prices, counted
from irgym.envs.graph.eqsat.optimising import optimised, total
from irgym.envs.graph.eqsat.settings import Settings
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.rules.catalogue import RULES
from irgym.envs.graph.running.artefacts import model_at
from irgym.envs.graph.running.session_options import OFF
from irgym.envs.graph.running.sessions import CompileError, Program, version
from irgym.envs.graph.running.timing import timing_of
from irgym.measure.machine import threads_text
from irgym.measure.timing import interleave

LEVELS = (OFF, "all")
"""Optimisation levels of ONNX Runtime for the result; the faster one counts."""


def against(path: str, graph: Graph, level: str, settings: Settings) -> Versus:
    """Compare a rewritten model with the result of equality saturation; both are checked on random inputs.

    Args:
        path: The original model.
        graph: The rewritten model.
        level: Optimisation level of ONNX Runtime for it, a key of `session_options.LEVELS`.
        settings: Settings of the comparison.

    Raises:
        BackendError: egglog or scipy is not installed.
        BaselineError: Equality saturation does not support the model.
        IrgymError: The results are wrong.
    """
    loaded = model_at(path)
    case, *further = cases_on(path, SEED)
    if further:
        raise BaselineError("equality saturation works at one size: name a single one, or leave it out")
    measured = Measured(loaded.graph.measured, settings.threads)
    prices: Prices = counted if settings.objective == "nodes" else measured
    known = {rule.name: rule for rule in RULES}
    rules = [known[name] for name in settings.rules]
    options = settings.options
    found = optimised(
        loaded.graph.measured,
        rules,
        prices,
        settings.block,
        options.limits,
        options.extraction_s,
        settings.search,
        options.extraction,
    )

    def program(of: Graph, level: str) -> Program:
        made = Program(of, loaded.weights, settings.threads, level)
        verdict = case.problem.judge(made.run(case.feeds))
        if not verdict.ok:
            raise IrgymError(f"tensat gives wrong results ({verdict.detail}): please report a bug of irgym")
        return made

    ours = program(graph, level).bound(case.feeds)
    chosen_by = "" if prices is counted else f", {measured.words}"
    how = f"egglog, {found.words}{chosen_by}; {found.seconds:.1f} s"
    if settings.objective != "time":
        program(found.graph, OFF)  # checks the results
        return Versus.of([(total(graph, prices), total(found.graph, prices))], how)
    timed: list[Versus] = []
    refused = ""
    for name in LEVELS:  # one at a time: each session has a copy of the weights
        try:
            theirs = program(found.graph, name).bound(case.feeds)
            theirs.run(1)
        except CompileError as error:
            refused = str(error)
            continue
        pairs = interleave(ours.run, theirs.run, settings.rounds, timing_of(settings.threads))
        timed.append(Versus.of(pairs, f"{how}; {version()}, level {name}"))
    if not timed:
        raise BaselineError(f"the result of tensat does not run ({refused}): leave it out")
    best = min(timed, key=lambda versus: versus.ratio)
    return replace(best, detail=f"{best.detail}, {threads_text(settings.threads)}")
