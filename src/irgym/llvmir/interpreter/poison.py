"""Poison, and the exceptions that end a run.

The semantics are those of the LLVM Language Reference Manual, release 22: an instruction with a violated flag
yields poison; most operations on poison yield poison; branching on poison and accessing memory through it are
undefined behaviour.
"""

from typing import Any, Final, NoReturn


class Undefined(Exception):
    """The behaviour is undefined: the program may do anything from here on."""


class Unsupported(Exception):
    """The interpreter cannot run this; the message says what."""


class Endless(Exception):
    """The run takes too many steps."""


class Left(Exception):
    """The run ended without a return: a call did not return, or the program was stopped."""


class Unwound(Exception):
    """An exception of the program leaves a function."""


def _absorb(_: object, *__: object) -> "Poison":
    return POISON


class Poison:
    """The poison value. Arithmetic and comparisons yield poison; a decision on it raises `Undefined`."""

    __slots__ = ()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _absorb
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _absorb
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __neg__ = __pos__ = __abs__ = _absorb
    __lt__ = __le__ = __gt__ = __ge__ = _absorb
    __getitem__ = _absorb
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __truediv__ = __rtruediv__ = _absorb

    def __eq__(self, other: object) -> Any:
        """Return poison: equality is unknown."""
        return self

    def __ne__(self, other: object) -> Any:
        """Return poison: inequality is unknown."""
        return self

    def __hash__(self) -> int:
        """Return a constant."""
        return 0

    def __bool__(self) -> bool:
        """Raise `Undefined`: a decision depends on poison."""
        return _decided()

    def __index__(self) -> int:
        """Raise `Undefined`: a number is needed."""
        return _decided()

    def __repr__(self) -> str:
        """Return `poison`."""
        return "poison"


def _decided() -> NoReturn:
    raise Undefined("a decision depends on poison")


POISON: Final = Poison()
"""The only instance."""
