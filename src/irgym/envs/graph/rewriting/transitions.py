"""What actions make of states."""

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
"""States that are kept, those used last: what searches do has beginnings in common."""


class Kept:
    """The results of steps taken last."""

    def __init__(self) -> None:
        """Keep nothing yet."""
        self._kept: OrderedDict[tuple[int, Action], tuple[GraphState, GraphState]] = OrderedDict()

    def step(self, state: GraphState, action: Action, of: Callable[[], GraphState]) -> GraphState:
        """Return the state after an action, which `of` computes where it is not kept."""
        key = id(state), action
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = state, of()  # with the state itself, so that no other gets its id
        self._kept.move_to_end(key)
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return found[1]


def rewritten(finder: Finder, state: GraphState, place: int, sites: Sequence[Site]) -> GraphState:
    """Return the state after a rule was applied at some sites: see `applied`.

    Where the rule fails, which none should, the graph stays as it is and the rule no longer applies there.

    Args:
        finder: Knows the rules.
        state: The state before.
        place: The rule's place.
        sites: Sites of the rule in the state.
    """
    graph, rewrites = applied(finder, state, place, sites)
    if not rewrites:
        return replace(state, sites=_without(state.sites, place, sites))
    return GraphState(graph, graph.digest, finder.after(state.sites, state.graph, rewrites, graph))


def applied(
    finder: Finder, state: GraphState, place: int, sites: Sequence[Site]
) -> tuple[Graph, list[Rewrite]]:
    """Return the graph after a rule was applied at some sites, one after the other, and what was done.

    Sites that are gone when it is their turn, because of those before, are left out. So are those at which
    the rule fails, which are noted in the finder's `failures`. Where rules apply to the graph is not looked
    for.

    Args:
        finder: Knows the rules.
        state: The state before.
        place: The rule's place.
        sites: Sites of the rule in the state.
    """
    if len(sites) == 1:
        after, rewrite = _rewrite(finder, state.graph, place, sites[0])
        return after, [rewrite] if rewrite else []
    alone = finder.alone(place)
    graph, rewrites = state.graph, list[Rewrite]()
    found = {
        name: tuple([(0, site) for one, site in many if one == place]) for name, many in state.sites.items()
    }
    for site in sites:
        now = site
        if rewrites:
            now = next((one for many in found.values() for _, one in many if one.name == site.name), None)
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
    """Return the graph after a rule was applied at a site; as it is, and no rewrite, where the rule fails."""
    rule = finder.rules[place]
    try:
        rewrite = rule.rewrite(graph, site, finder.block)
        after = graph.rewritten(rewrite)
        _ = after.order  # finds circles
    except (RuleError, ScheduleError) as error:
        finder.failures.note(rule.name, site.name, error)
        return graph, None
    return after, rewrite


def _without(sites: Sites, place: int, gone: Sequence[Site]) -> Sites:
    """Return sites without some of a rule."""
    names = {site.name for site in gone}
    left = {
        name: tuple(pair for pair in pairs if pair[0] != place or pair[1].name not in names)
        for name, pairs in sites.items()
    }
    return {name: pairs for name, pairs in left.items() if pairs}
