"""Evaluation of LLVM's constants."""

import re
from collections.abc import Callable

from irgym.llvmir.interpreter.layout import Layout, kind_of
from irgym.llvmir.interpreter.numbers import Value, float_of, single
from irgym.llvmir.interpreter.operands import Operand, closing
from irgym.llvmir.interpreter.poison import POISON, Unsupported
from irgym.llvmir.ir.syntax import listed

UNDEFINED = object()
"""Stands for `undef`, for which a run chooses a value."""

_POINTER_MASK = (1 << 64) - 1
_ESCAPED = re.compile(rb"\\(\\|[0-9A-Fa-f]{2})")
_SPECIAL = re.compile(r"[+-](?:inf|q?nan|s?nan\(0x[0-9A-Fa-f]+\))$")
"""Infinities and NaNs as LLVM 23 writes them. Payloads do not matter: LLVM may change them."""

_NOT_A_WORD = re.compile(r"[\[{<(]")


class Constants:
    """Evaluates constants.

    Args:
        layout: Sizes of types.
        address: Returns the address of a global or a function, given its name.
    """

    def __init__(self, layout: Layout, address: Callable[[str], int]) -> None:
        self._layout = layout
        self._address = address

    def value(self, kind: str, text: str) -> Value:
        """Return the value of a constant of a type.

        Raises:
            Unsupported: The interpreter does not support this form.
        """
        match text:
            case "poison":
                return self._filled(kind, POISON)
            case "undef":
                return self._filled(kind, UNDEFINED)
            case "zeroinitializer" | "null" | "none":
                return self._filled(kind, 0)
            case _ if _SPECIAL.match(text):
                return float(f"{text[0]}{'inf' if text.endswith('inf') else 'nan'}")
            case "true" | "false":
                return int(text == "true")
            case _ if text.startswith("@"):
                return self._address(text)
            case _ if _NOT_A_WORD.match(text) or text.startswith(('c"', "splat (")):
                return self._larger(kind, text)
            case _ if "(" in text:
                return self._expression(kind, text)
            case _:
                return self._scalar(kind, text)

    def _scalar(self, kind: str, text: str) -> Value:
        scalar = kind_of(kind)
        if scalar is None:
            raise Unsupported(f"a constant of type {kind}")
        if scalar.floating:
            return self._float(text, scalar.size)
        return int(text) & scalar.mask

    def _filled(self, kind: str, value: Value) -> Value:
        scalar = kind_of(kind)
        if scalar is None:
            return tuple(self._filled(inner, value) for _, inner in self._layout.fields(kind))
        return 0.0 if scalar.floating and value is not POISON and value == 0 else value

    def _float(self, text: str, size: int) -> float:
        if text.startswith("0x"):
            if text[2:3] in ("K", "L", "M", "H", "R"):
                raise Unsupported(f"the constant {text}")
            return float_of(int(text[2:], 16), 8)
        if text.startswith("f0x"):
            return float_of(int(text[3:], 16), size)
        return single(float(text)) if size == 4 else float(text)

    def _larger(self, kind: str, text: str) -> Value:
        fields = self._layout.fields(kind)
        if text.startswith('c"'):
            return tuple(_ESCAPED.sub(_unescaped, text[2:-1].encode()))
        if text.startswith("splat ("):
            element = Operand.read(text[len("splat (") : -1])
            return (self.value(element.kind, element.value),) * len(fields)
        inside = text[2:-2] if text.startswith("<{") else text[1:-1]
        parts = listed(inside.strip()) if inside.strip() else []
        return tuple(
            self.value(element.kind, element.value) for element in (Operand.read(part) for part in parts)
        )

    def _expression(self, kind: str, text: str) -> Value:
        opening = text.index("(")
        name = text[:opening].split(" ")[0]
        inside = text[opening + 1 : closing(text, opening)]
        if name == "getelementptr":
            base, *places = listed(inside)[1:]
            return (self._of(base) + self.offset(listed(inside)[0], places)) & _POINTER_MASK
        if name in ("ptrtoint", "ptrtoaddr", "inttoptr", "bitcast", "trunc", "addrspacecast"):
            scalar = kind_of(kind)
            if scalar is None or scalar.floating:
                raise Unsupported(f"the constant {text}")
            return self._of(inside.rpartition(" to ")[0]) & scalar.mask
        if name in ("add", "sub", "xor"):
            first, second = map(self._of, listed(inside))
            scalar = kind_of(kind)
            found = {"add": first + second, "sub": first - second, "xor": first ^ second}[name]
            return found & (scalar.mask if scalar else _POINTER_MASK)
        raise Unsupported(f"the constant {text}")

    def offset(self, kind: str, places: list[str]) -> int:
        """Return the offset in bytes of constant `getelementptr` indices."""
        found = 0
        for number, operand in enumerate(map(Operand.read, places)):
            scalar = kind_of(operand.kind)
            if scalar is None:
                raise Unsupported("vectors of addresses")
            value = self.value(operand.kind, operand.value)
            place = value - (1 << scalar.bits) if value >> (scalar.bits - 1) else value
            if not number:
                found += place * self._layout.size(kind)
                continue
            step, kind = self.step(kind, place)
            found += step
        return found

    def step(self, kind: str, place: int) -> tuple[int, str]:
        """Return the offset and the type of an element; indices of arrays may be out of bounds."""
        spelled = self._layout.spelled(kind)
        if spelled.startswith(("[", "<")) and not spelled.startswith("<{"):
            inner = spelled[1:-1].partition(" x ")[2]
            return place * self._layout.size(inner), inner
        offset, inner = self._layout.fields(kind)[place]
        return offset, inner

    def _of(self, text: str) -> Value:
        operand = Operand.read(text)
        return self.value(operand.kind, operand.value)


def _unescaped(match: re.Match[bytes]) -> bytes:
    return b"\\" if match[1] == b"\\" else bytes([int(match[1], 16)])
