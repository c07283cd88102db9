"""The task: one module of LLVM's IR and the passes to run on it."""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from irgym.base.errors import IrgymError, ScheduleError, UnknownPipelineError
from irgym.core.actions import Action, Mask
from irgym.core.baseline import ROUNDS
from irgym.core.cost import Call, Job, Measurement, Outcome
from irgym.core.objective import Objective
from irgym.core.observation import ObservationView
from irgym.core.schedule import Schedule, replay
from irgym.core.target import Target
from irgym.core.task import Task
from irgym.envs.llvm.actions import HORIZON, PASSES, SPACE, STOP
from irgym.envs.llvm.compiling.export import FORMS, export, opt_commands
from irgym.envs.llvm.compiling.modules import ProgramModules, Step, begin_passes
from irgym.envs.llvm.compiling.toolchain import toolchain
from irgym.envs.llvm.runner import SIZE
from irgym.envs.llvm.sequences import applying, fewest, prefixes, sequences, smallest
from irgym.envs.llvm.state import LlvmState
from irgym.envs.llvm.whole.running import Run
from irgym.envs.llvm.whole.timing import TIMING, WholeProgram
from irgym.llvmir.programs.clang import clang_version
from irgym.measure.target import host_target

RUNNER = "irgym.envs.llvm.runner"

INSTRUCTIONS = Objective("instructions", "", "instructions of LLVM's IR", exact=True, timed=False)
CODE_SIZE = Objective(SIZE, "bytes", "bytes of machine code", exact=True, timed=False)
TIME = Objective("time", "ns", "run time of a program with a main, in nanoseconds", exact=False, timed=True)

SPEED_PIPELINE = "o3"
"""Name of the pipeline that run times are compared with: as a baseline, it is timed in turn with results."""

LIST = "list"
"""Name of the list of sequences among the pipelines."""

LISTED = 320_000
"""Most instructions, summed over the sequences of the list that are tried: on large modules the first few."""

PIPELINES = {
    "oz": "LLVM's -Oz: O2 on functions with the attribute minsize",
    "o1": "LLVM's -O1",
    "o2": "LLVM's -O2",
    "o3": "LLVM's -O3",
    LIST: "the best of a short list of sequences that were found on training programs",
}
"""LLVM's own pipelines by name."""

SHOWN = 20
"""Number of opcodes that `describe` lists."""


