"""The URIs of all environments: `scheme://family/sizes?name=value&...` and `scheme:FILE`.

A file may be followed by values of its open sizes, `scheme:FILE?name=value&...`, and by a part of it,
`scheme:FILE#name`.

An environment declares its families, sizes, options and files as a `Grammar`, which reads URIs, refuses wrong
ones in one sentence, and gives each program one canonical text: options in order of their names, those left
out that have their defaults.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from irgym.base.errors import ProgramError
from irgym.core.queries import LARGEST, Profile, Query, read_query, whole_number

Value: TypeAlias = int | bool | str
"""Type of an option's value."""

_NONE: Mapping[str, Value] = {}
_TRUTH = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True)
class Option:
    """An option, `name=value` after the question mark: a whole number, a truth value, or one of some words.

    Attributes:
        name: Its name in URIs.
        default: Its value where none is given; its type is that of all values.
        high: Greatest value of a number.
        low: Least value of a number.
        multiple: What a number must be a multiple of.
        choices: The words allowed.
        presets: Other defaults, by the value of the option that `Family.presets` names.
        only: Another option and the value with which alone this one has a meaning.
    """

    name: str
    default: Value
    high: int = LARGEST
    low: int = 1
    multiple: int = 1
    choices: tuple[str, ...] = ()
    presets: tuple[tuple[str, Value], ...] = ()
    only: tuple[str, str] | None = None

    def read(self, uri: str, text: str) -> Value:
        """Return the value that a text stands for.

        Raises:
            ProgramError: It stands for none that the option may have.
        """
        if self.choices:
            if text in self.choices:
                return text
            wanted = " or ".join(self.choices)
        elif isinstance(self.default, bool):
            if text in _TRUTH:
                return _TRUTH[text]
            wanted = "true or false"
        else:
            number = whole_number(text)
            if number is not None and self.low <= number <= self.high and number % self.multiple == 0:
                return number
            steps = f", a multiple of {self.multiple}" if self.multiple > 1 else ""
            wanted = f"a whole number in {self.low} to {self.high}{steps}"
        raise ProgramError(f"{uri!r}: {self.name} must be {wanted}")


@dataclass(frozen=True)
class Family:
    """A family of programs.

    Attributes:
        name: Its name in URIs.
        summary: One line.
        options: What may be chosen.
        multiples: Triples of an option, another and a factor: the first must be a multiple of the second
            times the factor.
        at_most: Pairs of options of which the first may not exceed the second.
        sizes: Names of the sizes after the slash; empty for none.
        ranks: Least and greatest number of sizes where it varies.
        least: The least size.
        body: What may stand after the slash instead of sizes, as an example; empty where sizes stand there.
        presets: The option that chooses among the defaults of the others; empty for none.
    """

    name: str
    summary: str
    options: tuple[Option, ...] = ()
    multiples: tuple[tuple[str, str, int], ...] = ()
    at_most: tuple[tuple[str, str], ...] = ()
    sizes: tuple[str, ...] = ()
    ranks: tuple[int, int] | None = None
    least: int = 1
    body: str = ""
    presets: str = ""

    @property
    def form(self) -> str:
        """The form of its URIs less their scheme, in words: `matmul/MxNxK`."""
        sizes = self.body or "x".join(self.sizes) + ("..." if self.ranks else "")
        options = "&".join(f"{option.name}={_written(option.default)}" for option in self.options[:3])
        more = "&..." if len(self.options) > 3 else ""
        return self.name + (f"/{sizes}" if sizes else "") + (f"?{options}{more}" if options else "")

    def defaults(self, given: Mapping[str, Value]) -> dict[str, Value]:
        """Return every option's default, in the family's order, where some options are given."""
        chosen = given.get(self.presets)
        return {option.name: dict(option.presets).get(str(chosen), option.default) for option in self.options}


