"""Transitions between states: the effects of actions, and the mask of those that apply."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from irgym.base.errors import ScheduleError
from irgym.core.actions import Action, ActionSpace, Mask
from irgym.envs.linalg import actions
from irgym.envs.linalg.scheduling.operations import Program
from irgym.envs.linalg.scheduling.transformations import (
    STEPS,
    Scheduled,
    Transformation,
    as_matmul,
    can_img2col,
    can_pack,
    can_tile,
    can_tile_in_parallel,
    can_vectorise,
    fitted,
    fused_into,
    fusible,
    is_product,
    parts_within,
    tile_sizes,
)
from irgym.envs.linalg.state import LinalgState


class Transitions:
    """The states of a program's schedules, and the actions between them.

    Attributes:
        program: Description of the program.
        space: The action space.
        interchange: Encoding of an interchange.
        tiling: Encoding of tile sizes.
        order: Places of the operations with a turn, in the order of their turns.
    """

    def __init__(self, program: Program, space: ActionSpace = actions.SPACE) -> None:
        """Store the program and the action space.

        Args:
            program: Description of the program.
            space: The action space, from `actions.space_with`.
        """
        self.program = program
        self.space = space
        self.interchange = actions.INTERCHANGES[space.kinds[actions.INTERCHANGE].name]
        self.tiling = actions.TILINGS[len(space.kinds[actions.TILE].slots)]
        self.order = tuple(reversed(program.turns))

    def initial(self) -> LinalgState:
        """Return the original program, with its last operation as the current one."""
        return LinalgState(tuple(Scheduled(operation) for operation in self.program.operations))

    def terminal(self, state: LinalgState) -> bool:
        """Say whether all operations had their turn."""
        return state.turn >= len(self.order)

    def at_hand(self, state: LinalgState) -> int:
        """Return the place of the current operation, to which actions apply."""
        return self.order[state.turn]

    def mask(self, state: LinalgState) -> Mask:
        """Return the actions that apply to the current operation; MLIR accepts every one of them."""
        kinds = np.zeros(len(self.space.kinds), dtype=np.bool_)
        params = np.zeros(self.space.param_count, dtype=np.bool_)
        if self.terminal(state):
            return Mask(kinds, params)
        scheduled = state.operations[self.at_hand(state)]
        operation = scheduled.operation
        orders = np.array(self.interchange.choices(state.placed, operation.loops)).reshape(-1)
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
        kinds[actions.FUSE] = kinds[actions.TILE_PARALLEL] and bool(fusible(self.program, operation))
        kinds[actions.INTERCHANGE] = can_tile(scheduled) and operation.loops > 1
        kinds[actions.IMG2COL] = can_img2col(scheduled)
        kinds[actions.VECTORISE] = can_vectorise(scheduled)
        begin_inputs = self.space.slot_offsets[actions.PACK][0]
        for operand in actions.INPUTS:
            params[begin_inputs + operand] = can_pack(scheduled, operand)
        kinds[actions.PACK] = params[begin_inputs : begin_inputs + len(actions.INPUTS)].any()
        kinds[list(state.barred)] = False
        params[self.space.slot_offsets[actions.VECTORISE][0]] = True
        params[self.space.slot_offsets[actions.VECTORISE][0] + 1] = is_product(operation)
        if kinds[actions.INTERCHANGE]:
            params[slot] = orders
        for kind in (actions.TILE, actions.TILE_PARALLEL, actions.FUSE):
            if kinds[kind]:
                sizes = self.tiling.choices(tile_sizes(operation, kind != actions.TILE))
                begin = self.space.slot_offsets[kind][0]
                params[begin : begin + len(sizes)] = sizes
                kinds[kind] = any(sizes)
        return Mask(kinds, params)

    def step(self, state: LinalgState, action: Action) -> LinalgState:
        """Return the state after a transformation, or with the next operation as the current one.

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
            return self._interchanged(state, action.params)
        changed: Mapping[int, Scheduled] = {}
        if action.kind in (actions.VECTORISE, actions.PACK):
            name = self.space.kinds[action.kind].name
            changed = {place: scheduled.then(Transformation(name, action.params))}
        elif action.kind == actions.IMG2COL:
            changed = {place: scheduled.then(Transformation("img2col"), as_matmul(operation))}
        else:
            sizes = fitted(scheduled, self.tiling.sizes(action.params, operation.loops))
            if any(sizes):
                step = Transformation(self.space.kinds[action.kind].name, sizes)
                changed = self._tiled(state, place, step)
        return self._after(state, action.kind, changed)

    def _after(self, state: LinalgState, kind: int, changed: Mapping[int, Scheduled]) -> LinalgState:
        """Return the state after an action that changed the given operations; they may be none."""
        if not changed:
            return replace(state, placed=(), spent=state.spent + 1, barred=state.barred | {kind})
        operations = tuple(changed.get(place, operation) for place, operation in enumerate(state.operations))
        final = kind == actions.INTERCHANGE and self.interchange.whole
        barred = frozenset({kind} if final else ())
        return LinalgState(operations, state.turn, spent=state.spent + 1, barred=barred)

    def _tiled(self, state: LinalgState, place: int, step: Transformation) -> dict[int, Scheduled]:
        """Return the operations that a tiling changes."""
        scheduled = state.operations[place]
        within = [part for whole in scheduled.parts for part in parts_within(whole, step.numbers)]
        tiled = scheduled.then(step, *within)
        if step.name == "tile":
            return {place: replace(tiled, tiled=True)}
        changed = {place: replace(tiled, parallel=True)}
        if step.name == "fuse":
            for producer, part in fused_into(self.program, within[0]).items():
                other = state.operations[producer]
                changed[producer] = replace(other, operation=part, parallel=True, consumer=place)
        return changed

    def _interchanged(self, state: LinalgState, params: tuple[int, ...]) -> LinalgState:
        """Return the state after an action of an interchange, which may need further ones."""
        place = self.at_hand(state)
        scheduled = state.operations[place]
        order = self.interchange.place(state.placed, params, scheduled.operation.loops)
        if len(order) < scheduled.operation.loops:
            return replace(state, placed=order)
        if order == tuple(range(len(order))):
            return self._after(state, actions.INTERCHANGE, {})
        step = Transformation("interchange", order)
        changed = scheduled.then(step, *(part.interchanged(order) for part in scheduled.parts))
        return self._after(state, actions.INTERCHANGE, {place: changed})
