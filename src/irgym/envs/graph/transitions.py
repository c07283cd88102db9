"""What actions make of states."""

from collections.abc import Sequence

from irgym.envs.graph.ir.graph import Rewrite
from irgym.envs.graph.rules.rule import Site
from irgym.envs.graph.sites import Finder
from irgym.envs.graph.state import GraphState


def rewritten(finder: Finder, state: GraphState, place: int, sites: Sequence[Site]) -> GraphState:
    """Return the state after a rule was applied at some sites, one after the other.

    Sites that are gone when it is their turn, because of those before, are left out.

    Args:
        finder: Knows the rules.
        state: The state before.
        place: The rule's place.
        sites: Sites of the rule in the state.

    Raises:
        ScheduleError: The rule does not apply there.
    """
    alone = finder.alone(place)
    graph, rewrites = state.graph, list[Rewrite]()
    found = {
        name: tuple([(0, site) for one, site in many if one == place]) for name, many in state.sites.items()
    }
    for site in sites:
        now = site
        if rewrites:
            now = next((one for many in found.values() for _, one in many if one.name == site.name), None)
        if now is None:
            continue
        rewrites.append(finder.rules[place].rewrite(graph, now, finder.block))
        before, graph = graph, graph.rewritten(rewrites[-1])
        if len(sites) > 1:
            found = alone.after(found, before, rewrites[-1:], graph)
    return GraphState(graph, graph.digest, finder.after(state.sites, state.graph, rewrites, graph))