@dataclass(frozen=True)
class Files:
    """The files that are programs.

    Attributes:
        suffixes: The last suffixes of their names, in lower case.
        fragments: Whether a part of a file may be named: `c:zlib.c#crc32`.
        bindings: Whether names that the file leaves open may be bound to whole numbers from 1 on:
            `graph:model.onnx?batch=1&sequence=128`. Which names there are, only the file says.
        ranges: Whether the range of whole numbers that an input may hold may be given too, by the least and
            the one after the greatest: `graph:model.onnx?range.ids=0:30522`.
        inputs: Whether files with inputs may be named too, `graph:model.onnx?inputs=samples.npz`, and several
            profiles of sizes, `graph:model.onnx?sizes=batch=1:0.7&sizes=batch=8:0.3`.
        texts: Names of options whose values are texts: `llvm:nbody.c?args=1000 7`. Not beside bindings.
    """

    suffixes: tuple[str, ...]
    fragments: bool = False
    bindings: bool = False
    ranges: bool = False
    inputs: bool = False
    texts: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProgramUri:
    """Parts of a URI.

    Attributes:
        uri: Its canonical text.
        family: Name of the family; empty for a file.
        sizes: What stands after the slash.
        body: The same in a family whose programs are told by text.
        values: Every option of the family and its value, in the family's order.
        path: The file, as it was given; None for a member of a family.
        fragment: Which part of the file; empty for the whole.
        bindings: What names of the file are bound to, in order of the names.
        ranges: For inputs, in order of their names, the least number that each may hold and the one after
            the greatest.
        inputs: The file or folder with inputs, as it was given; None without one.
        profiles: Sizes that it is called at, if several are given; those of the first are the bindings.
        texts: Options of the file whose values are texts, in order of their names.
    """

    uri: str
    family: str = ""
    sizes: tuple[int, ...] = ()
    body: str = ""
    values: tuple[tuple[str, Value], ...] = ()
    path: Path | None = None
    fragment: str = ""
    bindings: tuple[tuple[str, int], ...] = ()
    ranges: tuple[tuple[str, tuple[int, int]], ...] = ()
    inputs: Path | None = None
    profiles: tuple[Profile, ...] = ()
    texts: tuple[tuple[str, str], ...] = ()

    @cached_property
    def options(self) -> Mapping[str, Value]:
        """The options and their values."""
        return dict(self.values)

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """The options that hold no words, and their values as numbers."""
        return {name: int(value) for name, value in self.values if not isinstance(value, str)}


@dataclass(frozen=True)
class Grammar:
    """The URIs of one environment.

    Attributes:
        scheme: What they begin with, less the colon.
        families: The families by name.
        files: The files that are programs; None where no file is.
        form: Their form in words; empty: the forms of all families.
    """

    scheme: str
    families: Mapping[str, Family]
    files: Files | None = None
    form: str = ""

    def parse(self, uri: str) -> ProgramUri:
        """Read a URI.

        Raises:
            ProgramError: It is malformed, has an unknown family or option, values out of range or that do not
                fit together, or names a file that is not there or of another kind.
        """
        if uri.startswith(f"{self.scheme}://"):
            return self._member(uri)
        if self.files and uri.startswith(f"{self.scheme}:"):
            return self._file(uri, self.files)
        raise ProgramError(f"{uri!r} is no {self.scheme} program: write {self._forms}")

    def text(
        self, family: str, sizes: Sequence[int] = (), body: str = "", values: Mapping[str, Value] = _NONE
    ) -> str:
        """Return the canonical URI of a member of a family, which is not checked.

        Args:
            family: The family's name.
            sizes: Its sizes, if it has any.
            body: What stands there instead, if anything does.
            values: Options that are given.
        """
        defaults = self.families[family].defaults(values)
        changed = [
            f"{name}={_written(values[name])}" for name in sorted(values) if values[name] != defaults[name]
        ]
        path = body or "x".join(map(str, sizes))
        return (
            f"{self.scheme}://{family}"
            + (f"/{path}" if path else "")
            + (f"?{'&'.join(changed)}" if changed else "")
        )

    @property
    def _forms(self) -> str:
        return self.form or ", ".join(f"{self.scheme}://{family.form}" for family in self.families.values())

    def _file(self, uri: str, files: Files) -> ProgramUri:
        name = uri.removeprefix(f"{self.scheme}:")
        fragment = ""
        whole = is_file(Path(name))  # a name may have these marks itself
        if files.fragments and not whole:
            name, mark, fragment = name.partition("#")
            if mark and not fragment:
                raise ProgramError(f"{uri!r} names no part of the file: write one after #, or leave out #")
        given = Query({}, {})
        if (files.bindings or files.texts) and not whole:
            name, _, query = name.partition("?")
            given = read_query(uri, query, files.ranges, files.inputs, files.texts)
        path = Path(name)
        if not name:
            raise ProgramError(f"{uri!r} names no file: write {self._forms}")
        if is_folder(path):
            raise ProgramError(f"{uri!r} is a folder: name a file; irgym compare takes --dataset {name}")
        if path.suffix.lower() not in files.suffixes:
            names = f"{'one of ' if len(files.suffixes) > 1 else ''}*{', *'.join(files.suffixes)}"
            raise ProgramError(f"{uri!r}: {self.scheme} reads no such file; name it {names}")
        if not is_file(path):
            raise ProgramError(f"{uri!r}: there is no such file")
        return ProgramUri(
            f"{self.scheme}:{name}{given.text}{'#' if fragment else ''}{fragment}",
            path=path,
            fragment=fragment,
            bindings=tuple(sorted(given.bindings.items())),
            ranges=tuple(sorted(given.ranges.items())),
            inputs=given.inputs,
            profiles=given.profiles,
            texts=tuple(sorted(given.texts.items())),
        )

    def _member(self, uri: str) -> ProgramUri:
        match = re.fullmatch(r"[^:]*://([^?/]*)(?:/([^?]*))?(?:\?(.*))?", uri, re.DOTALL)
        if not match:
            raise ProgramError(f"{uri!r} is malformed: write {self._forms}")
        name, path, query = match.groups()
        if name not in self.families:
            raise ProgramError(
                f"there is no program family {name!r} in {self.scheme}: "
                f"choose among {', '.join(self.families)}"
            )
        family = self.families[name]
        sizes = () if family.body else self._sizes(uri, family, path)
        if family.body and not path:
            raise ProgramError(f"{uri!r} is malformed: write {self.scheme}://{family.form}")
        given = read_options(uri, query or "", family.options, family.name)
        values = family.defaults(given) | given
        _check(uri, family, values)
        body = (path or "") if family.body else ""
        return ProgramUri(self.text(name, sizes, body, values), name, sizes, body, tuple(values.items()))

    def _sizes(self, uri: str, family: Family, path: str | None) -> tuple[int, ...]:
        least, greatest = family.ranks or (len(family.sizes),) * 2
        words = [] if path is None else path.split("x")
        sizes = tuple(number for word in words if (number := whole_number(word)) is not None)
        fits = least <= len(words) <= greatest
        if fits and any(re.fullmatch("[0-9]{10,}", word) for word in words):
            raise ProgramError(f"{uri!r} has a size above {LARGEST}: every size must be at most that")
        if not fits or len(sizes) < len(words):
            count = f"{least} to {greatest}" if family.ranks else f"{least or 'no'}"
            form = f"{self.scheme}://{family.form}"
            raise ProgramError(f"{uri!r} is malformed: write {form}, with {count} whole numbers")
        if min(sizes, default=family.least) < family.least:
            raise ProgramError(
                f"{uri!r} has a size below {family.least}: every size must be at least {family.least}"
            )
        return sizes


