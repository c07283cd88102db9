"""Control flow of a function: order, dominators, loops."""

from collections.abc import Sequence
from functools import cached_property

Edges = Sequence[Sequence[int]]


class Flow:
    """The control-flow graph of a function.

    Unreachable blocks are left out of the order and of the predecessors.

    Args:
        successors: Successors of each block; the entry is block 0.

    Attributes:
        order: The reachable blocks in reverse postorder, the entry first.
        place: Index of each block in that order.
        predecessors: Reachable predecessors of each block.
    """

    def __init__(self, successors: Edges) -> None:
        self.successors = successors
        self.order = _reverse_postorder(successors)
        self.place = {block: place for place, block in enumerate(self.order)}
        self.predecessors: list[list[int]] = [[] for _ in successors]
        for block in self.order:
            for following in successors[block]:
                self.predecessors[following].append(block)
        self._between: dict[tuple[int, int], frozenset[int]] = {}

    @cached_property
    def parents(self) -> dict[int, int]:
        """The immediate dominator of each block; the entry has itself.

        Cooper, Harvey, Kennedy: A Simple, Fast Dominance Algorithm, 2001.
        """
        parents = {self.order[0]: self.order[0]}
        changed = True
        while changed:
            changed = False
            for block in self.order[1:]:
                known = [predecessor for predecessor in self.predecessors[block] if predecessor in parents]
                nearest = known[0]
                for predecessor in known[1:]:
                    nearest = self._nearest(parents, nearest, predecessor)
                changed = changed or parents.get(block) != nearest
                parents[block] = nearest
        return parents

    def common(self, first: int, second: int) -> int:
        """Return the nearest common dominator of two blocks."""
        return self._nearest(self.parents, first, second)

    def _nearest(self, parents: dict[int, int], first: int, second: int) -> int:
        while first != second:
            while self.place[first] > self.place[second]:
                first = parents[first]
            while self.place[second] > self.place[first]:
                second = parents[second]
        return first

    @cached_property
    def _spans(self) -> dict[int, tuple[int, int]]:
        """Entry and exit times of each block in a depth-first walk of the dominator tree."""
        children: dict[int, list[int]] = {block: [] for block in self.order}
        for block in self.order[1:]:
            children[self.parents[block]].append(block)
        begins: dict[int, int] = {}
        spans: dict[int, tuple[int, int]] = {}
        waiting = [(self.order[0], False)]
        while waiting:
            block, done = waiting.pop()
            if done:
                spans[block] = begins[block], len(begins)
                continue
            begins[block] = len(begins)
            waiting.append((block, True))
            waiting += [(child, False) for child in children[block]]
        return spans

    def dominates(self, first: int, second: int) -> bool:
        """Say whether block `first` dominates block `second`; each block dominates itself."""
        begin, end = self._spans[first]
        return begin <= self._spans[second][0] < end

    @cached_property
    def loops(self) -> dict[int, frozenset[int]]:
        """The natural loops: the blocks of each, by its header."""
        loops: dict[int, set[int]] = {}
        for block in self.order:
            for header in self.successors[block]:
                if self.dominates(header, block):
                    loops.setdefault(header, {header}).update(self._body(header, block))
        return {header: frozenset(body) for header, body in loops.items()}

    def _body(self, header: int, latch: int) -> set[int]:
        body = {header, latch}
        waiting = [latch] if latch != header else []
        while waiting:
            for predecessor in self.predecessors[waiting.pop()]:
                if predecessor not in body:
                    body.add(predecessor)
                    waiting.append(predecessor)
        return body

    @cached_property
    def depths(self) -> dict[int, int]:
        """Loop depth of each block."""
        return {block: sum(block in body for body in self.loops.values()) for block in self.order}

    def between(self, first: int, second: int) -> frozenset[int]:
        """Return the blocks on paths from the end of `first` to the beginning of `second`.

        The paths do not pass through `first` again. `second` is included if it lies on a cycle.
        """
        if (first, second) not in self._between:
            after = _reached(self.successors, self.successors[first], first)
            before = _reached(self.predecessors, self.predecessors[second], first)
            self._between[first, second] = frozenset(after & before)
        return self._between[first, second]


def _reached(edges: Edges, starts: Sequence[int], without: int) -> set[int]:
    """Return the blocks reachable from `starts`, these included, without entering `without`."""
    found: set[int] = set()
    waiting = list(starts)
    while waiting:
        block = waiting.pop()
        if block not in found and block != without:
            found.add(block)
            waiting += edges[block]
    return found


def _reverse_postorder(successors: Edges) -> list[int]:
    seen = {0}
    order: list[int] = []
    waiting = [(0, iter(successors[0]))]
    while waiting:
        block, following = waiting[-1]
        for successor in following:
            if successor not in seen:
                seen.add(successor)
                waiting.append((successor, iter(successors[successor])))
                break
        else:
            order.append(block)
            waiting.pop()
    return order[::-1]
