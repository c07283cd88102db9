"""LLVM's intrinsics, and the memory functions of the C library."""

from collections.abc import Mapping
from dataclasses import dataclass

from irgym.llvmir.interpreter.calls import Call
from irgym.llvmir.interpreter.computing import COMPUTED, Intrinsic
from irgym.llvmir.interpreter.layout import kind_of
from irgym.llvmir.interpreter.making import Making
from irgym.llvmir.interpreter.memory import Region
from irgym.llvmir.interpreter.memory_map import MIDDLE, REGION_BITS, STACK
from irgym.llvmir.interpreter.numbers import Value
from irgym.llvmir.interpreter.poison import POISON, Left, Undefined, Unsupported


@dataclass(frozen=True, eq=False)
class Site:
    """A call in a function, ready to run.

    Attributes:
        call: The call.
        intrinsic: Its implementation; None for functions of the module and for external functions.
    """

    call: Call
    intrinsic: Intrinsic | None

    @staticmethod
    def of(call: Call, library: Mapping[str, Intrinsic]) -> "Site":
        """Return the site of a call.

        Args:
            call: The call.
            library: Library functions by name; empty for those that allocate or copy memory.

        Raises:
            Unsupported: It calls an intrinsic that the interpreter cannot run.
        """
        return Site(call, intrinsic_of(call, library or _LIBRARY))


def intrinsic_of(call: Call, library: Mapping[str, Intrinsic]) -> Intrinsic | None:
    """Return the implementation of a call; None for functions of the module and for external functions.

    Raises:
        Unsupported: It calls an intrinsic that the interpreter cannot run.
    """
    name = call.callee.removeprefix("@")
    if name in library:
        return library[name]
    if not name.startswith("llvm."):
        return None
    words = name.split(".")[1:]
    for count in range(len(words), 0, -1):
        found = _INTRINSICS.get(".".join(words[:count]))
        if found is not None:
            return found
    if call.access.none and library is _LIBRARY:
        return None  # pure: random results that depend only on the arguments will do
    raise Unsupported(f"calls of {call.callee}")


def _none(*_: object) -> None:
    return None


def _stack(*_: object) -> int:
    return STACK


def _unknown(*_: object) -> int:
    return 0


def _first(_: object, __: object, arguments: tuple[Value, ...]) -> Value:
    return arguments[0]


def _trap(*_: object) -> Value:
    raise Left("a trap")


def _assume(_: object, __: object, arguments: tuple[Value, ...]) -> None:
    if arguments[0] is POISON or not arguments[0]:
        raise Undefined("an assumption that does not hold")


def _copy(machine: Making, call: Call, arguments: tuple[Value, ...]) -> None:
    target, source, size = arguments[:3]
    if len(arguments) > 3 and arguments[3] == 1:
        machine.event(call.callee, (target, source, size))
    machine.copied(target, source, size)


def _fill(machine: Making, call: Call, arguments: tuple[Value, ...]) -> None:
    target, byte, size = arguments[:3]
    if len(arguments) > 3 and arguments[3] == 1:
        machine.event(call.callee, (target, byte, size))
    machine.filled(target, byte, size)


def _lives(alive: bool) -> Intrinsic:
    """Return the intrinsic that begins or ends a life of a variable."""

    def run(machine: Making, _: Call, arguments: tuple[Value, ...]) -> None:
        address = arguments[-1]
        if address is not POISON and address >> REGION_BITS in machine.memory.regions:
            machine.memory.renew(address, alive)

    return run


def _variadic(machine: Making, _: Call, arguments: tuple[Value, ...]) -> None:
    """Write a `va_list` whose arguments are all in memory (System V ABI for x86-64)."""
    place = arguments[0]
    area = machine.variadic()
    for offset, kind, value in ((0, "i32", 48), (4, "i32", 176), (8, "ptr", area), (16, "ptr", area)):
        machine.stored(place + offset, kind, value)


