"""Schedules of LoopTune (arXiv 2309.01825) as schedules of `loops`.

Most actions have the same name and effect. Two differ: LoopTune's `merge` joins a loop with the nearest one
*outside* it over the same dimension, whatever stands between, and its `vectorize` is `vectorise` here. The
cursor of LoopTune stays where an action does not apply; after `merge`, it is on the loop that follows the
removed one.
"""

import re
from collections.abc import Iterator, Sequence

from irgym.base.errors import ScheduleError
from irgym.core.actions import Action
from irgym.core.schedule import Schedule
from irgym.envs.loops.state import LoopsState
from irgym.envs.loops.task import LoopsTask

RENAMED = {"vectorize": "vectorise"}
"""Actions with another name here."""

IGNORED = ("dummy", "")
"""LoopTune's actions that do nothing."""

SKIPPED = ("copy_input_0", "copy_input_1", "increase_reuse", "decrease_reuse")
"""Actions of LoopTune's library, not of its agents, that have no counterpart: packing comes nearest."""


def translated(task: LoopsTask, actions: Sequence[str]) -> Schedule:
    """Return the schedule that leads to the loops that actions of LoopTune lead to.

    Actions that do not apply are left out: in LoopTune they change nothing.

    Args:
        task: The program.
        actions: LoopTune's actions, such as `["split_8", "down", "swap_down"]`.

    Raises:
        ScheduleError: One is no action of LoopTune's agents, or splits an inner loop with a remainder.
    """
    state, taken = task.initial(), list[Action]()
    for name in actions:
        if name in IGNORED:
            continue
        for action in _ours(task, state, name):
            if not task.space.allows(task.mask(state), action):
                break
            state = task.step(state, action)
            taken.append(action)
    return Schedule(tuple(taken))


def _ours(task: LoopsTask, state: LoopsState, name: str) -> Iterator[Action]:
    """Yield the actions that stand for one of LoopTune's."""
    if name == "merge":
        parent = state.nest.parents[state.cursor]
        if parent is None:
            return
        # The loop moves outwards until it is next to the other one, which `merge` then joins with it.
        back = min(state.cursor, len(state.nest.loops) - 2) - parent
        moves = ["swap_up"] * (state.cursor - parent - 1)
        yield from _parsed(task, " ".join([*moves, "up", "merge", *["down"] * back]))
        return
    _check_remainder(task, state, name)
    if name in SKIPPED:
        raise ScheduleError(f"loops has no {name}: leave it out; pack_a and pack_b copy inputs")
    yield from _parsed(task, RENAMED.get(name, name))


def _check_remainder(task: LoopsTask, state: LoopsState, name: str) -> None:
    """Make sure that a split of an inner loop leaves no remainder, as LoopTune's may.

    Raises:
        ScheduleError: It leaves one.
    """
    split = re.fullmatch(r"split_([1-9][0-9]*)", name)
    trips = state.nest.trips(task.contraction, state.cursor)
    inner = state.nest.parents[state.cursor] is not None
    if split and inner and int(split[1]) < trips and trips % int(split[1]):
        raise ScheduleError(
            f"{name} leaves a remainder of an inner loop of {trips} iterations, which loops has not: split "
            "it by a divisor"
        )


def _parsed(task: LoopsTask, text: str) -> Sequence[Action]:
    return Schedule.parse(text, task.space).actions
