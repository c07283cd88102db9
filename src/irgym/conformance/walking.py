"""Random walks through a task, with the rules checked along the way."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from irgym.conformance.case import Case
from irgym.conformance.checked import Tally
from irgym.conformance.errors import ConformanceError
from irgym.conformance.rule import PairRule, StateRule, broken
from irgym.conformance.rules import PAIR_RULES, STATE_RULES
from irgym.conformance.shrinking import Actions, shrunk
from irgym.core.actions import Action
from irgym.core.bench import Bench
from irgym.core.task import Task


@dataclass(frozen=True)
class Walks:
    """How many walks to take, and how long.

    Attributes:
        seed: Seed of the walks.
        count: Number of walks.
        steps: Greatest number of actions of a walk.
        bench: Measures states; None leaves out the rules that need one.
    """

    seed: int
    count: int
    steps: int
    bench: Bench | None = None


def walk(task: Task[Any], names: frozenset[str], walks: Walks, tally: Tally) -> None:
    """Check rules on random walks.

    Args:
        task: The task.
        names: The rules to check; those about environments are left out.
        walks: The walks.
        tally: Counts what is checked.

    Raises:
        ConformanceError: A rule is broken.
    """
    measured = walks.bench is not None
    rules = [rule for rule in STATE_RULES if rule.name in names and (measured or not rule.measures)]
    pair_rules = [rule for rule in PAIR_RULES if rule.name in names and (measured or not rule.measures)]
    seen: dict[str, Case] = {}
    for number in range(walks.count):
        for case, last in _cases(task, walks, number, rules, tally):
            for rule in rules:
                end = last or (number == 0 and not case.actions)
                if (rule.where == "ends" and end) or (rule.where == "once" and last and number == 0):
                    _check_state(rule, case, tally)
            other = seen.setdefault(task.key(case.state), case)
            for rule in pair_rules:
                if other is not case:
                    _check_pair(rule, other, case, tally)


def _cases(
    task: Task[Any], walks: Walks, number: int, rules: list[StateRule], tally: Tally
) -> Iterator[tuple[Case, bool]]:
    """Take a walk; yield the case of each state, and whether it is the last.

    The rules that hold everywhere are checked here, before the next action is drawn by a mask that may be
    wrong.
    """
    rng = np.random.default_rng([walks.seed, number])
    actions: Actions = ()
    while True:
        case = Case(task, actions, walks.seed + number, walks.bench)
        for rule in rules:
            if rule.where == "everywhere":
                _check_state(rule, case, tally)
        tally.visit(case)
        left = min(walks.steps, task.horizon) - len(actions)
        action = _drawn(case, rng, ending=left == 1 and number % 2 == 0) if left > 0 else None
        yield case, action is None
        if action is None:
            return
        actions = (*actions, action)


def _drawn(case: Case, rng: np.random.Generator, ending: bool) -> Action | None:
    """Return a random legal action; one that ends the episode if nothing else is left, or on demand."""
    space = case.task.space
    stops = [kind for kind in space.takeable(case.mask) if space.stops[kind]]
    if ending and stops:
        return Action(int(rng.choice(stops)))
    for mask in (space.onward(case.mask), case.mask):
        if space.takeable(mask):
            return space.sample(mask, rng)
    return None


def _check_state(rule: StateRule, case: Case, tally: Tally) -> None:
    """Check a rule in a state.

    Raises:
        ConformanceError: It is broken.
    """
    tally.rules[rule.name] += 1
    if not broken(rule.check, case):
        return
    smallest = _smallest(case, lambda shorter: bool(broken(rule.check, shorter)))
    detail = broken(rule.check, smallest) or broken(rule.check, case)
    raise ConformanceError(rule.name, case.task.uri, detail or rule.demand, (_text(smallest),))


def _check_pair(rule: PairRule, first: Case, second: Case, tally: Tally) -> None:
    """Check a rule about two states.

    Raises:
        ConformanceError: It is broken.
    """
    tally.rules[rule.name] += 1
    if not broken(rule.check, first, second):
        return
    task = first.task

    def breaks(left: Case, right: Case) -> bool:
        return task.key(left.state) == task.key(right.state) and bool(broken(rule.check, left, right))

    first = _smallest(first, lambda shorter: breaks(shorter, second))
    second = _smallest(second, lambda shorter: breaks(first, shorter))
    detail = broken(rule.check, first, second) or rule.demand
    raise ConformanceError(rule.name, task.uri, detail, (_text(first), _text(second)))


def _smallest(case: Case, breaks: Callable[[Case], bool]) -> Case:
    """Return the case after the fewest of a case's actions that still breaks a rule."""

    def possible_and_breaks(actions: Actions) -> bool:
        shorter = replace(case, actions=actions)
        return not broken(_impossible, shorter) and breaks(shorter)

    return replace(case, actions=shrunk(case.actions, possible_and_breaks))


def _impossible(case: Case) -> str:
    """Return why a case's actions cannot be taken; empty where they can."""
    state = case.task.initial()
    for action in case.actions:
        if not case.task.accepts(state, action):
            return "an action does not apply"
        state = case.task.step(state, action)
    return ""


def _text(case: Case) -> str:
    """Return the text of a case's schedule, or else its actions, since a task may break that rule too."""
    try:
        return case.schedule.text(case.task.space)
    except ValueError:
        return " ".join(map(repr, case.actions))
