"""Random actions, and small random changes of schedules, shared by the stochastic searches.

A changed schedule may hold actions that no longer apply or do nothing; they are left out (`Session.follow`).
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np

from irgym.core import capabilities
from irgym.core.actions import Action
from irgym.core.schedule import Candidate
from irgym.search.session import Session

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


def random_walk(session: Session, node: Candidate, steps: int, rng: np.random.Generator) -> list[Candidate]:
    """Return the nodes of a random episode of at most `steps` actions, `node` first.

    Actions without effect are left out.
    """
    path = [node]
    for _ in range(steps):
        child = _random_child(session, path[-1], rng)
        if child is None:
            break
        path.append(child)
    return path


def _random_child(session: Session, node: Candidate, rng: np.random.Generator) -> Candidate | None:
    """Return the node after a random action that has an effect; None where there is none.

    Where there are very many actions, None also after `DRAWS` without an effect.
    """
    if not session.countable(node):
        for _ in range(DRAWS):
            child = session.step(node, session.draw(node, rng))
            if session.identity(child) != session.identity(node):
                return child
        return None
    actions = session.actions(node)
    while actions:
        action = random_action(actions, rng)
        child = session.step(node, action)
        if session.identity(child) != session.identity(node):
            return child
        actions.remove(action)
    return None


def random_episode(session: Session, rng: np.random.Generator) -> list[Candidate]:
    """Return the nodes of an episode whose length is uniform up to the horizon."""
    return random_walk(session, session.root, int(rng.integers(1, session.task.horizon + 1)), rng)


def founder(session: Session, rng: np.random.Generator) -> Candidate:
    """Return the end of a new schedule: mostly a sketch, where the task has some, else a random episode."""
    if rng.random() < SKETCHED and (sketch := capabilities.sketch(session.task, rng)) is not None:
        return session.follow(session.root, sketch)[-1]
    return random_episode(session, rng)[-1]


def mutate(session: Session, node: Candidate, rng: np.random.Generator) -> Candidate:
    """Return the end of a changed schedule.

    One change, each as likely: insert an action, delete up to three, replace one, change a parameter, cut the
    schedule and extend it by up to four actions, or extend it as it is by up to six. With probability 1/3
    another change follows.
    """
    while True:
        actions = node.schedule.actions
        place = int(rng.integers(len(actions) + 1))
        head = session.follow(session.root, actions[:place])[-1]
        change = int(rng.integers(6))
        if change == 0:
            node = session.follow(random_walk(session, head, 1, rng)[-1], actions[place:])[-1]
        elif change == 1:
            node = session.follow(head, actions[place + int(rng.integers(1, 4)) :])[-1]
        elif change == 2:
            node = session.follow(random_walk(session, head, 1, rng)[-1], actions[place + 1 :])[-1]
        elif change == 3:
            node = session.follow(session.root, _change_parameter(session, actions, rng))[-1]
        elif change == 4:
            node = random_walk(session, head, int(rng.integers(1, 5)), rng)[-1]
        else:
            node = random_walk(session, node, int(rng.integers(1, 7)), rng)[-1]
        if rng.random() > 1 / 3:
            return node


def _change_parameter(session: Session, actions: Sequence[Action], rng: np.random.Generator) -> list[Action]:
    """Return the actions with one choice of one slot, or one candidate, changed to another legal one.

    They are returned as they are where there is no other.
    """
    path = session.follow(session.root, actions)
    slots = [
        (place, slot, choices)
        for place, (node, after) in enumerate(pairwise(path))
        for slot, choices in enumerate(session.others(node, after.schedule.actions[-1]))
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


def splice(session: Session, left: Candidate, right: Candidate, rng: np.random.Generator) -> Candidate:
    """Return the end of a schedule that begins as `left` does and goes on as `right` does.

    One-point crossover in which the parents are cut at different places, so that lengths can change.
    """
    head = left.schedule.actions[: int(rng.integers(len(left.schedule) + 1))]
    tail = right.schedule.actions[int(rng.integers(len(right.schedule) + 1)) :]
    return session.follow(session.root, (*head, *tail))[-1]
