"""Polynomials of open dimensions and of rounded quotients, in a normal form."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import gcd, prod
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Symbol:
    """An open dimension of an input.

    Attributes:
        name: Its name.
        least: The least size that the model accepts.
    """

    name: str
    least: int = 1

    def __str__(self) -> str:
        """Return the name."""
        return self.name


@dataclass(frozen=True)
class Quotient:
    """A quotient that is rounded down.

    Attributes:
        dividend: What is divided.
        divisor: A number above 1.
    """

    dividend: "Form"
    divisor: int

    @cached_property
    def least(self) -> int | None:
        """The least value; None if unknown."""
        low = self.dividend.least
        return None if low is None else low // self.divisor

    @cached_property
    def _text(self) -> str:
        return f"(({self.dividend}) // {self.divisor})"

    def __str__(self) -> str:
        """Return the quotient as Python writes it."""
        return self._text


Atom: TypeAlias = Symbol | Quotient
Monomial: TypeAlias = tuple[Atom, ...]
"""The factors of a term, sorted by their texts."""


@dataclass(frozen=True)
class Form:
    """A polynomial in normal form.

    Attributes:
        terms: Pairs of factors and a coefficient that is not 0, by the number of factors, then their texts.
    """

    terms: tuple[tuple[Monomial, int], ...]
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compute the hash, which is asked for often."""
        object.__setattr__(self, "_hash", hash(self.terms))

    def __hash__(self) -> int:
        """Return the hash of the terms."""
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the terms alone: in another process their texts have other hashes."""
        return Form, (self.terms,)

    @staticmethod
    def of(terms: Iterable[tuple[Monomial, int]]) -> "Form":
        """Return the sum of some terms."""
        total: dict[Monomial, int] = {}
        for factors, coefficient in terms:
            ordered = tuple(sorted(factors, key=str)) if len(factors) > 1 else factors
            total[ordered] = total.get(ordered, 0) + coefficient
        left = [term for term in total.items() if term[1]]
        return Form(tuple(sorted(left, key=_degree) if len(left) > 1 else left))

    @staticmethod
    def number(value: int) -> "Form":
        """Return a number."""
        return Form((((), value),) if value else ())

    @property
    def constant(self) -> int:
        """The term without factors."""
        return self.terms[0][1] if self.terms and not self.terms[0][0] else 0

    @property
    def fixed(self) -> bool:
        """Whether it is a number."""
        return not self.terms or (len(self.terms) == 1 and not self.terms[0][0])

    @property
    def symbol(self) -> Symbol | None:
        """The symbol that it is; None if it is something else."""
        if len(self.terms) != 1 or self.terms[0][1] != 1 or len(self.terms[0][0]) != 1:
            return None
        [atom] = self.terms[0][0]
        return atom if isinstance(atom, Symbol) else None

    @cached_property
    def least(self) -> int | None:
        """A number that it is never below; None if none is known.

        With each factor written as its least value plus something that is not negative, a polynomial whose
        coefficients are not negative is least where all of these are 0.
        """
        shifted: list[tuple[Monomial, int]] = []
        for factors, coefficient in self.terms:
            parts: list[tuple[Monomial, int]] = [((), coefficient)]
            for atom in factors:
                low = atom.least
                if low is None:
                    return None
                parts = [(part, c * low) for part, c in parts] + [((*part, atom), c) for part, c in parts]
            shifted += parts
        moved = Form.of(shifted)
        return None if any(c < 0 for factors, c in moved.terms if factors) else moved.constant

    def plus(self, other: "Form", times: int = 1) -> "Form":
        """Return the sum with a multiple of another."""
        return _sum(self, other, times) if other.terms else self

    def by(self, other: "Form") -> "Form":
        """Return the product with another."""
        return _product(self, other)

    def over(self, divisor: int) -> "Form":
        """Return the quotient by a number above 0, rounded down."""
        return _quotient(self, divisor)

    def exactly_over(self, other: "Form") -> "Form | None":
        """Return the quotient by another polynomial if there is no remainder; else None."""
        left, found = self, Form(())
        lead, by = other.terms[-1]
        while left.terms:
            factors, coefficient = left.terms[-1]
            rest = _without(factors, lead)
            if rest is None or coefficient % by:
                return None
            part = Form.of([(rest, coefficient // by)])
            found = found.plus(part)
            if len(found.terms) > len(self.terms) * len(other.terms) + 4:
                return None
            left = left.plus(part.by(other), -1)
        return found

    def at(self, values: Mapping[str, int]) -> int:
        """Return the number that it is for some values of its symbols."""
        total = 0
        for factors, coefficient in self.terms:
            total += coefficient * prod(_value(atom, values) for atom in factors)
        return total

    def symbols(self) -> Iterator[Symbol]:
        """Yield the symbols in it, perhaps several times."""
        for factors, _ in self.terms:
            for atom in factors:
                if isinstance(atom, Symbol):
                    yield atom
                else:
                    yield from atom.dividend.symbols()

    def __str__(self) -> str:
        """Return the polynomial as Python writes it."""
        texts: list[str] = []
        for factors, coefficient in reversed(self.terms):
            names = [str(atom) for atom in factors]
            if coefficient != 1 or not names:
                names.insert(0, str(coefficient))
            texts.append("*".join(names))
        return " + ".join(texts).replace("+ -", "- ") or "0"


KNOWN = 1 << 14
"""Limit of results in each of the caches below: rules combine the few sizes of a model again and again."""


@lru_cache(KNOWN)
def _sum(first: Form, second: Form, times: int) -> Form:
    return Form.of([*first.terms, *((factors, times * c) for factors, c in second.terms)])


@lru_cache(KNOWN)
def _product(first: Form, second: Form) -> Form:
    return Form.of((((*f, *g), c * d) for f, c in first.terms for g, d in second.terms))


@lru_cache(KNOWN)
def _quotient(dividend: Form, divisor: int) -> Form:
    whole: list[tuple[Monomial, int]] = []
    rest: list[tuple[Monomial, int]] = []
    for factors, coefficient in dividend.terms:
        if not factors or coefficient % divisor == 0:
            whole.append((factors, coefficient // divisor))
        if not factors or coefficient % divisor:
            rest.append((factors, coefficient % divisor if not factors else coefficient))
    left = Form.of(rest)
    if left.fixed:
        return Form.of(whole)  # a constant between 0 and the divisor adds nothing
    [(_, only), *others] = [term for term in left.terms if term[0]] or [((), 0)]
    inner, common = left, gcd(divisor, only, *(c for _, c in others))
    if common > 1:
        # floor((g*p + r) / (g*q)) is floor((p + floor(r / g)) / q).
        divisor //= common
        inner = Form.of((f, c // common) for f, c in left.terms)
    if divisor == 1:
        return Form.of([*whole, *inner.terms])
    if inner.terms[-1][1] < 0:
        # Down from -p is up from p: the dividends of quotients then are sizes, which are not negative.
        up = Form.number(divisor - 1).plus(inner, -1).over(divisor)
        return Form.of(whole).plus(up, -1)
    return Form.of([*whole, ((_nested(inner, divisor),), 1)])


def _degree(term: tuple[Monomial, int]) -> tuple[int, list[str]]:
    """Return what terms are sorted by, an order that products keep."""
    return len(term[0]), [str(atom) for atom in term[0]]


def _nested(dividend: Form, divisor: int) -> Quotient:
    """Return a rounded quotient; a quotient of a quotient is one by the product of the divisors."""
    parts = [(factors, c) for factors, c in dividend.terms if factors]
    if (
        len(parts) == 1
        and parts[0][1] == 1
        and len(parts[0][0]) == 1
        and isinstance(parts[0][0][0], Quotient)
    ):
        inner = parts[0][0][0]
        constant = dividend.constant * inner.divisor
        return Quotient(inner.dividend.plus(Form.number(constant)), divisor * inner.divisor)
    return Quotient(dividend, divisor)


def _value(atom: Atom, values: Mapping[str, int]) -> int:
    return values[atom.name] if isinstance(atom, Symbol) else atom.dividend.at(values) // atom.divisor


def _without(factors: Monomial, others: Monomial) -> Monomial | None:
    """Return factors without some others; None if these are not among them."""
    left = list(factors)
    for atom in others:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)
