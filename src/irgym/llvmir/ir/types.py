"""Types of results, and register classes."""

from typing import Literal

from irgym.llvmir.ir.instruction import Instruction
from irgym.llvmir.ir.syntax import listed

Register = Literal["integer", "float", "vector", "none"]
"""Register class of a value; `none` for values in several registers or none."""

_FLOATS = ("half", "bfloat", "float", "double", "x86_fp80", "fp128", "ppc_fp128")
CASTS = frozenset(
    (
        *("trunc", "zext", "sext", "fptrunc", "fpext", "fptoui", "fptosi", "uitofp", "sitofp"),
        *("ptrtoint", "ptrtoaddr", "inttoptr", "bitcast", "addrspacecast"),
    )
)
"""Operations that convert a value to another type."""


def type_of(instruction: Instruction) -> str:
    """Return the type of an instruction's result as text; empty if there is none or the text does not say."""
    rest = instruction.rest
    match instruction.opcode:
        case _ if not instruction.result:
            return ""
        case "getelementptr" | "alloca":
            return "ptr"
        case "icmp" | "fcmp":
            return "i1"
        case "select":
            return first_type(listed(rest)[1])
        case "extractelement":
            return first_type(rest).partition(" x ")[2].removesuffix(">")
        case "extractvalue" | "cmpxchg" | "landingpad":
            return ""
        case "atomicrmw":
            return "i64"
        case "call" | "invoke" | "callbr":
            return _returned(rest)
        case opcode if opcode in CASTS:
            return rest.rpartition(" to ")[2]
        case _:
            return first_type(rest)


def register_of(kind: str) -> Register:
    """Return the register class of a type."""
    if kind.startswith(_FLOATS):
        return "float"
    if kind.startswith("<"):
        return "vector"
    if kind == "ptr" or kind.startswith("ptr ") or (kind[:1] == "i" and kind[1:].isdigit()):
        return "integer"
    return "none"


def bits_of(kind: str) -> int:
    """Return the approximate width of a type in bits: 128 for vectors and unknown types."""
    if kind[:1] == "i" and kind[1:].isdigit():
        return int(kind[1:])
    return {"ptr": 64, "half": 16, "bfloat": 16, "float": 32, "double": 64}.get(kind, 128)


def first_type(text: str) -> str:
    """Return the type that a text begins with."""
    if text[:1] not in "<{[":
        return text.partition(" ")[0].rstrip(",")
    depth = 0
    for place, character in enumerate(text):
        depth += (character in "<{[") - (character in ">}]")
        if not depth:
            return text[: place + 1]
    return text


def last_type(text: str) -> str:
    """Return the type that a text ends with."""
    if text[-1] not in ">}]":
        return text.rpartition(" ")[2]
    depth = 0
    for place in range(len(text) - 1, -1, -1):
        depth += (text[place] in ">}]") - (text[place] in "<{[")
        if not depth:
            return text[place:]
    return text


def _returned(call: str) -> str:
    """Return the type of a call's result, which attributes and calling conventions precede."""
    head = call.partition("(")[0]
    words = head.replace(",", " ").split(" ")
    return next((word for word in words if register_of(word) != "none"), "<" if "<" in head else "")
