"""Open sizes: whole numbers that depend on symbols, such as the batch and the height of an image.

A size is a polynomial of symbols and of rounded quotients, in a normal form: equal forms are equal numbers
for all values of the symbols. A comparison holds for all values from each symbol's least value on, or fails
for all of them, or else raises `Undecided`. So a condition that holds for even sizes only is never true.

The idea is that of SymInt in torch.export; here nothing is guarded by an example value.
"""

from collections.abc import Iterable, Mapping
from math import gcd
from operator import index
from typing import Any

from irgym.envs.graph.ir.forms import Form, Symbol

POISON = -(2**40) - 11
"""The number that native code reads in place of an open size: no tensor has it, so what uses it fails."""


class Undecided(Exception):
    """A question about open sizes whose answer depends on the values of symbols."""


class Open(int):
    """A size that depends on symbols. It is an `int` to functions of sizes; see the module.

    Attributes:
        form: The polynomial, which is no number.
    """

    form: Form
    __array_ufunc__ = None  # numpy's numbers leave arithmetic to it

    def __new__(cls, form: Form) -> "Open":
        """Return the size with a polynomial."""
        made = super().__new__(cls, POISON)
        made.form = form
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the polynomial."""
        return Open, (self.form,)

    def __hash__(self) -> int:
        """Return the hash of the polynomial."""
        return hash(self.form)

    def __repr__(self) -> str:
        """Return the polynomial."""
        return str(self.form)

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        """Return the polynomial, whatever the format."""
        return str(self.form)

    def __bool__(self) -> bool:
        """Say whether it is never 0, or raise `Undecided`."""
        return self != 0

    def __eq__(self, other: object) -> bool:
        """Say whether it always or never equals a number, or raise `Undecided`."""
        if not isinstance(other, int):
            return NotImplemented
        if isinstance(other, Open) and other.form.terms == self.form.terms:
            return True
        difference = self.form.plus(form_of(other), -1)
        if not difference.terms:
            return True
        if _positive(difference) or _positive(Form.number(0).plus(difference, -1)):
            return False
        common = gcd(*(c for factors, c in difference.terms if factors))
        if difference.constant % common:
            return False
        raise Undecided(f"{self} == {other}")

    def __ne__(self, other: object) -> bool:
        """Say the opposite of equality."""
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __lt__(self, other: int) -> bool:
        """Say whether it is always or never below a number, or raise `Undecided`."""
        return _below(self, other)

    def __gt__(self, other: int) -> bool:
        """Say whether it is always or never above a number, or raise `Undecided`."""
        return _below(other, self)

    def __le__(self, other: int) -> bool:
        """Say whether it is never or always above a number, or raise `Undecided`."""
        return not _below(other, self)

    def __ge__(self, other: int) -> bool:
        """Say whether it is never or always below a number, or raise `Undecided`."""
        return not _below(self, other)

    def __add__(self, other: int) -> int:
        """Return the sum."""
        return _size(self.form.plus(form_of(other)))

    __radd__ = __add__

    def __sub__(self, other: int) -> int:
        """Return the difference."""
        return _size(self.form.plus(form_of(other), -1))

    def __rsub__(self, other: int) -> int:
        """Return the difference."""
        return _size(form_of(other).plus(self.form, -1))

    def __neg__(self) -> int:
        """Return the negative."""
        return 0 - self

    def __pos__(self) -> int:
        """Return the size."""
        return self

    def __abs__(self) -> int:
        """Return the magnitude, or raise `Undecided`."""
        return self if self >= 0 else -self

    def __mul__(self, other: int) -> int:
        """Return the product."""
        return _size(self.form.by(form_of(other)))

    __rmul__ = __mul__

    def __floordiv__(self, other: int) -> int:
        """Return the quotient, rounded down, or raise `Undecided`."""
        return _quotient(self.form, other)

    def __rfloordiv__(self, other: int) -> int:
        """Return the quotient, rounded down, or raise `Undecided`."""
        return _quotient(form_of(other), self)

    def __mod__(self, other: int) -> int:
        """Return the remainder, or raise `Undecided`."""
        return self - other * (self // other)

    def __rmod__(self, other: int) -> int:
        """Return the remainder, or raise `Undecided`."""
        return other - self * (other // self)

    def __divmod__(self, other: int) -> tuple[int, int]:
        """Return quotient and remainder, or raise `Undecided`."""
        return self // other, self % other

    def _refused(self, *_: Any) -> Any:
        raise Undecided(f"a number from {self}")

    __truediv__ = __rtruediv__ = __pow__ = __rpow__ = __float__ = __int__ = __index__ = _refused
    __round__ = __ceil__ = __floor__ = __trunc__ = __invert__ = _refused
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _refused
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __rdivmod__ = _refused


def symbol(name: str, least: int = 1) -> int:
    """Return the size of an open dimension.

    Args:
        name: Its name.
        least: The least size that the model accepts.
    """
    return Open(Form.of([((Symbol(name, least),), 1)]))


def at(size: int, values: Mapping[str, int]) -> int:
    """Return a size for some values of symbols."""
    return size.form.at(values) if isinstance(size, Open) else size


def any_open(sizes: Iterable[int]) -> bool:
    """Say whether any of some sizes depends on symbols."""
    return any(isinstance(size, Open) for size in sizes)


def numbers(sizes: Iterable[Any]) -> tuple[int, ...]:
    """Return sizes as Python's numbers; open ones stay as they are."""
    return tuple(size if isinstance(size, Open) else int(size) for size in sizes)


