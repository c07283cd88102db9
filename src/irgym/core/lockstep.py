"""Episodes of several tasks in lockstep: one choice and one transition a step for all that still run.

So a network acts on a batch, and a task whose transitions are slow can spread them. Where transitions run in
other processes, the episodes are two halves that take turns, so that neither they nor this process wait.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from irgym.core.actions import Action, Mask
from irgym.core.task import Task


def _go_on() -> None:
    """Let all episodes go on."""


def never() -> bool:
    """Say that it is not late."""
    return False


class Turn(NamedTuple):
    """The episodes that still run, before their next step: their numbers, and the task and state of each.

    `check` is called before each observation, which may take long; an exception ends all episodes. `step` is
    the number of steps before this one.
    """

    episodes: list[int]
    tasks: list[Task[Any]]
    states: list[Any]
    check: Callable[[], None] = _go_on
    step: int = 0

    def observations(self, observation: str) -> list[Any]:
        """Return what a policy sees of each, by the name of an observation; empty: the default."""
        found: list[Any] = []
        for task, state in zip(self.tasks, self.states, strict=True):
            self.check()
            found.append(task.observe(state, observation))
        return found

    @property
    def masks(self) -> list[Mask]:
        """Which actions apply to each."""
        return [task.mask(state) for task, state in zip(self.tasks, self.states, strict=True)]


class Episode(NamedTuple):
    """The states of an episode, first to last, and the action after each but the last."""

    states: list[Any]
    actions: list[Action]


def play(
    tasks: Sequence[Task[Any]],
    choose: Callable[[Turn], Sequence[Action]],
    check: Callable[[], None] = _go_on,
    late: Callable[[], bool] = never,
) -> list[Episode]:
    """Play one episode on each of `tasks`, to its terminal state or its task's horizon.

    Args:
        tasks: They may repeat.
        choose: Returns an action for each episode that still runs.
        check: Called before each observation; an exception ends all episodes.
        late: Asked before each step; where it says so, all episodes end in the states that they have reached.
    """
    initial = {id(task): task.initial() for task in tasks}
    episodes = [Episode([], []) for _ in tasks]
    groups = deque(
        _Group(places, partial(list, [initial[id(tasks[place])] for place in places]))
        for places in taking_turns(len(tasks), any(task.runs_beside for task in tasks))
    )
    begin = begin_all if len(groups) > 1 else _stepped
    while groups:
        group = groups.popleft()
        for place, state in zip(group.places, group.after(), strict=True):
            episodes[place].states.append(state)
        live = [] if late() else [place for place in group.places if _runs(tasks[place], episodes[place])]
        if live:
            states = [episodes[place].states[-1] for place in live]
            turn = Turn(live, [tasks[place] for place in live], states, check, group.step)
            actions = choose(turn)
            for place, action in zip(live, actions, strict=True):
                episodes[place].actions.append(action)
            groups.append(_Group(live, begin(turn.tasks, turn.states, actions), group.step + 1))
    return episodes


class _Group(NamedTuple):
    """Episodes that take their steps at the same time.

    Attributes:
        places: Their numbers.
        after: Waits for the states after the step that was begun.
        step: Number of the step that follows.
    """

    places: list[int]
    after: Callable[[], list[Any]]
    step: int = 0


def taking_turns(count: int, beside: bool) -> list[list[int]]:
    """Return the places of what steps at the same time: all, or one half and then the other.

    While transitions of the one half run in other processes, this one chooses the actions of the other half,
    and a process that has done its share of the one begins with the other.

    Args:
        count: Number of episodes, or of what else takes steps.
        beside: Whether transitions run in other processes.
    """
    places = list(range(count))
    half = (count + 1) // 2 if beside else count
    return [group for group in (places[:half], places[half:]) if group]


def _runs(task: Task[Any], episode: Episode) -> bool:
    return len(episode.actions) < task.horizon and not task.terminal(episode.states[-1])


def _stepped(
    tasks: Sequence[Task[Any]], states: Sequence[Any], actions: Sequence[Action]
) -> Callable[[], list[Any]]:
    """Do what `begin_all` only begins: without another group, there is nothing to do beside it."""
    after = step_all(tasks, states, actions)
    return lambda: after


def step_all(tasks: Sequence[Task[Any]], states: Sequence[Any], actions: Sequence[Action]) -> list[Any]:
    """Step a state of each of some tasks, those of one class in one call."""
    after = list(states)
    for kind, places, moves in _by_class(tasks, states, actions):
        for place, state in zip(places, kind.step_many(*moves), strict=True):
            after[place] = state
    return after


def begin_all(
    tasks: Sequence[Task[Any]], states: Sequence[Any], actions: Sequence[Action]
) -> Callable[[], list[Any]]:
    """Begin what `step_all` does; return a function that waits for the states."""
    begun = [(places, kind.begin_many(*moves)) for kind, places, moves in _by_class(tasks, states, actions)]

    def waited() -> list[Any]:
        after = list(states)
        for places, wait in begun:
            for place, state in zip(places, wait(), strict=True):
                after[place] = state
        return after

    return waited


def _by_class(
    tasks: Sequence[Task[Any]], states: Sequence[Any], actions: Sequence[Action]
) -> Iterator[tuple[type[Task[Any]], list[int], tuple[list[Task[Any]], list[Any], list[Action]]]]:
    """Yield each class of the tasks with its places, and the tasks, states and actions there."""
    for kind in {type(task): None for task in tasks}:
        places = [place for place, task in enumerate(tasks) if type(task) is kind]
        own = [tasks[place] for place in places]
        yield kind, places, (own, [states[place] for place in places], [actions[place] for place in places])
