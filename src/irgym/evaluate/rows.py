"""What a method made of a program: the line of a comparison."""

from collections.abc import Mapping
from dataclasses import dataclass, field

BASE = "base"
"""The method that leaves every program as written."""


@dataclass(frozen=True)
class Side:
    """The cost of a row's schedule under another objective than the comparison's.

    Attributes:
        cost: The cost; None where it failed.
        speedup: Cost of the program as written over it.
        reference_ratio: Cost after the reference pipeline over it; None without a reference.
    """

    cost: float | None
    speedup: float | None = None
    reference_ratio: float | None = None


@dataclass(frozen=True)
class Row:
    """What a method made of a program.

    Attributes:
        program: URI.
        method: Name of the method.
        cost: Cost measured after the method ended, in the objective's unit; None where it failed.
        speedup: Cost of the program as written over `cost`.
        peer_ratio: The reference peer's time over ours; above 1, we are faster. None without a peer.
        seconds: Wall-clock time that the method took, without the final measurement.
        evaluations: Candidates that it evaluated.
        validated: Whether the results agree with the original program's, and wrong ones would not have.
        schedule: Text of the schedule; empty for peers.
        detail: For a failure, why; otherwise what should be known about the numbers.
        best_seen: For a policy, the least cost of the states that it passed through.
        peak_share: Share of the machine's peak, timed in turn with it; None where no peak bounds the cost.
        reference_ratio: Cost after the reference pipeline over ours; None without a reference.
        gain_ratio: Our reduction of the cost over the reference's, see `gain_ratio`; None without a
            reference, and where the reference reduces nothing.
        family: Family of the program; empty where programs are not grouped.
        also: The cost under other objectives, by their names.
        not_checkable: The wrong answer that would have agreed too, in words; empty where those tried show.
    """

    program: str
    method: str
    cost: float | None
    speedup: float | None
    peer_ratio: float | None
    seconds: float | None
    evaluations: int | None
    validated: bool
    schedule: str = ""
    detail: str = ""
    best_seen: float | None = None
    peak_share: float | None = None
    reference_ratio: float | None = None
    gain_ratio: float | None = None
    family: str = ""
    also: Mapping[str, Side] = field(default_factory=dict[str, Side])
    not_checkable: str = ""
