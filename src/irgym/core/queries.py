"""Queries of URIs: numbers that bind a file's open sizes, ranges and files of its inputs, and texts."""

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import unquote

from irgym.base.errors import ProgramError
from irgym.core.profiles import LARGEST, Profile, profiles_of, split

RANGE = "range."
"""Prefix of the name of an input whose range is given."""

INPUTS = "inputs"
"""Name before the file or folder with a program's inputs."""

SIZES = "sizes"
"""Name before the sizes of one of several profiles."""

_INPUTS = re.compile(rf"{INPUTS}=(?!\d+$)")  # a number alone binds a dimension of this name

_SIZES = re.compile(rf"{SIZES}=(?!\d+$)")  # likewise

_RANGE = re.compile(rf"{re.escape(RANGE)}[^=]+=(?!\d+$)")  # a number alone binds a dimension of such a name


class Query(NamedTuple):
    """The content of a query.

    Attributes:
        bindings: Numbers that names of the file are bound to.
        ranges: Half-open ranges of whole numbers that inputs may hold.
        inputs: The file or folder with inputs; None where none is named.
        profiles: Where there are several, all sizes at which the program is called; the bindings are those of
            the first.
        texts: Texts by name.
    """

    bindings: dict[str, int]
    ranges: dict[str, tuple[int, int]]
    inputs: Path | None = None
    profiles: tuple[Profile, ...] = ()
    texts: Mapping[str, str] = MappingProxyType({})

    @property
    def text(self) -> str:
        """Its canonical text, the question mark included; empty if it holds nothing."""
        sized = [f"{SIZES}={profile.text}" for profile in self.profiles]
        words = sized or [f"{name}={number}" for name, number in sorted(self.bindings.items())]
        words += [f"{RANGE}{name}={low}:{high}" for name, (low, high) in sorted(self.ranges.items())]
        words += [] if self.inputs is None else [f"{INPUTS}={self.inputs}"]
        words += [f"{name}={quoted(text)}" for name, text in sorted(self.texts.items())]
        return f"?{'&'.join(words)}" if words else ""


def quoted(text: str) -> str:
    """Return a text as the value of a query: `%` and two digits stand for characters with a meaning there."""
    return re.sub(r"[%&#\x00-\x1f\x7f]", lambda match: f"%{ord(match[0]):02X}", text)


def with_inputs(uri: str, inputs: Path | None) -> str:
    """Return a URI that names a file or folder with a program's inputs.

    Args:
        uri: The URI of a file, or its path.
        inputs: The file or folder; None for none.

    Raises:
        ProgramError: Its name cannot be part of a URI.
    """
    if inputs is None:
        return uri
    if "&" in str(inputs) or str(inputs).isdecimal():
        raise ProgramError(
            f"the inputs {inputs} cannot be named in a URI: rename them, without & and not a number"
        )
    return _with(uri, [f"{INPUTS}={inputs}"])


def with_sizes(uri: str, sizes: Sequence[str]) -> str:
    """Return a URI that tells sizes of open dimensions.

    Args:
        uri: The URI of a file, or its path.
        sizes: Texts NAME=SIZE,NAME=SIZE:WEIGHT, one for each profile; see `irgym.core.profiles`. The weight
            may be left out.

    Raises:
        ProgramError: One is written otherwise, or they do not fit together.
    """
    if len(sizes) == 1:
        return _with(uri, [f"{name}={size}" for name, size in split(sizes[0])[0].items()])
    if sizes:
        profiles_of(sizes, {})
    return _with(uri, [f"{SIZES}={text}" for text in sizes])


def with_ranges(uri: str, ranges: Sequence[str]) -> str:
    """Return a URI that says which whole numbers inputs may hold.

    Args:
        uri: The URI of a file, or its path.
        ranges: Texts NAME=LOW:HIGH; HIGH is left out.

    Raises:
        ProgramError: One is written otherwise.
    """
    for word in ranges:
        if not re.fullmatch(r"[^=]+=-?\d+:-?\d+", word):
            raise ProgramError(f"{word!r} is no range of an input: write NAME=LOW:HIGH, as in ids=0:30522")
    return _with(uri, [RANGE + word for word in ranges])


def _with(uri: str, words: Sequence[str]) -> str:
    """Return a URI with further words in its query."""
    return f"{uri}{'&' if '?' in uri else '?'}{'&'.join(words)}" if words else uri