def broadcast_shapes(*shapes: tuple[int, ...], trusted: bool = False) -> tuple[int, ...]:
    """Return the common shape of arrays that are broadcast together.

    Args:
        shapes: The shapes.
        trusted: Whether they are known to fit. Then an open size beside a number above 1 equals it, or 1.

    Raises:
        ValueError: The shapes do not fit.
        Undecided: Whether they do depends on symbols, or what they make.
    """
    rank = max(map(len, shapes), default=0)
    return tuple(
        _common(shapes, [shape[len(shape) - place] for shape in shapes if len(shape) >= place], trusted)
        for place in range(rank, 0, -1)
    )


def _common(shapes: tuple[tuple[int, ...], ...], sizes: list[int], trusted: bool) -> int:
    """Return the size that arrays of some sizes have in common along a dimension."""
    fixed = {size for size in sizes if not isinstance(size, Open)} - {1}
    if len(fixed) > 1:
        raise ValueError(f"shapes {shapes} do not fit together")
    if fixed and any_open(sizes) and not trusted:
        raise Undecided(f"the common shape of {shapes}")
    if fixed:
        return fixed.pop()
    first, *others = [size for size in sizes if isinstance(size, Open)] or [1]
    for other in others:
        if first != other:
            raise ValueError(f"shapes {shapes} do not fit together")
    return first


def form_of(size: int) -> Form:
    """Return the polynomial of a size.

    Raises:
        Undecided: It is no whole number.
    """
    if isinstance(size, Open):
        return size.form
    try:
        return Form.number(index(size))
    except TypeError as error:
        raise Undecided(f"a size and {size}") from error


def _size(form: Form) -> int:
    return form.constant if form.fixed else Open(form)


def _positive(form: Form) -> bool:
    return form.least is not None and form.least > 0


def _below(first: int, second: int) -> bool:
    difference = form_of(second).plus(form_of(first), -1)
    if _positive(difference):
        return True
    opposite = Form.number(0).plus(difference, -1)
    if opposite.least is not None and opposite.least >= 0:
        return False
    raise Undecided(f"{first} < {second}")


def _quotient(dividend: Form, divisor: int) -> int:
    """Return a quotient, rounded down.

    Raises:
        Undecided: The divisor is open, or not positive, and leaves a remainder.
    """
    if not isinstance(divisor, Open):
        if divisor > 0:
            return _size(dividend.over(divisor))
        if divisor < 0:
            return _quotient(Form.number(0).plus(dividend, -1), -divisor)
        raise ZeroDivisionError("division by zero")
    exact = dividend.exactly_over(divisor.form)
    if exact is None:
        raise Undecided(f"{dividend} // {divisor}")
    return _size(exact)
