"""The cost and the register pressure of one basic block, from a walk over its instructions."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from irgym.envs.cse.estimates.estimate import Machine
from irgym.envs.cse.estimates.operations import COMMUTATIVE, Operation, Operations
from irgym.envs.cse.estimates.reading import SIMPLE, Steps


@dataclass(frozen=True, slots=True)
class BlockCost:
    """Cost and register pressure of a block.

    Attributes:
        work, copies, crossing, crowded, needed: The block's part of the attributes of `Estimate`.
        calls: Whether the block has a call that needs a frame.
        lasting: Greatest number of integer values that are live across a call.
        across: Set of the integer values that are live across a call.
        floats: Set of the other values that are live across a call.
        crowds: Sets of live integer values that exceed the registers: the excess, the set, the registers.
    """

    work: float
    copies: float
    crossing: float
    crowded: float
    needed: int
    calls: bool
    lasting: int
    across: int
    floats: int
    crowds: AbstractSet[tuple[int, int, int]]


def block_cost(steps: Steps, live: int, often: float, code: Operations, machine: Machine) -> BlockCost:
    """Return the cost of a block, walking backwards over its instructions.

    Args:
        steps: The instructions that are left of the block.
        live: Set of the values that are live at the block's end.
        often: How often the block runs.
        code: Instructions of the function.
        machine: The target.
    """
    integers = code.integers
    work = copies = crossing = crowded = 0.0
    needed = lasting = across = floats = 0
    calls = False
    crowds: set[tuple[int, int, int]] = set()
    for operation, used, cost in steps.backwards:
        live &= ~operation.bit
        work += cost
        if operation.calls:
            calls = True
            kept = live & integers
            number = kept.bit_count()
            crossing += number
            across |= kept
            lasting = max(lasting, number)
            floats |= live & code.others
            if number > machine.lasting:
                crowds.add((number - machine.lasting, kept, machine.lasting))
        if operation.pair and machine.folds and not _overwrites_operand(operation, live, code):
            copies += SIMPLE
        live |= used
        kept = live & integers
        number = kept.bit_count()
        needed = max(needed, number)
        if number > machine.integers:
            crowded += number - machine.integers
            crowds.add((number - machine.integers, kept, machine.integers))
    return BlockCost(
        work * often,
        copies * often,
        crossing * often,
        crowded * often,
        needed,
        calls,
        lasting,
        across,
        floats,
        crowds,
    )


def _overwrites_operand(operation: Operation, live: int, code: Operations) -> bool:
    """Say whether the result may overwrite an operand, since nothing uses that operand afterwards."""
    bits = code.bits
    first, second = (bits.get(name, 0) for name in operation.pair)
    return bool(
        (first and not first & live) or (operation.opcode in COMMUTATIVE and second and not second & live)
    )