def _copied_list(machine: Making, _: Call, arguments: tuple[Value, ...]) -> None:
    machine.copied(arguments[0], arguments[1], 24)


def _size_of(machine: Making, call: Call, arguments: tuple[Value, ...]) -> Value:
    kind = kind_of(call.returns)
    mask = kind.mask if kind else 0
    address = arguments[0]
    region = machine.memory.regions.get(address >> REGION_BITS) if address is not POISON else None
    if region is None or region.made_up:
        return 0 if arguments[1] else mask
    left = region.size - (address & ((1 << REGION_BITS) - 1)) + MIDDLE
    return max(left, 0)


def _allocation(machine: Making, call: Call, arguments: tuple[Value, ...]) -> Value:
    """Return new memory; null if the world says so or the size is impossible."""
    name = call.callee.removeprefix("@")
    if any(argument is POISON for argument in arguments):
        raise Undefined("a call takes poison")
    machine.event(call.callee, arguments)
    size = arguments[-1] * (arguments[0] if name == "calloc" else 1)
    if size > 1 << 30 or not machine.made("ptr", machine.answer_key()):
        return 0
    content = (bytes(size), b"\1" * size) if name == "calloc" and size <= 1 << 16 else None
    address = machine.allocated(Region(size, content, made_up=name == "calloc" and content is None))
    if name == "realloc" and arguments[0]:
        _keep(machine, arguments[0], address, size)
    return address


def _keep(machine: Making, old: int, new: int, size: int) -> None:
    """Copy the content of an allocation to a new one."""
    region = machine.memory.region(old)
    kept = min(size, region.size if region is not None else size, 1 << 12)
    content, marks = machine.memory.raw(old, kept)
    if region is None or region.made_up:
        machine.memory.regions[new >> REGION_BITS].made_up = True
    if kept:
        machine.memory.put(new, content, marks)


def _returned_copy(machine: Making, call: Call, arguments: tuple[Value, ...]) -> Value:
    _copy(machine, call, arguments[:3])
    return arguments[0]


def _returned_fill(machine: Making, _: Call, arguments: tuple[Value, ...]) -> Value:
    target, byte, size = arguments
    machine.filled(target, byte & 255, size)
    return target


_LIBRARY: Mapping[str, Intrinsic] = {
    **dict.fromkeys(("memcpy", "memmove"), _returned_copy),
    **dict.fromkeys(("malloc", "calloc", "realloc"), _allocation),
    "memset": _returned_fill,
}
_INTRINSICS: Mapping[str, Intrinsic] = {
    **COMPUTED,
    **dict.fromkeys(("dbg", "donothing", "sideeffect", "pseudoprobe"), _none),
    **dict.fromkeys(("prefetch", "experimental.noalias.scope.decl", "var.annotation"), _none),
    **dict.fromkeys(("invariant.end", "va_end", "stackrestore", "clear_cache"), _none),
    **dict.fromkeys(("expect", "ptr.annotation", "annotation", "launder.invariant.group"), _first),
    **dict.fromkeys(("strip.invariant.group", "threadlocal.address", "ssa.copy"), _first),
    **dict.fromkeys(("arithmetic.fence", "canonicalize", "expect.with.probability"), _first),
    **dict.fromkeys(("memcpy", "memmove"), _copy),
    **dict.fromkeys(("trap", "ubsantrap"), _trap),
    "debugtrap": lambda machine, call, _: machine.event(call.callee, ()),
    "assume": _assume,
    "memset": _fill,
    "lifetime.start": _lives(True),
    "lifetime.end": _lives(False),
    "va_start": _variadic,
    "va_copy": _copied_list,
    "stacksave": _stack,
    "is.constant": _unknown,
    "eh.typeid.for": lambda _, call, __: len(call.operands) + 1,
    "objectsize": _size_of,
    "ptrmask": lambda _, __, arguments: arguments[0] & arguments[1],
}
