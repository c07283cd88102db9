"""Functions of the C library that LLVM knows: it removes their calls, or replaces them by others or by code.

They are computed rather than answered at random. Output is compared by the bytes that go to a stream, since
LLVM replaces, for instance, `printf` by `puts`. From LLVM's `SimplifyLibCalls` and `TargetLibraryInfo`.
"""

import math
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

from irgym.envs.llvm.checking.observing import Observer
from irgym.llvmir.interpreter.calls import Access, Call
from irgym.llvmir.interpreter.layout import Kind
from irgym.llvmir.interpreter.memory import BYTE
from irgym.llvmir.interpreter.numbers import Value, arithmetic, remainder, single
from irgym.llvmir.interpreter.poison import POISON, Endless, Undefined
from irgym.llvmir.ir.syntax import globals_in, listed

Function = Callable[[Any, Call, tuple[Value, ...]], Value]

LONGEST = 4096
"""Greatest number of bytes that a function on texts reads."""

WIDE = Kind("i32", 4, 32)
"""The type of wide characters on Linux."""

_READS = Access(True, False, True, False, False, False)
_CONVERSION = re.compile(rb"%[-+ #0]*(?:\*|\d+)?(?:\.(?:\*|\d+)?)?(?:hh|h|ll|l|z|j|t|L)?[a-zA-Z%]")
_ELEMENTS = re.compile(r"constant \[\d+ x i32\] \[(.*)\]")
_INT = (1 << 32) - 1
_STANDARD = "standard output"


def _byte(machine: Observer, address: Value) -> int:
    found = machine.memory.load(address, BYTE)
    if found is POISON:
        raise Undefined("a function on texts reads poison")
    return found


def _bytes(machine: Observer, address: Value, count: Value) -> bytes:
    if count is POISON or address is POISON:
        raise Undefined("a call takes poison")
    if count > LONGEST:
        raise Endless("it reads too many bytes")
    machine.work += count
    return bytes(_byte(machine, address + place) for place in range(count))


def _text(machine: Observer, address: Value, limit: int | None = None) -> bytes:
    """Return the bytes of a text before its end."""
    if address is POISON or limit is POISON:
        raise Undefined("a call takes poison")
    found = bytearray()
    while limit is None or len(found) < limit:
        byte = _byte(machine, address + len(found))
        if not byte:
            break
        found.append(byte)
        if len(found) > LONGEST:
            raise Endless("it reads too many bytes")
    machine.work += len(found)
    return bytes(found)


def _length(machine: Observer, _: Call, arguments: tuple[Value, ...]) -> Value:
    return len(_text(machine, *arguments))


def _wide_length(machine: Observer, _: Call, arguments: tuple[Value, ...]) -> Value:
    """Run `wcslen`: return the number of characters of 4 bytes before the zero."""
    for count in range(LONGEST):
        character = machine.memory.load(arguments[0] + count * WIDE.size, WIDE)
        if character is POISON:
            raise Undefined("a function on texts reads poison")
        if not character:
            machine.work += count
            return count
    raise Endless("it reads too many bytes")


def _order(machine: Observer, first: bytes, second: bytes) -> Value:
    """Return the order of texts; only the sign is specified."""
    if first == second:
        return 0
    machine.vague = True
    size = 3 if machine.turn else 1
    return size if first > second else -size & _INT


def _compared(machine: Observer, call: Call, arguments: tuple[Value, ...]) -> Value:
    first, second, *limit = arguments
    if "mem" not in call.callee and "bcmp" not in call.callee:
        limits = (limit[0],) if limit else ()
        return _order(machine, _text(machine, first, *limits), _text(machine, second, *limits))
    if limit[0] is POISON:
        raise Undefined("a call takes poison")
    if limit[0] > LONGEST:
        raise Endless("it reads too many bytes")
    a, b = _bytes(machine, first, limit[0]), _bytes(machine, second, limit[0])
    if "bcmp" in call.callee and a != b:
        machine.vague = True
        return 3 if machine.turn else 1
    return _order(machine, a, b)


