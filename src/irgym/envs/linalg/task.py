"""The task: schedule a program's operations one after the other, starting with the last."""

import hashlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from irgym.core.actions import Action, ActionSpace
from irgym.core.baseline import ROUNDS
from irgym.core.cost import Call, Job
from irgym.core.objective import COLD, TIME
from irgym.core.observation import ObservationView
from irgym.core.schedule import Schedule
from irgym.core.target import Target
from irgym.core.task import Task
from irgym.envs.linalg import actions
from irgym.envs.linalg.compiling.export import FORMS, export
from irgym.envs.linalg.compiling.openmp import PARALLEL_TIMING, toolchain_with
from irgym.envs.linalg.observing.cost_features import cost_features
from irgym.envs.linalg.programs.weights import names_of_weights
from irgym.envs.linalg.scheduling.operations import Program
from irgym.envs.linalg.scheduling.recorded import actions_of, state_of, text_of
from irgym.envs.linalg.scheduling.script import script
from irgym.envs.linalg.scheduling.sketches import sketch
from irgym.envs.linalg.scheduling.transformations import STEPS
from irgym.envs.linalg.state import LinalgState
from irgym.envs.linalg.transitions import Transitions
from irgym.measure.baselines import held_to
from irgym.measure.machine import threads_text
from irgym.measure.timing import DEFAULT_TIMING, Timing


class LinalgTask(Transitions, Task[LinalgState]):
    """The schedules of one program, compiled by MLIR and LLVM and timed.

    Args:
        uri: Canonical URI of the program.
        text: MLIR of the program, its operations numbered.
        program: Description of the program.
        target: Target of the code.
        threads: Threads of parallel loops, by OpenMP; None makes them sequential.
        space: The action space, from `actions.space_with`.
        divide: Returns the task of each operation with a turn, in the program's order; equal operations share
            one task. None where the program cannot be divided.
    """

    forms = FORMS
    objectives = (TIME, COLD)

    def __init__(
        self,
        uri: str,
        text: str,
        program: Program,
        *,
        target: Target,
        threads: int | None = None,
        space: ActionSpace = actions.SPACE,
        divide: "Callable[[], Sequence[LinalgTask]] | None" = None,
    ) -> None:
        super().__init__(program, space)
        self.uri = uri
        self.text = text
        self._content = hashlib.sha256(text.encode()).hexdigest()[:16]
        self._target = target
        self.threads = threads
        self._divide = divide
        deepest = max(operation.loops for operation in program.operations)
        self.horizon = len(self.order) * (STEPS + deepest)

    @property
    def timing(self) -> Timing:
        """The timing protocol."""
        timing = PARALLEL_TIMING if self.threads else DEFAULT_TIMING
        return timing.emptying() if self.objective == COLD else timing

    @property
    def target(self) -> Target:
        """Target of the code."""
        return self._target

    def identity(self, state: LinalgState) -> Hashable:
        """Return the scheduled operations and the current one, without the number of actions taken."""
        return state.operations, state.turn, state.placed

    def taken(self, state: LinalgState) -> int:
        """Return how many actions the current operation has had."""
        return state.spent

    def sketch(self, rng: np.random.Generator) -> Sequence[Action]:
        """Return a random schedule that tiles for registers and caches, and vectorises."""
        return sketch(self, self.target, rng)

    def parts(self) -> Sequence[Task[LinalgState]]:
        """Return a task for each operation with a turn; none where there is only one such operation."""
        if self._divide is None or len(self.order) < 2:
            return ()
        parts = self._divide()
        under = {id(part): part.under(self.objective.name) for part in parts}
        return [under[id(part)] for part in parts]

    def joined(self, schedules: Sequence[Schedule]) -> Schedule:
        """Return the schedule of the whole program that applies each part's schedule to its operation."""
        turn = Action(actions.NEXT)
        alone = [[action for action in schedule.actions if action != turn] for schedule in schedules]
        return Schedule(tuple(action for steps in reversed(alone) for action in (*steps, turn)))

    def cost_features(self, state: LinalgState) -> NDArray[np.float64]:
        """Return the features of a state for cost models, shape [COST_FEATURES]."""
        return cost_features(self.program, state.operations)

    def recorded(self, schedule: str) -> LinalgState | None:
        """Return the terminal state that a key describes; None where it is no schedule of this program.

        Keys hold any order of loops, whichever encoding of interchanges the space has.
        """
        return state_of(Transitions(self.program), schedule)

    def recorded_actions(self, schedule: str) -> Sequence[Action] | None:
        """Return the actions that lead to the state of a key; None where this space cannot reach it."""
        return actions_of(self, schedule) if self.space == actions.SPACE else None

    def script(self, state: LinalgState) -> str:
        """Return the transform-dialect script of a state; empty where nothing is transformed."""
        return script(self.program, state.operations)

    def key(self, state: LinalgState) -> str:
        """Return the transformations of each operation, as text."""
        return text_of(state)

    def job(self, state: LinalgState) -> Job:
        """Return the request for the program's time."""
        script = self.script(state)
        arguments = (self.text, script, self.target, self.timing, self.threads)
        compiler, threads = toolchain_with(self.threads), threads_text(self.threads or 1)
        return Job(
            Call("irgym.envs.linalg.runner:measure", arguments),
            program=self.uri,
            schedule=self.key(state),
            toolchain=f"{compiler}; {self._content}; {threads}; {self.timing.version}",
            objective=self.objective.name,
            original=not script,
            target=self.target_text,
        )

    def validation(self, state: LinalgState, inputs: int, seed: int) -> Call:
        """Return the call that compares the scheduled program's results with the original's."""
        arguments = (self.text, self.script(state), self.target, inputs, seed, self.threads)
        return Call("irgym.envs.linalg.runner:validate", arguments)

    @property
    def views(self) -> Mapping[str, ObservationView]:
        """The observations by name, the default first."""
        from irgym.envs.linalg.observing.observations import VIEWS

        return VIEWS

    def baseline_call(self, name: str, state: LinalgState, rounds: int = ROUNDS) -> Call:
        """Return the call that times a baseline and the scheduled program in turn."""
        script = self.script(state)
        arguments = (self.uri, self.text, script, self.target, name, rounds, self.threads, self.timing)
        return Call("irgym.envs.linalg.runner:compare", arguments, held_to(self.target))

    def describe(self, state: LinalgState) -> str:
        """Return a line for each operation: its loops and its transformations."""
        lines: list[str] = []
        for scheduled in state.operations:
            original = self.program.operations[scheduled.operation.place]
            loops = " x ".join(
                f"{bound}{'' if parallel else 'r'}"
                for bound, parallel in zip(original.bounds, original.parallel, strict=True)
            )
            steps = ", ".join(step.text for step in scheduled.steps)
            if scheduled.consumer >= 0:
                steps = ", ".join(filter(None, [f"fused into {scheduled.consumer}", steps]))
            lines.append(f"{original.place:>3} {original.name:<24} {loops:<32} {steps}".rstrip())
        return "\n".join(lines)

    def export(self, state: LinalgState, path: Path) -> list[Path]:
        """Write the schedule (.transform.mlir), the scheduled program (.mlir), or its code (.ll, .o, .so).

        Raises:
            IrgymError: The suffix is none of these.
            StorageError: A file cannot be written.
        """
        script, names = self.script(state), names_of_weights(self.uri)
        return export(self.text, self.program, script, self.target, self.threads, path, names)
