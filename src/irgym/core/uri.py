"""What the URIs of all environments have in common: options after a question mark, names of files."""

import re
from collections.abc import Collection
from pathlib import Path

from irgym.core.errors import ProgramError


def options_of(uri: str, query: str, known: Collection[str], owner: str, joint: str = "&") -> dict[str, str]:
    """Read the options of a URI.

    Args:
        uri: The whole URI, for messages.
        query: What stands after its question mark; empty: no options.
        known: Names of the options that there are.
        owner: Whose options they are, for messages.
        joint: What stands between two options.

    Returns:
        The texts that were given, by name.

    Raises:
        ProgramError: A part is no name=value, a name is unknown, or given twice.
    """
    given: dict[str, str] = {}
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
        given[name] = text
    return given


def whole_number(text: str) -> int | None:
    """Return the number that up to nine plain digits stand for; None for any other text."""
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else None


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
