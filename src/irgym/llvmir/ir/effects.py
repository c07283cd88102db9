"""Side effects of instructions: writes to memory, and dependences on more than the operands."""

import re

from irgym.llvmir.ir.instruction import Instruction
from irgym.llvmir.ir.modules import ModuleText

PURE = frozenset(
    (
        *("add", "sub", "mul", "udiv", "sdiv", "urem", "srem", "shl", "lshr", "ashr", "and", "or", "xor"),
        *("fadd", "fsub", "fmul", "fdiv", "frem", "fneg", "icmp", "fcmp", "select", "freeze"),
        *("trunc", "zext", "sext", "fptrunc", "fpext", "fptoui", "fptosi", "uitofp", "sitofp"),
        *("ptrtoint", "ptrtoaddr", "inttoptr", "bitcast", "addrspacecast", "getelementptr"),
        *("extractelement", "insertelement", "shufflevector", "extractvalue", "insertvalue"),
    )
)
"""Operations whose result depends only on their operands."""

_WRITING = frozenset(("store", "fence", "cmpxchg", "atomicrmw", "va_arg", "invoke", "callbr"))
_ACCESSES = re.compile(r"\bmemory\(([^)]*)\)")
_PURE = ("memory(none)", "nounwind", "willreturn")
_ASSEMBLY = re.compile(r"[^\"]*\basm (?:sideeffect|unwind)\b")
_GUESSES = ("@llvm.is.constant.", "@llvm.objectsize.")
_COROUTINE = "presplitcoroutine"
_HARMLESS = ("@llvm.lifetime.", "@llvm.dbg.", "@llvm.assume")
_UNORDERED = ("volatile ", "atomic ")


class Effects:
    """Side effects of the instructions of a function.

    Args:
        module: The module, which holds the attributes of the callees.
        header: First line of the function's definition.
    """

    def __init__(self, module: ModuleText, header: str) -> None:
        self._module = module
        # A coroutine may resume in another thread, where calls of pure functions return something else.
        self._stays = _COROUTINE not in f"{header} {module.attributes(header)}"
        self._accessed: dict[str, str | None] = {}

    def pure(self, instruction: Instruction) -> bool:
        """Say whether the result of an instruction depends only on its operands, so that it may be shared."""
        if not instruction.result:
            return False
        if instruction.opcode != "call":
            return instruction.opcode in PURE
        said = self._attributes(instruction)
        certain = all(word in said for word in _PURE) and "convergent" not in said
        return certain and self._stays and not _ASSEMBLY.match(instruction.rest)

    def repeats(self, instruction: Instruction) -> bool:
        """Say whether a pure instruction or a load always has the same result for the same operands.

        Two `freeze` of a poison value may differ. So may two calls of a function that the module defines,
        since it may contain a `freeze`, and two intrinsics that depend on what LLVM knows at that point.
        """
        callee = instruction.callee
        if instruction.opcode == "call":
            return callee in self._module.declared and not callee.startswith(_GUESSES)
        return instruction.opcode != "freeze"

    def loads(self, instruction: Instruction) -> bool:
        """Say whether an instruction only reads memory."""
        return instruction.opcode == "load" and not instruction.rest.startswith(_UNORDERED)

    def writes(self, instruction: Instruction) -> bool:
        """Say whether an instruction may change memory that loads read."""
        if instruction.opcode in ("load", "store"):
            return instruction.opcode == "store" or instruction.rest.startswith(_UNORDERED)
        if instruction.opcode != "call":
            return instruction.opcode in _WRITING
        if instruction.callee.startswith(_HARMLESS):
            return False
        accesses = _ACCESSES.search(self._attributes(instruction))
        return accesses is None or _may_write(accesses[1])

    def _attributes(self, call: Instruction) -> str:
        """Return the attributes of a call and of its callee as text."""
        function = self._module.functions.get(call.callee)
        declared = function.header if function else self._module.declared.get(call.callee, "")
        return f"{self._module.attributes(call.rest)} {self._module.attributes(declared)}"


def _may_write(accesses: str) -> bool:
    """Say whether the accesses in `memory(...)` allow writes to memory that loads read."""
    for part in accesses.split(","):
        place, _, access = part.strip().rpartition(": ")
        if "write" in access and place != "inaccessiblemem":
            return True
    return False
