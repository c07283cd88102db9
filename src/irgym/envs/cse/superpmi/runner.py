"""Functions that measuring children run; each child has one SuperPMI process."""

from collections.abc import Callable
from functools import lru_cache

from irgym.base.errors import ProgramError
from irgym.core.cost import Measurement, Outcome, Validation
from irgym.envs.cse.superpmi.answers import AnswerError, JitMethod
from irgym.envs.cse.superpmi.session import Collection, SuperPmi

COSTS: dict[str, Callable[[JitMethod], float]] = {
    "score": lambda method: method.score,
    "bytes": lambda method: float(method.bytes),
    "instructions": lambda method: float(method.instructions),
}
"""Costs by the names of objectives."""


@lru_cache(maxsize=4)
def session(collection: Collection) -> SuperPmi:
    """Return the SuperPMI process of a collection, which starts on first use and ends with this process."""
    return SuperPmi(collection)


def measure(collection: Collection, index: int, chosen: tuple[int, ...], objective: str) -> Measurement:
    """Return the cost of a choice.

    Args:
        collection: The methods and the JIT.
        index: Number of the method.
        chosen: The shared candidates as the JIT numbers them, from 0.
        objective: A key of `COSTS`.

    Raises:
        BackendError: The JIT does not start, or fails repeatedly.
    """
    try:
        method = session(collection).compile(index, chosen)
    except (ProgramError, AnswerError) as error:
        return Measurement(Outcome.COMPILE_ERROR, detail=str(error))
    if method.shared != len(chosen):
        detail = f"the JIT shared {method.shared} candidates, not the {len(chosen)} that it was told to"
        return Measurement(Outcome.COMPILE_ERROR, detail=detail)
    return Measurement(Outcome.OK, (COSTS[objective](method),))


def validate(collection: Collection, index: int, chosen: tuple[int, ...]) -> Validation:
    """Say whether the JIT compiles a choice; SuperPMI runs no code."""
    measured = measure(collection, index, chosen, "score")
    blind = "SuperPMI compiles methods and runs none: the JIT alone has looked at it" if measured.ok else ""
    return Validation(measured.ok, 0.0, "the JIT compiles it", 0, measured.detail, blind)
