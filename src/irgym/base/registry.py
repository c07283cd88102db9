"""Named parts that load on first use: our own by a table, third parties' by entry point."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from irgym.base.errors import IrgymError, PluginError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


@dataclass(frozen=True)
class Registry(Generic[T]):
    """Parts of one kind, such as searches.

    Attributes:
        kind: What the parts are, for messages: `search`.
        group: Entry-point group in which other packages add parts: `irgym.searches`.
        builtin: Name to `package.module:attribute` of our own.
        expected: `package.module:attribute` of what those of other packages must be instances of; empty:
            whatever they are.
    """

    kind: str
    group: str
    builtin: Mapping[str, str]
    expected: str = ""

    def names(self) -> list[str]:
        """Return all names, our own first."""
        others = [entry.name for entry in self._entries()]
        return [*self.builtin, *(name for name in others if name not in self.builtin)]

    def __contains__(self, name: str) -> bool:
        """Say whether there is a part of a name; our own are known without a look at other packages."""
        return name in self.builtin or name in self.names()

    def load(self, name: str) -> T:
        """Import and return a part.

        Raises:
            IrgymError: There is no part of that name; the message lists those that exist.
            PluginError: Another package says that it has one, and fails when it is imported.
        """
        if name in self.builtin:
            return cast(T, _attribute(self.builtin[name]))
        for entry in self._entries():
            if entry.name == name:
                return cast(T, self._imported(entry))
        raise IrgymError(f"there is no {self.kind} {name!r}: choose among {', '.join(self.names())}")

    def _entries(self) -> "Iterable[EntryPoint]":
        """Return what other packages add."""
        from importlib.metadata import entry_points  # late: most commands need none, and wait for its imports

        return entry_points(group=self.group)

    def _imported(self, entry: "EntryPoint") -> Any:
        package = entry.dist.name if entry.dist else "another package"
        try:
            part: Any = entry.load()
        except (Exception, SystemExit) as error:  # whatever it does, it must not end a list of parts
            raise PluginError(
                f"the {self.kind} {entry.name!r} of {package} cannot be imported from {entry.value} "
                f"({type(error).__name__}: {error}): mend that package, or uninstall it"
            ) from error
        if self.expected and not isinstance(part, _attribute(self.expected)):
            raise PluginError(
                f"the {self.kind} {entry.name!r} of {package} is no {self.expected.partition(':')[2]} "
                f"({entry.value}): mend that package, or uninstall it"
            )
        return part


def _attribute(place: str) -> Any:
    """Import what `package.module:attribute` names."""
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)
