"""The static score of a function: costs of its instructions, weighted by block frequencies."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from irgym.envs.cse.compiling.assembly import Line


@dataclass(frozen=True)
class Score:
    """Score and statistics of a function's code.

    Attributes:
        cost: The score: approximate cycles per call.
        instructions: Number of instructions.
        spills: Number of instructions that store registers on the stack.
        reloads: Number of instructions that load them again.
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

    Blocks that LLVM created count as often as the block before them.

    Args:
        lines: The instructions.
        frequencies: Frequencies of the IR blocks by name.
        cost: Returns the cost of an instruction from its mnemonic and operands.
    """
    total, count, spills, reloads = 0.0, 0, 0, 0
    often = 1.0
    for line in lines:
        often = frequencies.get(line.block, often)
        total += often * cost(line.mnemonic, line.operands)
        count += 1
        spills += line.remark.endswith("Spill")
        reloads += line.remark.endswith("Reload")
    return Score(total, count, spills, reloads)
