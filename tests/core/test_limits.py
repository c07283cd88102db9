from typing import Any

import dials
import numpy as np
import passes
import pytest
import rewriting
from hypothesis import given, settings
from hypothesis import strategies as st

from irgym.base.errors import IrgymError
from irgym.core import capabilities, lockstep
from irgym.core.actions import Mask
from irgym.core.allowed import steps_of
from irgym.core.catalogue import ENVIRONMENTS
from irgym.core.kinds import ActionKind
from irgym.core.limits import UNLIMITED, Limits, kept, limited, limits_of, within
from irgym.core.observation import ObservationView
from irgym.core.schedule import Schedule, replay
from irgym.core.task import Task
from irgym.search import SEARCHES
from irgym.search.budget import Budget
from irgym.search.request import SearchRequest
from irgym.search.run import run_search

DIALS = dials.Dials((0, 1, 2))


def texts(text: str, task: Task[Any] = DIALS) -> set[str]:
    """Return the actions of the first step of a restriction, where everything applies."""
    space = task.space
    everything = Mask(np.ones(len(space.kinds), bool), np.ones(space.param_count, bool))
    return {space.text(action) for action in space.legal(steps_of(text, space)[0].restricted(everything))}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("reset,stop", {"reset", "stop"}),
        (" reset , stop", {"reset", "stop"}),
        ("all_3,all_4", {"all_3", "all_4"}),
        ("all_3,all_4,all_3", {"all_3", "all_4"}),
        ("turn_1", {"turn_1_1"}),
        ("turn_1,turn_2", {f"turn_{dial}_{digit}" for dial in (1, 2) for digit in (1, 2)}),
        ("!turn,!all", {"reset", "stop"}),
        ("!turn,!all_0,!all_1,!stop", {"reset", "all_2", "all_3", "all_4"}),
        ("[rs]*", {"reset", "stop"}),
        ("!*t*,!all_0,!all_1,!all_2,!all_3", {"all_4"}),
    ],
)
def test_names_of_actions(text: str, wanted: set[str]) -> None:
    assert texts(text) == wanted


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("jump", "no action 'jump': choose among turn, reset, all, stop; a value may follow, as in turn_2"),
        ("all_9", "no action 'all_9'"),
        ("turn_0_1", "no action 'turn_0_1'"),
        ("reset_1", "no action 'reset_1'"),
        ("", "names no action in one of its steps"),
        ("reset;", "names no action in one of its steps"),
        ("reset,!stop", "mixes names with and without !"),
        ("!*", "leave none"),
        ("reset;stop", "dials do not count steps"),
    ],
)
def test_restrictions_that_make_no_sense(text: str, reason: str) -> None:
    with pytest.raises(IrgymError, match=reason) as refused:
        limited(DIALS, Limits(actions=text))
    assert "\n" not in str(refused.value)


def test_limits_that_a_task_has_take_precedence() -> None:
    assert limited(DIALS, UNLIMITED) is DIALS and limits_of(DIALS) == UNLIMITED
    first = limited(DIALS, Limits(horizon=2))
    both = limited(first, Limits(3, "reset,all"))
    assert limits_of(both) == Limits(2, "reset,all") and both.horizon == 2 and both.wrapped is DIALS
    free = limited(limited(DIALS, Limits(actions="all")), Limits(actions="reset"))
    assert free.space.legal(free.mask(free.initial())) == DIALS.space.legal(DIALS.mask(DIALS.initial()))


TASKS: dict[str, tuple[Any, str]] = {
    "dials": (DIALS, "turn_0,turn_1,turn_2,reset"),
    "rewriting": (rewriting.Rewriting("tsbts"), "merge,fuse"),
    "passes": (passes.PassTask(passes.URIS[0]), "!stop"),
    "loops": (ENVIRONMENTS.load("loops").task("loops://mm/16x16x16"), "up,down,swap_*,split_4,split_8"),
    "linalg": (ENVIRONMENTS.load("linalg").task("linalg://matmul/16x16x16"), "tile_8,interchange;vectorise"),
}