def read_query(
    uri: str, query: str, ranges: bool, inputs: bool = False, texts: Collection[str] = ()
) -> Query:
    """Return what names of a file are bound to, the ranges of inputs, and where inputs are.

    Args:
        uri: The whole URI, for messages.
        query: What stands after its question mark; empty: nothing.
        ranges: Whether ranges may be given.
        inputs: Whether inputs may be given, and several profiles of sizes.
        texts: Names of texts that may be given; then nothing else may.

    Raises:
        ProgramError: A part is malformed, or a name is given twice.
    """
    if texts:
        return Query({}, {}, texts=_read_texts(uri, query, texts))
    words = query.split("&") if query else []
    held = [word for word in words if ranges and _RANGE.match(word)]
    named = [word for word in words if inputs and _INPUTS.match(word)]
    sized = [word for word in words if _SIZES.match(word)]
    if sized and not inputs:
        raise ProgramError(f"{uri!r}: several sizes are for ONNX files alone; bind each name once")
    bindings = _read_bindings(uri, [word for word in words if word not in (*held, *named, *sized)])
    found = profiles_of([word.partition("=")[2] for word in sized], bindings) if sized else ()
    if found:
        bindings = dict(found[0].sizes)
    several = found if len(found) > 1 else ()
    return Query(bindings, _read_ranges(uri, held), _read_inputs(uri, named), several)


def _read_inputs(uri: str, words: Sequence[str]) -> Path | None:
    """Return the file or folder with inputs; None where none is named.

    Raises:
        ProgramError: There is none of that name, or several are named.
    """
    if not words:
        return None
    if len(words) > 1:
        raise ProgramError(f"{uri!r}: {INPUTS} is given twice; give it once, a folder for several samples")
    text = words[0].partition("=")[2]
    if not text:
        raise ProgramError(f"{uri!r}: {INPUTS} names nothing; name an .npz file or a folder of them")
    try:
        found = Path(text).exists()
    except (OSError, ValueError):
        found = False
    if not found:
        raise ProgramError(f"there is no file or folder of inputs {text}: check the path")
    return Path(text)


def _read_ranges(uri: str, words: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return the ranges of whole numbers that inputs of a file may hold.

    Raises:
        ProgramError: One is not written LOW:HIGH, holds no number, or is given twice.
    """
    ranges: dict[str, tuple[int, int]] = {}
    for word in words:
        name, _, text = word.removeprefix(RANGE).partition("=")
        match = re.fullmatch(r"(-?\d{1,19}):(-?\d{1,19})", text, re.ASCII)
        if not match or int(match[1]) >= int(match[2]):
            raise ProgramError(
                f"{uri!r}: {RANGE}{name} must be LOW:HIGH, the least whole number and the one after the "
                "greatest, as in 0:100"
            )
        if name in ranges:
            raise ProgramError(f"{uri!r}: {RANGE}{name} is given twice; give it once")
        ranges[name] = (int(match[1]), int(match[2]))
    return ranges


def _read_bindings(uri: str, words: Sequence[str]) -> dict[str, int]:
    """Return what names of a file are bound to.

    Raises:
        ProgramError: A part is no name=number, or a name is given twice.
    """
    bindings: dict[str, int] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise ProgramError(f"{uri!r}: {word!r} binds no name; write name=number, joined by &")
        if name in bindings:
            raise ProgramError(f"{uri!r}: {name} is given twice; give it once")
        number = whole_number(text)
        if not number:
            raise ProgramError(f"{uri!r}: {name} must be a whole number in 1 to {LARGEST}")
        bindings[name] = number
    return bindings


def _read_texts(uri: str, query: str, names: Collection[str]) -> dict[str, str]:
    """Return the texts in a query: `name=text`, joined by `&`, where `%26` stands for `&` as in all URIs.

    Args:
        uri: The whole URI, for messages.
        query: What stands after its question mark; empty: nothing.
        names: The names that there are.

    Raises:
        ProgramError: A name is unknown or given twice, or a part is no name=text.
    """
    texts: dict[str, str] = {}
    for word in query.split("&") if query else ():
        name, equals, text = word.partition("=")
        if name not in names or not equals:
            raise ProgramError(
                f"{uri!r}: {word!r} is no option of a file; its options: {', '.join(names)}. Write "
                "name=value, joined by &, with %26 for an & in a value"
            )
        if name in texts:
            raise ProgramError(f"{uri!r}: {name} is given twice; give it once")
        texts[name] = unquote(text)
    return texts


def whole_number(text: str) -> int | None:
    """Return the number that up to nine plain digits stand for; None for any other text."""
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else None
