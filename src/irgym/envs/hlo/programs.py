"""Programs of the `hlo` environment, by URI: models in JAX, and files."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from irgym.core.errors import ProgramError
from irgym.core.uri import is_file, options_of, whole_number
from irgym.envs.hlo.families import FAMILIES
from irgym.envs.hlo.parameters import Family, Parameter, Value

SUFFIXES = (".hlo", ".txt", ".pb", ".mlir", ".stablehlo", ".mlirbc", ".bc")
"""Last suffixes of the files that are read: HLO text (two), HLO proto, StableHLO text or bytecode."""

FORM = "hlo://FAMILY?name=value&... or hlo:FILE"
"""The form of URIs, in words."""

_WORDS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True)
class Program:
    """A program: a step of a model, or a file.

    Attributes:
        uri: Canonical URI: only parameters that differ from the defaults, sorted by name.
        family: Name of the model family; empty for a file.
        parameters: Every parameter of the family and its value, in the family's order.
        path: The file, as it was given; None for a model.
    """

    uri: str
    family: str
    parameters: tuple[tuple[str, Value], ...]
    path: Path | None = None

    @cached_property
    def options(self) -> Mapping[str, Value]:
        """The parameters as a mapping."""
        return dict(self.parameters)


def parse_program(uri: str) -> Program:
    """Return the program of a URI.

    Args:
        uri: `hlo://gpt2?layers=1&mode=forward`, or `hlo:module.hlo.txt`.

    Raises:
        ProgramError: It is malformed, has an unknown family or parameter, sizes that do not fit together,
            or names a file that is not there or of no known kind.
    """
    if uri.startswith("hlo://"):
        return _model(uri)
    if uri.startswith("hlo:"):
        return _file(uri)
    raise ProgramError(f"{uri!r} is no program of hlo: write {FORM}")


def _file(uri: str) -> Program:
    text = uri.removeprefix("hlo:")
    path = Path(text)
    if not text:
        raise ProgramError(f"{uri!r} names no file: write {FORM}")
    if path.suffix.lower() not in SUFFIXES:
        raise ProgramError(f"{text}: cannot tell what it holds; name it one of *{', *'.join(SUFFIXES)}")
    if not is_file(path):
        raise ProgramError(f"{text}: there is no such file")
    return Program(uri, "", (), path)


def _model(uri: str) -> Program:
    match = re.fullmatch(r"hlo://([^?/]*)(?:\?(.*))?", uri, re.DOTALL)
    if not match:
        raise ProgramError(f"{uri!r} is malformed: write {FORM}")
    if match.group(1) not in FAMILIES:
        raise ProgramError(f"there is no model family {match.group(1)!r}: choose among {', '.join(FAMILIES)}")
    family = FAMILIES[match.group(1)]
    given = _given(uri, family, match.group(2) or "")
    shape = str(given.get("shape", "tiny"))
    defaults = {parameter.name: parameter.default(shape) for parameter in family.parameters}
    defaults["shape"] = "tiny"
    values = defaults | given
    changed = [name for name in sorted(values) if values[name] != defaults[name]]
    _check(uri, family, values, changed)
    differing = [f"{name}={_text(values[name])}" for name in changed]
    canonical = f"hlo://{family.name}" + ("?" + "&".join(differing) if differing else "")
    return Program(canonical, family.name, tuple(values.items()))


def _given(uri: str, family: Family, query: str) -> dict[str, Value]:
    parameters = {parameter.name: parameter for parameter in family.parameters}
    texts = options_of(uri, query, parameters, family.name)
    return {name: _value(uri, parameters[name], text) for name, text in texts.items()}


def _value(uri: str, parameter: Parameter, text: str) -> Value:
    if parameter.choices:
        if text not in parameter.choices:
            raise ProgramError(f"{uri!r}: {parameter.name} must be {' or '.join(parameter.choices)}")
        return text
    if isinstance(parameter.tiny, bool):
        if text not in _WORDS:
            raise ProgramError(f"{uri!r}: {parameter.name} must be true or false")
        return _WORDS[text]
    low, high = parameter.low, parameter.high
    number = whole_number(text)
    if number is None or not low <= number <= high:
        raise ProgramError(f"{uri!r}: {parameter.name} must be a whole number in {low} to {high}")
    return number


def _check(uri: str, family: Family, values: Mapping[str, Value], changed: list[str]) -> None:
    idle = [parameter.name for parameter in family.parameters if parameter.training]
    for name in changed if values["mode"] == "forward" else ():
        if name in idle:
            raise ProgramError(f"{uri!r}: {name} has a meaning in mode=train only")
    for name, divisor, factor in family.multiples:
        if int(values[name]) % (factor * int(values[divisor])):
            times = f"{factor} times " if factor > 1 else ""
            raise ProgramError(
                f"{uri!r}: {name} ({values[name]}) must be a multiple of {times}{divisor} ({values[divisor]})"
            )
    for name, bound in family.at_most:
        if int(values[name]) > int(values[bound]):
            raise ProgramError(f"{uri!r}: {name} ({values[name]}) may not exceed {bound} ({values[bound]})")


def _text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
