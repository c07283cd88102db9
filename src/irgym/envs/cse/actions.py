"""The actions: share a candidate, or stop."""

from collections.abc import Sequence
from urllib.parse import quote

from irgym.core.actions import ActionSpace
from irgym.core.kinds import ActionKind
from irgym.envs.cse.ir.analysis import CAPACITY
from irgym.envs.cse.ir.candidates import Candidate

STOP, SHARE = 0, 1

SPACE = ActionSpace(
    (ActionKind("stop", ends="episode"), ActionKind("share", candidates=True)), capacity=CAPACITY
)
"""Actions: `stop`, and `share@NAME` for each candidate, where NAME is the first result of its class."""


def names_of(candidates: Sequence[Candidate]) -> tuple[str, ...]:
    """Return the names of candidates in schedules."""
    return tuple(quote(candidate.name, safe="._-") for candidate in candidates)
