"""Shrinking: the smallest sequence of actions that still breaks a rule."""

from collections.abc import Callable

from irgym.core.actions import Action

Actions = tuple[Action, ...]
TRIES = 300
"""Greatest number of sequences that are tried."""


def shrunk(actions: Actions, breaks: Callable[[Actions], bool]) -> Actions:
    """Return a sequence that breaks a rule, and no longer does when any one of its actions is left out.

    Args:
        actions: A sequence that breaks it.
        breaks: Says whether a sequence can be taken and breaks the rule.
    """
    tries, place = 0, len(actions)
    while place and tries < TRIES:
        place -= 1
        shorter = (*actions[:place], *actions[place + 1 :])
        tries += 1
        if breaks(shorter):
            actions, place = shorter, len(shorter)
    return actions
