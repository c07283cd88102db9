"""Programs in files: the file that a URI names, its content, the files of a folder, and lists of programs.

A list is a text with a program a line: a URI, a path, a folder, a glob or a grid. Paths are relative to the
list's folder. Blank lines and lines that begin with `#` count for nothing, but for `# train` and `# test`:
the programs after such a line belong to that split.
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from irgym.base.errors import ProgramError, explained
from irgym.base.reading import content_of_program
from irgym.core.uri import is_file

_SECTION = re.compile(r"#\s*(train|test)\s*:?", re.IGNORECASE)

_LONGEST = 80
"""Characters of a line that a message shows."""


def file_named(uri: str) -> tuple[Path, str] | None:
    """Return the file that a URI names, and what follows it (bindings, a part); None if it names no file."""
    name = uri.partition(":")[2]
    if not name or name.startswith("//"):
        return None
    file = name if is_file(Path(name)) else re.split("[?#]", name, maxsplit=1)[0]
    return (Path(file), name[len(file) :]) if is_file(Path(file)) else None


def identities(uris: Iterable[str]) -> dict[str, str]:
    """Return a text for each program that identifies it: its URI, but with a file's content for its path.

    So a program keeps its identity when its file is moved, renamed or copied.

    Raises:
        ProgramError: A file cannot be read.
    """
    digests: dict[Path, str] = {}
    found: dict[str, str] = {}
    for uri in uris:
        named = file_named(uri)
        if named is None:
            found[uri] = uri
            continue
        path, rest = named
        if path not in digests:
            remedy = "check the path and its permissions"
            with explained(f"cannot read {path}", remedy, ProgramError), path.open("rb") as file:
                digests[path] = hashlib.file_digest(file, "sha256").hexdigest()
        found[uri] = digests[path] + rest
    return found


def digest_of(uris: Sequence[str]) -> str:
    """Return a digest of programs in their order, which changes with the content of their files.

    Raises:
        ProgramError: A file cannot be read.
    """
    known = identities(uris)
    return hashlib.sha256("\n".join(known[uri] for uri in uris).encode()).hexdigest()[:16]


def files_below(folder: Path) -> Iterator[Path]:
    """Yield the files in a folder and the folders in it, in order of their paths, but for hidden ones.

    Raises:
        ProgramError: A folder cannot be read.
    """

    def refuse(error: OSError) -> None:
        raise ProgramError(f"cannot read {error.filename}: check its permissions") from error

    for root, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(root, name) for name in sorted(files) if not name.startswith("."))


def files_matching(pattern: str) -> list[Path]:
    """Return the files that a glob matches, in order, but for hidden ones; `**` is any number of folders.

    Raises:
        ProgramError: The glob is malformed.
    """
    parts = Path(pattern).parts
    fixed = next(place for place, part in enumerate(parts) if is_glob(part))
    folder = Path(*parts[:fixed])
    try:
        found = [path for path in folder.glob(str(Path(*parts[fixed:]))) if is_file(path)]
    except ValueError as error:
        raise ProgramError(f"{pattern} is malformed: let ** stand between slashes, as in **/*.c") from error
    return sorted(path for path in found if not _is_hidden(path.relative_to(folder)))


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def is_glob(text: str) -> bool:
    """Say whether a text has one of the marks of globs: `*`, `?` or `[`."""
    return bool(re.search(r"[*?\[]", text))


@dataclass(frozen=True)
class Listed:
    """A line of a list of programs.

    Attributes:
        text: The program.
        split: `train` or `test`; empty where the list does not say.
        place: The file and the number of the line, for messages.
    """

    text: str
    split: str
    place: str


def read_list(path: Path, is_scheme: Callable[[str], bool]) -> list[Listed]:
    """Read a list of programs.

    Args:
        path: The file.
        is_scheme: Says whether URIs may begin with a name.

    Raises:
        ProgramError: It is no text, cannot be read, names no program, or has programs before the first of its
            sections.
    """
    try:
        lines = content_of_program(path).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise ProgramError(
            f"{path} is neither a program nor a list of programs: name a file of text with a program a line"
        ) from error
    section = ""
    listed: list[Listed] = []
    for number, line in enumerate(map(str.strip, lines), start=1):
        place = f"{path}, line {number}"
        if match := _SECTION.fullmatch(line):
            section = match[1].lower()
            if listed and not listed[0].split:
                raise ProgramError(
                    f"{place}: programs stand before this section: put them below # train or # test"
                )
        elif line and not line.startswith("#"):
            listed.append(Listed(_from_folder(line, path.parent, is_scheme), section, place))
    if not listed:
        raise ProgramError(f"{path} lists no programs: write a URI or a path on each line")
    return listed


def _from_folder(text: str, folder: Path, is_scheme: Callable[[str], bool]) -> str:
    """Return a line with its path, if it has any, relative to the working folder instead of the list's."""
    scheme, colon, rest = text.partition(":")
    if colon and is_scheme(scheme):
        return text if rest.startswith("//") else f"{scheme}:{folder / rest}"
    path = str(folder / text)
    file = re.split("[?#]", path, maxsplit=1)[0]
    return path if not colon or Path(path).exists() or Path(file).exists() else text


def list_text(train: Sequence[str], test: Sequence[str], head: str, folder: Path) -> str:
    """Return a list of programs that `read_list` reads, with relative paths relative to its folder."""
    lines = [f"# {head}"]
    for split, uris in (("train", train), ("test", test)):
        if uris:
            lines += [f"# {split}", *(_to_folder(uri, folder) for uri in uris)]
    return "\n".join(lines) + "\n"


def _to_folder(uri: str, folder: Path) -> str:
    named = file_named(uri)
    if named is None or named[0].is_absolute():
        return uri
    return f"{uri.partition(':')[0]}:{os.path.relpath(named[0], folder)}{named[1]}"


def brief(text: str) -> str:
    """Return a text as messages show it."""
    return repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...")
