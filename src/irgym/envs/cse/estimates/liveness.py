"""Liveness of values in the blocks of a function, and the register pressure."""

from collections.abc import Iterable, Mapping

from irgym.envs.cse.ir.flow import Flow
from irgym.llvmir.ir.function import Function
from irgym.llvmir.ir.syntax import listed, locals_in
from irgym.llvmir.ir.types import Register, register_of, type_of

CLASSES: tuple[Register, ...] = ("integer", "float", "vector")
"""Classes of registers."""


class Liveness:
    """The values that are live in a function's blocks.

    Args:
        function: The function.
        flow: Its flow of control.

    Attributes:
        registers: Register class of each value.
        entering: Live values at the beginning of each block.
        leaving: Live values at the end of each block.
        pressure: Live values of each class at the beginning or the end of each block, whichever has more.
    """

    def __init__(self, function: Function, flow: Flow) -> None:
        self.registers = _registers(function)
        self._flow = flow
        made: dict[int, set[str]] = {}
        used: dict[int, set[str]] = {}
        by_phis: dict[int, set[str]] = {block: set() for block in flow.order}
        for block in flow.order:
            made[block], used[block] = set(), set()
            for instruction in function.blocks[block].instructions:
                if instruction.opcode == "phi":
                    for value, source in incoming(instruction.rest):
                        if value in self.registers and source in function.numbers:
                            by_phis.setdefault(function.numbers[source], set()).add(value)
                else:
                    needed = (operand for operand in instruction.operands if operand in self.registers)
                    used[block].update(operand for operand in needed if operand not in made[block])
                if instruction.result:
                    made[block].add(instruction.result)
        self.entering: dict[int, set[str]] = {block: set() for block in flow.order}
        self.leaving: dict[int, set[str]] = {block: set() for block in flow.order}
        self._solve(made, used, by_phis)
        self.pressure = {
            block: self._counts(max(self.entering[block], self.leaving[block], key=len))
            for block in flow.order
        }

    def _solve(
        self, made: Mapping[int, set[str]], used: Mapping[int, set[str]], by_phis: Mapping[int, set[str]]
    ) -> None:
        changed = True
        while changed:
            changed = False
            for block in reversed(self._flow.order):
                leaving = set(by_phis[block])
                for following in self._flow.successors[block]:
                    leaving |= self.entering[following]
                entering = used[block] | (leaving - made[block])
                if entering != self.entering[block] or leaving != self.leaving[block]:
                    self.entering[block], self.leaving[block] = entering, leaving
                    changed = True

    def _counts(self, values: Iterable[str]) -> dict[Register, int]:
        counts: dict[Register, int] = dict.fromkeys(CLASSES, 0)
        for value in values:
            kind = self.registers[value]
            if kind in counts:
                counts[kind] += 1
        return counts


def _registers(function: Function) -> dict[str, Register]:
    """Return the register class of each parameter and result of a function."""
    found: dict[str, Register] = {}
    head = function.header[function.header.index(f"{function.name}(") + len(function.name) :]
    for parameter in listed(head[1 : head.rindex(")")]):
        names = list(locals_in(parameter))
        if names:
            found[names[-1]] = register_of(parameter.partition(" ")[0])
    for _, instruction in function:
        if instruction.result:
            found[instruction.result] = register_of(type_of(instruction))
    return found


def incoming(rest: str) -> Iterable[tuple[str, str]]:
    """Yield the incoming values of a phi, each with the name of its block without sigil."""
    for pair in rest.split("[")[1:]:
        value, _, source = pair.partition("]")[0].partition(",")
        yield value.strip(), source.strip().removeprefix("%").strip('"')
