"""Saturation whose next rule a Monte-Carlo tree search chooses, as in MCTS-GEB (arXiv 2303.04651).

Where the limit of operators stops a saturation, the order of the rules decides which graphs the e-graph
holds. The reward of a simulation is the share of the original cost that the graph extracted at its end saves.
Rules have no random effects, so those of the best simulation are followed until there is a better one (as in
single-player search, Schadd et al., 2008): the end is no worse than any simulation.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, TypeAlias

import numpy as np

from irgym.base.values import Range
from irgym.envs.graph.eqsat.saturation import Growing, Iteration, Limits, Saturation, counted
from irgym.envs.graph.eqsat.tensors import Tensors
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.rewriting.rule import Rule

SEARCHING = 0.75
"""Share of the time in which simulations may begin."""

TIE = 1e-9
"""Difference of rewards that is rounding."""

Cost: TypeAlias = Callable[[Tensors], float]
"""From an e-graph to the cost of a graph extracted from it."""


@dataclass(frozen=True)
class TreeSearch:
    """Settings of the tree search.

    Attributes:
        budget: Simulations for each choice of a rule.
        depth: Rules that a simulation applies at random, beyond the tree.
        exploration: Weight of the bonus for rules that were simulated seldom; rewards are at most 1.
        seed: Seed of the random choices.
    """

    budget: Annotated[int, Range(1, 1_000_000)] = 16
    depth: Annotated[int, Range(0, 1_000_000)] = 4
    exploration: Annotated[float, Range(0.0, 1e6)] = 0.3
    seed: Annotated[int, Range(0, 2**32 - 1)] = 0


def chosen_saturation(
    graph: Graph, rules: Sequence[Rule], block: int, limits: Limits, cost: Cost, search: TreeSearch
) -> Saturation:
    """Return an e-graph to which rules were applied one at a time, each chosen by a tree search.

    The greatest number of rules is that of `Limits.iterations` with all rules. `Limits.multi` holds for each
    multi-pattern rule.

    Args:
        graph: The graph.
        rules: The rules.
        block: Channels of a block in the layout of ONNX Runtime's nchwc operators.
        limits: Limits of the e-graph, of each simulation as of the result, and of all time together.
        cost: The cost of the cheapest graph in an e-graph.
        search: Settings of the search.

    Returns:
        The e-graph, with an iteration for each chosen rule.

    Raises:
        BackendError: egglog is not installed.
        BaselineError: The graph has operators with subgraphs.
    """
    return _Choosing(Growing(graph, rules, block, limits), cost, search).run(limits.iterations * len(rules))


@dataclass
class _Node:
    """A sequence of rules in the tree.

    Attributes:
        following: Sequences with one more rule, by its name.
        unseen: Rules that were not simulated yet, in random order; None before the first visit.
        visits: Number of simulations through it.
        total: Sum of their rewards.
    """

    following: "dict[str, _Node]" = field(default_factory=dict[str, "_Node"])
    unseen: list[Rule] | None = None
    visits: int = 0
    total: float = 0.0


class _Choosing:
    def __init__(self, growing: Growing, cost: Cost, search: TreeSearch) -> None:
        self._growing = growing
        self._cost = cost
        self._search = search
        self._rng = np.random.default_rng(search.seed)
        self._original = cost(growing.tensors) or 1.0
        self._best: tuple[float, tuple[Rule, ...]] = 0.0, ()
        self._simulated = 0

    def run(self, choices: int) -> Saturation:
        iterations: list[Iteration] = []
        root, stopped, saturated = _Node(), "", False
        while not stopped:
            for _ in range(self._search.budget):
                if self._late or (root.unseen == [] and len(root.following) < 2):
                    break
                self._simulate(root)
            rule = self._choice(root)
            if rule is None:
                saturated = not self._late
                stopped = "saturated" if saturated else self._limit(f"{self._growing.limits.seconds:g} s")
                break
            root = root.following.get(rule.name) or _Node()
            tried, limit = self._growing.apply([rule])
            iterations.append(self._growing.iteration(tried))
            reward, rest = self._best
            self._best = reward, rest[1:] if rest[:1] == (rule,) else ()
            if limit or len(iterations) == choices:
                stopped = self._limit(limit or counted(choices, "rule"))
        if not iterations:
            iterations.append(self._growing.iteration(0))
        words = f"a tree search with {counted(self._simulated, 'simulation')} chose the rules"
        return Saturation(self._growing.tensors, tuple(iterations), f"{words}; {stopped}", saturated)

    @property
    def _late(self) -> bool:
        return self._growing.seconds > SEARCHING * self._growing.limits.seconds

    def _limit(self, limit: str) -> str:
        return f"stopped at the limit of {limit}"

    def _choice(self, root: _Node) -> Rule | None:
        """Return the rule of the best simulation, else the one simulated most; None if there is none."""
        _, best = self._best
        if best:
            return best[0]
        if not root.following:
            return None
        name = max(root.following, key=lambda name: root.following[name].visits)
        return next(rule for rule in self._growing.permitted() if rule.name == name)

    def _simulate(self, root: _Node) -> None:
        """Walk down the tree, add a node, apply random rules, and credit the nodes with the reward."""
        self._simulated += 1
        path, applied = [root], list[Rule]()
        with self._growing.trial():
            new = ended = False
            while not new and not ended:
                if path[-1].unseen is None:
                    path[-1].unseen = self._shuffled(self._growing.untried())
                rule, new, ended = self._descend(path[-1])
                if rule is not None:
                    applied.append(rule)
                    path.append(path[-1].following.setdefault(rule.name, _Node()))
            for _ in range(0 if ended else self._search.depth):
                rule, ended = self._first_to_change(self._shuffled(self._growing.untried()))
                applied += [rule] if rule is not None else []
                if ended:
                    break
            reward = 1.0 - self._cost(self._growing.tensors) / self._original
        if reward > self._best[0] + TIE:
            self._best = reward, tuple(applied)
        for node in path:
            node.visits += 1
            node.total += reward

    def _descend(self, node: _Node) -> tuple[Rule | None, bool, bool]:
        """Apply the next rule of a simulation: one that is new to the tree, else the most promising one.

        Returns:
            The rule, whether it is new, and whether the simulation ends with it.
        """
        assert node.unseen is not None
        rule, ended = self._first_to_change(node.unseen)
        if rule is not None or ended:
            return rule, True, ended
        if not node.following:
            return None, False, True
        name = max(node.following, key=lambda name: self._promise(node, node.following[name]))
        rule = next(rule for rule in self._growing.permitted() if rule.name == name)
        _, limit = self._growing.apply([rule])
        return rule, False, bool(limit)

    def _first_to_change(self, rules: list[Rule]) -> tuple[Rule | None, bool]:
        """Apply the first of some rules that changes the e-graph, and remove it and those before it.

        Returns:
            The rule, None if no rule changes the e-graph, and whether that or a limit ends the simulation.
        """
        before = self._growing.tensors.egraph.nodes
        while rules:
            rule = rules.pop(0)
            _, limit = self._growing.apply([rule])
            if limit or self._growing.tensors.egraph.nodes != before:
                return rule, bool(limit)
        return None, False

    def _promise(self, node: _Node, following: _Node) -> float:
        """Return the upper confidence bound of a sequence's reward (UCT, Kocsis and Szepesvari, 2006)."""
        bonus = math.sqrt(math.log(node.visits) / following.visits)
        return following.total / following.visits + self._search.exploration * bonus

    def _shuffled(self, rules: Sequence[Rule]) -> list[Rule]:
        return [rules[place] for place in self._rng.permutation(len(rules))]
