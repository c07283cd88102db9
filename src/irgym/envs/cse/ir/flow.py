"""The flow of control in a function: its order, dominators and loops."""

from collections.abc import Sequence
from functools import cached_property

Edges = Sequence[Sequence[int]]


class Flow:
    """What follows from which block may follow which.

    Blocks that nothing leads to belong to no order.

    Args:
        successors: For each block, those that may follow it; the entry is block 0.

    Attributes:
        order: The blocks in reverse postorder, the entry first.
        place: The place of each block in that order.
        predecessors: For each block, those that it may follow and that something leads to.
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
        """The immediate dominator of each block, the entry its own.

        Cooper, Harvey, Kennedy: A Simple, Fast Dominance Algorithm, 2001.
        """
        parents = {self.order[0]: self.order[0]}
        changed = True
        while changed:
            changed = False
            for block in self.order[1:]:
                known = [one for one in self.predecessors[block] if one in parents]
                nearest = known[0]
                for one in known[1:]:
                    nearest = self._nearest(parents, nearest, one)
                changed = changed or parents.get(block) != nearest
                parents[block] = nearest
        return parents

    def common(self, first: int, second: int) -> int:
        """Return the last block through which every way to either of two blocks leads."""
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
        """When a walk through the tree of dominators enters and leaves each block."""
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
        """Say whether every way to a block leads through another, or is it."""
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
            for one in self.predecessors[waiting.pop()]:
                if one not in body:
                    body.add(one)
                    waiting.append(one)
        return body

    @cached_property
    def depths(self) -> dict[int, int]:
        """In how many loops each block is."""
        return {block: sum(block in body for body in self.loops.values()) for block in self.order}

    def between(self, first: int, second: int) -> frozenset[int]:
        """Return the blocks on ways from the end of a block to the beginning of another.

        The ways do not lead through the first. The second is among them if it lies on a way back to itself.
        """
        if (first, second) not in self._between:
            after = _reached(self.successors, self.successors[first], first)
            before = _reached(self.predecessors, self.predecessors[second], first)
            self._between[first, second] = frozenset(after & before)
        return self._between[first, second]


def _reached(edges: Edges, starts: Sequence[int], without: int) -> set[int]:
    """Return the blocks that edges lead to from some, these included, but for one that is not entered."""
    found: set[int] = set()
    waiting = list(starts)
    while waiting:
        one = waiting.pop()
        if one not in found and one != without:
            found.add(one)
            waiting += edges[one]
    return found


def _reverse_postorder(successors: Edges) -> list[int]:
    seen = {0}
    order: list[int] = []
    waiting = [(0, iter(successors[0]))]
    while waiting:
        block, following = waiting[-1]
        for one in following:
            if one not in seen:
                seen.add(one)
                waiting.append((one, iter(successors[one])))
                break
        else:
            order.append(block)
            waiting.pop()
    return order[::-1]
