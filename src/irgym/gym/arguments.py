"""The arguments of Gymnasium environments, which come unchecked from other libraries and from files."""

import math
import reprlib
from collections.abc import Collection, Mapping
from typing import Any, cast

import numpy as np

from irgym.base.errors import IrgymError


def brief(value: Any) -> str:
    """Return an argument as messages show it."""
    return reprlib.repr(value.tolist() if isinstance(value, np.ndarray) else value)


def check_number(name: str, value: Any, kind: type, low: int) -> None:
    """Make sure that an argument is a number of the right kind, at least `low`, or above it if it is real."""
    if value is None:
        return
    whole = kind is int
    right = isinstance(value, int | np.integer | (int if whole else float | np.floating)) and not isinstance(
        value, bool
    )
    if not right or not (value >= low if whole else low < value < math.inf):
        bound = f"a whole number of at least {low}" if whole else f"a finite number above {low}"
        raise IrgymError(f"{name} must be {bound}, not {brief(value)}: give another, or leave it out")


def text_of(name: str, value: Any, what: str) -> str | None:
    """Return an argument that is a text, or None."""
    if value is not None and not isinstance(value, str):
        raise IrgymError(f"{name} must be a text, not {brief(value)}: give the names {what}")
    return value


def texts_of(name: str, values: Any, what: str) -> tuple[str, ...]:
    """Return an argument that is a list of texts."""
    wanted = f"give a list of at least one {what}"
    if isinstance(values, str) or not isinstance(values, Collection):
        raise IrgymError(f"{name} must be a list, not {brief(values)}: {wanted}")
    texts = tuple(cast(Collection[Any], values))
    if not texts:
        raise IrgymError(f"{name} is empty: {wanted}")
    for text in texts:
        if not isinstance(text, str):
            raise IrgymError(f"{name} has {brief(text)}, which is no text: {wanted}")
    return texts


def program_option(options: Any) -> str | None:
    """Return the program that the options of `reset` name, if they do."""
    if options is not None and not isinstance(options, Mapping):
        raise IrgymError(f"the options of reset are a dictionary, not {brief(options)}")
    given = cast(Mapping[Any, Any], options or {})
    unknown = [name for name in given if name != "program"]
    if unknown:
        raise IrgymError(f"reset has no option {brief(unknown[0])}: its only one is 'program'")
    uri = given.get("program")
    if uri is not None and not isinstance(uri, str):
        raise IrgymError(f"the option program of reset is a URI, not {brief(uri)}")
    return uri
