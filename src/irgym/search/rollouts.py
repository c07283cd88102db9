"""Episodes of a policy: the most probable one, sampled ones, and their states worth evaluating."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from irgym.base.errors import IrgymError
from irgym.core import capabilities
from irgym.core.actions import Action, ActionSpace, Mask
from irgym.core.lockstep import Turn, never, play
from irgym.core.schedule import Candidate, Schedule, states_along
from irgym.core.task import Task
from irgym.policies.policy import Policy, playing
from irgym.search.session import Session


def policy_of(session: Session) -> Policy:
    """Return the policy of a session.

    Raises:
        IrgymError: It has none.
    """
    if session.policy is None:
        raise IrgymError("this search needs a policy: name one that ships, or a folder with a run")
    return session.policy


def most_probable(task: Task[Any], policy: Policy, late: Callable[[], bool] = never) -> list[Candidate]:
    """Return the nodes of a policy's most probable episode, as far as it gets before it is late.

    A program that is made of smaller ones is put together of their episodes: policies learn on programs of
    few operations, and what surrounds an operation in a network distracts them. Behind the episode follow the
    nodes of `finished`.
    """
    divided = capabilities.ask(task, capabilities.Parts)
    parts: Sequence[Task[Any]] = () if divided is None else divided.parts()
    if divided is None or not parts:
        [path] = rollout(task, policy, 1, None, late=late)
        return [*path, *finished(task, path)]
    different = {id(part): part for part in parts}
    ends = {name: most_probable(part, policy, late)[-1].schedule for name, part in different.items()}
    schedule = divided.joined([ends[id(part)] for part in parts])
    states = states_along(task, schedule)
    return [Candidate(state, Schedule(schedule.actions[:steps])) for steps, state in enumerate(states)]


def finished(task: Task[Any], path: Sequence[Candidate]) -> list[Candidate]:
    """Return the nodes of the compiler's final passes, applied to the best node of an episode.

    There are none if the compiler has no such passes, or if states do not know their costs: measured costs
    include these passes anyway.
    """
    own = capabilities.ask(task, capabilities.Finishing)
    if own is None or task.job(task.initial()).known is None:
        return []
    node = outcome(task, path)
    nodes: list[Candidate] = []
    for action in own.finishing(node.state).actions:
        node = Candidate(task.step(node.state, action), node.schedule.then(action))
        nodes.append(node)
    return nodes


def rollout(
    task: Task[Any],
    policy: Policy,
    episodes: int,
    rng: np.random.Generator | None,
    temperature: float = 1.0,
    late: Callable[[], bool] = never,
) -> list[list[Candidate]]:
    """Return the nodes of episodes of a policy, in lockstep; the most probable one where `rng` is None.

    Where states know their costs, as with op counts, episodes go on to the horizon: an action that ends one
    is taken only if nothing else applies, for `outcome` takes the best state of the way at no cost.

    Where the most probable of some candidates leads back to a state of the way, as one rule may undo another,
    the episode would loop for ever: then other actions are drawn until one leads to a new state.

    Args:
        task: The program.
        policy: Chooses the actions.
        episodes: Number of episodes.
        rng: Samples the actions.
        temperature: Scores are divided by it before sampling.
        late: Asked before each step; where it says so, all episodes end in the states that they have reached.
    """
    known = task.job(task.initial()).known is not None

    ways: list[set[Hashable]] = [set() for _ in range(episodes)]
    remembering = playing(policy)

    def choose(turn: Turn) -> list[Action]:
        masks = [_onward(task.space, mask) for mask in turn.masks] if known else turn.masks
        observations = turn.observations(policy.observation)
        if remembering is None:
            actions = policy.act(observations, masks, rng, temperature)
        else:
            actions = remembering.act(turn.episodes, observations, masks, rng, temperature)
        if rng is not None or not task.space.has_candidates:
            return actions
        rows = zip(turn.episodes, turn.states, actions, observations, masks, strict=True)
        return [
            _elsewhere(task, state, action, _drawn(policy, observation, mask), ways[number])
            for number, state, action, observation, mask in rows
        ]

    return [
        [Candidate(state, Schedule(tuple(actions[:steps]))) for steps, state in enumerate(states)]
        for states, actions in play([task] * episodes, choose, late=late)
    ]


DRAWS = 8
"""Actions that are drawn at each temperature, where the most probable one leads back."""

TEMPERATURES = (1.0, 2.0, 4.0)
"""Temperatures of the draws, in order."""


def _elsewhere(
    task: Task[Any], state: Any, probable: Action, drawn: Iterable[Action], way: set[Hashable]
) -> Action:
    """Return the first action that leads to no state of an episode's way; without one, the most probable.

    Args:
        task: The program.
        state: The last state of the way.
        probable: The most probable action.
        drawn: Others to try.
        way: Identities of the states so far; the last one's is added.
    """
    way.add(task.identity(state))
    new = (
        action for action in chain([probable], drawn) if task.identity(task.step(state, action)) not in way
    )
    return next(new, probable)


def _drawn(policy: Policy, observation: Any, mask: Mask) -> Iterator[Action]:
    """Yield actions drawn from a policy at rising temperatures; always the same ones."""
    rng = np.random.default_rng(0)
    for temperature in TEMPERATURES:
        for _ in range(DRAWS):
            yield policy.act([observation], [mask], rng, temperature)[0]


def candidates(task: Task[Any], path: Sequence[Candidate]) -> Sequence[Candidate]:
    """Return the nodes of an episode that are worth evaluating.

    A policy tends to pass through its best states, and where an action ends the episode, it could have ended
    in any of them. Where an episode ends of itself, or is not `gradual`, only the end
    is meant as a result. Where costs are measured, the end comes first: the time may be up after it.
    """
    if task.job(path[0].state).known:
        return path
    return path[::-1] if task.gradual and task.space.stops.any() else path[-1:]


def outcome(task: Task[Any], path: Sequence[Candidate]) -> Candidate:
    """Return the result of an episode: its last node, or the cheapest one if states know their costs."""
    known = [task.job(node.state).known for node in path]
    costs = [measurement.cost for measurement in known if measurement is not None]
    return path[int(np.argmin(costs))] if len(costs) == len(path) else path[-1]


def _onward(space: ActionSpace, mask: Mask) -> Mask:
    """Return the mask without actions that end the episode, unless no other applies."""
    others = space.onward(mask)
    return others if space.takeable(others) else mask
