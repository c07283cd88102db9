"""Equality of loads: a walk back along all paths from one load to another."""

from irgym.llvmir.ir.effects import Effects
from irgym.llvmir.ir.function import Function


class Memory:
    """Compares what loads of a function read.

    Args:
        function: The function.
        effects: Side effects of its instructions.
    """

    def __init__(self, function: Function, effects: Effects) -> None:
        self._writes = [
            [effects.writes(instruction) for instruction in block.instructions] for block in function.blocks
        ]
        self._before = _predecessors(function.successors)
        self._places = {
            instruction.result: (number, index)
            for number, block in enumerate(function.blocks)
            for index, instruction in enumerate(block.instructions)
            if instruction.result
        }

    def holds(self, first: str, second: str) -> bool:
        """Say whether `first` runs before `second` on all paths to it, without a write in between."""
        home, begin = self._places[first]
        seen: set[int] = set()
        waiting = [self._places[second]]
        while waiting:
            block, end = waiting.pop()
            found = block == home and begin < end
            if any(self._writes[block][begin + 1 if found else 0 : end]):
                return False
            if found:
                continue
            if not block:
                return False  # a path from the function's entry bypasses the first load
            for previous in self._before[block] - seen:
                seen.add(previous)
                waiting.append((previous, len(self._writes[previous])))
        return True


def _predecessors(successors: tuple[tuple[int, ...], ...]) -> list[set[int]]:
    """Return the reachable predecessors of each block."""
    before: list[set[int]] = [set() for _ in successors]
    reached: set[int] = set()
    waiting = [0]
    while waiting:
        block = waiting.pop()
        if block not in reached:
            reached.add(block)
            waiting += successors[block]
            for following in successors[block]:
                before[following].add(block)
    return before
