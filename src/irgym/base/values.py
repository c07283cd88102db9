"""Values from outside, such as hyper-parameters and what is read from files: their types and ranges.

A field of a dataclass says both: `gamma: Annotated[float, Range(0, 1)] = 0.99`.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from irgym.base.errors import IrgymError

T = TypeVar("T")

GREATEST = 10**308
"""Whole numbers where floats belong are no greater."""

LARGEST = 2**63
"""Whole numbers are smaller: numpy and torch take no greater ones."""


_PLAIN = {bool: "true or false", int: "a whole number", float: "a finite number", str: "text"}


@dataclass(frozen=True)
class Range:
    """The numbers that a value may be. Neither nan nor an infinity is in any range.

    Attributes:
        low: The least; None for no limit.
        high: The greatest.
        above: What it must be greater than.
        below: What it must be less than.
    """

    low: float | None = None
    high: float | None = None
    above: float | None = None
    below: float | None = None

    def __contains__(self, value: Real) -> bool:
        number = float(value)
        return (
            math.isfinite(number)
            and (self.low is None or number >= self.low)
            and (self.high is None or number <= self.high)
            and (self.above is None or number > self.above)
            and (self.below is None or number < self.below)
        )

    def __str__(self) -> str:
        if self.low is not None and self.high is not None:
            return f"{self.low:.15g} to {self.high:.15g}"
        parts = [
            f"{word} {limit:.15g}"
            for word, limit in (
                ("at least", self.low),
                ("more than", self.above),
                ("at most", self.high),
                ("less than", self.below),
            )
            if limit is not None
        ]
        if parts == [f"at least {self.low}"]:
            return f"{self.low:.15g} or more"
        return " and ".join(parts) or "a finite number"


class MismatchError(ValueError):
    """A value has another type or lies out of range.

    Attributes:
        path: Which part of what was read it is, such as `rows[3].cost`; empty for the whole.
        value: The value; `dataclasses.MISSING` where there is none.
        wanted: What belongs there.
    """

    def __init__(self, value: Any, wanted: object, path: str = "") -> None:
        super().__init__(value, wanted, path)
        self.path = path
        self.value = value
        self.wanted = str(wanted)

    def __str__(self) -> str:
        place = self.path.removeprefix(".") or "the whole"
        if self.value is MISSING:
            return f"{place} is missing"
        shown = repr(self.value)
        shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
        return f"{place} is {shown}, not {self.wanted}"

    def within(self, part: str) -> "MismatchError":
        """Return the same, told of what the part belongs to."""
        return MismatchError(self.value, self.wanted, part + self.path)


def check_fields(values: Any, name: str) -> None:
    """Make sure that every field of a dataclass has the type and lies in the range that it declares.

    Args:
        values: The instance.
        name: What it is of, for the message: `PPO`.

    Raises:
        IrgymError: One does not; the message names it, its value and what it may be.
    """
    for field, hint in _hints(cast(type[Any], type(values))).items():
        check_value(hint, getattr(values, field), field, name)


def check_value(kind: Any, value: Any, field: str, name: str) -> None:
    """Make sure that a value has a type and lies in its range; see `conform`.

    Args:
        kind: The type.
        value: The value.
        field: What it is: `gamma`.
        name: What it is of, for the message: `PPO`.

    Raises:
        IrgymError: It does not; the message names it, its value and what it may be.
    """
    try:
        conform(kind, value)
    except MismatchError as error:
        raise IrgymError(f"{field} of {name} is {value}: choose {error.wanted}") from None


def plain(value: Any) -> Any:
    """Return what JSON can hold of a value: its numbers that are not finite become None."""
    if isinstance(value, Mapping):
        return {name: plain(part) for name, part in cast(Mapping[str, Any], value).items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in cast(Sequence[Any], value)]
    if isinstance(value, Enum):
        return value.value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def parse_json(text: str) -> Any:
    """Return what a JSON text holds.

    Raises:
        ValueError: It is none, or nested beyond measure.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def conform(kind: Any, value: Any) -> Any:
    """Return a value as a type says it, such as a tuple for a list and a dataclass for an object of JSON.

    Args:
        kind: A type that annotations may give ranges: of numbers, texts, truth values, literals, tuples,
            mappings from texts, dataclasses, and unions of them with None. Other types take all, as `Any`
            does.
        value: Plain data.

    Raises:
        MismatchError: It does not suit.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if origin is Annotated:
        return _in_ranges(
            arguments[0], value, [argument for argument in arguments[1:] if _is_range(argument)]
        )
    if origin in (Union, UnionType):
        return _one_of(arguments, value)
    if origin is Literal:
        if value not in arguments:
            raise MismatchError(value, " or ".join(map(str, arguments)))
        return value
    if origin is tuple:
        return _tuple(arguments, value)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        kind_of_part = arguments[1]
        return {
            name: conform_part(kind_of_part, part, f"[{name!r}]") for name, part in _mapping(value).items()
        }
    if is_dataclass(kind):
        return _dataclass(kind, value)
    return _plain(kind, value) if kind in _PLAIN else value


def _is_range(annotation: Any) -> bool:
    return isinstance(annotation, Range)


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in fields(kind)}


def conform_part(kind: Any, value: Any, name: str) -> Any:
    """Return part of a value as its type says it; see `conform`.

    Args:
        kind: The type.
        value: The part.
        name: Where it stands in the whole, such as `.cost` or `[3]`.

    Raises:
        MismatchError: It does not suit; the error tells where it stands.
    """
    try:
        return conform(kind, value)
    except MismatchError as error:
        raise error.within(name) from None


def _in_ranges(kind: Any, value: Any, ranges: Sequence[Range]) -> Any:
    """Return a number, or the numbers in a tuple, that lie in all ranges; None does so too."""
    try:
        suited: Any = conform(kind, value)
    except MismatchError as error:
        wanted = ", ".join([error.wanted, *map(str, ranges)])
        raise MismatchError(error.value, wanted, error.path) from None
    numbers = cast(tuple[Any, ...], suited if isinstance(value, list | tuple) else (suited,))
    for range_ in ranges:
        if not all(number is None or number in range_ for number in numbers):
            raise MismatchError(value, range_)
    return suited


def _one_of(kinds: Sequence[Any], value: Any) -> Any:
    if value is None and NoneType in kinds:
        return None
    wanted = [kind for kind in kinds if kind is not NoneType]
    errors: list[MismatchError] = []
    for kind in wanted:
        try:
            return conform(kind, value)
        except MismatchError as error:
            errors.append(error)
    raise errors[0]


def _tuple(kinds: Sequence[Any], value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise MismatchError(value, "a list")
    items = cast(Sequence[Any], value)
    if kinds[-1] is Ellipsis:
        kinds = [kinds[0]] * len(items)
    if len(items) != len(kinds):
        raise MismatchError(items, f"a list of {len(kinds)}")
    return tuple(
        conform_part(kind, item, f"[{place}]")
        for place, (kind, item) in enumerate(zip(kinds, items, strict=True))
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise MismatchError(value, "an object")
    return {_plain(str, name): part for name, part in cast(dict[Any, Any], value).items()}


def _dataclass(kind: Any, value: Any) -> Any:
    if isinstance(value, kind):
        return value
    data, hints = _mapping(value), _hints(kind)
    for name in data:
        if name not in hints:
            raise MismatchError(data[name], "known", f".{name}")
    for field in fields(kind):
        if field.name not in data and field.default is MISSING and field.default_factory is MISSING:
            raise MismatchError(MISSING, "missing", f".{field.name}")
    return kind(**{name: conform_part(hints[name], part, f".{name}") for name, part in data.items()})


def _plain(kind: Any, value: Any) -> Any:
    """Return a truth value, number or text."""
    if kind is bool and isinstance(value, bool):
        return value
    if kind is int and _is_number(value, Integral) and abs(int(value)) < LARGEST:
        return int(value)
    # Python's whole numbers may be too large to be turned into floats.
    if kind is float and _is_number(value, Real) and not (type(value) is int and abs(value) > GREATEST):
        number = float(value)
        if math.isfinite(number):
            return number
    if kind is str and isinstance(value, str) and _encodable(value):
        return value
    raise MismatchError(value, _PLAIN[kind])


def _is_number(value: Any, kind: type[Any]) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _encodable(text: str) -> bool:
    """Say whether a text can be written: JSON can hold halves of characters."""
    return not any("\ud800" <= character <= "\udfff" for character in text)
