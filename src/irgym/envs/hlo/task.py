"""The task: one HLO module and the passes to run on it."""

from collections.abc import Hashable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.base.errors import BackendError, IrgymError, ScheduleError
from irgym.core.actions import Action, Mask
from irgym.core.cost import Call, Job, Measurement, Outcome
from irgym.core.objective import Objective
from irgym.core.observation import ObservationView
from irgym.core.schedule import Schedule
from irgym.core.target import Target
from irgym.core.task import Task
from irgym.envs.hlo.actions import HORIZON, PASSES, SPACE, STOP
from irgym.envs.hlo.compiling.export import FORMS, export
from irgym.envs.hlo.compiling.modules import PassPath, ProgramModules, run_passes
from irgym.envs.hlo.compiling.pipelines import FINISHING, ORDERS, schedule_of
from irgym.envs.hlo.compiling.toolchain import toolchain
from irgym.envs.hlo.observing.opcodes import OPCODES
from irgym.envs.hlo.programs.uris import source_file
from irgym.envs.hlo.state import HloState
from irgym.measure.target import host_target
from irgym.measure.timing import Timing

TIMING = Timing(budget_ns=200_000_000, slow_ns=50_000_000, clock="process")
"""CPU time of the process, as XLA:CPU runs a module on another thread; a run takes milliseconds."""

OPS = Objective("ops", "", "operations in all computations", exact=True, timed=False)
ENTRY_OPS = Objective("entry-ops", "", "operations in the entry computation", exact=True, timed=False)
FLOPS = Objective("flops", "", "floating-point operations by XLA's cost analysis", exact=True, timed=False)
TIME = Objective("time", "ns", "run time on XLA:CPU in nanoseconds, one thread", exact=False, timed=True)

VALIDATION_S = 0.03
"""Upper limit of the seconds of validation for each operation: XLA:CPU compiles three modules."""


