"""Kinds of use of a value: they decide whether it can be folded into its user."""

from irgym.llvmir.ir.instruction import Instruction
from irgym.llvmir.ir.syntax import listed, locals_in
from irgym.llvmir.ir.types import CASTS

USES = (
    *("address", "stored", "base", "index", "compared", "branch", "selected", "phi"),
    *("converted", "passed", "returned", "computed"),
)
"""Kinds of uses."""

_BY_OPERATION = {
    "load": "address",
    "icmp": "compared",
    "fcmp": "compared",
    "br": "branch",
    "switch": "branch",
    "select": "selected",
    "phi": "phi",
    "call": "passed",
    "invoke": "passed",
    "ret": "returned",
    **dict.fromkeys(CASTS, "converted"),
}


def use_of(user: Instruction, name: str) -> str:
    """Return how an instruction uses a value, a member of `USES`.

    Args:
        user: The instruction.
        name: The used value, sigil included.
    """
    if user.opcode == "store":
        return "stored" if name in locals_in(listed(user.rest)[0]) else "address"
    if user.opcode == "getelementptr":
        return "base" if name in locals_in(listed(user.rest)[1]) else "index"
    return _BY_OPERATION.get(user.opcode, "computed")
