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

    def __reduce__(self) -> tuple[type["StepCache"], tuple[()]]:
        """Let copies start empty: the states of a copied task are other objects."""
        return StepCache, ()

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
    finder's `failures` record. The sites of the new graph are not computed. Sites that are far enough apart
    are rewritten at once, since each rewrite alone takes time in proportion to the whole graph.

    Args:
        finder: Finder with the rules.
        state: The state before.
        place: Index of the rule.
        sites: Sites of the rule in the state.
    """
    if len(sites) == 1:
        after, rewrite = _rewrite(finder, state.graph, place, sites[0])
        return after, [rewrite] if rewrite else []
    alone, rule = finder.alone(place), finder.rules[place]
    graph, rewrites = state.graph, list[Rewrite]()
    found = {
        name: tuple([((0, called), site) for (number, called), site in many if number == place])
        for name, many in state.sites.items()
    }
    waiting = list(sites)
    while waiting:
        # Where a condition looks far, each rewrite may rule out any other site.
        batch = waiting[:1] if rule.far else _apart(graph, waiting)
        taken = set(map(id, batch))
        waiting = [site for site in waiting if id(site) not in taken]
        if not rule.apart(graph, batch[0]):
            continue
        before = graph
        graph, done = _rewrite_all(finder, before, place, batch)
        if done:
            rewrites += done
            found = alone.after(found, before, done, graph, near=True)
            present = {name: site for many in found.values() for (_, name), (site,) in many}
            waiting = [present[site.name] for site in waiting if site.name in present]
    return graph, rewrites


def _apart(graph: Graph, sites: Sequence[Site]) -> list[Site]:
    """Return the first site and others whose rewrites can neither see nor change each other's surroundings.

    A site close to one before it is left out, and so are those close to it: they come later, in order.
    """
    if len(sites[0].makers) > 1:
        return [sites[0]]
    chosen: list[Site] = []
    taken = set[str]()
    for site in sites:
        around = _surroundings(graph, site)
        if len(site.makers) == 1 and taken.isdisjoint(around):
            chosen.append(site)
        taken |= around
    return chosen


def _surroundings(graph: Graph, site: Site) -> set[str]:
    """Return the names of the nodes of a site, of those that make their operands, and of their users."""
    found = set(site.members)
    for name in site.members:
        node = graph.nodes[name]
        found.update(graph.producers[value] for value in node.operands if value in graph.producers)
        found.update(user for value in node.results for user in graph.users.get(value, ()))
    return found


def _rewrite_all(
    finder: Finder, graph: Graph, place: int, sites: Sequence[Site]
) -> tuple[Graph, list[Rewrite]]:
    """Return the graph after a rule was applied at sites that are far apart, and the rewrites."""
    if len(sites) > 1:
        try:
            rewrites = [finder.rules[place].rewrite(graph, site, finder.block) for site in sites]
            after = graph.rewritten(_joined(rewrites))
            _ = after.order  # raises an error if there is a circle
        except (RuleError, ScheduleError):  # one after the other, so that a failure concerns one site
            pass
        else:
            return after, rewrites
    done = list[Rewrite]()
    for site in sites:
        graph, rewrite = _rewrite(finder, graph, place, site)
        done += [] if rewrite is None else [rewrite]
    return graph, done


def _joined(rewrites: Sequence[Rewrite]) -> Rewrite:
    """Return several rewrites as one.

    Raises:
        ScheduleError: Two of them give different things the same name.
    """
    added = [node for rewrite in rewrites for node in rewrite.added]
    weights = {name: weight for rewrite in rewrites for name, weight in rewrite.weights.items()}
    made = [value for node in added for value in node.results]
    equal = all(
        weights[name].digest == weight.digest
        for rewrite in rewrites
        for name, weight in rewrite.weights.items()
    )
    if len(set(made)) < len(made) or not equal or not weights.keys().isdisjoint(made):
        raise ScheduleError("two rewrites make values of one name: apply them one after the other")
    return Rewrite(
        tuple(name for rewrite in rewrites for name in rewrite.removed),
        tuple(added),
        weights,
        {name: kind for rewrite in rewrites for name, kind in rewrite.types.items()},
        {old: new for rewrite in rewrites for old, new in rewrite.replaced.items()},
    )


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
    keys = {(place, site.name) for site in gone}
    return {
        name: tuple([(key, site) for key, site in found if key not in keys]) for name, found in sites.items()
    }
