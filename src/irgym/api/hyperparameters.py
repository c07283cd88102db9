"""Hyper-parameters by name: any field of a configuration, as a value or as the text of one."""

import io
from collections.abc import Collection, Mapping
from contextlib import redirect_stderr
from dataclasses import fields
from pathlib import Path
from typing import Any, cast, get_args, get_type_hints

import tyro

from irgym.api.translations import meant
from irgym.base.errors import IrgymError

OPTIONS = ("--agent", "--dataset", "--device", "--iterations", "--run")
"""Options of trainings that other systems write among their hyper-parameters."""


def by_name(values: Mapping[str, Any] | None, what: str) -> Mapping[str, Any]:
    """Return hyper-parameters by name; none for None.

    Raises:
        IrgymError: They are no mapping.
    """
    if values is None:
        return {}
    if not isinstance(values, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise IrgymError(f"hyper-parameters of {what} are values by name, not {values!r}: give a dictionary")
    return values


def configured(sort: type[Any], values: Mapping[str, Any] | None, seed: int, what: str) -> Any:
    """Return a configuration with the fields that `values` set.

    Args:
        sort: Frozen dataclass with a field `seed`.
        values: Values by name; a text such as `3e-4` is read as on the command line, where the values of a
            field that takes several are separated by commas.
        seed: The seed.
        what: Whose hyper-parameters they are, for the message.

    Raises:
        IrgymError: There is no such field, or the value does not suit it.
    """
    defaults = {field.name: field.default for field in fields(sort)}
    given: dict[str, Any] = {"seed": seed}
    for name, value in by_name(values, what).items():
        if name not in defaults:
            raise IrgymError(_unknown(name, f"{name}={value}", what, defaults))
        if isinstance(value, str | Path):
            given[name] = _read(sort, name, str(value), what, defaults[name])
        else:
            given[name] = tuple(cast(list[Any], value)) if isinstance(value, list) else value
    return sort(**given)


def _unknown(name: str, word: str, what: str, known: Collection[str]) -> str:
    """Return a sentence about an unknown hyper-parameter, with the one meant, or all that there are."""
    hint = meant(name, OPTIONS, known)
    choices = "" if hint.startswith("it is") else f" choose a name among {', '.join(known)}"
    return f"{word!r} is no hyper-parameter of {what}: {hint}{choices}".replace(":  ", ": ")


def _read(sort: type[Any], name: str, text: str, what: str, default: Any) -> Any:
    """Return what a text stands for."""
    arguments = [f"--{name.replace('_', '-')}", *_words(text, get_type_hints(sort)[name])]
    try:
        # tyro prints a page about options that the user did not write.
        with redirect_stderr(io.StringIO()):
            parsed = tyro.cli(sort, args=arguments, config=(tyro.conf.FlagConversionOff,))
    except SystemExit:
        raise IrgymError(f"{name} of {what} cannot be {text!r}: give a value such as {default}") from None
    return getattr(parsed, name)


def _words(text: str, kind: Any) -> list[str]:
    """Return the words of a value as tyro reads them: true, false and none in any case."""
    if kind is str:
        return [text]
    words = {"true": "True", "false": "False"} if kind is bool else {}
    if type(None) in get_args(kind):
        words["none"] = "None"
    return [words.get(word.lower(), word) for word in text.split(",")] if text else []
