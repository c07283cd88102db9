"""Programs of the `linalg` environment, by URI: operators, networks, and files."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from irgym.core.errors import ProgramError
from irgym.core.uri import is_file, options_of, whole_number
from irgym.envs.linalg.programs.families import FAMILIES, NETWORKS, Family, Option
from irgym.envs.linalg.programs.operators import Operator

SUFFIX = ".mlir"
"""Suffix of the files that are read."""

FORM = "linalg://OPERATOR/SIZES?name=value&..., linalg://NETWORK?name=value&... or linalg:FILE.mlir"
"""The form of URIs, in words."""


@dataclass(frozen=True)
class Network:
    """A network of torch.

    Attributes:
        name: Its family: `resnet18`.
        options: Every option of the family and its value.
    """

    name: str
    options: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Source:
    """What a URI names.

    Attributes:
        uri: Canonical URI: only options that differ from the defaults, sorted by name.
        origin: An operator, a network, or the path of a file as it was given.
    """

    uri: str
    origin: Operator | Network | Path

    @property
    def family(self) -> str:
        """Name of its family; empty for a file."""
        return "" if isinstance(self.origin, Path) else self.origin.name


def parse_uri(uri: str) -> Source:
    """Return what a URI names.

    Args:
        uri: `linalg://matmul/256x512x1024`, `linalg://resnet18?size=224`, or `linalg:module.mlir`.

    Raises:
        ProgramError: It is malformed, has an unknown family or option, sizes that are absurd or do not fit
            together, or names a file that is not there or of another kind.
    """
    if uri.startswith("linalg://"):
        return _of_family(uri)
    if uri.startswith("linalg:"):
        return _file(uri)
    raise ProgramError(f"{uri!r} is no program of linalg: write {FORM}")


def _file(uri: str) -> Source:
    text = uri.removeprefix("linalg:")
    path = Path(text)
    if not text:
        raise ProgramError(f"{uri!r} names no file: write {FORM}")
    if path.suffix.lower() != SUFFIX:
        raise ProgramError(f"{uri!r}: linalg reads MLIR as text; name such a file *{SUFFIX}")
    if not is_file(path):
        raise ProgramError(f"{uri!r}: there is no such file")
    return Source(uri, path)


def _of_family(uri: str) -> Source:
    match = re.fullmatch(r"linalg://([^?/]*)(?:/([^?]*))?(?:\?(.*))?", uri, re.DOTALL)
    if not match:
        raise ProgramError(f"{uri!r} is malformed: write {FORM}")
    name, sizes, query = match.groups()
    if name not in FAMILIES:
        raise ProgramError(f"there is no program {name!r} in linalg: choose among {', '.join(FAMILIES)}")
    family = FAMILIES[name]
    numbers = _sizes(uri, family, sizes)
    given = _given(uri, family, query or "")
    values = {option.name: given.get(option.name, option.default) for option in family.options}
    _check_multiples(uri, family, values)
    changed = sorted(option.name for option in family.options if values[option.name] != option.default)
    canonical = (
        f"linalg://{name}"
        + (f"/{'x'.join(map(str, numbers))}" if numbers else "")
        + ("?" + "&".join(f"{option}={values[option]}" for option in changed) if changed else "")
    )
    options = tuple(values.items())
    if family in NETWORKS:
        return Source(canonical, Network(name, options))
    operator = Operator(name, numbers, options)
    try:
        operator.text()
    except ProgramError as error:
        raise ProgramError(f"{uri!r}: {error}") from error
    return Source(canonical, operator)


def _sizes(uri: str, family: Family, text: str | None) -> tuple[int, ...]:
    least, greatest = family.ranks or (len(family.sizes), len(family.sizes))
    words = [] if text is None else text.split("x")
    numbers = tuple(number for word in words if (number := whole_number(word)) is not None)
    if not least <= len(words) <= greatest or len(numbers) < len(words):
        count = f"{least} to {greatest}" if family.ranks else f"{least or 'no'}"
        raise ProgramError(f"{uri!r} is malformed: write {family.form}, with {count} whole numbers")
    if min(numbers, default=1) < 1 and "SEED" not in family.sizes:
        raise ProgramError(f"{uri!r} has a size below 1: every size must be at least 1")
    return numbers


def _given(uri: str, family: Family, query: str) -> dict[str, int]:
    options = {option.name: option for option in family.options}
    texts = options_of(uri, query, options, family.name)
    return {name: _value(uri, options[name], text) for name, text in texts.items()}


def _value(uri: str, option: Option, text: str) -> int:
    number = whole_number(text)
    if number is None or not option.low <= number <= option.high or number % option.multiple:
        steps = f", a multiple of {option.multiple}" if option.multiple > 1 else ""
        raise ProgramError(
            f"{uri!r}: {option.name} must be a whole number in {option.low} to {option.high}{steps}"
        )
    return number


def _check_multiples(uri: str, family: Family, values: Mapping[str, int]) -> None:
    for name, divisor in family.multiples:
        if values[name] % values[divisor]:
            raise ProgramError(
                f"{uri!r}: {name} ({values[name]}) must be a multiple of {divisor} ({values[divisor]})"
            )
