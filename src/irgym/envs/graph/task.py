"""The task: one model, rewritten for ONNX Runtime."""

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from pathlib import Path

import numpy as np

from irgym.core.actions import Action, Mask
from irgym.core.cost import Call, Job, Measurement, Outcome
from irgym.core.errors import IrgymError, ScheduleError
from irgym.core.objective import TIME, Objective
from irgym.core.observation import ObservationView
from irgym.core.target import Target
from irgym.core.task import Task
from irgym.envs.graph import actions
from irgym.envs.graph.eqsat.saturation import Limits
from irgym.envs.graph.ir.digest import Digests
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.rules.rule import Site
from irgym.envs.graph.sites import Finder
from irgym.envs.graph.state import GraphState
from irgym.measure.machine import threads_text

HORIZON = 200
"""Steps of an episode."""

VERSUS_ROUNDS = 15
"""Rounds of an interleaved comparison (see the measuring guide)."""

NODES = Objective("nodes", "", "operators of the graph", exact=True, timed=False)
"""The number of operators."""

RUNNER = "irgym.envs.graph.runner"

EQSAT = "eqsat"
"""The baseline that saturates with equalities, as Tensat does."""


class GraphTask(Task[GraphState]):
    """Rewriting one model.

    Args:
        uri: Canonical URI of the program.
        path: The model as it was read.
        graph: Its graph.
        target: What ONNX Runtime's kernels are for: the layout of blocked convolutions depends on it.
        threads: Threads of an operator.
        toolchain: Versions of what runs it.
    """

    space = actions.SPACE
    forms = {".onnx": "ONNX model"}  # noqa: RUF012

    def __init__(
        self,
        uri: str,
        path: str,
        graph: Graph,
        target: Target,
        threads: int,
        toolchain: str,
    ) -> None:
        self.uri = uri
        self.path = path
        self.graph = graph
        self.threads = threads
        self.toolchain = toolchain
        self.horizon = HORIZON
        self.block = block_of(target)
        self.finder = Finder(actions.RULES, self.block)
        self.rules = actions.RULES
        self._target = target
        self._digests = Digests()
        self._allowed = frozenset(range(len(self.rules)))
        self._initial = GraphState(graph, self._digests.of(graph), self.finder.all(graph))

    @property
    def target(self) -> Target:
        """What ONNX Runtime's kernels are for."""
        return self._target

    def under(self, objective: str) -> "GraphTask":
        """Return the same program with another objective.

        Raises:
            IrgymError: There is none of that name.
        """
        known = {one.name: one for one in (TIME, NODES)}
        if objective not in known:
            raise IrgymError(f"graph has no objective {objective!r}: choose among {', '.join(known)}")
        task = copy(self)  # what was found out of the graph serves both
        task.objective = known[objective]
        return task

    def restricted(self, source: str) -> "GraphTask":
        """Return the same program with some rules alone; the actions keep their names and places.

        Args:
            source: What those rules name as where they are from, such as `TASO`.
        """
        task = copy(self)
        task._allowed = frozenset(place for place, rule in enumerate(actions.RULES) if source in rule.source)
        task.rules = tuple(actions.RULES[place] for place in sorted(task._allowed))
        return task

    def initial(self) -> GraphState:
        """Return the graph as it was read."""
        return self._initial

    def mask(self, state: GraphState) -> Mask:
        """Return where rules apply."""
        kinds = np.zeros(len(self.space.kinds), dtype=np.bool_)
        kinds[actions.STOP] = not state.stopped
        pairs = tuple((rule + 1, name) for rule, name in self.named(state))
        return Mask(kinds, np.zeros(0, dtype=np.bool_), pairs)

    def named(self, state: GraphState) -> dict[tuple[int, str], Site]:
        """Return where rules apply, by the rule's place and the site's name, in the order of the mask."""
        found: dict[tuple[int, str], Site] = {}
        for sites in () if state.stopped else state.sites.values():
            for rule, site in sites:
                if rule in self._allowed:
                    found.setdefault((rule, site.name), site)
        return found

    def step(self, state: GraphState, action: Action) -> GraphState:
        """Return the graph after a rewrite.

        Raises:
            ScheduleError: The rule does not apply there.
        """
        if action.kind == actions.STOP and not state.stopped:
            return replace(state, stopped=True)
        site = self.named(state).get((action.kind - 1, action.candidate))
        if site is None or state.stopped:
            raise ScheduleError(f"{self.space.text(action)} does not apply here")
        rewrite = self.finder.rules[action.kind - 1].rewrite(state.graph, site, self.finder.block)
        graph = state.graph.rewritten(rewrite)
        sites = self.finder.after(state.sites, state.graph, rewrite, graph)
        return GraphState(graph, self._digests.of(graph), sites)

    def terminal(self, state: GraphState) -> bool:
        """Say whether `stop` was taken."""
        return state.stopped

    def identity(self, state: GraphState) -> str:
        """Return the digest: graphs that differ in names alone have the same future, but for names."""
        return f"{state.digest} {state.stopped}"

    @property
    def views(self) -> Mapping[str, ObservationView]:
        """The observations by name, the default first."""
        from irgym.envs.graph.observations import VIEWS

        return VIEWS

    def key(self, state: GraphState) -> str:
        """Return the digest of the graph."""
        return state.digest

    def job(self, state: GraphState) -> Job:
        """Return the request for the model's time, or its number of operators."""
        known = None
        if self.objective == NODES:
            known = Measurement(Outcome.OK, (float(len(state.graph.nodes)),))
        return Job(
            Call(f"{RUNNER}:measure", (self.path, state.graph, self.threads)),
            program=self.uri,
            schedule=self.key(state),
            toolchain=f"{self.toolchain}; {threads_text(self.threads)}; {self._initial.digest}",
            objective=self.objective.name,
            known=known,
            original=state.digest == self._initial.digest,
            target=self.target_text,
        )

    def validation(self, state: GraphState, inputs: int, seed: int) -> Call:
        """Return the call that compares the model's results with those of the original."""
        return Call(f"{RUNNER}:validate", (self.path, state.graph, inputs, seed, self.threads))

    def baseline_call(self, name: str, state: GraphState) -> Call:
        """Return the call that times a baseline of the original and this state.

        `eqsat` has the task's rules, and costs under every objective.
        """
        if name == EQSAT:
            rules = tuple(rule.name for rule in self.rules)
            how = (self.threads, VERSUS_ROUNDS, self.objective.name, rules, self.block, Limits())
            return Call("irgym.envs.graph.eqsat.running:against", (self.path, state.graph, *how))
        level = name.removeprefix("ort-")
        return Call(f"{RUNNER}:compare", (self.path, state.graph, level, self.threads, VERSUS_ROUNDS))

    def describe(self, state: GraphState) -> str:
        """Return each operator with what it reads and makes."""
        lines: list[str] = []
        for one in state.graph.order:
            kind = state.graph.types.get(one.name)
            shape = "" if kind is None else f"{kind.dtype}{list(kind.shape)}"
            lines.append(f"{one.name} = {one.operator}({', '.join(one.inputs)}) {shape}".rstrip())
        return "\n".join(lines)

    def export(self, state: GraphState, path: Path) -> list[Path]:
        """Write the model (.onnx).

        Raises:
            IrgymError: The suffix is another.
            StorageError: The file cannot be written.
        """
        from irgym.envs.graph.export import export

        return export(self, state, path)


def block_of(target: Target) -> int:
    """Return the channels of a block in ONNX Runtime's blocked layout: the lanes of a vector of float32."""
    return 16 if target.vector_bits >= 512 else 8
