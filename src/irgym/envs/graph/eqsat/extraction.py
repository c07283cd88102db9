"""The cheapest graph of an e-graph, whose operators count once however many use them.

An integer linear program, as in Tensat (Yang et al., MLSys 2021): each operator is taken or not; one that
makes a result must be; of an operator that is taken, all operands must be made. Operators with which values
would need each other in a circle are left out before.
"""

from collections.abc import Container, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

from irgym.base.errors import BackendError
from irgym.envs.graph.programs.sources import INSTALL_PEERS

Class: TypeAlias = Hashable


@dataclass(frozen=True)
class Choice:
    """A way to make a value.

    Attributes:
        cost: What it costs, once.
        needs: The values that it needs.
        what: What it is.
    """

    cost: float
    needs: frozenset[Class]
    what: Any


Choices: TypeAlias = Mapping[Class, Sequence[Choice]]


@dataclass(frozen=True)
class Extraction:
    """A way for each value that is needed.

    Attributes:
        chosen: The ways, each after those that make what it needs.
        cost: Their cost.
        how: Whether it is the cheapest, in words.
        optimal: Whether it is, within the gap allowed, but for circles.
    """

    chosen: Mapping[Class, Choice]
    cost: float
    how: str
    optimal: bool


GAP = 0.001
"""Difference to the optimum, as a share of it, that is allowed."""


def extract(choices: Choices, roots: Sequence[Class], seconds: float) -> Extraction:
    """Return the cheapest choices that make some values and contain no circle.

    Args:
        choices: The ways to make each value.
        roots: The values that are needed.
        seconds: Time limit of the integer linear program.

    Raises:
        BackendError: scipy is not installed.
        ValueError: The values cannot be made.
    """
    costs, trees = _cheapest_trees(choices)
    greedy = _ordered(trees, roots)
    greedy_cost = sum(choice.cost for choice in greedy.values())
    kept, left_out = _without_circles(_reduced(choices, trees, roots), costs)
    solved, status = _Program(kept, roots).solve(seconds)
    if solved is None:
        how = f"each value by its cheapest tree, since integer programming found nothing in {seconds:g} s"
        return Extraction(greedy, greedy_cost, how, optimal=False)
    chosen = _ordered(solved, roots)
    cost = sum(choice.cost for choice in chosen.values())
    if status == _OPTIMAL:
        how = "the cheapest by integer programming"
        how += f" without {left_out:,} choices that would close circles" if left_out else ""
        return Extraction(chosen, cost, how, optimal=True)
    if greedy_cost < cost:
        chosen, cost = greedy, greedy_cost
    how = f"integer programming stopped at its limit of {seconds:g} s before it knew the cheapest"
    return Extraction(chosen, cost, how, optimal=False)


def _cheapest_trees(choices: Choices) -> tuple[dict[Class, float], dict[Class, Choice]]:
    """Return the cost of each value's cheapest tree, in which what is used twice counts twice, and its way.

    A value costs more than each that its way needs: so there is no circle.
    """
    users: dict[Class, list[tuple[Class, Choice]]] = {}
    for one, ways in choices.items():
        for way in ways:
            for need in way.needs:
                users.setdefault(need, []).append((one, way))
    costs: dict[Class, float] = {}
    best: dict[Class, Choice] = {}
    waiting = [(one, way) for one, ways in choices.items() for way in ways if not way.needs]
    while waiting:
        following: dict[tuple[Class, int], tuple[Class, Choice]] = {}
        for one, way in waiting:
            total = _tree_cost(way, costs)
            if total < costs.get(one, np.inf):
                costs[one], best[one] = total, way
                for user, its in users.get(one, ()):
                    if all(need in costs for need in its.needs):
                        following[user, id(its)] = user, its
        waiting = list(following.values())
    return costs, best


def _tree_cost(way: Choice, costs: Mapping[Class, float]) -> float:
    greatest = max((costs[need] for need in way.needs), default=0.0)
    return max(way.cost + sum(costs[need] for need in way.needs), greatest * (1 + 1e-9) + 1e-9)


