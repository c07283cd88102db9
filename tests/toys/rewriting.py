"""A toy of rewriting: a chain of scales and shifts, and rules that apply at named operators.

`split` makes a chain dearer, but then `merge` may join the parts with their neighbours.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from ordering import Known, Ordering

from irgym.agents.problem import Problem
from irgym.base.registry import Registry
from irgym.core.actions import Action, ActionSpace, Mask
from irgym.core.candidates import CandidateObservation, candidate_view
from irgym.core.cost import Call, Job, Measurement, Outcome
from irgym.core.dataset import Dataset
from irgym.core.environment import Environment
from irgym.core.kinds import ActionKind
from irgym.core.objective import Objective
from irgym.core.observation import views_of
from irgym.core.reward import RelativeImprovement
from irgym.core.task import Task

COSTS = {"scale": 3.0, "shift": 2.0, "both": 4.0}
OPS, RULES = list(COSTS), ("split", "merge", "fuse")
SPACE = ActionSpace(
    (ActionKind("stop", ends="episode"), *(ActionKind(rule, candidates=True) for rule in RULES)), capacity=24
)
STOP, SPLIT, MERGE, FUSE = range(4)
FEATURES, ROW = len(OPS) + 1, len(RULES) + 3 * (len(OPS) + 1)


@dataclass(frozen=True)
class State:
    """The name of each operator, which it keeps as long as it is there, and what it does."""

    chain: tuple[tuple[str, str], ...]
    stopped: bool = False


def cost(state: State) -> float:
    return sum(COSTS[op] for _, op in state.chain)


def applicable(state: State) -> Iterator[tuple[int, int]]:
    ops = [op for _, op in state.chain]
    if not state.stopped:
        yield from ((SPLIT, place) for place, op in enumerate(ops) if op == "both")
        for place in range(len(ops) - 1):
            if ops[place] == ops[place + 1] != "both":
                yield MERGE, place
            if ops[place : place + 2] == ["scale", "shift"]:
                yield FUSE, place


@dataclass(frozen=True)
class Rewriting(Task[State]):
    """`rewriting:` and one letter for each operator: `s` scale, `t` shift, `b` both."""

    ops: str
    space = SPACE
    objective = Objective("ops", "", "operators", exact=True, timed=False)
    horizon = 20
    views = views_of(candidate_view(SPACE, lambda task, state: task.features(state), FEATURES, ROW, 0.0, 4.0))

    @property
    def uri(self) -> str:
        return f"rewriting:{self.ops}"

    def initial(self) -> State:
        return State(tuple((f"x{place}", OPS["stb".index(op)]) for place, op in enumerate(self.ops)))

    def mask(self, state: State) -> Mask:
        pairs = [(rule, state.chain[place][0]) for rule, place in applicable(state)]
        return SPACE.mask([not state.stopped, False, False, False], (), pairs)

    def step(self, state: State, action: Action) -> State:
        assert SPACE.allows(self.mask(state), action)
        if action.kind == STOP:
            return State(state.chain, stopped=True)
        name = action.candidate
        place = [own for own, _ in state.chain].index(name)
        parts = (name, "scale"), (f"{name}.t", "shift")
        new = {SPLIT: parts, MERGE: (state.chain[place],), FUSE: ((name, "both"),)}[action.kind]
        return State((*state.chain[:place], *new, *state.chain[place + (1 if action.kind == SPLIT else 2) :]))

    def terminal(self, state: State) -> bool:
        return state.stopped

    def features(self, state: State) -> CandidateObservation:
        around = [-1, *(OPS.index(op) for _, op in state.chain), -1]
        whole = [around.count(op) / 8 for op in range(-1, len(OPS))]
        identity, pairs = np.eye(len(OPS) + 1, dtype=np.float32), list(applicable(state))
        rows = np.zeros((len(pairs), ROW), dtype=np.float32)
        for row, (rule, place) in zip(rows, pairs, strict=True):
            row[rule - 1] = 1.0
            row[len(RULES) :] = np.concatenate([identity[op] for op in around[place : place + 3]])
        return CandidateObservation(np.array(whole, dtype=np.float32), rows)

    def key(self, state: State) -> str:
        return repr(state.chain)

    def job(self, state: State) -> Job:
        known = Measurement(Outcome.OK, (cost(state),))
        return Job(Call("", ()), self.uri, self.key(state), "", "ops", known, target="")

    def describe(self, state: State) -> str:
        return " ".join(f"{name}:{op}" for name, op in state.chain)

    def validation(self, state: State, inputs: int, seed: int) -> Call:
        raise NotImplementedError

    def export(self, state: State, path: Path) -> list[Path]:
        raise NotImplementedError


@cache
def optimum(task: Rewriting) -> float:
    """Return the least cost within reach, by brute force."""
    seen = frontier = {task.initial()}
    for _ in range(task.horizon):
        moves = [(state, action) for state in frontier for action in SPACE.legal(task.mask(state))]
        frontier = {task.step(state, action) for state, action in moves} - seen
        seen = seen | frontier
    return min(cost(state) for state in seen)


def chains(count: int, seed: int, longest: int) -> list[Rewriting]:
    rng, letters = np.random.default_rng(seed), list("stb")
    sizes = rng.integers(2, longest + 1, size=count)
    return [Rewriting("".join(rng.choice(letters, size=size))) for size in sizes]


TRAIN = chains(60, seed=0, longest=7)
TEST = [task for task in chains(40, seed=1, longest=9) if task not in TRAIN]


def problem(tasks: Sequence[Rewriting] = TRAIN) -> Problem:
    makers = [Call("rewriting:Rewriting", (task.ops,)) for task in tasks]
    return Problem(tasks, Known(), RelativeImprovement(), makers=makers)


class Rewritings(Ordering):
    name = "rewriting"

    def task(
        self, uri: str, backend: object = None, target: object = None, objective: object = None
    ) -> Rewriting:
        return Rewriting(uri.removeprefix("rewriting:"))

    def dataset(self, name: str) -> Dataset:
        return Dataset("all", "", *(tuple(task.uri for task in tasks) for tasks in (TRAIN, TEST)))


REWRITING = Rewritings()
ENVIRONMENTS: Registry[Environment] = Registry("environment", "none", {"rewriting": "rewriting:REWRITING"})
