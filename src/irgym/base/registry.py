"""Named parts that load on first use: our own by a table, third parties' by entry point."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from irgym.base.errors import IrgymError, PluginError
from irgym.base.keywords import did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


@dataclass(frozen=True)
class Registry(Generic[T]):
    """Parts of one kind, such as searches.

    Our own name goes before another package's. A name that two other packages give to different parts belongs
    to neither of them.

    Attributes:
        kind: What the parts are, for messages: `search`.
        group: Entry-point group in which other packages add parts: `irgym.searches`.
        builtin: Name to `package.module:attribute` of our own.
        fault: `package.module:function` that returns in words how a part of another package is wrong, such as
            `is no Environment`; empty words where it is right. Without it nothing is checked.
        added: The parts that this process has added, by name.
    """

    kind: str
    group: str
    builtin: Mapping[str, str]
    fault: str = ""
    added: dict[str, T] = field(default_factory=dict[str, T], compare=False)

    def names(self) -> list[str]:
        """Return all names, our own first."""
        return list(dict.fromkeys([*self.builtin, *self.added, *(entry.name for entry in self._entries())]))

    def __contains__(self, name: str) -> bool:
        """Say whether there is a part of a name; our own are known without a look at other packages."""
        return name in self.builtin or name in self.names()

    def add(self, name: str, part: T) -> None:
        """Add a part for the rest of the process, in place of any that was added or installed by that name.

        Raises:
            IrgymError: The name is one of ours.
        """
        if name in self.builtin:
            raise IrgymError(f"the {self.kind} {name!r} is irgym's own: choose another name")
        self.added[name] = part

    def load(self, name: str) -> T:
        """Import and return a part.

        Raises:
            IrgymError: There is no part of that name; the message lists those that exist.
            PluginError: Other packages say that they have one, and it fails when it is imported, is of
                another kind, or is not the only one of that name.
        """
        if name in self.builtin:
            return cast(T, _attribute(self.builtin[name]))
        if name in self.added:
            return self.added[name]
        found = {entry.value: entry for entry in self._entries() if entry.name == name}
        if len(found) > 1:
            packages = " and ".join(sorted(map(_package, found.values())))
            raise PluginError(
                f"the {self.kind} {name!r} is ambiguous, since {packages} each have it: uninstall all but one"
            )
        for entry in found.values():
            return cast(T, self._imported(entry))
        names = self.names()
        raise IrgymError(
            f"there is no {self.kind} {name!r}: {did_you_mean([name], names)}choose among {', '.join(names)}"
        )

    def hidden(self) -> dict[str, str]:
        """Return the parts of other packages that have the name of one of ours: a sentence by name."""
        return {
            entry.name: f"the {self.kind} {entry.name!r} of {_package(entry)} is hidden by irgym's own: "
            "rename it in that package, or uninstall it"
            for entry in self._entries()
            if entry.name in self.builtin
        }

    def _entries(self) -> "Iterable[EntryPoint]":
        """Return what other packages add."""
        from importlib.metadata import entry_points  # late: most commands need none, and wait for its imports

        return entry_points(group=self.group)

    def _imported(self, entry: "EntryPoint") -> Any:
        what, remedy = (
            f"the {self.kind} {entry.name!r} of {_package(entry)}",
            "mend that package, or uninstall it",
        )
        try:
            part: Any = entry.load()
        except (Exception, SystemExit) as error:  # whatever it does, it must not end a list of parts
            raise PluginError(
                f"{what} cannot be imported from {entry.value} ({type(error).__name__}: {error}): {remedy}"
            ) from error
        if self.fault and (fault := _attribute(self.fault)(part)):
            raise PluginError(f"{what} {fault} ({entry.value}): {remedy}")
        return part


def _package(entry: "EntryPoint") -> str:
    return entry.dist.name if entry.dist else "another package"


def _attribute(place: str) -> Any:
    """Import what `package.module:attribute` names."""
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)