def _ordered(chosen: Mapping[Class, Choice], roots: Sequence[Class]) -> dict[Class, Choice]:
    """Return what roots need of some choices, each after what it needs.

    Raises:
        ValueError: There is a circle, or nothing makes a value.
    """
    ordered: dict[Class, Choice] = {}
    begun: set[Class] = set()
    stack = list(roots)
    while stack:
        one = stack[-1]
        if one in ordered:
            stack.pop()
            continue
        if one not in chosen:
            raise ValueError(f"nothing makes {one}")
        left = [need for need in chosen[one].needs if need not in ordered]
        if not left:
            ordered[one] = chosen[one]
            stack.pop()
            continue
        if one in begun:
            raise ValueError(f"{one} needs itself")
        begun.add(one)
        stack += left
    return ordered


def _reduced(
    choices: Choices, makeable: Container[Class], roots: Sequence[Class]
) -> dict[Class, list[Choice]]:
    """Return the choices that roots may need, without those that are no better than others of the value."""
    reduced: dict[Class, list[Choice]] = {}
    stack = list(roots)
    while stack:
        one = stack.pop()
        if one in reduced:
            continue
        kept: list[Choice] = []
        for way in sorted(choices[one], key=lambda way: (way.cost, len(way.needs))):
            possible = one not in way.needs and all(need in makeable for need in way.needs)
            if possible and not any(better.needs <= way.needs for better in kept):
                kept.append(way)
        reduced[one] = kept
        stack += [need for way in kept for need in way.needs]
    return reduced


def _without_circles(
    choices: Mapping[Class, Sequence[Choice]], costs: Mapping[Class, float]
) -> tuple[dict[Class, list[Choice]], int]:
    """Return choices of which no selection has a circle, the cheapest trees among them, and how many go.

    Values come after those that they need.

    Tensat leaves operators out in the same way: constraints against circles make programs hard to solve.
    """
    order = _Order(sorted(choices, key=lambda one: costs[one]))
    pairs = [(one, way) for one, ways in choices.items() for way in ways]
    pairs.sort(key=lambda pair: (_tree_cost(pair[1], costs) > costs[pair[0]], _tree_cost(pair[1], costs)))
    kept: dict[Class, list[Choice]] = {}
    left_out = 0
    for one, way in pairs:
        if order.admit(one, way.needs):
            kept.setdefault(one, []).append(way)
        else:
            left_out += 1
    return {one: kept[one] for one in order.values}, left_out


class _Order:
    """An order of values, each after what it needs, kept as needs are told (Pearce and Kelly, 2006)."""

    def __init__(self, values: Sequence[Class]) -> None:
        self._place = {one: place for place, one in enumerate(values)}
        self._users: dict[Class, set[Class]] = {one: set() for one in values}
        self._needs: dict[Class, set[Class]] = {one: set() for one in values}

    @property
    def values(self) -> list[Class]:
        """The values in order."""
        return self._sorted(set(self._place))

    def admit(self, one: Class, needs: frozenset[Class]) -> bool:
        """Take in that a value needs others; return False, and do not, where that would close a circle."""
        first = self._place[one]
        late = [need for need in needs if self._place[need] > first]
        if late:
            last = max(self._place[need] for need in late)
            after = self._reach([one], self._users, first, last)
            if not after.isdisjoint(needs):
                return False
            moved = [*self._sorted(self._reach(late, self._needs, first, last)), *self._sorted(after)]
            for value, place in zip(moved, sorted(self._place[value] for value in moved), strict=True):
                self._place[value] = place
        self._needs[one] |= needs
        for need in needs:
            self._users[need].add(one)
        return True

    def _sorted(self, values: set[Class]) -> list[Class]:
        return sorted(values, key=self._place.__getitem__)

    def _reach(
        self, start: list[Class], edges: Mapping[Class, set[Class]], first: int, last: int
    ) -> set[Class]:
        """Return what edges lead to from some values, within a range of the order."""
        found, stack = set(start), list(start)
        while stack:
            for one in edges[stack.pop()]:
                if one not in found and first <= self._place[one] <= last:
                    found.add(one)
                    stack.append(one)
        return found


