"""Options within a word: `beam:width=2,order=depth` names a part, and values of its fields.

A part is a frozen dataclass. The options of a dataclass within it count as the part's own.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from irgym.base.errors import IrgymError
from irgym.base.keywords import did_you_mean
from irgym.base.values import MismatchError, conform

OPTION = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
"""An option: the name of a field, and the text of its value."""


P = TypeVar("P")


@dataclass(frozen=True)
class Word:
    """A word of the form `NAME:ARGUMENT,OPTION=VALUE,...`, of which all but the name may be missing.

    Attributes:
        text: The word.
        name: Name of a part.
        argument: Text after the colon that is no option, such as the name of a policy; empty without one.
        options: Texts of values by the names of options.
    """

    text: str
    name: str
    argument: str = ""
    options: Mapping[str, str] = field(default_factory=dict[str, str])


def word_of(text: str) -> Word:
    """Read a word.

    Raises:
        IrgymError: Nothing follows the colon, an option is given twice, or a piece is no option.
    """
    name, colon, rest = text.partition(":")
    if not colon:
        return Word(text, name)
    if not rest:
        raise IrgymError(f"{text!r} ends in a colon: leave it out, or write {text}name=value")
    first, *others = rest.split(",")
    argument = "" if OPTION.fullmatch(first) else first
    options: dict[str, str] = {}
    for piece in others if argument else [first, *others]:
        found = OPTION.fullmatch(piece)
        if found is None:
            raise IrgymError(f"{piece!r} in {text!r} is no option: write name=value")
        if found[1] in options:
            raise IrgymError(f"{found[1]} is given twice in {text!r}: give it once")
        options[found[1]] = found[2]
    return Word(text, name, argument, options)


def words_in(texts: Iterable[str]) -> list[str]:
    """Return the words in texts that separate them by commas; `a:x=1,y=2,b` is `a:x=1,y=2` and `b`."""
    found: list[str] = []
    for text in texts:
        begun = False
        for piece in text.split(","):
            if begun and OPTION.fullmatch(piece):
                found[-1] += f",{piece}"
            elif piece:
                found.append(piece)
                begun = True
    return found


def with_options(part: P, options: Mapping[str, str], name: str) -> P:
    """Return a part with other values of some options.

    Args:
        part: The part with its defaults; something else than a dataclass has no options.
        options: Texts of values by the names of options.
        name: Name of the part, for messages.

    Raises:
        IrgymError: There is no such option, or a value does not suit it.
    """
    known = dict(_hints(part))
    for option in options:
        if option not in known:
            raise IrgymError(_unknown(option, list(known), name))
    values = {option: _value(text, known[option], option, name) for option, text in options.items()}
    return _replaced(part, values) if values else part


def options_text(part: object, default: object | None) -> str:
    """Return the options in which a part differs from a default, as in a word; all without a default."""
    before = {} if default is None else dict(_values(default))
    return ",".join(f"{option}={value}" for option, value in _values(part) if value != before.get(option))


def options_of(part: object) -> list[str]:
    """Return the names of a part's options; none where it is no dataclass."""
    return [option for option, _ in _hints(part)]


def _unknown(option: str, known: Sequence[str], name: str) -> str:
    if not known:
        return f"{name} takes no options: leave out {option}"
    return f"{name} has no option {option!r}: {did_you_mean([option], known)}choose among {', '.join(known)}"


def _hints(part: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name and type of each option, those of dataclasses within the part too."""
    if not is_dataclass(part):
        return
    hints = get_type_hints(type(part), include_extras=True)
    for own in fields(part):
        value = getattr(part, own.name)
        if is_dataclass(value):
            yield from _hints(value)
        elif own.init:
            yield own.name, hints[own.name]


def _values(part: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name and value of each option."""
    for own in fields(part):
        value = getattr(part, own.name)
        if is_dataclass(value):
            yield from _values(value)
        elif own.init:
            yield own.name, value


def _replaced(part: Any, values: Mapping[str, Any]) -> Any:
    """Return a part with some values, each where its option belongs."""
    given: dict[str, Any] = {}
    for own in fields(part):
        value = getattr(part, own.name)
        if is_dataclass(value):
            given[own.name] = _replaced(value, values)
        elif own.name in values:
            given[own.name] = values[own.name]
    return replace(part, **given)


def _value(text: str, kind: Any, option: str, name: str) -> Any:
    """Return what a text stands for.

    Raises:
        IrgymError: It does not suit.
    """
    value = _read(text, _plain_kinds(kind))
    try:
        return conform(kind, text if value is MISSING else value)
    except MismatchError as error:
        raise IrgymError(f"{option} of {name} is {text!r}: choose {error.wanted}") from None


def _read(text: str, kinds: Sequence[Any]) -> Any:
    """Return a text as the first of some types that it can be; `MISSING` where it can be none."""
    words = {"true": True, "false": False}
    if text.lower() == "none" and NoneType in kinds:
        return None
    if text.lower() in words and bool in kinds:
        return words[text.lower()]
    for kind in (int, float):
        if kind in kinds:
            try:
                return kind(text)
            except ValueError:
                continue
    return text if str in kinds else MISSING


def _plain_kinds(kind: Any) -> list[Any]:
    """Return the plain types that a value may have; a literal is text."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _plain_kinds(arguments[0])
    if origin in (Union, UnionType):
        return [inner for argument in arguments for inner in _plain_kinds(argument)]
    return [kind] if origin is None else [type(argument) for argument in arguments]