def read_options(
    uri: str, query: str, options: Collection[Option], owner: str, joint: str = "&"
) -> dict[str, Value]:
    """Read options.

    Args:
        uri: The whole of what they stand in, for messages.
        query: What stands after its question mark; empty: no options.
        options: The options that there are.
        owner: Whose options they are, for messages.
        joint: What stands between two options.

    Returns:
        The values that were given, by name.

    Raises:
        ProgramError: A part is no name=value, a name is unknown or given twice, or a value is not allowed.
    """
    known = {option.name: option for option in options}
    given: dict[str, Value] = {}
    for word in query.split(joint) if query else ():
        name, equals, text = word.partition("=")
        if not equals:
            raise ProgramError(f"{uri!r}: {word!r} is no option; write name=value, joined by {joint}")
        if name not in known:
            raise ProgramError(
                f"{uri!r}: {owner} has no option {name!r}; its options: {', '.join(known) or 'none'}"
            )
        if name in given:
            raise ProgramError(f"{uri!r}: {name} is given twice; give it once")
        given[name] = known[name].read(uri, text)
    return given


def _check(uri: str, family: Family, values: Mapping[str, Value]) -> None:
    """Make sure that the options of a program fit together.

    Raises:
        ProgramError: They do not.
    """
    defaults = family.defaults(values)
    for option in family.options:
        if (
            option.only
            and values[option.only[0]] != option.only[1]
            and values[option.name] != defaults[option.name]
        ):
            raise ProgramError(f"{uri!r}: {option.name} has a meaning in {'='.join(option.only)} only")
    for name, divisor, factor in family.multiples:
        if int(values[name]) % (factor * int(values[divisor])):
            times = f"{factor} times " if factor > 1 else ""
            raise ProgramError(
                f"{uri!r}: {name} ({values[name]}) must be a multiple of {times}{divisor} ({values[divisor]})"
            )
    for name, bound in family.at_most:
        if int(values[name]) > int(values[bound]):
            raise ProgramError(f"{uri!r}: {name} ({values[name]}) may not exceed {bound} ({values[bound]})")


def _written(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def is_file(path: Path) -> bool:
    """Say whether a regular file is there; of a path that no file can have, such as a very long one: no."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def is_folder(path: Path) -> bool:
    """Say whether a folder is there; of a path that no folder can have: no."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def renamed(uri: str, scheme: str, original: str) -> str:
    """Return a URI of an environment that has the programs of another, as that one writes it.

    Args:
        uri: The URI.
        scheme: The environment's scheme.
        original: The other's.
    """
    own, colon, rest = uri.partition(":")
    return f"{original}:{rest}" if colon and own == scheme else uri
