"""Transitions: the state after a rule was applied at some sites."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace

from irgym.base.errors import ScheduleError
from irgym.core.actions import Action
from irgym.envs.graph.ir.graph import Graph, Rewrite
from irgym.envs.graph.rewriting.building import RuleError
from irgym.envs.graph.rewriting.rule import Site
from irgym.envs.graph.rewriting.sites import Finder, Sites
from irgym.envs.graph.state import GraphState

KEPT = 64
"""Number of steps in the cache: schedules that a search tries share their beginnings."""


class StepCache:
    """A cache of the most recent steps, by state and action."""

    def __init__(self) -> None:
        """Start empty."""
        self._kept: OrderedDict[tuple[int, Action], tuple[GraphState, GraphState]] = OrderedDict()

    def step(self, state: GraphState, action: Action, of: Callable[[], GraphState]) -> GraphState:
        """Return the state after an action; `of` computes it if it is not in the cache."""
        key = id(state), action
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = state, of()  # keeps the state alive, so that its id stays unique
        self._kept.move_to_end(key)
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return found[1]


def rewritten(finder: Finder, state: GraphState, place: int, sites: Sequence[Site]) -> GraphState:
    """Return the state after a rule was applied at some sites; see `applied`.

    If the rule fails at all of them, the graph stays unchanged and the sites are removed.

    Args:
        finder: Finder with the rules.
        state: The state before.
        place: Index of the rule.
        sites: Sites of the rule in the state.
    """
    graph, rewrites = applied(finder, state, place, sites)
    if not rewrites:
        return replace(state, sites=_without(state.sites, place, sites))
    return GraphState(graph, graph.digest, finder.after(state.sites, state.graph, rewrites, graph))


def applied(
    finder: Finder, state: GraphState, place: int, sites: Sequence[Site]
) -> tuple[Graph, list[Rewrite]]:
    """Return the graph after a rule was applied at some sites in order, and the rewrites.

    Sites that earlier rewrites removed are skipped, and so are sites at which the rule fails, which the
    finder's `failures` record. The sites of the new graph are not computed.

    Args:
        finder: Finder with the rules.
        state: The state before.
        place: Index of the rule.
        sites: Sites of the rule in the state.
    """
    if len(sites) == 1:
        after, rewrite = _rewrite(finder, state.graph, place, sites[0])
        return after, [rewrite] if rewrite else []
    alone = finder.alone(place)
    graph, rewrites = state.graph, list[Rewrite]()
    found = {
        name: tuple([(0, site) for number, site in many if number == place])
        for name, many in state.sites.items()
    }
    for site in sites:
        now = site
        if rewrites:
            now = next(
                (known for many in found.values() for _, known in many if known.name == site.name), None
            )
        if now is None or not finder.rules[place].apart(graph, now):
            continue
        before = graph
        graph, rewrite = _rewrite(finder, before, place, now)
        if rewrite is None:
            continue
        rewrites.append(rewrite)
        found = alone.after(found, before, [rewrite], graph, near=True)
    return graph, rewrites


def _rewrite(finder: Finder, graph: Graph, place: int, site: Site) -> tuple[Graph, Rewrite | None]:
    """Return the graph after a rule was applied at a site, and the rewrite; None if the rule fails."""
    rule = finder.rules[place]
    try:
        rewrite = rule.rewrite(graph, site, finder.block)
        after = graph.rewritten(rewrite)
        _ = after.order  # raises an error if there is a circle
    except (RuleError, ScheduleError) as error:
        finder.failures.note(rule.name, site.name, error)
        return graph, None
    return after, rewrite


def _without(sites: Sites, place: int, gone: Sequence[Site]) -> Sites:
    """Return sites without some sites of a rule."""
    names = {site.name for site in gone}
    left = {
        name: tuple(pair for pair in pairs if pair[0] != place or pair[1].name not in names)
        for name, pairs in sites.items()
    }
    return {name: pairs for name, pairs in left.items() if pairs}
