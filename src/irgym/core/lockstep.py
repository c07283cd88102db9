"""Episodes of several tasks in lockstep: one choice and one transition a step for all that still run.

So a network acts on a batch, and a task whose transitions are slow can spread them.
"""

from collections.abc import Callable, Sequence
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

    `check` is called before each observation, which may take long; an exception ends all episodes.
    """

    episodes: list[int]
    tasks: list[Task[Any]]
    states: list[Any]
    check: Callable[[], None] = _go_on

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
    episodes = [Episode([initial[id(task)]], []) for task in tasks]
    live: Sequence[int] = range(len(tasks))
    while not late() and (live := [place for place in live if _runs(tasks[place], episodes[place])]):
        states = [episodes[place].states[-1] for place in live]
        turn = Turn(live, [tasks[place] for place in live], states, check)
        actions = choose(turn)
        for place, action, state in zip(
            live, actions, step_all(turn.tasks, turn.states, actions), strict=True
        ):
            episodes[place].actions.append(action)
            episodes[place].states.append(state)
    return episodes


def _runs(task: Task[Any], episode: Episode) -> bool:
    return len(episode.actions) < task.horizon and not task.terminal(episode.states[-1])


def step_all(tasks: Sequence[Task[Any]], states: Sequence[Any], actions: Sequence[Action]) -> list[Any]:
    """Step a state of each of some tasks, those of one class in one call."""
    after = list(states)
    for kind in {type(task): None for task in tasks}:
        own = [place for place, task in enumerate(tasks) if type(task) is kind]
        stepped = kind.step_many(
            [tasks[place] for place in own],
            [states[place] for place in own],
            [actions[place] for place in own],
        )
        for place, state in zip(own, stepped, strict=True):
            after[place] = state
    return after
