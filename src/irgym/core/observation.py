"""Named observations of a task's states: what policies see, and what Gymnasium environments show."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from irgym.base.errors import IrgymError
from irgym.core.graph_observation import GraphObservation, as_graph

if TYPE_CHECKING:
    from gymnasium import spaces


@dataclass(frozen=True)
class ObservationView:
    """One way to see a state.

    Attributes:
        name: What it is selected by.
        description: One line, with the shape.
        space: Returns the Gymnasium space that every value lies in.
        value: From a task and a state to what a policy sees; None where the state's cost is needed.
        of_cost: From a task and the cost of a state to what is seen, instead of `value`. Gymnasium
            environments alone have it: a policy acts before anything is measured.
        shown: From a value to what Gymnasium shows, where a value is no element of a Gymnasium space.
    """

    name: str
    description: str
    space: Callable[[], Any]
    value: Callable[[Any, Any], Any] | None = None
    of_cost: Callable[[Any, float], Any] | None = None
    shown: Callable[[Any], Any] = lambda value: value

    def seen(self, task: Any, state: Any) -> Any:
        """Return what a policy sees of a state.

        Raises:
            IrgymError: It is made of the state's cost.
        """
        if self.value is None:
            raise IrgymError(
                f"the observation {self.name} needs the cost of each state, which policies act without: "
                "choose another"
            )
        return self.value(task, state)

    def element(self, task: Any, state: Any, cost: Callable[[], float]) -> Any:
        """Return the element of the Gymnasium space for a state; `cost` is called only if it is needed."""
        if self.of_cost is not None:
            return self.of_cost(task, cost())
        return self.shown(self.seen(task, state))


def array_view(
    name: str,
    description: str,
    shape: tuple[int, ...],
    value: Callable[[Any, Any], Any],
    low: float = -np.inf,
    high: float = np.inf,
) -> ObservationView:
    """Return the view whose values are float32 arrays of one shape, which ends the description."""
    return ObservationView(name, f"{description}; float32, {list(shape)}", box(shape, low, high), value)


def box(shape: tuple[int, ...], low: float = -np.inf, high: float = np.inf) -> Callable[[], Any]:
    """Return what returns the Gymnasium space of all float32 arrays of a shape, between two numbers."""
    # Imported on use: children that measure have no need of it.
    return lambda: import_module("gymnasium.spaces").Box(low, high, shape, np.float32)


def graph_space(node: int, edge: int, low: float, high: float) -> "spaces.Graph":
    """Return the Gymnasium space of such graphs.

    Args:
        node: F, the length of a node's features.
        edge: G, the length of an edge's features.
        low: Least value of a feature.
        high: Greatest value of a feature.
    """
    from gymnasium import spaces

    return spaces.Graph(box((node,), low, high)(), box((edge,), low, high)())


def views_of(*views: ObservationView) -> dict[str, ObservationView]:
    """Return views by their names, the default first."""
    return {view.name: view for view in views}


def view_named(views: Mapping[str, ObservationView], name: str) -> ObservationView:
    """Return one of some views.

    Raises:
        IrgymError: There is none of that name; the message lists those that exist.
    """
    if name not in views:
        raise IrgymError(f"there is no observation {name!r}: choose among {', '.join(views)}")
    return views[name]


def observed(views: Mapping[str, ObservationView], names: str, task: Any, state: Any) -> Any:
    """Return what a policy sees of a state.

    Args:
        views: Those of the task, the default first.
        names: The name of a view, empty for the default; or several, separated by commas, for their values
            one after the other, shape [sum of their lengths]. One of them may be a graph: it gets the values
            of the others as its state.
        task: The program.
        state: One of its states.

    Raises:
        IrgymError: There is no such view, a policy cannot see it, or they cannot be joined.
    """
    if "," not in names:
        return (view_named(views, names) if names else next(iter(views.values()))).seen(task, state)
    chosen = [view_named(views, name.strip()) for name in names.split(",")]
    arrays: list[NDArray[np.float32]] = []
    graph: GraphObservation | None = None
    for view in chosen:
        part: Any = view.seen(task, state)
        if isinstance(part, np.ndarray):
            arrays.append(np.ravel(cast(NDArray[np.float32], part)))
        elif graph is None and (seen := as_graph(part)) is not None:
            graph = seen
        else:
            raise IrgymError(f"the observation {view.name} cannot be joined with others: choose it alone")
    values = np.concatenate(arrays, dtype=np.float32)
    return values if graph is None else graph.joined(values)
