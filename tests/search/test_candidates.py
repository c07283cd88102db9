"""Searches, and changes of schedules, where actions name candidates of the state."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest
import rewriting
from hypothesis import given, settings
from hypothesis import strategies as st

from irgym.core.actions import Action, ActionSpace, Mask
from irgym.core.kinds import ActionKind
from irgym.core.schedule import Schedule, replay
from irgym.search import SEARCHES
from irgym.search.branches import BRANCHES
from irgym.search.budget import Budget
from irgym.search.mutation import mutate, others, random_episode, splice
from irgym.search.request import SearchRequest
from irgym.search.rollouts import rollout
from irgym.search.run import run_search
from irgym.search.session import Session
from irgym.search.walks import alone, follow, together

tasks = st.text("stb", min_size=2, max_size=8).map(rewriting.Rewriting)


def session(task):
    return Session(task, rewriting.Known(), SearchRequest(Budget(evaluations=10_000)))


@pytest.mark.parametrize(
    "name", ["random", "greedy2", "beam", "beam-bfs", "mcts", "evolutionary", "annealing"]
)
def test_searches_find_the_optimum(name):
    strategy = SEARCHES.load(name)()
    for task in (rewriting.TEST[place] for place in (2, 5, 6)):  # 120 to 240 programs each
        found = run_search(strategy, task, rewriting.Known(), SearchRequest(Budget(evaluations=100), seed=0))
        assert found.cost == rewriting.optimum(task)
        text = found.schedule.text(task.space)
        assert rewriting.cost(replay(task, Schedule.parse(text, task.space))) == rewriting.optimum(task)


@dataclass(frozen=True)
class WithMacros(rewriting.Rewriting):
    """The toy, in which `fuse` is said to stand for several other actions."""

    def is_macro(self, action: Action) -> bool:
        return action.kind == rewriting.FUSE


def test_tasos_search_leaves_macro_actions_out():
    taso, budget = SEARCHES.load("taso")(), Budget(evaluations=1000)
    plain, macros = (
        run_search(taso, task, rewriting.Known(), SearchRequest(budget, seed=0))
        for task in (rewriting.Rewriting("sts"), WithMacros("sts"))
    )
    assert [action.kind for action in plain.schedule.actions] == [rewriting.FUSE]
    assert macros.schedule.actions == () and macros.cost > plain.cost
    greedy = SEARCHES.load("greedy")()
    found = run_search(greedy, WithMacros("sts"), rewriting.Known(), SearchRequest(budget, seed=0))
    assert found.cost == plain.cost, "others take them"


def test_greedy_is_not_enough():
    greedy = SEARCHES.load("greedy")()
    budget = Budget(evaluations=1000)
    found = [
        run_search(greedy, task, rewriting.Known(), SearchRequest(budget, seed=0)) for task in rewriting.TEST
    ]
    worse = [
        result.cost > rewriting.optimum(task) for task, result in zip(rewriting.TEST, found, strict=True)
    ]
    assert sum(worse) > len(worse) // 3


@given(tasks, st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_a_changed_schedule_keeps_its_meaning(task, seed):
    """The remaining actions name the same operators, in order, and lead to the node's state."""
    rng = np.random.default_rng(seed)
    at = session(task)
    parents = [alone(at, random_episode(at, rng))[-1] for _ in range(2)]
    for child in together(at, [mutate(at, parents[0], rng), splice(at, *parents, rng)]):
        text = child.schedule.text(task.space)
        assert replay(task, Schedule.parse(text, task.space)) == child.state


@given(tasks, st.integers(0, 10_000), st.integers(0, 30))
@settings(max_examples=100, deadline=None)
def test_without_one_action_only_those_go_whose_candidate_is_gone(task, seed, place):
    rng = np.random.default_rng(seed)
    at = session(task)
    actions = alone(at, random_episode(at, rng))[-1].schedule.actions
    kept = [*actions[: place % (len(actions) + 1)], *actions[place % (len(actions) + 1) + 1 :]]
    followed = list(alone(at, follow(at, at.root, kept))[-1].schedule.actions)
    state = task.initial()
    for action in kept:
        if followed and action == followed[0]:
            names = [name for name, _ in state.chain]
            assert action.candidate in names
            state = task.step(state, followed.pop(0))
        else:
            assert (action.kind, action.candidate) not in task.mask(state).candidates
    assert not followed


def test_a_change_of_parameters_may_take_another_candidate():
    task = rewriting.Rewriting("bsb")
    at = session(task)
    assert others(at, at.root, Action(rewriting.SPLIT, (), "x0")) == [["x2"]]
    split = at.step(at.root, Action(rewriting.SPLIT, (), "x0"))
    seen = together(at, [mutate(at, split, np.random.default_rng(seed)) for seed in range(200)])
    assert any(node.schedule.text(task.space) == "split@x2" for node in seen)


@dataclass(frozen=True)
class Wide(rewriting.Rewriting):
    """More candidates than a search considers of a node, nearly all of one kind."""

    @cached_property
    def pairs(self):
        return [(1, f"n{place}") for place in range(BRANCHES + 50)] + [(2, "m"), (3, "m")]

    def mask(self, state) -> Mask:
        return self.space.mask([True, *[False] * 3], (), self.pairs)


def test_a_search_considers_some_of_very_many_candidates():
    at = session(Wide("b"))
    assert not at.countable(at.root)
    chosen = at.actions(at.root)
    assert len(set(chosen)) == BRANCHES and chosen == at.actions(at.root)
    assert all(at.task.space.allows(at.task.mask(at.root.state), action) for action in chosen)


def test_a_candidate_and_its_parameters_change_apart():
    space = ActionSpace((ActionKind("unroll", ((2, 4, 8),), candidates=True),))

    class Unrolled(rewriting.Rewriting):
        def mask(self, state):
            return space.mask([False], [True, True, False], [(0, "a"), (0, "b")])

    unrolled = Unrolled("b")
    object.__setattr__(unrolled, "space", space)
    at = session(unrolled)
    assert others(at, at.root, Action(0, (0,), "a")) == [[1], ["b"]]


class UndoesWhatItDid:
    """A policy that likes to split most, then to fuse; drawing, it takes any action."""

    observation = ""

    def act(self, observations, masks, rng, temperature=1.0):
        del observations, temperature
        order = (rewriting.SPLIT, rewriting.FUSE, rewriting.MERGE)
        liked = [min(mask.candidates, key=lambda pair: order.index(pair[0])) for mask in masks]
        if rng is not None:
            liked = [mask.candidates[int(rng.integers(len(mask.candidates)))] for mask in masks]
        return [Action(kind, candidate=name) for kind, name in liked]


def test_a_greedy_episode_does_not_go_round_in_circles():
    [path] = rollout(rewriting.Rewriting("bss"), UndoesWhatItDid(), 1, None)
    kinds = [action.kind for action in path[-1].schedule.actions]
    assert kinds[0] == rewriting.SPLIT, "what it likes most"
    assert kinds.index(rewriting.MERGE) < 3, "fusing would lead back at once"
    states = [node.state for node in path]
    assert len(set(states)) > 3
