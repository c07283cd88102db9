"""States as the text that their costs are recorded under, and back."""

from collections.abc import Sequence
from dataclasses import replace

from irgym.base.errors import ScheduleError
from irgym.core.actions import Action
from irgym.envs.linalg.actions import NEXT, SPACE
from irgym.envs.linalg.state import LinalgState
from irgym.envs.linalg.transitions import Transitions


def text_of(state: LinalgState) -> str:
    """Return what was done to each operation, as text that is equal for equal code."""
    return "; ".join(
        f"{scheduled.operation.place}: {' '.join(step.text for step in scheduled.steps)}"
        for scheduled in state.operations
        if scheduled.steps
    )


def state_of(task: Transitions, text: str) -> LinalgState | None:
    """Return the state of a text, with all operations done; None where it describes none of this program.

    Args:
        task: The program, with the actions of `linalg`.
        text: What `text_of` wrote.
    """
    actions = _actions(task, text)
    # What other actions, or those of the past, could write need not make sense.
    state = None if actions is None else _after(task, actions, checked=False)
    return state if state is not None and text_of(state) == text else None


def actions_of(task: Transitions, text: str) -> Sequence[Action] | None:
    """Return the actions to what a text describes; None where it describes nothing that can be reached now.

    Args:
        task: The program, with the actions of `linalg`.
        text: What `text_of` wrote.
    """
    actions = _actions(task, text)
    if actions is None:
        return None
    while actions and actions[-1].kind == NEXT:
        actions.pop()
    state = _after(task, actions, checked=True)
    return actions if state is not None and text_of(state) == text else None


def _after(task: Transitions, actions: Sequence[Action], *, checked: bool) -> LinalgState | None:
    """Return the state after some actions; None where one does not apply.

    Args:
        task: The program.
        actions: From the initial state on.
        checked: Whether the rules that keep searches from useless actions count too.
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
    """Return the actions that a text stands for; None where another version of irgym wrote it."""
    steps = dict(part.split(": ", 1) for part in text.split("; ") if ": " in part)
    words = [word for place in task.order for word in (*_words(steps.get(str(place), "")), "next")]
    try:
        return [SPACE.parse(word) for word in words]
    except ScheduleError:
        return None


def _words(steps: str) -> Sequence[str]:
    """Return the actions that make an operation's transformations."""
    words: list[str] = []
    for step in steps.split():
        name, *numbers = step.split("_")
        # Loops are placed one by one, the last one by itself.
        words += [f"{name}_{loop}" for loop in numbers[:-1]] if name == "interchange" else [step]
    return words
