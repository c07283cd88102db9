"""Extraction of the cheapest graph from an e-graph, where each operator counts once, however many use it.

An integer linear program, as in Tensat (Yang et al., MLSys 2021): each operator is taken or not; every result
needs an operator that makes it, and so does every operand of a taken operator. Operators that could close a
circle are removed first. The greedy extraction takes each value by its cheapest tree, in which operators that
are used twice count twice.
"""

from collections.abc import Container, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, TypeAlias

import numpy as np

from irgym.base.errors import BackendError
from irgym.envs.graph.programs.sources import INSTALL_PEERS

EXTRACTION_S = 60.0
"""Time limit of the integer linear program, in seconds."""

Class: TypeAlias = Hashable


@dataclass(frozen=True)
class Choice:
    """A way to make a value.

    Attributes:
        cost: Cost, counted once.
        needs: The values that it needs.
        what: The operator; None for an input, a weight, or a part of a tuple.
    """

    cost: float
    needs: frozenset[Class]
    what: Any


Choices: TypeAlias = Mapping[Class, Sequence[Choice]]

Method: TypeAlias = Literal["ilp", "greedy"]
"""Methods of extraction, by Tensat's names."""


@dataclass(frozen=True)
class Extraction:
    """A choice for each needed value.

    Attributes:
        chosen: The choices, each after those for the values that it needs.
        cost: Total cost.
        how: Method and optimality, in words.
        optimal: Whether the cost is minimal up to `GAP`, among graphs without the removed operators.
    """

    chosen: Mapping[Class, Choice]
    cost: float
    how: str
    optimal: bool


GAP = 0.001
"""Accepted relative difference to the optimum."""


def extract(choices: Choices, roots: Sequence[Class], seconds: float, method: Method = "ilp") -> Extraction:
    """Return the cheapest choices without circles for some values, as far as the method finds them.

    Args:
        choices: Choices for each value.
        roots: The values to make.
        seconds: Time limit of the integer linear program.
        method: The integer linear program, or each value by its cheapest tree.

    Raises:
        BackendError: scipy is not installed.
        ValueError: There is no choice for a needed value.
    """
    costs, trees = _cheapest_trees(choices)
    greedy = _ordered(trees, roots)
    greedy_cost = sum(choice.cost for choice in greedy.values())
    if method == "greedy":
        return Extraction(greedy, greedy_cost, "each value by its cheapest tree", optimal=False)
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


def rough_cost(choices: Choices, roots: Sequence[Class]) -> float:
    """Return the cost of a cheap way to make some values: each by its cheapest tree, operators counted once.

    It is found much faster than the cheapest, which is at most this.

    Args:
        choices: Choices for each value.
        roots: The values to make.

    Raises:
        ValueError: There is no choice for a needed value.
    """
    _, trees = _cheapest_trees(choices)
    return sum(choice.cost for choice in _ordered(trees, roots).values())


def _cheapest_trees(choices: Choices) -> tuple[dict[Class, float], dict[Class, Choice]]:
    """Return cost and choice of the cheapest tree of each value, where values used twice count twice.

    A value costs more than each value that it needs, so there are no circles.
    """
    users: dict[Class, list[tuple[Class, Choice]]] = {}
    for value, ways in choices.items():
        for way in ways:
            for need in way.needs:
                users.setdefault(need, []).append((value, way))
    costs: dict[Class, float] = {}
    best: dict[Class, Choice] = {}
    waiting = [(value, way) for value, ways in choices.items() for way in ways if not way.needs]
    while waiting:
        following: dict[tuple[Class, int], tuple[Class, Choice]] = {}
        for value, way in waiting:
            total = _tree_cost(way, costs)
            if total < costs.get(value, np.inf):
                costs[value], best[value] = total, way
                for user, its in users.get(value, ()):
                    if all(need in costs for need in its.needs):
                        following[user, id(its)] = user, its
        waiting = list(following.values())
    return costs, best


def _tree_cost(way: Choice, costs: Mapping[Class, float]) -> float:
    greatest = max((costs[need] for need in way.needs), default=0.0)
    return max(way.cost + sum(costs[need] for need in way.needs), greatest * (1 + 1e-9) + 1e-9)


def _ordered(chosen: Mapping[Class, Choice], roots: Sequence[Class]) -> dict[Class, Choice]:
    """Return the choices that roots need, each after those for the values that it needs.

    Raises:
        ValueError: There is a circle, or no choice for a value.
    """
    ordered: dict[Class, Choice] = {}
    begun: set[Class] = set()
    stack = list(roots)
    while stack:
        value = stack[-1]
        if value in ordered:
            stack.pop()
            continue
        if value not in chosen:
            raise ValueError(f"nothing makes {value}")
        left = [need for need in chosen[value].needs if need not in ordered]
        if not left:
            ordered[value] = chosen[value]
            stack.pop()
            continue
        if value in begun:
            raise ValueError(f"{value} needs itself")
        begun.add(value)
        stack += left
    return ordered


def _reduced(
    choices: Choices, makeable: Container[Class], roots: Sequence[Class]
) -> dict[Class, list[Choice]]:
    """Return the choices that roots may need, without those that another choice for the value dominates."""
    reduced: dict[Class, list[Choice]] = {}
    stack = list(roots)
    while stack:
        value = stack.pop()
        if value in reduced:
            continue
        kept: list[Choice] = []
        for way in sorted(choices[value], key=lambda way: (way.cost, len(way.needs))):
            possible = value not in way.needs and all(need in makeable for need in way.needs)
            if possible and not any(better.needs <= way.needs for better in kept):
                kept.append(way)
        reduced[value] = kept
        stack += [need for way in kept for need in way.needs]
    return reduced


