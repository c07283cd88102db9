"""Hyper-parameters on the command line: any field of a configuration as name=value."""

import io
from collections.abc import Sequence
from contextlib import redirect_stderr
from dataclasses import fields
from typing import Any, get_args, get_type_hints

import tyro

from irgym.core.errors import IrgymError


def configured(kind: type[Any], words: Sequence[str], seed: int, what: str) -> Any:
    """Return a configuration with the fields that `words` set.

    Args:
        kind: Frozen dataclass with a field `seed`.
        words: Texts such as lr=3e-4; several values of one field are separated by commas.
        seed: The seed.
        what: Whose hyper-parameters they are, for the message.

    Raises:
        IrgymError: A word is no name=value, there is no such field, or the value does not suit it.
    """
    defaults = {field.name: field.default for field in fields(kind)}
    arguments = ["--seed", str(seed)]
    given: set[str] = set()
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or name not in defaults:
            raise IrgymError(
                f"{word!r} is no hyper-parameter of {what}: write name=value with one of "
                + ", ".join(defaults)
            )
        if name in given:
            raise IrgymError(f"{name} of {what} is given twice: give it once, its values joined by commas")
        given.add(name)
        argument = [f"--{name.replace('_', '-')}", *_values(value, get_type_hints(kind)[name])]
        try:
            # tyro prints a page about options that the user did not write.
            with redirect_stderr(io.StringIO()):
                _parse(kind, argument)
        except SystemExit:
            raise IrgymError(
                f"{name} of {what} cannot be {value!r}: give a value such as {defaults[name]}"
            ) from None
        arguments += argument
    return _parse(kind, arguments)


def _values(text: str, kind: Any) -> list[str]:
    """Return the words of a value as tyro reads them: true, false and none in any case."""
    words = {"true": "True", "false": "False"} if kind is bool else {}
    if type(None) in get_args(kind):
        words["none"] = "None"
    return [words.get(word.lower(), word) for word in text.split(",")]


def _parse(kind: type[Any], arguments: list[str]) -> Any:
    return tyro.cli(kind, args=arguments, config=(tyro.conf.FlagConversionOff,))
