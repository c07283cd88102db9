"""A sharing of expressions that is wrong: the first addition becomes a subtraction."""

from irgym.core.cost import Validation
from irgym.envs.cse.checking import validation as checking
from irgym.envs.cse.ir.sharing import Sharing


def compared(path: str, name: str, shared: tuple[int, ...], inputs: int, seed: int) -> Validation:
    """Compare a function with one that computes something else."""
    right = Sharing.lines

    def wrong(self: Sharing, chosen: tuple[int, ...]) -> list[str]:
        lines = right(self, chosen)
        return [line.replace(" add ", " sub ", 1) for line in lines] if chosen else lines

    Sharing.lines = wrong
    try:
        return checking.compared(path, name, shared, inputs, seed)
    finally:
        Sharing.lines = right
