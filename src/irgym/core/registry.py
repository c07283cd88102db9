"""Named parts that load on first use: our own by a table, third parties' by entry point."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar, cast

from irgym.core.errors import IrgymError

T = TypeVar("T")


@dataclass(frozen=True)
class Registry(Generic[T]):
    """Parts of one sort, such as searches.

    Attributes:
        sort: What the parts are, for messages: `search`.
        group: Entry-point group in which other packages add parts: `irgym.searches`.
        builtin: Name to `package.module:attribute` of our own.
    """

    sort: str
    group: str
    builtin: Mapping[str, str]

    def names(self) -> list[str]:
        """Return all names, our own first."""
        others = [entry.name for entry in entry_points(group=self.group)]
        return [*self.builtin, *(name for name in others if name not in self.builtin)]

    def load(self, name: str) -> T:
        """Import and return a part.

        Raises:
            IrgymError: There is no part of that name; the message lists those that exist.
        """
        if name in self.builtin:
            module, attribute = self.builtin[name].split(":")
            return cast(T, getattr(import_module(module), attribute))
        for entry in entry_points(group=self.group):
            if entry.name == name:
                part: Any = entry.load()
                return cast(T, part)
        raise IrgymError(f"there is no {self.sort} {name!r}: choose among {', '.join(self.names())}")