@pytest.mark.parametrize("name", TASKS)
@settings(max_examples=12)
@given(seed=st.integers(0, 99))
def test_walks_within_limits(name: str, seed: int) -> None:
    whole, actions = TASKS[name]
    task = limited(whole, Limits(7, actions))
    allowed, rng = steps_of(actions, task.space), np.random.default_rng(seed)
    state, taken = task.initial(), []
    turns = capabilities.ask(whole, capabilities.Turns)
    view: ObservationView = next(iter(task.views.values()))
    while len(taken) < task.horizon and not task.terminal(state):
        mask, before = task.mask(state), whole.mask(state)
        assert task.space.takeable(mask)
        assert not (mask.kinds & ~before.kinds).any() and not (mask.params & ~before.params).any()
        step = 0 if len(allowed) == 1 or turns is None else min(turns.taken(state), len(allowed) - 1)
        for action in task.space.legal(mask):
            assert allowed[step].kinds[action.kind] and whole.accepts(state, action)
        seen = task.observe(state)
        if task.space.has_candidates:
            assert len(seen.candidates) == len(mask.candidates)
        assert view.space().contains(view.element(task, state, lambda: 1.0))
        taken.append(task.space.sample(mask, rng))
        state = task.step(state, taken[-1])
    schedule = Schedule(tuple(taken))
    assert within(task, schedule) and kept(task, schedule) == schedule
    assert whole.key(replay(whole, schedule)) == task.key(state)
    assert bool(task.space.takeable(task.mask(state))) != task.terminal(state)


def test_a_state_in_which_nothing_that_is_allowed_applies_is_terminal() -> None:
    task = limited(rewriting.Rewriting("b"), Limits(actions="merge"))
    assert not task.wrapped.terminal(task.initial()) and task.terminal(task.initial())
    [episode] = lockstep.play([task], lambda turn: [])
    assert episode.states == [task.initial()] and not episode.actions


def test_a_turn_can_always_be_ended_and_steps_are_counted_in_each() -> None:
    task = limited(
        ENVIRONMENTS.load("linalg").task("linalg://softmax/8x16"), Limits(actions="tile_4;vectorise")
    )
    state, seen = task.initial(), []
    rng = np.random.default_rng(0)
    while not task.terminal(state):
        kinds = [task.space.kinds[kind].name for kind in task.space.takeable(task.mask(state))]
        seen.append(tuple(kinds))
        on = [action for action in task.space.legal(task.mask(state)) if action.kind] or [None]
        action = on[int(rng.integers(len(on)))] or task.space.parse("next")
        state = task.step(state, action)
    assert all(kinds[0] == "next" for kinds in seen)
    assert seen.count(("next", "tile")) > 1 and ("next", "vectorise") in seen


def test_parts_and_sketches_keep_to_the_limits() -> None:
    home = ENVIRONMENTS.load("linalg")
    task: Any = limited(home.task("linalg://softmax/8x16"), Limits(5, "tile,vectorise"))
    parts = capabilities.ask(task, capabilities.Parts)
    assert parts is not None and all(limits_of(part) == limits_of(task) for part in parts.parts())
    for seed in range(5):
        sketch = capabilities.sketch(task, np.random.default_rng(seed))
        assert sketch is not None and within(task, Schedule(tuple(sketch)))
    assert capabilities.ask(limited(DIALS, Limits(5)), capabilities.Sketches) is None


@pytest.mark.parametrize("name", ["random", "greedy", "beam", "evolutionary", "annealing"])
def test_searches_keep_to_the_limits(name: str) -> None:
    if name not in SEARCHES:
        pytest.skip(f"there is no search {name}")
    whole = passes.PassTask(passes.URIS[0])
    names = [kind.name for kind in whole.space.kinds if not kind.ends]
    task = limited(whole, Limits(2, ",".join(names[:2])))
    found = run_search(
        SEARCHES.load(name)(), task, passes.PassBench().evaluator, SearchRequest(Budget(30), 0)
    )
    assert all(within(task, candidate.schedule) for candidate in found.finalists) and not found.complete
    assert found.finalists and found.evaluations > 1


def test_values_that_are_omitted_stay_allowed() -> None:
    space = dials.ActionSpace((ActionKind("tile", ((0, 4, 8), (0, 4, 8)), omitted=0),))
    mask = steps_of("tile_4", space)[0].restricted(space.mask([True], [True] * 6))
    assert mask.params.tolist() == [True, True, False] * 2
