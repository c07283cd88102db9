"""Random actions, and small random changes of schedules, shared by the stochastic searches.

Those that take steps are walks. A changed schedule may hold actions that no longer apply or do nothing; they
are left out (`follow`).
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np

from irgym.core import capabilities
from irgym.core.actions import Action, ActionSpace
from irgym.core.schedule import Candidate
from irgym.search.session import Session
from irgym.search.walks import Walk, follow

T = TypeVar("T")

SKETCHED = 0.75
"""Share of new schedules that are sketches, where a task has some."""

DRAWS = 16
"""Random actions without an effect after which a walk ends, where actions are too many to list."""


def pick(items: Sequence[T], rng: np.random.Generator) -> T:
    """Return one of the items, each equally likely."""
    return items[int(rng.integers(len(items)))]


def random_action(actions: Sequence[Action], rng: np.random.Generator) -> Action:
    """Return one of the actions: each kind equally likely, however many parameters it has."""
    kind = pick(sorted({action.kind for action in actions}), rng)
    return pick([action for action in actions if action.kind == kind], rng)


def random_walk(
    session: Session, node: Candidate, steps: int, rng: np.random.Generator
) -> Walk[list[Candidate]]:
    """Return the nodes of a random episode of at most `steps` actions, `node` first.

    Actions without effect are left out.
    """
    path = [node]
    for _ in range(steps):
        child = yield from _random_child(session, path[-1], rng)
        if child is None:
            break
        path.append(child)
    return path


def _random_child(session: Session, node: Candidate, rng: np.random.Generator) -> Walk[Candidate | None]:
    """Return the node after a random action that has an effect; None where there is none.

    Where there are very many actions, None also after `DRAWS` without an effect.
    """
    if not session.countable(node):
        for _ in range(DRAWS):
            child = yield node, session.task.space.sample(session.onward(node), rng)
            if session.identity(child) != session.identity(node):
                return child
        return None
    actions = session.actions(node)
    while actions:
        action = random_action(actions, rng)
        child = yield node, action
        if session.identity(child) != session.identity(node):
            return child
        actions.remove(action)
    return None


def random_episode(session: Session, rng: np.random.Generator) -> Walk[list[Candidate]]:
    """Return the nodes of an episode whose length is uniform up to the horizon."""
    return random_walk(session, session.root, int(rng.integers(1, session.task.horizon + 1)), rng)


def founder(session: Session, rng: np.random.Generator) -> Walk[Candidate]:
    """Return the end of a new schedule: mostly a sketch, where the task has some, else a random episode."""
    if rng.random() < SKETCHED and (sketch := capabilities.sketch(session.task, rng)) is not None:
        return (yield from follow(session, session.root, sketch))[-1]
    return (yield from random_episode(session, rng))[-1]


def mutate(session: Session, node: Candidate, rng: np.random.Generator) -> Walk[Candidate]:
    """Return the end of a changed schedule.

    One change, each as likely: insert an action, delete up to three, replace one, cut the schedule and extend
    it by up to four actions, extend it as it is by up to six, or, where actions have parameters or
    candidates, change one. With probability 1/3 another change follows.
    """
    changes = 6 if _has_choices(session.task.space) else 5
    while True:
        actions = node.schedule.actions
        place = int(rng.integers(len(actions) + 1))
        head = (yield from follow(session, session.root, actions[:place]))[-1]
        change = int(rng.integers(changes))
        if change == 0:
            node = (yield from _replaced(session, head, actions[place:], rng))[-1]
        elif change == 1:
            node = (yield from follow(session, head, actions[place + int(rng.integers(1, 4)) :]))[-1]
        elif change == 2:
            node = (yield from _replaced(session, head, actions[place + 1 :], rng))[-1]
        elif change == 3:
            node = (yield from random_walk(session, head, int(rng.integers(1, 5)), rng))[-1]
        elif change == 4:
            node = (yield from random_walk(session, node, int(rng.integers(1, 7)), rng))[-1]
        else:
            changed = yield from _change_choice(session, actions, rng)
            node = (yield from follow(session, session.root, changed))[-1]
        if rng.random() > 1 / 3:
            return node


def _has_choices(space: ActionSpace) -> bool:
    """Say whether actions have parameters or candidates."""
    return space.has_candidates or any(kind.params for kind in space.kinds)


def _replaced(
    session: Session, head: Candidate, tail: Sequence[Action], rng: np.random.Generator
) -> Walk[list[Candidate]]:
    """Return the nodes of a random action after a node, followed by others."""
    first = (yield from random_walk(session, head, 1, rng))[-1]
    return (yield from follow(session, first, tail))


def _change_choice(
    session: Session, actions: Sequence[Action], rng: np.random.Generator
) -> Walk[list[Action]]:
    """Return the actions with one choice of one slot, or one candidate, changed to another legal one.

    They are returned as they are where there is no other.
    """
    path = yield from follow(session, session.root, actions)
    slots = [
        (place, slot, choices)
        for place, (node, after) in enumerate(pairwise(path))
        for slot, choices in enumerate(others(session, node, after.schedule.actions[-1]))
        if choices
    ]
    changed = list(path[-1].schedule.actions)
    if slots:
        place, slot, choices = pick(slots, rng)
        kind, params, candidate = changed[place]
        choice = pick(choices, rng)
        if isinstance(choice, str):
            candidate = choice
        else:
            params = (*params[:slot], choice, *params[slot + 1 :])
        changed[place] = Action(kind, params, candidate)
    return changed


def others(session: Session, node: Candidate, action: Action) -> list[list[int | str]]:
    """Return the other choices that apply for each slot of a legal action, and for its candidate."""
    space, mask = session.task.space, session.mask(node)
    allowed = [*space.choices(mask, action.kind), space.names(mask, action.kind)]
    taken = [*action.params, action.candidate]
    return [
        [choice for choice in slot if choice != current] for slot, current in zip(allowed, taken, strict=True)
    ]


def splice(session: Session, left: Candidate, right: Candidate, rng: np.random.Generator) -> Walk[Candidate]:
    """Return the end of a schedule that begins as `left` does and goes on as `right` does.

    One-point crossover in which the parents are cut at different places, so that lengths can change.
    """
    head = left.schedule.actions[: int(rng.integers(len(left.schedule) + 1))]
    tail = right.schedule.actions[int(rng.integers(len(right.schedule) + 1)) :]
    return (yield from follow(session, session.root, (*head, *tail)))[-1]


def bred(
    session: Session, ranked: Sequence[Candidate], rng: np.random.Generator, tournament: int, crossover: float
) -> Walk[Candidate]:
    """Return the end of a schedule made of one or two others: changed, or spliced.

    Args:
        session: The search.
        ranked: Schedules to choose parents from, the best first.
        rng: Of all random choices.
        tournament: Number of schedules that compete to be a parent.
        crossover: Probability of two parents.
    """

    def parent() -> Candidate:
        """Return the winner of a tournament: the first in the ranking."""
        return ranked[int(rng.integers(len(ranked), size=tournament).min())]

    first = parent()
    if rng.random() < crossover:
        return splice(session, first, parent(), rng)
    return mutate(session, first, rng)
