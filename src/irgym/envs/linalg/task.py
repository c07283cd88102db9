"""The task: a program's operations, scheduled one after the other, the last first."""

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.core.actions import Action, ActionSpace, Mask
from irgym.core.cost import Call, Job
from irgym.core.errors import ScheduleError
from irgym.core.task import Task
from irgym.envs.linalg import actions
from irgym.envs.linalg.export import FORMS, export
from irgym.envs.linalg.openmp import PARALLEL_TIMING, toolchain_with
from irgym.envs.linalg.operations import Program, Sort
from irgym.envs.linalg.predictors import predictors
from irgym.envs.linalg.recorded import actions_of, state_of, text_of
from irgym.envs.linalg.script import script
from irgym.envs.linalg.sketches import sketch
from irgym.envs.linalg.transformations import (
    STEPS,
    Scheduled,
    Transformation,
    as_matmul,
    can_img2col,
    can_tile,
    can_tile_in_parallel,
    can_vectorise,
    fusible,
    is_product,
    tile_sizes,
)
from irgym.measure.machine import threads_text
from irgym.measure.timing import Timing


@dataclass(frozen=True)
class LinalgState:
    """The operations and what was done to them.

    Attributes:
        operations: All operations, in the program's order.
        turn: Place in `LinalgTask.order` of the operation at hand; past its end when all had their turn.
        placed: Loops that an interchange under way has placed, the outermost first.
        spent: Actions taken on the operation at hand, those without effect included.
        barred: Kinds of actions that would lead nowhere: those that had no effect since the last change, and
            an interchange after another.
    """

    operations: tuple[Scheduled, ...]
    turn: int = 0
    placed: tuple[int, ...] = ()
    spent: int = 0
    barred: frozenset[int] = frozenset()


