"""Instructions of LLVM's IR, read from their text."""

import re
from dataclasses import dataclass
from functools import cached_property

from irgym.envs.cse.ir.syntax import ATTACHED, NAME, PLACE, locals_in, without_flags

_RESULT = re.compile(rf"(%{NAME}) = ")
_CALL = re.compile(r"(?:tail |musttail |notail )?call\b")
_TARGET = re.compile(rf"label (%{NAME})")
_CALLEE = re.compile(rf'"[^"]*"|(?P<name>@{NAME})\(')

TERMINATORS = frozenset(
    (
        *("ret", "br", "switch", "indirectbr", "invoke", "callbr", "resume", "unreachable"),
        *("cleanupret", "catchret", "catchswitch"),
    )
)
"""Operations that end a block."""


@dataclass(frozen=True)
class Instruction:
    """An instruction.

    Attributes:
        result: Name of its result, sigil included; empty where it has none.
        opcode: The operation; `call` however it is marked.
        flags: Those under which its result may be poison or round otherwise.
        rest: What stands behind operation and flags, less attachments.
        attached: Pairs of a kind of metadata and a node, as texts such as `!tbaa !5`.
        text: All of it, as LLVM prints it.
    """

    result: str
    opcode: str
    flags: frozenset[str]
    rest: str
    attached: tuple[str, ...]
    text: str

    @staticmethod
    def read(text: str) -> "Instruction":
        """Return the instruction of a text without white space around it."""
        match = _RESULT.match(text)
        result = match[1] if match else ""
        said = text[match.end() :] if match else text
        ending = ATTACHED.search(said)
        attached = tuple(ending[0][2:].split(", ")) if ending else ()
        said = said[: ending.start()] if ending else said
        call = _CALL.match(said)
        opcode, _, rest = ("call", "", said[call.end() :].strip()) if call else said.partition(" ")
        flags, rest = without_flags(opcode, rest)
        return Instruction(result, opcode, flags, rest, attached, text)

    def written(self, flags: frozenset[str], attached: tuple[str, ...]) -> str:
        """Return its text with other flags and attachments.

        Raises:
            ValueError: It is a call, which may be marked.
        """
        if self.opcode == "call":
            raise ValueError("what marks a call is not known any more")
        head = " ".join([self.opcode, *sorted(flags), self.rest])
        return ", ".join([f"{self.result} = {head}", *attached])

    @cached_property
    def promised(self) -> tuple[str, ...]:
        """What is attached, less its place in the source, which promises nothing."""
        return tuple(pair for pair in self.attached if not pair.startswith(PLACE))

    @cached_property
    def operands(self) -> tuple[str, ...]:
        """Names of the local values, blocks and types in it, as often as they occur."""
        return tuple(locals_in(self.rest))

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """Names of the blocks that follow, without sigils; each once."""
        if self.opcode not in TERMINATORS:
            return ()
        return tuple(dict.fromkeys(name[1:].strip('"') for name in _TARGET.findall(self.rest)))

    @cached_property
    def calls(self) -> bool:
        """Whether it calls a function; LLVM makes instructions of its own ones."""
        return self.opcode in ("call", "invoke", "callbr") and not self.callee.startswith("@llvm.")

    @cached_property
    def callee(self) -> str:
        """Name of the function that it calls, sigil included; empty where it calls none, or a pointer."""
        if self.opcode not in ("call", "invoke", "callbr"):
            return ""
        called = _CALLEE.search(self.rest)
        while called and not called["name"]:
            called = _CALLEE.search(self.rest, called.end())
        return called["name"] if called else ""
