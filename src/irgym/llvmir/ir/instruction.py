"""Instructions of LLVM's IR, parsed from text."""

import re
from dataclasses import dataclass
from functools import cached_property

from irgym.llvmir.ir.syntax import ATTACHED, NAME, PLACE, locals_in, without_flags

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
        result: Name of the result, sigil included; empty if there is none.
        opcode: The operation; `call` for `tail call` and the like, too.
        flags: Flags under which the result may be poison or rounded differently.
        rest: Text after operation and flags, without attachments.
        attached: Metadata attachments, as texts such as `!tbaa !5`.
        text: The whole text, as LLVM prints it.
    """

    result: str
    opcode: str
    flags: frozenset[str]
    rest: str
    attached: tuple[str, ...]
    text: str

    @staticmethod
    def read(text: str) -> "Instruction":
        """Parse a line without surrounding white space."""
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
        """Return the text with other flags and attachments.

        Raises:
            ValueError: It is a call: markers such as `tail` are not kept apart from the text.
        """
        if self.opcode == "call":
            raise ValueError("the markers of a call are not kept")
        head = " ".join([self.opcode, *sorted(flags), self.rest])
        return ", ".join([f"{self.result} = {head}", *attached])

    @cached_property
    def promised(self) -> tuple[str, ...]:
        """Attachments without the debug location, which promises nothing."""
        return tuple(pair for pair in self.attached if not pair.startswith(PLACE))

    @cached_property
    def operands(self) -> tuple[str, ...]:
        """Names of the local values, blocks and types, as often as they occur."""
        return tuple(locals_in(self.rest))

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """Names of the successor blocks without sigils, each once."""
        if self.opcode not in TERMINATORS:
            return ()
        return tuple(dict.fromkeys(name[1:].strip('"') for name in _TARGET.findall(self.rest)))

    @cached_property
    def calls(self) -> bool:
        """Whether it calls a function; intrinsics become instructions and do not count."""
        return self.opcode in ("call", "invoke", "callbr") and not self.callee.startswith("@llvm.")

    @cached_property
    def callee(self) -> str:
        """Name of the called function, sigil included; empty for indirect calls and other operations."""
        if self.opcode not in ("call", "invoke", "callbr"):
            return ""
        called = _CALLEE.search(self.rest)
        while called and not called["name"]:
            called = _CALLEE.search(self.rest, called.end())
        return called["name"] if called else ""