class LinalgTask(Task[LinalgState]):
    """Scheduling one program, compiled by MLIR and LLVM and timed.

    Args:
        uri: Canonical URI of the program.
        text: Its MLIR, the operations numbered.
        program: What it is made of.
        threads: Threads that parallel loops run on, by OpenMP; None makes them sequential.
        space: The actions: one of those that `actions.space_with` returns.
    """

    forms = FORMS

    def __init__(
        self,
        uri: str,
        text: str,
        program: Program,
        *,
        threads: int | None = None,
        space: ActionSpace = actions.SPACE,
    ) -> None:
        self.uri = uri
        self.space = space
        self.interchange = actions.INTERCHANGES[space.kinds[actions.INTERCHANGE].name]
        self.text = text
        self._content = hashlib.sha256(text.encode()).hexdigest()[:16]
        self.program = program
        self.threads = threads
        self.timing = PARALLEL_TIMING if threads else TIMING
        self.order = tuple(
            operation.place for operation in reversed(program.operations) if operation.sort is not Sort.FILL
        )
        deepest = max(operation.loops for operation in program.operations)
        self.horizon = len(self.order) * (STEPS + deepest)

    def initial(self) -> LinalgState:
        """Return the program as written, with its last operation at hand."""
        return LinalgState(tuple(Scheduled(operation) for operation in self.program.operations))

    def terminal(self, state: LinalgState) -> bool:
        """Say whether all operations had their turn."""
        return state.turn >= len(self.order)

    def at_hand(self, state: LinalgState) -> int:
        """Return the place of the operation that actions apply to."""
        return self.order[state.turn]

    def mask(self, state: LinalgState) -> Mask:
        """Return which transformations apply to the operation at hand; MLIR accepts every one of them."""
        kinds = np.zeros(len(self.space.kinds), dtype=np.bool_)
        params = np.zeros(self.space.param_count, dtype=np.bool_)
        if self.terminal(state):
            return Mask(kinds, params)
        scheduled = state.operations[self.at_hand(state)]
        operation = scheduled.operation
        orders = self.interchange.choices(state.placed, operation.loops)
        begin = self.space.slot_offsets[actions.INTERCHANGE][0]
        slot = slice(begin, begin + len(orders))
        if state.placed:
            kinds[actions.INTERCHANGE] = True
            params[slot] = orders
            return Mask(kinds, params)
        kinds[actions.NEXT] = True
        if state.spent >= STEPS:
            return Mask(kinds, params)
        kinds[actions.TILE] = can_tile(scheduled)
        kinds[actions.TILE_PARALLEL] = can_tile_in_parallel(scheduled)
        kinds[actions.FUSE] = kinds[actions.TILE_PARALLEL] and bool(
            fusible(self.program, state.operations, self.at_hand(state))
        )
        kinds[actions.INTERCHANGE] = can_tile(scheduled) and operation.loops > 1
        kinds[actions.IMG2COL] = can_img2col(scheduled)
        kinds[actions.VECTORISE] = can_vectorise(scheduled)
        kinds[list(state.barred)] = False
        params[self.space.slot_offsets[actions.VECTORISE][0]] = True
        params[self.space.slot_offsets[actions.VECTORISE][0] + 1] = is_product(operation)
        if kinds[actions.INTERCHANGE]:
            params[slot] = orders
        for kind in (actions.TILE, actions.TILE_PARALLEL, actions.FUSE):
            if kinds[kind]:
                sizes = np.array(tile_sizes(operation, kind != actions.TILE)).reshape(-1)
                begin = self.space.slot_offsets[kind][0]
                params[begin : begin + len(sizes)] = sizes
        return Mask(kinds, params)

    def step(self, state: LinalgState, action: Action) -> LinalgState:
        """Return the state after a transformation, or with the next operation at hand.

        Raises:
            ScheduleError: All operations had their turn.
        """
        if self.terminal(state):
            raise ScheduleError("no action applies after the first operation had its turn")
        if action.kind == actions.NEXT:
            return LinalgState(state.operations, state.turn + 1)
        place = self.at_hand(state)
        scheduled = state.operations[place]
        operation = scheduled.operation
        if action.kind == actions.INTERCHANGE:
            return self._interchanged(state, action.params[0])
        changed: Mapping[int, Scheduled] = {}
        if action.kind == actions.VECTORISE:
            changed = {place: scheduled.then(Transformation("vectorise", action.params))}
        elif action.kind == actions.IMG2COL:
            changed = {place: scheduled.then(Transformation("img2col"), as_matmul(operation))}
        else:
            sizes = actions.sizes_of(action.params, operation.loops)
            if any(sizes):
                step = Transformation(self.space.kinds[action.kind].name, sizes)
                changed = self._tiled(state, place, step)
        return self._after(state, action.kind, changed)

    def _after(self, state: LinalgState, kind: int, changed: Mapping[int, Scheduled]) -> LinalgState:
        """Return the state after an action that changed some operations, or none."""
        if not changed:
            return replace(state, placed=(), spent=state.spent + 1, barred=state.barred | {kind})
        operations = tuple(changed.get(one, other) for one, other in enumerate(state.operations))
        final = kind == actions.INTERCHANGE and self.interchange.whole
        barred = frozenset({kind} if final else ())
        return LinalgState(operations, state.turn, spent=state.spent + 1, barred=barred)

    def _tiled(self, state: LinalgState, place: int, step: Transformation) -> dict[int, Scheduled]:
        """Return the operations that a tiling changes."""
        scheduled = state.operations[place]
        within = scheduled.operation.tiled(step.numbers)
        if step.name == "tile":
            return {place: replace(scheduled.then(step, within), tiled=True)}
        changed = {place: replace(scheduled.then(step, within), parallel=True)}
        if step.name == "fuse":
            for producer in fusible(self.program, state.operations, place):
                load = next(load for load in within.loads if load.producer == producer)
                other = state.operations[producer]
                part = other.operation.produced_for(load.extents(within.bounds))
                changed[producer] = replace(other, operation=part, parallel=True, consumer=place)
        return changed

    def _interchanged(self, state: LinalgState, choice: int) -> LinalgState:
        """Return the state after a choice of an interchange, which may be but a part of it."""
        place = self.at_hand(state)
        scheduled = state.operations[place]
        order = self.interchange.place(state.placed, choice, scheduled.operation.loops)
        if len(order) < scheduled.operation.loops:
            return replace(state, placed=order)
        if order == tuple(range(len(order))):
            return self._after(state, actions.INTERCHANGE, {})
        step = Transformation("interchange", order)
        changed = scheduled.then(step, scheduled.operation.interchanged(order))
        return self._after(state, actions.INTERCHANGE, {place: changed})

    def identity(self, state: LinalgState) -> Hashable:
        """Return what was done to the operations and which is at hand, without what it took to get there."""
        return state.operations, state.turn, state.placed

    def sketch(self, rng: np.random.Generator) -> Sequence[Action]:
        """Return a random schedule of tiles for registers and caches, and of vectors."""
        return sketch(self, rng)

    def predictors(self, state: LinalgState) -> NDArray[np.float64]:
        """Return what `predictors` makes of the operations as they are now, shape [PREDICTORS]."""
        return predictors(self.program, state.operations)

    def recorded(self, schedule: str) -> LinalgState | None:
        """Return the state of a text, with all operations done; None where it describes none of this program.

        Texts hold any order of loops, whichever way interchanges are written in.
        """
        whole = LinalgTask(self.uri, self.text, self.program, threads=self.threads)
        return state_of(whole, schedule)

    def recorded_actions(self, schedule: str) -> Sequence[Action] | None:
        """Return the actions to what a text describes; None where they cannot be taken in this space."""
        return actions_of(self, schedule) if self.space == actions.SPACE else None

    def script(self, state: LinalgState) -> str:
        """Return the transform-dialect script of a state; empty where nothing is transformed."""
        return script(self.program, state.operations)

    def job(self, state: LinalgState) -> Job:
        """Return the request for the program's time."""
        script = self.script(state)
        arguments = (self.text, script, self.timing, self.threads)
        compiler, threads = toolchain_with(self.threads), threads_text(self.threads or 1)
        return Job(
            Call("irgym.envs.linalg.runner:measure", arguments),
            program=self.uri,
            schedule=text_of(state),
            toolchain=f"{compiler}; {self._content}; {threads}; {self.timing.version}",
            original=not script,
        )

    def validation(self, state: LinalgState, inputs: int, seed: int) -> Call:
        """Return the call that compares the program's results with those of the program as written."""
        arguments = (self.text, self.script(state), inputs, seed, self.threads)
        return Call("irgym.envs.linalg.runner:validate", arguments)

    def observe(self, state: LinalgState) -> Any:
        """Return what `features` makes of the operation at hand and of its producer."""
        from irgym.envs.linalg.features import features

        return features(self, state)

    def describe(self, state: LinalgState) -> str:
        """Return each operation with its loops and what was done to it."""
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
        """Write the schedule (.transform.mlir), the program after it (.mlir), or LLVM's code (.ll).

        Raises:
            IrgymError: The suffix is none of these.
            StorageError: A file cannot be written.
        """
        return export(self, state, path)


TIMING = Timing()
"""How candidates are timed."""