_OPTIMAL, _TIME_LIMIT = 0, 1
"""What `scipy.optimize.milp` says of how it ended."""


class _Program:
    """The integer linear program: one variable for each choice."""

    def __init__(self, choices: Mapping[Class, Sequence[Choice]], roots: Sequence[Class]) -> None:
        try:
            self._optimize: Any = import_module("scipy.optimize")
            self._sparse: Any = import_module("scipy.sparse")
        except ModuleNotFoundError as error:
            raise BackendError(f"scipy is not installed: run {INSTALL_PEERS}") from error
        self._choices = [(one, way) for one, ways in choices.items() for way in ways]
        self._ways: dict[Class, list[int]] = {}
        for place, (one, _) in enumerate(self._choices):
            self._ways.setdefault(one, []).append(place)
        self._entries: list[tuple[int, int, float]] = []
        self._least: list[float] = []
        for root in dict.fromkeys(roots):
            self._row(dict.fromkeys(self._ways[root], 1.0), 1.0)
        for places in self._ways.values():
            # One row for all ways that need the same: that is a tighter program than a row for each.
            needs = {need for place in places for need in self._choices[place][1].needs}
            for need in needs:
                using = [place for place in places if need in self._choices[place][1].needs]
                self._row({**dict.fromkeys(self._ways[need], 1.0), **dict.fromkeys(using, -1.0)}, 0.0)
            self._row(dict.fromkeys(places, -1.0), -1.0)
        for one, other in _musts(choices):
            self._row({**dict.fromkeys(self._ways[other], 1.0), **dict.fromkeys(self._ways[one], -1.0)}, 0.0)

    def _row(self, coefficients: Mapping[int, float], least: float) -> None:
        """Demand that a sum is no less than a number."""
        self._entries += [(len(self._least), column, value) for column, value in coefficients.items()]
        self._least.append(least)

    def solve(self, seconds: float) -> tuple[dict[Class, Choice] | None, int]:
        """Return the choices and scipy's status; no choices where none were found."""
        rows, columns, values = zip(*self._entries, strict=True)
        shape = (len(self._least), len(self._choices))
        matrix = self._sparse.csr_matrix((values, (rows, columns)), shape=shape)
        costs = np.array([way.cost for _, way in self._choices])
        found = self._optimize.milp(
            costs / max(1e-30, float(costs.max(initial=0.0))),
            constraints=self._optimize.LinearConstraint(matrix, lb=self._least),
            integrality=np.ones(len(self._choices)),
            bounds=self._optimize.Bounds(0.0, 1.0),
            options={"time_limit": seconds, "mip_rel_gap": GAP},
        )
        if found.status not in (_OPTIMAL, _TIME_LIMIT):
            raise RuntimeError(f"integer programming failed: {found.message}")
        if found.x is None:
            return None, int(found.status)
        taken = {one: way for (one, way), share in zip(self._choices, found.x, strict=True) if share > 0.5}
        return taken, int(found.status)


def _musts(choices: Mapping[Class, Sequence[Choice]]) -> Iterator[tuple[Class, Class]]:
    """Return pairs of a value and one that whatever makes it makes too, without those that others imply.

    Where ways part and meet again, the relaxed program takes half of each, and half of what both need: its
    bound says little. By these pairs, what both need is needed as a whole.

    Args:
        choices: Values come after those that they need.
    """
    values = list(choices)
    place = {one: at for at, one in enumerate(values)}
    made: list[int] = []  # as bits, by place: what each value needs in any case, itself included
    for at, (one, ways) in enumerate(choices.items()):
        rest = -1
        for way in ways:
            needed = 0
            for need in way.needs:
                needed |= made[place[need]]
            rest &= needed
        made.append(rest | 1 << at)
        while rest:
            last = rest.bit_length() - 1
            if choices[values[last]][0].needs:
                yield one, values[last]
            rest &= ~made[last]