class LlvmTask(Task[LlvmState]):
    """Ordering LLVM's passes on one module.

    Args:
        modules: The program and the modules derived from it.
        run: How the program is run, if it has a `main`.
        code_for: Target of the code that is timed; None for this machine. Other costs have no target.
        runs_always: Whether checks run it under the other objectives too.
    """

    space = SPACE
    objectives = (INSTRUCTIONS, CODE_SIZE, TIME)
    forms = FORMS
    horizon = HORIZON
    runs_beside = True

    def __init__(
        self,
        modules: ProgramModules,
        run: Run | None = None,
        code_for: Target | None = None,
        runs_always: bool = False,
    ) -> None:
        self.modules = modules
        self.uri = modules.uri
        self.timing = TIMING
        self._run = run or Run()
        self._code_for = code_for
        self._runs_always = runs_always
        self._listed: dict[str, Schedule] = {}

    @property
    def target(self) -> Target | None:
        """This machine, or the target named, for run times; None for other costs."""
        return (self._code_for or host_target()) if self.objective.timed else None

    @property
    def whole(self) -> WholeProgram:
        """The program, to be run."""
        return WholeProgram(self.modules.file, self.modules.pool.backend, self.uri, self._run)

    def initial(self) -> LlvmState:
        """Return the module without any pass.

        Raises:
            ProgramError: LLVM cannot read it.
        """
        root = self.modules.root
        return LlvmState((), node=root, before=root)

    def mask(self, state: LlvmState) -> Mask:
        """Return which passes may change the module, and `stop`; none after `stop` or a failure.

        A pass is masked if this LLVM has none of its name, or if it had no effect since the module last
        changed.
        """
        kinds = np.zeros(len(SPACE.kinds), dtype=np.bool_)
        if not self.terminal(state):
            kinds[:STOP] = self.modules.supported
            kinds[list(state.tried)] = False
            kinds[STOP] = True
        return Mask(kinds)

    def step(self, state: LlvmState, action: Action) -> LlvmState:
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
        return cls._begun(tasks, states, actions, at_once=True)()

    @classmethod
    def begin_many(
        cls, tasks: Sequence[Task[Any]], states: Sequence[Any], actions: Sequence[Action]
    ) -> Callable[[], list[Any]]:
        """Begin what `step_many` does; return a function that waits for the states."""
        return cls._begun(tasks, states, actions, at_once=False)

    @classmethod
    def _begun(
        cls, tasks: Sequence[Task[Any]], states: Sequence[Any], actions: Sequence[Action], at_once: bool
    ) -> Callable[[], list[Any]]:
        """Begin steps; `at_once`: the states are waited for next."""
        after: list[LlvmState] = list(states)
        places: list[int] = []
        steps: list[Step] = []
        for place, (task, state, action) in enumerate(zip(tasks, states, actions, strict=True)):
            assert isinstance(task, LlvmTask)
            if task.terminal(state):
                raise ScheduleError("no action applies after stop or after a pass that failed")
            if action.kind == STOP:
                after[place] = state.moved(STOP, stopped=True)
            else:
                places.append(place)
                steps.append((task.modules, state.node, action.kind))
        wait = begin_passes(steps, at_once=at_once)

        def stepped() -> list[LlvmState]:
            for place, (_, _, kind), result in zip(places, steps, wait(), strict=True):
                after[place] = states[place].after(kind, result)
            return after

        return stepped

    def terminal(self, state: LlvmState) -> bool:
        """Say whether `stop` was taken or a pass failed."""
        return state.terminal

    def identity(self, state: LlvmState) -> Hashable:
        """Return the digest of the module: passes that commute lead to the same one."""
        return state.node.digest, state.stopped, state.failure

    @property
    def views(self) -> Mapping[str, ObservationView]:
        """The observations by name, the default first."""
        from irgym.envs.llvm.observing.observations import VIEWS

        return VIEWS

    def key(self, state: LlvmState) -> str:
        """Return the names of the passes that changed the module, and of the one that failed, if any."""
        failed = [f"{SPACE.kinds[state.last].name}!"] if state.failure else []
        return " ".join([*(PASSES[kind].name for kind in state.path), *failed])

    def job(self, state: LlvmState) -> Job:
        """Return the request for the cost: numbers of instructions and failures are known."""
        known = None
        if state.failure:
            known = Measurement(Outcome.CRASH, detail=state.failure)
        elif self.objective == INSTRUCTIONS:
            known = Measurement(Outcome.OK, (float(state.node.total),))
        backend = self.modules.pool.backend
        made_by = f"{toolchain(backend)}; {self.modules.content}"
        if self.objective.timed:
            call = Call(f"{RUNNER}:time_program", (self.whole, state.path, self.timing))
            made_by += f"; {clang_version()}; {self._run.text}; {self.timing.version}"
        else:
            call = Call(f"{RUNNER}:measure", (self.modules.file, state.path, backend, self.objective.name))
        return Job(
            call,
            program=self.uri,
            schedule=self.key(state),
            toolchain=made_by,
            objective=self.objective.name,
            known=known,
            original=not state.path,
            target=self.target_text,
        )

    def validation(self, state: LlvmState, inputs: int, seed: int) -> Call:
        """Return the call that runs the functions before and after the passes, and compares what they do.

        A program that is timed is run as a whole too.
        """
        return self.validation_within(state, inputs, seed, math.inf)

    def validation_within(self, state: LlvmState, inputs: int, seed: int, seconds: float) -> Call:
        """Return the same call, which leaves out functions for which there is no time."""
        whole = self.whole if self.objective.timed or self._runs_always else None
        arguments = (self.modules.file, state.path, self.modules.pool.backend, inputs, seed, whole, seconds)
        return Call(f"{RUNNER}:validate", arguments)

    def baseline_call(self, name: str, state: LlvmState, rounds: int = ROUNDS) -> Call:
        """Return the call that times the program after -O3 and in a state in turn.

        Raises:
            IrgymError: The baseline is another one.
        """
        if name != SPEED_PIPELINE:
            raise IrgymError(f"llvm has no baseline {name!r}: choose {SPEED_PIPELINE}")
        theirs = replay(self, self.pipeline(SPEED_PIPELINE)).path
        return Call(f"{RUNNER}:compare", (self.whole, state.path, theirs, rounds, self.timing))

    def stage_call(self, before: LlvmState, after: LlvmState) -> Call:
        """Return the call that times the program in two states in turn."""
        return Call(f"{RUNNER}:stages", (self.whole, before.path, after.path, self.timing))

    def pipeline(self, name: str) -> Schedule:
        """Return the schedule of one of LLVM's pipelines; see `PIPELINES`.

        Raises:
            IrgymError: There is no such pipeline.
            UnknownPipelineError: The module is too large for the list, or -Oz fails on it.
        """
        if name not in PIPELINES:
            raise IrgymError(f"llvm has no pipeline {name!r}: choose among {', '.join(PIPELINES)}")
        if name != LIST:
            return Schedule((Action(self.modules.pipeline(name)),))
        if self.objective.name not in self._listed:
            tried = sequences()[: LISTED // max(1, self.modules.root.total)]
            if not tried:
                raise UnknownPipelineError(
                    f"{self.uri} has more than {LISTED:,} instructions, too many for the list of sequences: "
                    "choose oz, o2 or o3"
                )
            oz = replay(self, self.pipeline("oz"))
            if oz.failure:
                raise UnknownPipelineError(
                    f"LLVM's -Oz fails on {self.uri} ({oz.failure}), so its list of sequences is not tried: "
                    "choose a smaller or another program"
                )
            states = [oz, *prefixes(self, tried)]  # fewest instructions are not always the least code
            best = smallest(self, states) if self.objective == CODE_SIZE else min(states, key=fewest)
            self._listed[self.objective.name] = Schedule(tuple(Action(kind) for kind in best.path))
        return self._listed[self.objective.name]

    def sketch(self, rng: np.random.Generator) -> Sequence[Action]:
        """Return a random sequence of the list, without what does not apply; searches start from it too."""
        known = sequences()
        return applying(self, known[rng.integers(len(known))])

    def describe(self, state: LlvmState) -> str:
        """Return the passes for opt, and the number of instructions before and after."""
        first, now = self.modules.root.total, state.node.total
        return f"{opt_commands(self.modules, state.path)}instructions {first} -> {now}"

    def text(self, state: LlvmState) -> str:
        """Return the module in a state as text."""
        return str(self.modules.ask("text", state.path))

    def listings(self, state: LlvmState) -> Mapping[str, str]:
        """Return LLVM's IR of the module."""
        return {"LLVM's IR": self.text(state)}

    def export(self, state: LlvmState, path: Path) -> list[Path]:
        """Write the module (.ll, .bc), its object file (.o), or the passes for opt (.txt).

        Raises:
            IrgymError: The suffix is none of these, or LLVM generates no code.
            StorageError: The file cannot be written.
        """
        return export(self.modules, state.path, path)
