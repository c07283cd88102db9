"""Objectives: what is minimised."""

from dataclasses import dataclass


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
