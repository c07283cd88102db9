"""Walks: ways through the states of a task, many of which a session takes forward together.

A walk is a generator. It yields a move, a node and a legal action; the node after it is sent back. So changes
of schedules read as if each were made alone, and a task that can spread its transitions gets those of all
walks at once, or of one half and then of the other where they run beside this process (see `core.lockstep`).
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from typing import TypeVar

from irgym.core.actions import Action
from irgym.core.lockstep import taking_turns
from irgym.core.schedule import Candidate
from irgym.search.session import Exhausted, Session

T = TypeVar("T")

Move = tuple[Candidate, Action]

Walk = Generator[Move, Candidate, T]


def together(session: Session, walks: Iterable[Walk[T]]) -> list[T]:
    """Return the results of walks that a session takes forward together, in their order.

    Where states know their costs, those that the walks have reached are evaluated when the time is up.

    Raises:
        Exhausted: The time is up.
    """
    going = dict(enumerate(walks))
    results: dict[int, T] = {}
    reached: dict[int, Candidate] = {}
    groups = deque[tuple[list[int], Callable[[], list[Candidate]] | None]](
        (group, None) for group in taking_turns(len(going), session.task.runs_beside)
    )
    try:
        while groups:
            group, wait = groups.popleft()
            if wait is not None:
                reached.update(zip(group, wait(), strict=True))
            moves: dict[int, Move] = {}
            for place in group:
                try:
                    walk, node = going[place], reached.get(place)
                    moves[place] = next(walk) if node is None else walk.send(node)
                except StopIteration as end:
                    results[place] = end.value
            if moves:
                groups.append((list(moves), session.begin(list(moves.values()))))
    except Exhausted:
        session.give_up(list(reached.values()))
    return [results[place] for place in sorted(results)]


def alone(session: Session, walk: Walk[T]) -> T:
    """Return the result of a walk.

    Raises:
        Exhausted: The time is up.
    """
    return together(session, [walk])[0]


def follow(
    session: Session, node: Candidate, actions: Iterable[Action], horizon: float | None = None
) -> Walk[list[Candidate]]:
    """Walk from `node` on along `actions`, without those that do not apply or do nothing; return the nodes.

    Args:
        session: The search.
        node: Where to begin.
        actions: Actions to apply.
        horizon: Greatest number of actions from the root on; by default the task's.
    """
    horizon = session.task.horizon if horizon is None else horizon
    path = [node]
    for action in actions:
        last = path[-1]
        if len(last.schedule) >= horizon or session.task.terminal(last.state):
            break
        if session.task.space.allows(session.mask(last), action):
            child = yield last, action
            if session.identity(child) != session.identity(last):
                path.append(child)
    return path
