"""Orders of nodes in which each stands after those whose values it uses, and what is found out along them."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from irgym.base.errors import ScheduleError


class Made(Protocol):
    """What is asked of a node."""

    @property
    def name(self) -> str:
        """The name of the node."""
        ...

    @property
    def operands(self) -> tuple[str, ...]:
        """All values that it needs."""
        ...

    @property
    def results(self) -> tuple[str, ...]:
        """All values that it makes."""
        ...


N = TypeVar("N", bound=Made)
T = TypeVar("T")


def ordered(nodes: Mapping[str, N], producers: Mapping[str, str], outputs: Iterable[str]) -> tuple[N, ...]:
    """Return the nodes that outputs need, each after those whose values it uses.

    Args:
        nodes: By name.
        producers: The name of the node that makes each value.
        outputs: Names of values.

    Raises:
        ScheduleError: There is a circle.
    """
    done: set[str] = set()
    begun: set[str] = set()
    found: list[N] = []
    for output in outputs:
        stack = [producers[output]] if output in producers else []
        while stack:
            name = stack[-1]
            if name in done:
                stack.pop()
                continue
            one = nodes[name]
            needed = [
                maker for value in one.operands if (maker := producers.get(value)) and maker not in done
            ]
            if not needed:
                done.add(name)
                found.append(one)
                stack.pop()
                continue
            if name in begun:
                raise ScheduleError(f"{name} would need its own result: the rewrite does not apply here")
            begun.add(name)
            stack.extend(needed)
    return tuple(found)


def reordered(
    before: Sequence[N],
    nodes: Mapping[str, N],
    producers: Mapping[str, str],
    added: Sequence[N],
    root: str,
) -> tuple[N, ...] | None:
    """Return an order after a rewrite; None where nodes cannot stand where those stood that they replace.

    Args:
        before: An order of the nodes before.
        nodes: The nodes now, by name.
        producers: The name of the node that makes each value now.
        added: Nodes that came.
        root: The name of the node in whose place they stand.
    """
    new = {one.name for one in added}
    placed: set[str] = set()
    found: list[N] = []

    def place(one: N) -> bool:
        placed.add(one.name)
        found.append(one)
        return all(value not in producers or producers[value] in placed for value in one.operands)

    for old in before:
        if old.name == root and not all(place(one) for one in added if nodes.get(one.name) is one):
            return None
        one = None if old.name in new else nodes.get(old.name)
        if one is not None and one is old:
            placed.add(one.name)
            found.append(one)
        elif one is not None and not place(one):
            return None
    return tuple(found) if len(found) == len(nodes) else None


def along(
    order: Iterable[N],
    known: Mapping[str, T],
    fresh: Collection[str],
    gone: Iterable[str],
    of: Callable[[N, Mapping[str, T]], Iterable[tuple[str, T]]],
) -> dict[str, T]:
    """Return what is known of each value, where what is known of some nodes' results may be out of date.

    Args:
        order: The nodes in order.
        known: What was known of each value.
        fresh: Names of the nodes that are new, or changed.
        gone: Values of which nothing is known any more.
        of: Returns what is to be known of a node's results, from what is known of its operands.
    """
    found, changed = dict(known), set(gone)
    for value in changed:
        found.pop(value, None)
    for one in order:
        if one.name in fresh or not changed.isdisjoint(one.operands):
            for value, new in of(one, found):
                if found.get(value) != new:
                    found[value] = new
                    changed.add(value)
    return found