def _found(machine: Observer, call: Call, arguments: tuple[Value, ...]) -> Value:
    start, wanted = arguments[:2]
    if wanted is POISON:
        raise Undefined("a call takes poison")
    if "memchr" in call.callee:
        if arguments[2] is POISON:
            raise Undefined("a call takes poison")
        for place in range(min(arguments[2], LONGEST)):
            if _byte(machine, start + place) == wanted & 255:
                return start + place
        return 0
    text = _text(machine, start) + b"\0"
    place = text.rfind(wanted & 255) if "strrchr" in call.callee else text.find(wanted & 255)
    return start + place if place >= 0 else 0


def _copied(machine: Observer, call: Call, arguments: tuple[Value, ...]) -> Value:
    target, source, *limit = arguments
    text = _text(machine, source, *limit[:1])
    start = target
    if "cat" in call.callee:
        start = target + len(_text(machine, target))
        text += b"\0"
    elif limit:
        text += bytes(min(limit[0], LONGEST) - len(text))
    else:
        text += b"\0"
    machine.memory.put(start, text, b"\1" * len(text))
    if "stp" in call.callee:
        return start + text.index(0) if 0 in text else start + len(text)
    return target


def _moved(machine: Observer, call: Call, arguments: tuple[Value, ...]) -> Value:
    target, source, size = arguments[:3]
    machine.copied(target, source, size)
    return target + size if "mempcpy" in call.callee else target


def _filled(machine: Observer, call: Call, arguments: tuple[Value, ...]) -> Value:
    target = arguments[0]
    if "bzero" in call.callee:
        machine.filled(target, 0, arguments[1])
    else:
        machine.filled(target, arguments[1] & 255, arguments[2])
    return target


def _allocated(machine: Observer, call: Call, arguments: tuple[Value, ...]) -> Value:
    if any(argument is POISON for argument in arguments):
        raise Undefined("a call takes poison")
    name = call.callee.removeprefix("@")
    if name == "calloc":
        return machine.allocate(name, arguments[0] * arguments[1], zeros=True)
    return machine.allocate(name, arguments[-1], zeros=False)


def _resized(machine: Observer, call: Call, arguments: tuple[Value, ...]) -> Value:
    old, size = arguments
    if old is POISON or size is POISON:
        raise Undefined("a call takes poison")
    region = machine.memory.region(old) if old else None
    if old and region is None:
        return machine.resize(call, old, size)
    new = machine.allocate("realloc" if old else "malloc", size, zeros=False)
    if region is None or not new:
        return new
    kept = min(size, region.size)
    if kept > LONGEST * 16:
        raise Endless("it copies too many bytes")
    if kept:
        machine.memory.put(new, *machine.memory.get(old, kept, BYTE))
    machine.memory.free(old)
    return new


def _freed(machine: Observer, _: Call, arguments: tuple[Value, ...]) -> None:
    machine.release(arguments[0])


def _written(machine: Observer, stream: object, pieces: tuple[object, ...]) -> None:
    """Record output: bytes, and values with their conversions."""
    joined: list[object] = []
    for piece in pieces:
        if isinstance(piece, bytes) and joined and isinstance(joined[-1], bytes):
            joined[-1] += piece
        elif piece != b"":
            joined.append(piece)
    if joined:
        machine.happens("@fwrite", (stream, *joined), None, _READS)


