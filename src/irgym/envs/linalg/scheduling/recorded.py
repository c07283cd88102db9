"""Keys of states, under which costs are recorded, and the states that keys describe."""

from collections.abc import Sequence
from dataclasses import replace

from irgym.base.errors import ScheduleError
from irgym.core.actions import Action
from irgym.envs.linalg.actions import NEXT, SPACE
from irgym.envs.linalg.state import LinalgState
from irgym.envs.linalg.transitions import Transitions


def text_of(state: LinalgState) -> str:
    """Return the transformations of each operation as text; equal texts mean equal code."""
    return "; ".join(
        f"{scheduled.operation.place}: {' '.join(step.text for step in scheduled.steps)}"
        for scheduled in state.operations
        if scheduled.steps
    )


def state_of(task: Transitions, text: str) -> LinalgState | None:
    """Return the terminal state that a text describes; None where it is no schedule of this program.

    Args:
        task: The program, with the actions of `linalg`.
        text: A text of `text_of`.
    """
    actions = _actions(task, text)
    # A text from other or older actions may not make sense here.
    state = None if actions is None else _after(task, actions, checked=False)
    return state if state is not None and text_of(state) == text else None


def actions_of(task: Transitions, text: str) -> Sequence[Action] | None:
    """Return the actions that lead to the state that a text describes; None where no actions do.

    Args:
        task: The program, with the actions of `linalg`.
        text: A text of `text_of`.
    """
    actions = _actions(task, text)
    if actions is None:
        return None
    while actions and actions[-1].kind == NEXT:
        actions.pop()
    state = _after(task, actions, checked=True)
    return actions if state is not None and text_of(state) == text else None


def _after(task: Transitions, actions: Sequence[Action], *, checked: bool) -> LinalgState | None:
    """Return the state after some actions; None where one of them does not apply.

    Args:
        task: The program.
        actions: The actions, from the initial state on.
        checked: Whether to apply the rules against useless actions too.
    """
    state = task.initial()
    for action in actions:
        if not SPACE.allows(task.mask(state), action):
            return None
        state = task.step(state, action)
        if not checked:
            state = replace(state, spent=0, barred=frozenset())
    return state


def _actions(task: Transitions, text: str) -> list[Action] | None:
    """Return the actions that a text describes; None where it is from another version of irgym."""
    steps = dict(part.split(": ", 1) for part in text.split("; ") if ": " in part)
    words = [word for place in task.order for word in (*_words(steps.get(str(place), "")), "next")]
    try:
        return [SPACE.parse(word) for word in words]
    except ScheduleError:
        return None


def _words(steps: str) -> Sequence[str]:
    """Return the actions of an operation's transformations."""
    words: list[str] = []
    for step in steps.split():
        name, *numbers = step.split("_")
        # An interchange takes one action for each loop but the last.
        words += [f"{name}_{loop}" for loop in numbers[:-1]] if name == "interchange" else [step]
    return words
