"""URIs of methods in a SuperPMI collection: `superpmi:123?core_root=FOLDER&mch=FILE`."""

import os
from dataclasses import dataclass
from pathlib import Path

from irgym.base.errors import ProgramError
from irgym.core.uri import whole_number
from irgym.envs.cse.superpmi.session import Collection

FORM = "superpmi:NUMBER?core_root=FOLDER&mch=FILE"

VARIABLES = {"core_root": "CORE_ROOT", "mch": "IRGYM_MCH"}
"""Options of a URI, and the environment variables that replace missing ones."""


@dataclass(frozen=True)
class MethodUri:
    """A method of a collection.

    Attributes:
        uri: Canonical URI.
        index: Number in the collection, from 1.
        collection: The collection.
    """

    uri: str
    index: int
    collection: Collection


def parse_uri(uri: str) -> MethodUri:
    """Return the method of a URI.

    Raises:
        ProgramError: It is malformed, or neither it nor the environment names the JIT and the methods.
    """
    number, _, query = uri.removeprefix("superpmi:").partition("?")
    index = whole_number(number)
    if not index:
        raise ProgramError(f"{uri!r} names no method: write {FORM}, with a number from 1")
    collection = collection_of(query, uri)
    return MethodUri(uri_of(index, collection), index, collection)


def uri_of(index: int, collection: Collection) -> str:
    """Return the canonical URI of a method."""
    return f"superpmi:{index}?core_root={collection.core_root}&mch={collection.mch}"


def collection_of(query: str, said: str) -> Collection:
    """Return the collection of `core_root=FOLDER&mch=FILE`; environment variables replace missing options.

    Args:
        query: The options; may be empty.
        said: The text that contains them, for messages.

    Raises:
        ProgramError: An option is unknown or given twice, or neither an option nor its variable is set.
    """
    given: dict[str, str] = {}
    for word in query.split("&") if query else ():
        name, _, value = word.partition("=")
        if name not in VARIABLES or not value or name in given:
            raise ProgramError(f"{said!r}: {word!r} is no option, or given twice: write {FORM}")
        given[name] = value
    for name, variable in VARIABLES.items():
        value = given.get(name) or os.environ.get(variable)
        if not value:
            raise ProgramError(f"{said!r} does not say {name}: write {FORM}, or set {variable}")
        given[name] = value
    return Collection(Path(given["core_root"]), Path(given["mch"]))
