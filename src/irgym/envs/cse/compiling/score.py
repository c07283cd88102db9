"""The static score of a function: what its instructions cost, times how often their blocks run."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from irgym.envs.cse.compiling.assembly import Line


@dataclass(frozen=True)
class Score:
    """What the code of a function comes to.

    Attributes:
        cost: Cycles of a call, roughly: the score.
        instructions: How many there are.
        spills: Instructions that put registers on the stack.
        reloads: Instructions that fetch them.
    """

    cost: float
    instructions: int
    spills: int
    reloads: int

    def of(self, objective: str) -> float:
        """Return the cost under an objective: `score` or `instructions`."""
        return {"score": self.cost, "instructions": float(self.instructions)}[objective]


def score_of(
    lines: Iterable[Line], frequencies: Mapping[str, float], cost: Callable[[str, str], float]
) -> Score:
    """Return the score of a function's instructions.

    Blocks that LLVM made itself are taken to run as often as the block before them.

    Args:
        lines: The instructions.
        frequencies: How often the blocks of the IR run, by name.
        cost: What an instruction costs.
    """
    whole, count, spills, reloads = 0.0, 0, 0, 0
    often = 1.0
    for line in lines:
        often = frequencies.get(line.block, often)
        whole += often * cost(line.mnemonic, line.operands)
        count += 1
        spills += line.remark.endswith("Spill")
        reloads += line.remark.endswith("Reload")
    return Score(whole, count, spills, reloads)