def _formatted(machine: Observer, form: bytes, values: tuple[Value, ...]) -> tuple[object, ...]:
    """Return the pieces that a format yields: bytes, and values with their conversions."""
    pieces: list[object] = []
    left, end = list(values), 0
    for match in _CONVERSION.finditer(form):
        pieces.append(form[end : match.start()])
        end = match.end()
        conversion = match[0]
        if conversion == b"%%":
            pieces.append(b"%")
            continue
        taken = [left.pop(0) for _ in range(1 + conversion.count(b"*")) if left]
        if any(value is POISON for value in taken):
            raise Undefined("a call takes poison")
        if conversion == b"%c" and taken:
            pieces.append(bytes([taken[0] & 255]))
        elif conversion == b"%s" and taken:
            pieces.append(_text(machine, taken[0]))
        elif conversion.endswith(b"s") and taken:
            precision = re.search(rb"\.(\d+)", conversion)
            limit = int(precision[1]) if precision else taken[-2] if b".*" in conversion else None
            pieces.append((conversion, *taken[:-1], _text(machine, taken[-1], limit)))
        else:
            pieces.append((conversion, *taken))
    return (*pieces, form[end:])


def _printed(machine: Observer, call: Call, arguments: tuple[Value, ...]) -> Value:
    stream = _STANDARD if "fprintf" not in call.callee else arguments[0]
    rest = arguments if "fprintf" not in call.callee else arguments[1:]
    pieces = _formatted(machine, _text(machine, rest[0]), rest[1:])
    _written(machine, stream, pieces)
    return sum(len(piece) if isinstance(piece, bytes) else 2 for piece in pieces)


def _put(machine: Observer, call: Call, arguments: tuple[Value, ...]) -> Value:
    name = call.callee.removeprefix("@")
    if any(argument is POISON for argument in arguments):
        raise Undefined("a call takes poison")
    if name == "puts":
        _written(machine, _STANDARD, (_text(machine, arguments[0]), b"\n"))
        return 1
    if name == "fputs":
        _written(machine, arguments[1], (_text(machine, arguments[0]),))
        return 1
    if name == "fwrite":
        source, size, count, stream = arguments
        _written(machine, stream, (_bytes(machine, source, size * count),))
        return count if size else 0
    letter, *streams = arguments
    _written(machine, streams[0] if streams else _STANDARD, (bytes([letter & 255]),))
    return letter & 255


def _stored_format(machine: Observer, call: Call, arguments: tuple[Value, ...]) -> Value:
    """Run `sprintf` where the format has texts and letters only; others are events with random results."""
    target, form, *values = arguments
    pieces = _formatted(machine, _text(machine, form), tuple(values))
    if not all(isinstance(piece, bytes) for piece in pieces):
        return machine.external(call, call.callee, arguments, False)
    text = b"".join(piece for piece in pieces if isinstance(piece, bytes)) + b"\0"
    machine.memory.put(target, text, b"\1" * len(text))
    return len(text) - 1


def _relative(machine: Observer, _: Call, arguments: tuple[Value, ...]) -> Value:
    """Run `llvm.load.relative`: return the address whose distance is in an element of a table."""
    base, offset = arguments
    program = machine.program
    if base is POISON or offset is POISON:
        raise Undefined("a load through poison")
    line = program.module.entries.get(program.global_at(base), "")
    elements = _ELEMENTS.search(line)
    parts = listed(elements[1]) if elements else []
    if offset % 4 or offset // 4 >= len(parts):
        raise Undefined("an access beyond an object")
    number: int = offset // 4
    return program.address(globals_in(parts[number])[0])


def _signs(_: Observer, __: Call, arguments: tuple[Value, ...]) -> Value:
    """Run `pmovmskb`: return the sign bits of bytes."""
    found = 0
    for place, element in enumerate(cast(tuple[Value, ...], arguments[0])):
        if element is POISON:
            return POISON
        found |= (element >> 7) << place
    return found


def _of_number(compute: Callable[[int], int], _: Observer, __: Call, arguments: tuple[Value, ...]) -> Value:
    return POISON if arguments[0] is POISON else compute(arguments[0]) & _INT


def _real(
    compute: Callable[..., float], is_single: bool, _: Observer, __: Call, arguments: tuple[Value, ...]
) -> Value:
    if any(argument is POISON for argument in arguments):
        return POISON
    try:
        found = compute(*arguments)
    except ValueError:
        found = math.nan
    except OverflowError:
        found = math.inf
    return arithmetic(single(found) if is_single else found)


