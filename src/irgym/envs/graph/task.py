"""The task: one model, rewritten for ONNX Runtime."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.base.errors import ScheduleError
from irgym.base.options import with_options, word_of
from irgym.core.actions import Action, Mask
from irgym.core.baseline import ROUNDS
from irgym.core.cost import Call, Job
from irgym.core.drawing import Drawing
from irgym.core.objective import TIME, Objective
from irgym.core.observation import ObservationView
from irgym.core.profiles import Profile, shares
from irgym.core.target import Target
from irgym.core.task import Task
from irgym.envs.graph import actions
from irgym.envs.graph.costs.costs import Costs, residences_of
from irgym.envs.graph.costs.counting import count
from irgym.envs.graph.costs.estimate import estimated, rates_of
from irgym.envs.graph.costs.features import CostFeatures
from irgym.envs.graph.eqsat.settings import SaturationOptions, Settings, TreeSearchOptions
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.quantised import waits
from irgym.envs.graph.observing.drawing import drawing_of
from irgym.envs.graph.observing.meta_graph import META_GRAPH
from irgym.envs.graph.observing.observations import VIEWS
from irgym.envs.graph.observing.table import Table
from irgym.envs.graph.programs.uris import FIXED
from irgym.envs.graph.rewriting.failures import Failures
from irgym.envs.graph.rewriting.sites import Finder
from irgym.envs.graph.rewriting.transitions import StepCache, rewritten
from irgym.envs.graph.rules.catalogue import RULES
from irgym.envs.graph.running.blocks import block_of
from irgym.envs.graph.running.session_options import OFF, options_text
from irgym.envs.graph.sketches import sketch
from irgym.envs.graph.state import EVERYWHERE, Candidates, GraphState
from irgym.measure.machine import threads_text

HORIZON = 100
"""Steps of an episode."""


NODES = Objective("nodes", "", "operators of the graph", exact=True, timed=False)
"""The number of operators."""

MODEL = Objective(
    "model", "ns", "time by a model: what operators take by themselves, added up", exact=True, timed=False
)
"""The sum of times of single operators. It is exact, since each operator is measured once for all graphs."""

OBJECTIVES = (TIME, MODEL, NODES)
"""The objectives, the default first."""

ALL_VIEWS = {**VIEWS, META_GRAPH.name: META_GRAPH}
"""The observations, the default first."""

RUNNER = "irgym.envs.graph.runner"

TENSAT = "tensat"
"""The baseline by equality saturation, as in Tensat."""

MCTS_GEB = "mcts-geb"
"""The same where a tree search chooses the order of the rules, as in MCTS-GEB."""

SATURATIONS = {TENSAT: SaturationOptions(), MCTS_GEB: TreeSearchOptions()}
"""The baselines by equality saturation, with their options by default."""


class GraphTask(Task[GraphState]):
    """Rewriting one model.

    Args:
        uri: Canonical URI of the program.
        path: The cached model.
        graph: Its graph.
        target: The target of ONNX Runtime's kernels, on which the layout of blocked convolutions depends.
        threads: Threads of an operator.
        toolchain: Versions of the packages and of irgym's code that run it.
        inputs: Digest of the samples that it is measured and checked on; empty for random inputs.
        profiles: Sizes that it is measured at, if there are several. Its time is the mean over the calls; the
            analysis, features and the objective `model` are those of the first.

    Attributes:
        costs: Costs of the operators of its graphs.
    """

    space = actions.SPACE
    objectives = OBJECTIVES
    forms: Mapping[str, str] = {".onnx": "ONNX model"}
    gradual = False  # a blocked convolution, for example, pays only once its neighbours are blocked too

    def __init__(
        self,
        uri: str,
        path: str,
        graph: Graph,
        target: Target,
        threads: int,
        toolchain: str,
        inputs: str = "",
        profiles: Sequence[Profile] = (),
    ) -> None:
        self.uri = uri
        self.path = path
        self.graph = graph
        self.threads = threads
        self.toolchain = toolchain
        self.inputs = inputs
        self.profiles = tuple(profiles)
        self.horizon = HORIZON
        self.block = block_of(target)
        self.finder = Finder(RULES, self.block)
        self.rules = RULES
        self.table = Table()
        self._kept = StepCache()
        self._target = target
        self._rates = rates_of(target, threads)
        self._estimate = self._estimated(graph.measured) or 1.0  # a model without operators takes no time
        self._runs = self._runs_of(graph)
        self.costs = Costs(toolchain, threads, target, residences_of(graph.measured, target))
        self._cost_features = CostFeatures(graph.measured, self._rates)
        self._allowed = frozenset(range(len(self.rules)))
        self._waits = waits(graph)
        self._initial = GraphState(graph, graph.digest, self.finder.all(graph))

    @property
    def failures(self) -> Failures:
        """Failures of rules. Each costs a candidate, and no rule should have any."""
        return self.finder.failures

    @property
    def target(self) -> Target:
        """The target of ONNX Runtime's kernels."""
        return self._target

    def restricted(self, *sources: str) -> "GraphTask":
        """Return the same program restricted to the rules from some sources; actions keep their places.

        Args:
            sources: Sources such as `TASO`; a rule from any of them is allowed.
        """
        task = copy(self)
        task._allowed = frozenset(
            place for place, rule in enumerate(RULES) if any(source in rule.source for source in sources)
        )
        task.rules = tuple(RULES[place] for place in sorted(task._allowed))
        return task

    def initial(self) -> GraphState:
        """Return the original graph."""
        return self._initial

    def mask(self, state: GraphState) -> Mask:
        """Return the candidates of all rules, and whether `stop` applies.

        Searches do not see the other endings: a greedy search would pick `stop-all` first and rewrite
        nothing, and a sampling policy would end its episodes early. They are tried on the results of
        searches; see `irgym.core.capabilities.Endings`. Only for quantised models in the format QDQ do
        searches see `stop-all`: only behind ONNX Runtime's optimiser do those compute with integers, so that
        times without it tell little.
        """
        kinds = np.zeros(len(self.space.kinds), dtype=np.bool_)
        for kind in (actions.STOP, actions.STOP_ALL):
            kinds[kind] = self._offers(state, kind)
        pairs = tuple([(rule + 1, name) for rule, name in self.candidates(state)])
        return Mask(kinds, candidates=pairs)

    def _offers(self, state: GraphState, kind: int) -> bool:
        """Say whether searches see a kind that ends the schedule."""
        waits = kind == actions.STOP_ALL and self._waits and self.objective.timed
        return not state.stopped and (kind == actions.STOP or waits)

    def candidates(self, state: GraphState) -> Candidates:
        """Return the candidates of this task's rules; see `GraphState.candidates`."""
        if len(self._allowed) == len(self.finder.rules):
            return state.candidates
        return {key: sites for key, sites in state.candidates.items() if key[0] in self._allowed}

    def step(self, state: GraphState, action: Action) -> GraphState:
        """Return the state after a rewrite or an ending.

        Raises:
            ScheduleError: The rule does not apply there, or the schedule has already ended.
        """
        if action in self.endings(state) or self._offers(state, action.kind):
            return replace(state, ending=actions.ENDINGS[action.kind])
        sites = self.candidates(state).get((action.kind - 1, action.candidate))
        if sites is None:
            raise ScheduleError(f"{self.space.text(action)} does not apply here")
        return self._kept.step(state, action, lambda: rewritten(self.finder, state, action.kind - 1, sites))

    def is_macro(self, action: Action) -> bool:
        """Say whether an action applies a rule at all of its sites."""
        return action.candidate == EVERYWHERE

    def sketch(self, rng: np.random.Generator) -> Sequence[Action]:
        """Return the actions of a random sketch; see `irgym.envs.graph.sketches`."""
        return sketch(self, rng)

    def accepts(self, state: GraphState, action: Action) -> bool:
        """Say whether an action is in the mask or among the `endings`."""
        return action in self.endings(state) or super().accepts(state, action)

    def endings(self, state: GraphState) -> Sequence[Action]:
        """Return the endings that the mask does not offer; none where the objective is no time."""
        if state.stopped or not self.objective.timed:
            return ()
        return [Action(kind) for kind in actions.ENDINGS if not self._offers(state, kind)]

    def ending_of(self, baseline: str) -> Action | None:
        """Return the ending under which the original model equals a baseline; None if there is none.

        Only costs that are times have endings, as in `endings`.
        """
        if not self.objective.timed:
            return None
        wanted = baseline.removeprefix("ort-")
        return next((Action(kind) for kind, level in actions.ENDINGS.items() if level == wanted), None)

    def running(self, state: GraphState) -> str:
        """Return the session options to run the model with."""
        return options_text(state.level, self.threads)

    def terminal(self, state: GraphState) -> bool:
        """Say whether the schedule has ended."""
        return state.stopped

    def identity(self, state: GraphState) -> str:
        """Return the digest and the ending: up to names, states with equal digests have equal futures."""
        return f"{state.digest} {state.ending}"

    @property
    def views(self) -> Mapping[str, ObservationView]:
        """The observations by name, the default first."""
        return ALL_VIEWS

    def key(self, state: GraphState) -> str:
        """Return the digest of the graph, and the level of ONNX Runtime's optimiser if it is on."""
        return state.digest if state.level == OFF else f"{state.digest} ort-{state.level}"

    def job(self, state: GraphState) -> Job:
        """Return the job for the cost: a sum over operators under `model`, known under `nodes`."""
        known = None
        call = Call(f"{RUNNER}:measure", (self.path, state.graph, self.threads, state.level))
        measured_on = f"; inputs {self.inputs}" if self.inputs else ""
        if self.objective == NODES:
            known, call = count(state.graph), Call(f"{count.__module__}:{count.__name__}", (state.graph,))
        return Job(
            call,
            program=self.uri,
            schedule=self.key(state),
            toolchain=f"{self.toolchain}; {threads_text(self.threads)}; {self._initial.digest}{measured_on}",
            objective=self.objective.name,
            known=known,
            parts=self.costs.parts(state.graph.measured) if self.objective == MODEL else (),
            original=self.key(state) == self._initial.digest,
            runs=self._runs if self.objective.timed else 1.0,
            target=self.target_text,
        )

    def analysis(self, state: GraphState) -> NDArray[np.float64]:
        """Return a rough estimate of the time from shapes alone, relative to the original's, shape [1]."""
        return np.array([self._estimated(state.graph.measured) / self._estimate])

    def cost_features(self, state: GraphState) -> NDArray[np.float64]:
        """Return the features of a state for cost models, shape [COST_FEATURES]."""
        return self._cost_features.of(state.graph.measured, state.level)

    def job_features(self, job: Job) -> NDArray[np.float64]:
        """Return the same of the state whose job it is: digests cannot be read back, but jobs hold graphs."""
        _, graph, _, level = job.call.arguments
        return self._cost_features.of(graph.measured, level)

    def _estimated(self, fixed: Graph) -> float:
        return sum(estimated(fixed, node, self._rates) for node in fixed.nodes.values())

    def _runs_of(self, graph: Graph) -> float:
        """Return an estimate of `Job.runs`."""
        times = [self._estimated(graph.at(dict(profile.sizes))) for profile in self.profiles]
        mean = sum(share * time for share, time in zip(shares(self.profiles), times, strict=True))
        return sum(times) / mean if mean else 1.0

    def validation(self, state: GraphState, inputs: int, seed: int) -> Call:
        """Return the call that compares the model's results with those of the original."""
        return Call(f"{RUNNER}:validate", (self.path, state.graph, inputs, seed, self.threads, state.level))

    def validation_within(self, state: GraphState, inputs: int, seed: int, seconds: float) -> Call:
        """Return the same call, which leaves out inputs for which there is no time."""
        arguments = (self.path, state.graph, inputs, seed, self.threads, state.level, seconds)
        return Call(f"{RUNNER}:validate", arguments)

    def preparation(self, inputs: int, seed: int) -> Call:
        """Return the call that computes the expected results of a validation."""
        return Call(f"{RUNNER}:prepare", (self.path, inputs, seed))

    def warming(self) -> Call:
        """Return the call that computes the expected results of a measurement."""
        return Call(f"{RUNNER}:warm", (self.path,))

    def validation_s(self) -> float:
        """Return 0: how long the expected results take shows when they are computed."""
        return 0.0

    def baseline_call(self, name: str, state: GraphState, rounds: int = ROUNDS) -> Call:
        """Return the call that times a baseline and this state in turn.

        The baseline is the original, optimised or run by another tool. Equality saturation uses the task's
        rules, works under every objective, and takes options: `tensat:nodes=10000`.

        Raises:
            IrgymError: There is no such option.
        """
        word = word_of(name)
        if word.name in SATURATIONS:
            rules = tuple(rule.name for rule in self.rules)
            settings = Settings(
                self.objective.name,
                rules,
                self.block,
                self.threads,
                rounds,
                with_options(SATURATIONS[word.name], word.options, word.name),
            )
            return Call(
                "irgym.envs.graph.eqsat.running:against", (self.path, state.graph, state.level, settings)
            )
        arguments = (self.uri, self.path, state.graph, state.level, name, self.threads, rounds)
        return Call(f"{RUNNER}:compare", arguments)

    def stage_call(self, before: GraphState, after: GraphState) -> Call:
        """Return the call that times two states in turn."""
        states = ((before.graph, before.level), (after.graph, after.level))
        return Call(f"{RUNNER}:stages", (self.path, *states, self.threads, ROUNDS))

    def fixed_uri(self) -> str:
        """Return the URI of the model fixed to the sizes that it is measured at; empty if there is none."""
        fixable = self.graph.profile and not self.profiles and FIXED not in dict(self.graph.profile)
        return f"{self.uri}&{FIXED}=1" if fixable else ""

    def fixed_sizes(self) -> str:
        """Return the sizes that the model is measured at, in words."""
        return ", ".join(f"{name}={size}" for name, size in self.graph.profile)

    def fixed_call(self, state: GraphState, fixed: Task[Any], fixed_state: GraphState, rounds: int) -> Call:
        """Return the call that times a rewritten model with fixed sizes in turn with one of this task."""
        assert isinstance(fixed, GraphTask)
        models = ((self.path, state.graph, state.level), (fixed.path, fixed_state.graph, fixed_state.level))
        return Call(f"{RUNNER}:beside", (*models, self.threads, rounds))

    def describe(self, state: GraphState) -> str:
        """Return the operators, a line each, and the level of ONNX Runtime's optimiser if it is on."""
        lines: list[str] = []
        for node in state.graph.order:
            kind = state.graph.types.get(node.name)
            shape = "" if kind is None else f"{kind.dtype}{list(kind.shape)}"
            lines.append(f"{node.name} = {node.operator}({', '.join(node.inputs)}) {shape}".rstrip())
        if state.level != OFF:
            lines.append(f"then ONNX Runtime's own optimiser, level {state.level}")
        return "\n".join(lines)

    def drawing(self, state: GraphState) -> Drawing:
        """Return a drawing of the graph."""
        return drawing_of(state.graph)

    def export(self, state: GraphState, path: Path) -> list[Path]:
        """Write the model (.onnx).

        Raises:
            IrgymError: The file has another suffix.
            StorageError: The file cannot be written.
        """
        from irgym.envs.graph.running.export import export

        return export(self, state, path)

    def function(self, state: GraphState) -> Callable[..., Any]:
        """Return a function of the model's inputs, arrays or tensors, in order or by name.

        Raises:
            IrgymError: ONNX Runtime refuses the model.
        """
        from irgym.envs.graph.running.calls import ModelFunction, run_of_state

        return ModelFunction(run_of_state(self, state, "the model"))
