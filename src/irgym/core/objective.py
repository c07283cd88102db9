"""Objectives: what is minimised."""

from collections.abc import Sequence
from dataclasses import dataclass

from irgym.base.errors import IrgymError


@dataclass(frozen=True)
class Objective:
    """Meaning of a cost.

    Attributes:
        name: What users choose it by.
        unit: Unit of the costs; empty for a plain number.
        summary: One line.
        exact: Whether equal programs always have equal costs: one evaluation is then enough, and no
            difference is noise.
        timed: Whether costs are times of the running program, in nanoseconds, which can be compared with
            those of baselines and with the machine's peak.
    """

    name: str
    unit: str
    summary: str
    exact: bool
    timed: bool


TIME = Objective("time", "ns", "measured time in nanoseconds", exact=False, timed=True)
"""Run time, as most environments measure it."""

COLD = Objective(
    "cold", "ns", "measured time in nanoseconds, each run with empty caches", exact=False, timed=True
)
"""Run time of a program whose data other work has evicted from the caches."""


def objective_named(name: str | None, objectives: Sequence[Objective], environment: str) -> Objective:
    """Return the objective of a name; the first, which is the default, where none is named.

    Args:
        name: The name.
        objectives: Those that there are.
        environment: Name of the environment, for the message.

    Raises:
        IrgymError: There is none of that name; the message lists those that exist.
    """
    known = {objective.name: objective for objective in objectives}
    if name is None:
        return objectives[0]
    if name not in known:
        among = "among " if len(known) > 1 else ""
        raise IrgymError(f"{environment} has no objective {name!r}: choose {among}{', '.join(known)}")
    return known[name]
