"""Grids of programs: all combinations of sizes and options of a family, as LoopTune's generator makes them.

`mm:m=64:128:16,n=64/256,k=32` is every `mm` with M in 64, 80, ..., 128, N 64 or 256, and K 32. A range is
LOW:HIGH:STEP with both ends; without STEP the step is 1. `/` stands between alternatives. A family whose
programs are told by text has it after a slash: `einsum/mk,kn->mn:m=16:64:16,k=8,n=8`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import prod
from string import ascii_uppercase

from irgym.base.errors import ProgramError
from irgym.core.uri import Family, Grammar, Option, Value, whole_number

MOST = 100_000
"""Greatest number of programs of a data set that is no file of irgym's."""


def is_grid(grammar: Grammar, text: str) -> bool:
    """Say whether a text begins with a family's name, as a grid does."""
    return re.split("[/:]", text, maxsplit=1)[0] in grammar.families and ":" in text


def grid(grammar: Grammar, text: str, canonical: Callable[[str], str]) -> tuple[list[str], list[str]]:
    """Return the programs of a grid.

    Args:
        grammar: The grammar of the environment's URIs.
        text: The grid.
        canonical: Returns the canonical text of a URI, and raises a ProgramError if it names no program.

    Returns:
        URIs in order, the last size or option changing fastest; and for each combination that is no program
        why it is none, such as a width that its heads do not divide.

    Raises:
        ProgramError: The text is malformed, lacks a size, has an unknown name or a value out of range, or has
            too many programs or none.
    """
    head, _, given = text.partition(":")
    name, _, body = head.partition("/")
    family = grammar.families[name]
    values = _values(text, family, given)
    sizes = _size_names(text, family, values)
    if bool(body) != bool(family.body):
        start = f"{name}/{family.body}" if family.body else name
        raise ProgramError(f"{text!r} is malformed: begin with {start}:")
    count = prod(map(len, values.values()))
    if count > MOST:
        raise ProgramError(f"{text!r} has {count:,} programs: name at most {MOST:,}, with greater steps")
    uris: list[str] = []
    refused: list[str] = []
    for chosen in product(*values.values()):
        point = dict(zip(values, chosen, strict=True))
        options = {option: value for option, value in point.items() if option not in sizes}
        uri = grammar.text(name, [int(point[size]) for size in sizes], body, options)
        try:
            uris.append(canonical(uri))
        except ProgramError as error:
            refused.append(str(error))
    if not uris:
        raise ProgramError(f"{text!r} has no programs: {refused[0]}")
    return list(dict.fromkeys(uris)), refused


def _values(text: str, family: Family, given: str) -> dict[str, Sequence[Value]]:
    """Return the values of the sizes, in the family's order, then those of the options that are given."""
    known = {option.name: option for option in (*_sizes(family), *family.options)}
    found: dict[str, Sequence[Value]] = {}
    for word in given.split(","):
        own, equals, values = word.partition("=")
        name = own if own in known else own.upper()
        if not equals or name not in known:
            raise ProgramError(
                f"{text!r} is malformed at {word!r}: write NAME=VALUES, joined by commas, with a name among "
                + ", ".join(known).lower()
            )
        if name in found:
            raise ProgramError(f"{text!r}: {own} is given twice; give it once")
        found[name] = [value for part in values.split("/") for value in _read(text, known[name], part)]
    return {name: found[name] for name in known if name in found}


def _read(text: str, option: Option, part: str) -> Sequence[Value]:
    """Return the values that a range, a number or a word stands for."""
    if not re.fullmatch("[0-9]+(:[0-9]+){1,2}", part):
        return [option.read(text, part)]
    low, high, step = (*map(whole_number, part.split(":")), 1)[:3]
    if low is None or high is None or not step or low > high:
        raise ProgramError(f"{text!r}: {part!r} is no range: write LOW:HIGH:STEP, with LOW at most HIGH")
    if (high - low) // step >= MOST:
        raise ProgramError(f"{text!r}: {part!r} has more than {MOST:,} numbers: choose a greater step")
    return [option.read(text, str(number)) for number in range(low, high + 1, step)]


def _sizes(family: Family) -> list[Option]:
    """Return a family's sizes as options; where their number varies, letters in order name them."""
    names = family.sizes if family.ranks is None else ascii_uppercase[: family.ranks[1]]
    return [Option(name, family.least, low=family.least) for name in names]


def _size_names(text: str, family: Family, values: Mapping[str, object]) -> list[str]:
    """Return the names of the sizes that are given, which must be all, or the first ones where they vary."""
    names = [option.name for option in _sizes(family)]
    given = [name for name in names if name in values]
    least = len(names) if family.ranks is None else family.ranks[0]
    wanted = names[: max(least, len(given))]
    if missing := [name.lower() for name in wanted if name not in given]:
        raise ProgramError(f"{text!r} does not say {', '.join(missing)}: give values for each size")
    return given