def _without_circles(
    choices: Mapping[Class, Sequence[Choice]], costs: Mapping[Class, float]
) -> tuple[dict[Class, list[Choice]], int]:
    """Return choices of which no selection has a circle, and the number of removed ones.

    The cheapest trees remain. Values come after those that they need. Tensat also removes operators:
    constraints against circles make programs hard to solve.
    """
    order = _Order(sorted(choices, key=lambda value: costs[value]))
    pairs = [(value, way) for value, ways in choices.items() for way in ways]
    pairs.sort(key=lambda pair: (_tree_cost(pair[1], costs) > costs[pair[0]], _tree_cost(pair[1], costs)))
    kept: dict[Class, list[Choice]] = {}
    left_out = 0
    for value, way in pairs:
        if order.admit(value, way.needs):
            kept.setdefault(value, []).append(way)
        else:
            left_out += 1
    return {value: kept[value] for value in order.values}, left_out


class _Order:
    """A topological order of values, maintained as dependencies are added (Pearce and Kelly, 2006)."""

    def __init__(self, values: Sequence[Class]) -> None:
        self._place = {value: place for place, value in enumerate(values)}
        self._users: dict[Class, set[Class]] = {value: set() for value in values}
        self._needs: dict[Class, set[Class]] = {value: set() for value in values}

    @property
    def values(self) -> list[Class]:
        """The values in order."""
        return self._sorted(set(self._place))

    def admit(self, user: Class, needs: frozenset[Class]) -> bool:
        """Add the dependencies of a value; if they would close a circle, add none and return False."""
        first = self._place[user]
        late = [need for need in needs if self._place[need] > first]
        if late:
            last = max(self._place[need] for need in late)
            after = self._reach([user], self._users, first, last)
            if not after.isdisjoint(needs):
                return False
            moved = [*self._sorted(self._reach(late, self._needs, first, last)), *self._sorted(after)]
            for value, place in zip(moved, sorted(self._place[value] for value in moved), strict=True):
                self._place[value] = place
        self._needs[user] |= needs
        for need in needs:
            self._users[need].add(user)
        return True

    def _sorted(self, values: set[Class]) -> list[Class]:
        return sorted(values, key=self._place.__getitem__)

    def _reach(
        self, start: list[Class], edges: Mapping[Class, set[Class]], first: int, last: int
    ) -> set[Class]:
        """Return the values that edges lead to from some values, within a range of the order."""
        found, stack = set(start), list(start)
        while stack:
            for value in edges[stack.pop()]:
                if value not in found and first <= self._place[value] <= last:
                    found.add(value)
                    stack.append(value)
        return found


_OPTIMAL, _TIME_LIMIT = 0, 1
"""Status codes of `scipy.optimize.milp`."""


class _Program:
    """The integer linear program, with a variable for each choice."""

    def __init__(self, choices: Mapping[Class, Sequence[Choice]], roots: Sequence[Class]) -> None:
        try:
            self._optimize: Any = import_module("scipy.optimize")
            self._sparse: Any = import_module("scipy.sparse")
        except ModuleNotFoundError as error:
            raise BackendError(f"scipy is not installed: run {INSTALL_PEERS}") from error
        self._choices = [(value, way) for value, ways in choices.items() for way in ways]
        self._ways: dict[Class, list[int]] = {}
        for place, (value, _) in enumerate(self._choices):
            self._ways.setdefault(value, []).append(place)
        self._entries: list[tuple[int, int, float]] = []
        self._least: list[float] = []
        for root in dict.fromkeys(roots):
            self._row(dict.fromkeys(self._ways[root], 1.0), 1.0)
        for places in self._ways.values():
            # One row for all choices that need the same value: tighter than a row for each choice.
            needs = {need for place in places for need in self._choices[place][1].needs}
            for need in needs:
                using = [place for place in places if need in self._choices[place][1].needs]
                self._row({**dict.fromkeys(self._ways[need], 1.0), **dict.fromkeys(using, -1.0)}, 0.0)
            self._row(dict.fromkeys(places, -1.0), -1.0)
        for value, other in _musts(choices):
            self._row(
                {**dict.fromkeys(self._ways[other], 1.0), **dict.fromkeys(self._ways[value], -1.0)}, 0.0
            )

    def _row(self, coefficients: Mapping[int, float], least: float) -> None:
        """Add the constraint that a weighted sum is at least a number."""
        self._entries += [(len(self._least), column, value) for column, value in coefficients.items()]
        self._least.append(least)

    def solve(self, seconds: float) -> tuple[dict[Class, Choice] | None, int]:
        """Return the choices, or None if there is no solution yet, and scipy's status."""
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
        taken = {
            value: way for (value, way), share in zip(self._choices, found.x, strict=True) if share > 0.5
        }
        return taken, int(found.status)


def _musts(choices: Mapping[Class, Sequence[Choice]]) -> Iterator[tuple[Class, Class]]:
    """Return pairs of a value and a value that all its choices need, without pairs that others imply.

    Where choices diverge and meet again, the relaxed program takes half of each, and half of the values that
    both need: a weak bound. With these pairs, such values count as a whole.

    Args:
        choices: Choices for each value, values after those that they need.
    """
    values = list(choices)
    place = {value: at for at, value in enumerate(values)}
    made: list[int] = []  # as bits, by place: the values that each value always needs, itself included
    for at, (value, ways) in enumerate(choices.items()):
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
                yield value, values[last]
            rest &= ~made[last]