class HloTask(Task[HloState]):
    """Ordering XLA's passes on one module.

    Args:
        modules: The program and the modules derived from it.
        objective: The quantity to minimise.
        horizon: Steps of an episode.
        with_analysis: Whether every step also computes the cost analysis, which takes as long as some passes.
        code_for: Target of timed code; None for this machine. Other costs have no target.

    Raises:
        IrgymError: There is no such objective.
        BackendError: The objective is run time and the target is not this processor.
    """

    space = SPACE
    objectives = (OPS, ENTRY_OPS, FLOPS, TIME)
    forms = FORMS

    def __init__(
        self,
        modules: ProgramModules,
        objective: Objective = OPS,
        horizon: int = HORIZON,
        with_analysis: bool = False,
        code_for: Target | None = None,
    ) -> None:
        host = host_target()
        if objective.timed and code_for is not None and code_for.name != host.name:
            raise BackendError(
                f"hlo times the code that XLA:CPU makes for this processor, {host.name}, and none for "
                f"{code_for.name}: leave the target out, or choose another objective than time"
            )
        self._target = host if objective.timed else None
        self._code_for = code_for
        self.modules = modules
        self.uri = modules.uri
        self.objective = objective
        self.horizon = horizon
        self.with_analysis = with_analysis or objective == FLOPS
        self.timing = TIMING

    @property
    def target(self) -> Target | None:
        """This machine for run times; None for counts."""
        return self._target

    def initial(self) -> HloState:
        """Return the unoptimised module.

        Raises:
            ProgramError: XLA cannot read it.
        """
        root = self.modules.root
        return HloState((), node=root, before=root)

    def mask(self, state: HloState) -> Mask:
        """Return which passes may change the module, and `stop`; none after `stop` or a failure.

        A pass is masked if the module has no operation that it applies to, or if the pass had no effect since
        the module last changed.
        """
        if state.terminal:
            return Mask(np.zeros(len(SPACE.kinds), dtype=np.bool_))
        kinds = state.node.possible.copy()
        for kind in state.tried:
            kinds[kind] = False
        return Mask(kinds)

    def step(self, state: HloState, action: Action) -> HloState:
        """Return the state after a pass or `stop`.

        Raises:
            ScheduleError: The schedule has stopped or failed.
        """
        return self.step_many([self], [state], [action])[0]

    @classmethod
    def step_many(
        cls, tasks: Sequence[Task[Any]], states: Sequence[Any], actions: Sequence[Action]
    ) -> list[Any]:
        """Step states of many tasks, spreading the passes over the processes of the pool."""
        passes: dict[bool, list[tuple[int, tuple[ProgramModules, PassPath, int]]]] = {}
        after: list[HloState] = list(states)
        for place, (task, state, action) in enumerate(zip(tasks, states, actions, strict=True)):
            assert isinstance(task, HloTask)
            if task.terminal(state):
                raise ScheduleError("no action applies after stop or after a pass that failed")
            if action.kind == STOP:
                after[place] = state.moved(STOP, stopped=True)
            elif not state.node.possible[action.kind]:
                after[place] = state.moved(action.kind, stopped=False)
            else:
                step = (task.modules, state.path, action.kind)
                passes.setdefault(task.with_analysis, []).append((place, step))
        for analysed, steps in passes.items():
            results = run_passes([step for _, step in steps], analysed)
            for (place, (_, _, kind)), result in zip(steps, results, strict=True):
                after[place] = states[place].after(kind, result)
        return after

    def terminal(self, state: HloState) -> bool:
        """Say whether `stop` was taken or a pass failed."""
        return state.terminal

    def identity(self, state: HloState) -> Hashable:
        """Return the digest of the module's graph: passes that commute lead to the same one."""
        return self.modules.digest(state.path), state.stopped, state.failure

    @property
    def views(self) -> Mapping[str, ObservationView]:
        """The observations by name, the default first."""
        return _views()

    def cost_analysis(self, state: HloState) -> NDArray[np.float64]:
        """Return FLOPs, transcendental operations and bytes accessed, by XLA's cost analysis, shape [3]."""
        return np.array(self.modules.analysis(state.path, state.node), dtype=np.float64)

    def analysis(self, state: HloState) -> NDArray[np.float64]:
        """Return FLOPs, transcendental operations and bytes accessed, relative to the original, shape [3]."""
        first = np.array(self.modules.analysis((), self.modules.root))
        now = self.cost_analysis(state)
        return np.where(first > 0, now / np.maximum(first, 1.0), 1.0)

    def under(self, objective: str | None) -> "HloTask":
        """Return the same program with another objective; see `Task.under`.

        Raises:
            IrgymError: There is no such objective.
            BackendError: The objective is run time and the target is not this processor.
        """
        chosen = super().under(objective).objective
        return HloTask(self.modules, chosen, self.horizon, self.with_analysis, self._code_for)

    def analysed(self) -> "HloTask":
        """Return this task with the cost analysis at each step."""
        if self.with_analysis:
            return self
        return HloTask(self.modules, self.objective, self.horizon, True, self._code_for)

    def key(self, state: HloState) -> str:
        """Return the names of the passes that changed the module, and of the one that failed, if any."""
        failed = [f"{self.space.kinds[state.last].name}!"] if state.failure else []
        return " ".join([*(PASSES[kind].name for kind in state.path), *failed])

    def job(self, state: HloState) -> Job:
        """Return the request for the cost: counts and failures are known, run times are measured."""
        key = self.key(state)
        if self.objective.timed and not state.failure:
            arguments = (self.modules.file, state.path, self.timing)
            return Job(
                Call("irgym.envs.hlo.runner:measure", arguments),
                program=self.uri,
                schedule=key,
                toolchain=f"{toolchain()}; {self.modules.content}; {self.timing.version}",
                objective=self.objective.name,
                original=not key,
                target=self.target_text,
            )
        if state.failure:
            known = Measurement(Outcome.CRASH, detail=state.failure)
        else:
            known = Measurement(Outcome.OK, (self._count(state),))
        name = self.objective.name
        call = Call("irgym.envs.hlo.runner:count", (self.modules.file, state.path, name))
        return Job(call, self.uri, key, toolchain(), name, known, target=self.target_text)

    def _count(self, state: HloState) -> float:
        if self.objective == FLOPS:
            return self.modules.analysis(state.path, state.node)[0]
        return float(state.node.entry if self.objective == ENTRY_OPS else state.node.total)

    def validation(self, state: HloState, inputs: int, seed: int) -> Call:
        """Return the call that runs the module and the original on XLA:CPU and compares their results."""
        arguments = (self.modules.file, state.path, inputs, seed, source_file(self.uri))
        return Call("irgym.envs.hlo.runner:validate", arguments)

    def preparation(self, inputs: int, seed: int) -> Call:
        """Return the call that compiles the original ahead of a comparison."""
        return Call("irgym.envs.hlo.runner:prepare", (self.modules.file, seed, source_file(self.uri)))

    def warming(self) -> None:
        """Return nothing: measuring needs no results of the original."""

    def validation_s(self) -> float:
        """Return an upper limit of the seconds of validation, by the number of operations."""
        return VALIDATION_S * self.initial().node.total

    def pipeline(self, name: str) -> Schedule:
        """Return the passes of one of XLA's default orders that change the program.

        Raises:
            IrgymError: There is no such order.
        """
        if name not in ORDERS:
            raise IrgymError(f"hlo has no order {name!r}: choose among {', '.join(ORDERS)}")
        return schedule_of(ORDERS[name], self)

    def finishing(self, state: HloState) -> Schedule:
        """Return the passes of `FINISHING` that change the module of a state."""
        return Schedule() if self.terminal(state) else schedule_of(FINISHING, self, state)

    def describe(self, state: HloState) -> str:
        """Return the number of operations of each opcode, before and after."""
        first, now = self.modules.root.counts, state.node.counts
        order = np.argsort(-np.maximum(first, now), kind="stable")
        rows = [
            f"{OPCODES[place]:<24}{first[place]:>8} -> {now[place]}"
            for place in order[:20]
            if first[place] or now[place]
        ]
        total = f"{'all operations':<24}{self.modules.root.total:>8} -> {state.node.total}"
        return "\n".join([total, *rows])

    def export(self, state: HloState, path: Path) -> list[Path]:
        """Write the module: HLO text (.hlo, .txt), HloModuleProto (.pb) or StableHLO text (.mlir).

        Raises:
            IrgymError: The suffix is none of these, or the file cannot be written.
        """
        return export(self.modules, state.path, path)


@cache
def _views() -> Mapping[str, ObservationView]:
    from irgym.envs.hlo.observing.observations import VIEWS

    return VIEWS