def _power(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except ValueError:
        return math.inf if base == 0.0 else math.nan
    except OverflowError:
        return -math.inf if base < 0.0 and exponent % 2.0 == 1.0 else math.inf


def _logarithm(compute: Callable[[float], float], value: float) -> float:
    return -math.inf if value == 0.0 else compute(value)


def _rounded(compute: Callable[[float], float], value: float) -> float:
    whole = math.isnan(value) or math.isinf(value)
    return value if whole else math.copysign(float(compute(value)), value)


def _away(value: float) -> float:
    return math.floor(abs(value)) + (abs(value) % 1.0 >= 0.5)


def _extreme(pick: Callable[[float, float], float], first: float, second: float) -> float:
    if math.isnan(first) or math.isnan(second):
        return second if math.isnan(first) else first
    return pick(first, second)


_REALS: Mapping[str, Callable[..., float]] = {
    **{name: getattr(math, name) for name in ("sqrt", "sin", "cos", "tan", "exp", "fabs")},
    **{name: getattr(math, name) for name in ("asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh")},
    **{name: partial(_logarithm, getattr(math, name)) for name in ("log", "log2", "log10")},
    **{name: partial(_rounded, getattr(math, name)) for name in ("floor", "ceil", "trunc")},
    **dict.fromkeys(("rint", "nearbyint", "roundeven"), partial(_rounded, round)),
    "round": partial(_rounded, _away),
    "exp2": partial(_power, 2.0),
    "pow": _power,
    "copysign": math.copysign,
    "fmod": remainder,
    "fmin": partial(_extreme, min),
    "fmax": partial(_extreme, max),
}
_INTRINSIC = ("sin", "cos", "tan", "exp", "exp2", "log", "log2", "log10", "pow")
_INTEGERS: Mapping[str, Callable[[int], int]] = {
    "isdigit": lambda letter: 48 <= letter < 58,
    "isascii": lambda letter: letter < 128,
    "toascii": lambda letter: letter & 127,
    "abs": lambda value: _INT + 1 - value if value >> 31 else value,
    "ffs": lambda value: (value & -value).bit_length(),
}

LIBRARY: Mapping[str, Function] = {
    **dict.fromkeys(("memcpy", "memmove", "mempcpy"), _moved),
    **dict.fromkeys(("memset", "bzero"), _filled),
    **dict.fromkeys(("malloc", "calloc"), _allocated),
    **dict.fromkeys(("strlen", "strnlen"), _length),
    "wcslen": _wide_length,
    **dict.fromkeys(("strcmp", "strncmp", "memcmp", "bcmp"), _compared),
    **dict.fromkeys(("strchr", "strrchr", "memchr"), _found),
    **dict.fromkeys(("strcpy", "stpcpy", "strncpy", "strcat", "strncat"), _copied),
    **dict.fromkeys(("printf", "fprintf"), _printed),
    **dict.fromkeys(("puts", "fputs", "putchar", "fputc", "putc", "fwrite"), _put),
    **{f"llvm.load.relative.i{bits}": _relative for bits in (32, 64)},
    "llvm.x86.sse2.pmovmskb.128": _signs,
    "sprintf": _stored_format,
    "realloc": _resized,
    "free": _freed,
    **{name: partial(_real, compute, False) for name, compute in _REALS.items()},
    **{f"{name}f": partial(_real, compute, True) for name, compute in _REALS.items()},
    **{f"llvm.{name}.f64": partial(_real, _REALS[name], False) for name in _INTRINSIC},
    **{f"llvm.{name}.f32": partial(_real, _REALS[name], True) for name in _INTRINSIC},
    **{name: partial(_of_number, compute) for name, compute in _INTEGERS.items()},
}
"""Functions by name."""
