"""The types of results, and the classes of registers that hold them."""

from typing import Literal

from irgym.envs.cse.ir.instruction import Instruction
from irgym.envs.cse.ir.syntax import listed

Register = Literal["integer", "float", "vector", "none"]
"""What holds a value: an integer's register, a floating-point number's, a vector's, or several or none."""

_FLOATS = ("half", "bfloat", "float", "double", "x86_fp80", "fp128", "ppc_fp128")
CASTS = frozenset(
    (
        *("trunc", "zext", "sext", "fptrunc", "fpext", "fptoui", "fptosi", "uitofp", "sitofp"),
        *("ptrtoint", "ptrtoaddr", "inttoptr", "bitcast", "addrspacecast"),
    )
)
"""Operations that convert a value to another type."""


def type_of(instruction: Instruction) -> str:
    """Return the type of an instruction's result as text; empty where it has none, or it is not told."""
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
        case one if one in CASTS:
            return rest.rpartition(" to ")[2]
        case _:
            return first_type(rest)


def register_of(kind: str) -> Register:
    """Return what holds values of a type."""
    if kind.startswith(_FLOATS):
        return "float"
    if kind.startswith("<"):
        return "vector"
    if kind == "ptr" or kind.startswith("ptr ") or (kind[:1] == "i" and kind[1:].isdigit()):
        return "integer"
    return "none"


def bits_of(kind: str) -> int:
    """Return how many bits a value of a type has, about: of vectors and unknown types 128."""
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
    """Return the type that a call returns; what stands before it are attributes and conventions."""
    head = call.partition("(")[0]
    words = head.replace(",", " ").split(" ")
    return next((word for word in words if register_of(word) != "none"), "<" if "<" in head else "")
