"""Integers of a function as terms of z3, to find planted faults that are equivalent."""

import re
from collections.abc import Iterator
from typing import Any

import z3

from irgym.envs.cse.ir.analysis import Analysed
from irgym.llvmir.ir.instruction import Instruction
from irgym.llvmir.ir.syntax import listed

_BITS = re.compile(r"i(\d+)$")
_DIVISIONS = ("sdiv", "udiv", "srem", "urem")


class Terms:
    """Integers of a function as terms of z3, with known facts about them.

    Args:
        function: The function.
    """

    def __init__(self, function: Analysed) -> None:
        self._function = function
        self._made = function.values.made
        self._terms: dict[str, Any] = {}
        self.facts: list[Any] = []

    def equal(self, line: str, new: str) -> bool:
        """Say whether z3 proves that two lines compute the same where their result is defined."""
        first, second = Instruction.read(line.strip()), Instruction.read(new.strip())
        if not first.result or first.result not in self._function.values.places:
            return False
        try:
            pairs = self._seen([(first, second)], first.result, 3)
            conditions = list(self._conditions(self._function.values.places[first.result].block))
        except (KeyError, ValueError, TypeError, z3.Z3Exception):
            return False
        solver = z3.Solver()
        solver.set("timeout", 3000)
        solver.add(*self.facts, *conditions, z3.Or(*(first != other for first, other in pairs)))
        return solver.check() == z3.unsat

    def _seen(
        self, forms: list[tuple[Instruction, Instruction]], name: str, depth: int
    ) -> list[tuple[Any, Any]]:
        """Return the observable terms of a result computed in two ways: itself, or its dependants."""
        [(first, second)] = forms
        old, new = self._computed(first, "old"), self._computed(second, "new")
        return self._through(name, old, new, depth)

    def _through(self, name: str, old: Any, new: Any, depth: int) -> list[tuple[Any, Any]]:
        users = [user for _, user in self._function.function if name in user.operands]
        if not depth or not users or any(user.opcode not in _NARROW for user in users):
            return [(old, new)]
        found: list[tuple[Any, Any]] = []
        for user in users:
            kept = self._terms.get(name)
            terms: list[Any] = []
            for term in (old, new):
                self._terms[name] = term
                terms.append(self._computed(user, "user"))
            self._terms.pop(name)
            if kept is not None:
                self._terms[name] = kept
            found += self._through(user.result, *terms, depth - 1)
        return found

    def _conditions(self, block: int) -> Iterator[Any]:
        """Yield the conditions of the branches that lead to a block."""
        flow, blocks = self._function.flow, self._function.function.blocks
        while block != flow.order[0]:
            parent = flow.parents[block]
            last = blocks[parent].instructions[-1]
            labels = re.findall(r"label %([-\w.$]+)", last.rest)
            if len(labels) == 2 and labels[0] != labels[1] and flow.predecessors[block] == [parent]:
                condition = self._value("i1", listed(last.rest)[0].split(" ")[1])
                yield condition == (1 if labels[0] == blocks[block].name else 0)
            block = parent

    def _value(self, kind: str, text: str) -> Any:
        bits = int(_BITS.match(kind)[1])  # pyright: ignore[reportOptionalSubscript]
        if not text.startswith("%"):
            return z3.BitVecVal(
                {"true": 1, "false": 0}[text] if text in ("true", "false") else int(text), bits
            )
        if text not in self._terms:
            self._terms[text] = z3.BitVec(text, bits)
            if text in self._made:
                try:
                    found = self._computed(self._made[text], text)
                    self.facts.append(self._terms[text] == found)
                except (KeyError, ValueError, z3.Z3Exception, TypeError):
                    self._bounds(text, bits)
        return self._terms[text]

    def _bounds(self, name: str, bits: int) -> None:
        """Note the range of a value that is no term: by its metadata, or as a counter that only rises."""
        instruction, term = self._made[name], self._terms[name]
        if instruction.opcode == "phi":
            values = re.findall(r"\[ (\S+), %", instruction.rest)
            steps = [self._made.get(value) for value in values if value.startswith("%")]
            starts = [
                int(value) for value in values if not value.startswith("%") and value.lstrip("-").isdigit()
            ]
            rises = all(
                step is not None
                and step.opcode == "add"
                and {"nsw", "nuw"} & step.flags
                and name in step.operands
                and int(step.rest.rpartition(" ")[2].replace("%", "-0") or 0) > 0
                for step in steps
                if step is not None
            )
            if starts and rises and len(steps) + len(starts) == len(values) and None not in steps:
                self.facts.append(term >= min(starts))
        elif instruction.opcode == "call" and re.search(r"@llvm\.(ctpop|ctlz|cttz|abs)\.", instruction.rest):
            self.facts.append(term >= 0)
            if "abs" not in instruction.rest:
                self.facts.append(z3.ULE(term, bits))

    def _computed(self, instruction: Instruction, name: str) -> Any:
        rest, flags = instruction.rest, instruction.flags
        match instruction.opcode:
            case "trunc" | "zext" | "sext":
                old, value = rest.rpartition(" to ")[0].split(" ")
                term, bits = self._value(old, value), int(_BITS.match(rest.rpartition(" to ")[2])[1])  # pyright: ignore[reportOptionalSubscript]
                more = bits - term.size()
                if "nneg" in flags:
                    self.facts.append(term >= 0)
                return (
                    z3.Extract(bits - 1, 0, term)
                    if more < 0
                    else (z3.SignExt if instruction.opcode == "sext" else z3.ZeroExt)(more, term)
                )
            case "icmp":
                relation, rest = rest.split(" ", 1)
                first, second = self._two(rest)
                return z3.If(_RELATIONS[relation](first, second), z3.BitVecVal(1, 1), z3.BitVecVal(0, 1))
            case "select":
                parts = [part.split(" ") for part in listed(rest)]
                condition, yes, no = (self._value(*part) for part in parts)
                return z3.If(condition == 1, yes, no)
            case "phi" | "load" | "call":
                raise ValueError(name)
        first, second = self._two(rest)
        found = _OPERATIONS[instruction.opcode](first, second)
        if "nsw" in flags and instruction.opcode in ("add", "sub", "mul"):
            more = first.size() if instruction.opcode == "mul" else 1
            whole = _OPERATIONS[instruction.opcode](z3.SignExt(more, first), z3.SignExt(more, second))
            self.facts.append(whole == z3.SignExt(more, found))
        if "nuw" in flags and instruction.opcode == "add":
            self.facts.append(z3.UGE(found, first))
        if "nuw" in flags and instruction.opcode == "sub":
            self.facts.append(z3.UGE(first, second))
        if instruction.opcode in ("shl", "lshr", "ashr"):
            self.facts.append(z3.ULT(second, second.size()))
        if "nsw" in flags and instruction.opcode == "shl":
            self.facts.append((found >> second) == first)
        if instruction.opcode in _DIVISIONS:
            self.facts.append(second != 0)
        return found

    def _two(self, rest: str) -> tuple[Any, Any]:
        first, second = listed(rest)
        kind, value = first.split(" ")
        return self._value(kind, value), self._value(kind, second)


_OPERATIONS: dict[str, Any] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << b,
    "ashr": lambda a, b: a >> b,
    "lshr": z3.LShR,
    "udiv": z3.UDiv,
    "urem": z3.URem,
    "sdiv": lambda a, b: a / b,
    "srem": z3.SRem,
}
_NARROW = frozenset(("trunc", "and", "or", "shl", "add", "sub", "mul", "zext", "icmp"))
_RELATIONS: dict[str, Any] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "slt": lambda a, b: a < b,
    "sle": lambda a, b: a <= b,
    "sgt": lambda a, b: a > b,
    "sge": lambda a, b: a >= b,
    "ult": z3.ULT,
    "ule": z3.ULE,
    "ugt": z3.UGT,
    "uge": z3.UGE,
}
