"""LoopTune's schedules lead to the same loops here."""

import random

import pytest

from irgym.base.errors import ScheduleError
from irgym.core.schedule import Schedule, replay
from irgym.envs.loops.environment import LOOPS
from irgym.envs.loops.looptune import translated
from irgym.envs.loops.nest import initial_nest

URI = "loops://mm/64x96x80"
ACTIONS = ("up", "down", "swap_up", "swap_down", "split_2", "split_4", "split_8", "split_16", "merge")


class Theirs:
    """LoopTune's loops, as (dimension, iterations), and its cursor, after its agent and `mutate.cpp`."""

    def __init__(self, dims: tuple[tuple[str, int], ...]) -> None:
        self.loops = list(dims)
        self.cursor = 0

    def act(self, name: str) -> None:
        at, (dim, count) = self.cursor, self.loops[self.cursor]
        if name in ("up", "down"):
            self.cursor = min(max(at + (1 if name == "down" else -1), 0), len(self.loops) - 1)
        elif name in ("swap_up", "swap_down"):
            other = at + (1 if name == "swap_down" else -1)
            if 0 <= other < len(self.loops) and self.loops[other][0] != dim:
                self.loops[at], self.loops[other] = self.loops[other], self.loops[at]
                self.cursor = other
        elif name == "merge":
            outer = [place for place in range(at) if self.loops[place][0] == dim]
            if outer:
                self.loops[outer[-1]] = (dim, self.loops[outer[-1]][1] * count)
                del self.loops[at]
                self.cursor = min(at, len(self.loops) - 1)
        else:
            factor = int(name.removeprefix("split_"))
            if count % factor == 0 and 1 < factor < count and len(self.loops) < 12:
                self.loops[at : at + 1] = [(dim, count // factor), (dim, factor)]


@pytest.mark.parametrize("seed", range(30))
def test_random_schedules_lead_to_the_same_loops(seed: int):
    rng, task = random.Random(seed), LOOPS.task(URI)
    theirs = Theirs(task.contraction.dims)
    taken: list[str] = []
    for _ in range(25):
        name = rng.choice(ACTIONS)
        before = theirs.cursor, list(theirs.loops)
        theirs.act(name)
        # Without tails, so that the number of iterations says it all.
        if name.startswith("split") and (theirs.cursor, theirs.loops) == before:
            continue
        taken.append(name)
    state = replay(task, translated(task, taken))
    ours = [
        (loop.dim, state.nest.trips(task.contraction, place)) for place, loop in enumerate(state.nest.loops)
    ]
    assert (ours, state.cursor) == (theirs.loops, theirs.cursor), taken


def test_merge_joins_with_the_parent_across_other_loops():
    task = LOOPS.task(URI)
    split = "split_8 down swap_down swap_down"
    assert replay(task, Schedule.parse(split, task.space)).nest.text() == "m/8 k n m"
    found = translated(task, [*split.split(), "merge"])
    assert found.text(task.space) == f"{split} swap_up swap_up up merge down down"
    assert replay(task, found).nest == initial_nest(task.contraction)


def test_actions_that_do_not_apply_change_nothing_and_unknown_ones_are_refused():
    task = LOOPS.task(URI)
    assert not translated(task, ["up", "merge", "swap_up", "dummy", "split_1024"]).actions
    assert translated(task, ["vectorize"]).text(task.space) in ("", "vectorise")
    with pytest.raises(ScheduleError, match="loops has no copy_input_0"):
        translated(task, ["copy_input_0"])
    with pytest.raises(ScheduleError, match="leaves a remainder of an inner loop of 8 iterations"):
        translated(task, ["split_8", "down", "split_5"])
    with pytest.raises(ScheduleError):
        translated(task, ["fly"])
