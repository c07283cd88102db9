"""Topological orders of nodes, and facts about values that are propagated along them."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import compress, count
from operator import is_not
from types import MappingProxyType
from typing import TypeVar

from irgym.base.errors import ScheduleError
from irgym.envs.graph.ir.node import Node

T = TypeVar("T")


def ordered(
    nodes: Mapping[str, Node], producers: Mapping[str, str], outputs: Iterable[str]
) -> tuple[Node, ...]:
    """Return the nodes that outputs need, each after the producers of its operands.

    Args:
        nodes: By name.
        producers: The name of the node that makes each value.
        outputs: Names of values.

    Raises:
        ScheduleError: The graph has a cycle.
    """
    done: set[str] = set()
    begun: set[str] = set()
    found: list[Node] = []
    for output in outputs:
        stack = [producers[output]] if output in producers else []
        while stack:
            name = stack[-1]
            if name in done:
                stack.pop()
                continue
            node = nodes[name]
            needed = [
                maker for value in node.operands if (maker := producers.get(value)) and maker not in done
            ]
            if not needed:
                done.add(name)
                found.append(node)
                stack.pop()
                continue
            if name in begun:
                raise ScheduleError(f"{name} would depend on its result: the rewrite does not apply here")
            begun.add(name)
            stack.extend(needed)
    return tuple(found)


def reordered(
    before: Sequence[Node],
    nodes: Mapping[str, Node],
    producers: Mapping[str, str],
    added: Sequence[Node],
    root: str,
) -> tuple[Node, ...] | None:
    """Return the order after a rewrite; None if the new nodes cannot all stand in the place of `root`.

    Args:
        before: An order of the nodes before the rewrite.
        nodes: The nodes after it, by name.
        producers: The name of the node that makes each value after it.
        added: New nodes.
        root: The name of the node whose place they take.
    """
    new = {node.name for node in added}
    placed: set[str] = set()
    found: list[Node] = []

    def place(node: Node) -> bool:
        placed.add(node.name)
        found.append(node)
        return all(value not in producers or producers[value] in placed for value in node.operands)

    for old in before:
        name = old.name
        now = nodes.get(name)
        if name == root and not all(place(node) for node in added if nodes.get(node.name) is node):
            return None
        if now is old:
            placed.add(name)
            found.append(old)
        elif now is not None and name not in new and not place(now):
            return None
    return tuple(found) if len(found) == len(nodes) else None


def shared(before: Sequence[Node], after: Sequence[Node]) -> int:
    """Return how many nodes two orders share at their beginnings."""
    differing = compress(count(), map(is_not, before, after))
    return next(differing, min(len(before), len(after)))


def along(
    order: Iterable[Node],
    known: Mapping[str, T],
    fresh: Collection[str],
    gone: Iterable[str],
    of: Callable[[Node, Mapping[str, T]], Iterable[tuple[str, T]]],
    given: Mapping[str, T] = MappingProxyType({}),
) -> dict[str, T]:
    """Return facts about values, propagated again from the nodes that changed.

    Args:
        order: The nodes in order, from the first on that changed.
        known: Facts about each value before the change.
        fresh: Names of the nodes that are new or changed, among them all that used values that are gone.
        gone: Values that no longer exist.
        of: Returns the facts about a node's results, given those about its operands.
        given: Facts about new values that no node makes.
    """
    found, changed = dict(known), set[str]()
    for value in gone:
        found.pop(value, None)
    found.update(given)
    for node in order:
        if node.name in fresh or (changed and not changed.isdisjoint(node.operands)):
            for value, new in of(node, found):
                if found.get(value) != new:
                    found[value] = new
                    changed.add(value)
    return found
