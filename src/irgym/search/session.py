"""Search sessions: the budget, the costs, and the best schedules of one search."""

import math
import time
from bisect import insort
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, NoReturn

from irgym.core import capabilities
from irgym.core.actions import Action, Mask
from irgym.core.cost import Evaluator, Job
from irgym.core.schedule import Candidate, original_of
from irgym.core.task import Task
from irgym.search.branches import few, some
from irgym.search.budget import Budget
from irgym.search.estimating import Estimating
from irgym.search.progress import SearchProgress
from irgym.search.request import SearchRequest
from irgym.search.result import SearchResult, TracePoint

TIMED_BATCH = 16
"""Greatest number of states evaluated between two looks at the clock."""

STALL = 1_000
"""A search that proposes this many states in a row without a new one has seen all that it can reach."""

TRANSITIONS = 8192
"""Number of transitions and masks that a session remembers."""

FINALISTS = 8
"""Number of programs that a search hands on to be measured again; one if costs are exact."""

ANSWER = 2
"""Least number of evaluations, however short the time: the original program and the first proposal."""

EXPANSION = 64
"""Greatest number of transitions made between two looks at the clock."""

EXPANSION_S = 0.25
"""Seconds of transitions after which fewer are made between two looks."""


class Exhausted(Exception):
    """The budget is spent, or the strategy finds nothing new. Ends `Strategy.run`; never reaches the user."""


class Session:
    """Evaluates the nodes that a strategy proposes, each program once, until the budget is spent.

    The nodes of a search are candidates: states with the schedules that lead to them.

    Attributes:
        task: The program.
        policy: The policy that may guide the search, or None.
        history: Costs measured in the past, from which a strategy may learn; None for none.
        root: The initial state.
        finalists: The cheapest distinct programs so far, ascending: pairs of cost and node.
        first_cost: Cost of the first state evaluated.
        evaluations: Number of distinct states evaluated.
        trace: Improvements so far.
        whole: Whether all actions of all nodes were considered.
        known: Nodes found before, from which a search may go on; they are evaluated first.
        begun: Nodes that the search began with; see `SearchResult.begun`.
        known_costs: Whether states know their costs: evaluating them takes no time.
    """

    def __init__(self, task: Task[Any], evaluator: Evaluator, request: SearchRequest) -> None:
        """Start the clock."""
        self.task = task
        self.evaluator = evaluator
        self.policy = request.policy
        self.history = request.history
        self.root = original_of(task)
        self.finalists: list[tuple[float, Candidate]] = []
        self.first_cost = math.inf
        self.evaluations = 0
        self.trace: list[TracePoint] = []
        self.whole = True
        self.known: list[Candidate] = []
        self.begun: list[Candidate] = []
        self._budget = request.budget
        self._costs: dict[str, float] = {}
        self._measuring = Estimating(task, evaluator)
        self._stalled = 0
        self._expansion = EXPANSION
        self._last = 0, 0.0  # number of states of the last batch, and seconds that evaluating them took
        self._observer = request.observer
        self._evaluated = request.evaluated
        # Changed copies of one schedule share most of their transitions.
        self._mask = lru_cache(maxsize=TRANSITIONS)(task.mask)
        self._after: dict[tuple[Any, Action], Any] = {}
        self.known_costs = task.job(self.root.state).known is not None
        self._start = time.perf_counter()

    @property
    def best_cost(self) -> float:
        """The least cost so far, infinite until some evaluation succeeds."""
        return self.finalists[0][0] if self.finalists else math.inf

    @property
    def seconds(self) -> float:
        """Wall-clock time since the session began."""
        return time.perf_counter() - self._start

    @property
    def left_s(self) -> float:
        """Seconds left; infinite if time does not limit the search."""
        return math.inf if self._budget.seconds is None else max(0.0, self._budget.seconds - self.seconds)

    @property
    def progress(self) -> float:
        """Share of the budget that is spent, from 0 to 1."""
        shares = [0.0]
        if self._budget.evaluations is not None:
            shares.append(self.evaluations / self._budget.evaluations)
        if self._budget.seconds is not None:
            shares.append(self.seconds / self._budget.seconds)
        return min(1.0, max(shares))

    @property
    def _spent(self) -> bool:
        """Whether the budget is spent: time alone only after `ANSWER` evaluations."""
        evaluations, seconds = self._budget.evaluations, self._budget.seconds
        if evaluations is not None and self.evaluations >= evaluations:
            return True
        return seconds is not None and self.seconds >= seconds and self.evaluations >= ANSWER

    @property
    def _late(self) -> bool:
        """Whether to make no further transition; where states know their costs, one makes a proposal."""
        return self._spent or (self.known_costs and self.left_s <= 0.0 and bool(self._after))

    def costs(self, nodes: Sequence[Candidate]) -> list[float]:
        """Return the cost of each node, infinite for failures; programs seen before cost nothing.

        Raises:
            Exhausted: The budget is spent. What was evaluated until then is recorded.
        """
        jobs = [self.task.job(node.state) for node in nodes]
        try:
            return self._costs_of(nodes, jobs)
        finally:
            if self._evaluated is not None:
                found = [place for place, job in enumerate(jobs) if job.schedule in self._costs]
                costs = [self._costs[jobs[place].schedule] for place in found]
                self._evaluated([nodes[place] for place in found], costs)

    def _costs_of(self, nodes: Sequence[Candidate], jobs: Sequence[Job]) -> list[float]:
        """Evaluate the programs that are new, and return the cost of each node."""
        fresh: dict[str, tuple[Candidate, Job]] = {}
        for node, job in zip(nodes, jobs, strict=True):
            if job.schedule not in self._costs:
                fresh.setdefault(job.schedule, (node, job))
        self._stalled = 0 if fresh else self._stalled + max(1, len(nodes))
        waiting = list(fresh.values())
        while waiting:
            batch = waiting[: self._batch_size()]
            waiting = waiting[len(batch) :]
            started = time.perf_counter()
            pairs = [(node.state, job) for node, job in batch]
            found = self._measuring.costs(pairs, self.best_cost)
            self._last = len(batch), time.perf_counter() - started
            for (node, job), (cost, measured) in zip(batch, found, strict=True):
                self._record(node, job, cost, measured)
            self._tell()
            if self._spent:
                raise Exhausted
        if self._stalled >= STALL or self._spent:
            raise Exhausted
        return [self._costs[job.schedule] for job in jobs]

    def part_request(self, share: float, seed: int) -> SearchRequest:
        """Return the request of a search of a part, on a share of the budget; `count_part` counts the result.

        Raises:
            Exhausted: The budget is spent.
        """
        evaluations, seconds = self._budget.evaluations, self._budget.seconds
        if evaluations is not None:
            evaluations = min(max(1, int(share * evaluations)), evaluations - self.evaluations)
        if seconds is not None:
            seconds = min(share * seconds, seconds - self.seconds)
        if (evaluations is not None and evaluations < 1) or (seconds is not None and seconds <= 0):
            raise Exhausted

        def observe(progress: SearchProgress) -> None:
            self._tell(progress.evaluations)

        return SearchRequest(Budget(evaluations, seconds), seed, self.policy, self.history, observe)

    def count_part(self, result: SearchResult) -> None:
        """Count the evaluations of a search of a part."""
        self.evaluations += result.evaluations

    def identity(self, node: Candidate) -> Hashable:
        """Return the identity of a node's state; equal states have equal ones."""
        return self.task.identity(node.state)

    def knows(self, node: Candidate) -> bool:
        """Say whether the cost of a node's program is known already."""
        return self.task.key(node.state) in self._costs

    def ran(self, node: Candidate) -> bool:
        """Say whether a node's program was evaluated, and ran."""
        return math.isfinite(self._costs.get(self.task.key(node.state), math.inf))

    def _tell(self, further: int = 0) -> None:
        """Tell the observer where the search stands.

        Args:
            further: Evaluations of a search of a part that is under way.
        """
        if self._observer is not None:
            seconds = self._budget.seconds
            left = None if seconds is None else self.left_s
            self._observer(SearchProgress(self.evaluations + further, self.best_cost, self.first_cost, left))

    def _batch_size(self) -> int:
        """Return how many states to evaluate before looking at the budget again."""
        size = (
            len(self._costs) + TIMED_BATCH if self._budget.evaluations is None else self._budget.evaluations
        )
        size -= self.evaluations
        if self.known_costs:
            return max(1, min(size, EXPANSION))
        if self._budget.seconds is not None:
            # A first measurement may take seconds: sizes grow step by step.
            count, took_s = self._last
            pace = max(self.seconds / max(1, self.evaluations), took_s / max(1, count))
            size = min(size, TIMED_BATCH, max(1, 2 * count), int(self.left_s / pace))
        return max(1, size)

    def _record(self, node: Candidate, job: Job, cost: float, measured: bool) -> None:
        self._costs[job.schedule] = cost
        self.evaluations += 1
        if self.evaluations == 1:
            self.first_cost = cost
        if cost < self.best_cost:
            self.trace.append(TracePoint(self.evaluations, self.seconds, cost))
        if measured and math.isfinite(cost):
            insort(self.finalists, (cost, node), key=itemgetter(0))
            # Exact costs have no noise that could flatter the first.
            del self.finalists[1 if self.task.objective.exact else FINALISTS :]

    def actions(self, node: Candidate) -> list[Action]:
        """Return the actions that lead on from a node; none at the horizon.

        Those that end the episode are left out: they leave the program as it is. Of very many, a random
        choice of `branches.BRANCHES` is returned, always the same one of a node.
        """
        if self._ended(node):
            return []
        space = self.task.space
        mask = self.onward(node)
        if few(space, mask):
            return space.legal(mask)
        self.whole = False
        return some(space, mask, node.schedule.text(space))

    def countable(self, node: Candidate) -> bool:
        """Say whether the actions that lead on from a node are at most `branches.BRANCHES`."""
        return self._ended(node) or few(self.task.space, self.onward(node))

    def _ended(self, node: Candidate) -> bool:
        return len(node.schedule) >= self.task.horizon or self.task.terminal(node.state)

    def mask(self, node: Candidate) -> Mask:
        """Return which actions apply to a node."""
        return self._mask(node.state)

    def onward(self, node: Candidate) -> Mask:
        """Return the mask of a node without the kinds that end the episode."""
        return self.task.space.onward(self._mask(node.state))

    def children(self, node: Candidate, *, macros: bool = True) -> list[Candidate]:
        """Return the nodes one action further: see `expand`."""
        return self.expand([node], macros=macros)

    def expand(self, nodes: Iterable[Candidate], *, macros: bool = True) -> list[Candidate]:
        """Return the nodes one action further than any of some nodes, in order.

        Args:
            nodes: The nodes.
            macros: Whether to take actions too that stand for several others.

        Raises:
            Exhausted: The time is up.
        """
        moves = [
            (node, action)
            for node in nodes
            for action in self.actions(node)
            if macros or not capabilities.is_macro(self.task, action)
        ]
        return self._stepped(moves)

    def _stepped(self, moves: Sequence[tuple[Candidate, Action]]) -> list[Candidate]:
        """Return the nodes after some moves, made as many at a time as a look at the clock allows.

        Raises:
            Exhausted: The time is up. Where states know their costs, those reached until then are evaluated.
        """
        after: list[Candidate] = []
        while len(after) < len(moves):
            # Where transitions are slow, a wide expansion alone can take longer than the budget.
            if after and self.progress >= 1.0:
                self.give_up(after)
            part = moves[len(after) : len(after) + self._expansion]
            started = time.perf_counter()
            states = self.task.step_batch([node.state for node, _ in part], [action for _, action in part])
            self._adapt(time.perf_counter() - started)
            after += _nodes_after(part, states)
        return after

    def give_up(self, reached: Sequence[Candidate]) -> NoReturn:
        """End the search; nodes that it has reached are evaluated before where states know their costs.

        Raises:
            Exhausted: Always.
        """
        if self.known_costs:
            self.costs(reached)
        raise Exhausted

    def step(self, node: Candidate, action: Action) -> Candidate:
        """Return the node after a legal action; see `steps`."""
        return self.steps([(node, action)])[0]

    def steps(self, moves: Sequence[tuple[Candidate, Action]]) -> list[Candidate]:
        """Return the nodes after some legal actions, remembered ones at no cost.

        Raises:
            Exhausted: The time is up.
        """
        return self.begin(moves)()

    def begin(self, moves: Sequence[tuple[Candidate, Action]]) -> Callable[[], list[Candidate]]:
        """Begin what `steps` does; return a function that waits for the nodes.

        Raises:
            Exhausted: The time is up.
        """
        # Where transitions are slow, those between two evaluations can take longer than the budget.
        if self._late:
            raise Exhausted
        pairs = [(node.state, action) for node, action in moves]
        known = {pair: self._after[pair] for pair in pairs if pair in self._after}
        new = {pair: move for pair, move in zip(pairs, moves, strict=True) if pair not in known}
        wait = self._begun(list(new.values()))

        def after() -> list[Candidate]:
            made = dict(zip(new, wait(), strict=True))
            self._after |= made
            while len(self._after) > TRANSITIONS:
                del self._after[next(iter(self._after))]
            return _nodes_after(moves, [(made if pair in made else known)[pair] for pair in pairs])

        return after

    def _begun(self, moves: Sequence[tuple[Candidate, Action]]) -> Callable[[], list[Any]]:
        """Begin some moves; return a function that waits for the states. Too many are made before."""
        if not 1 < len(moves) <= self._expansion or not self.task.runs_beside:
            made = [node.state for node in self._stepped(moves)]
            return lambda: made
        started = time.perf_counter()
        tasks, states = [self.task] * len(moves), [node.state for node, _ in moves]
        wait = self.task.begin_many(tasks, states, [action for _, action in moves])

        def after() -> list[Any]:
            found = wait()
            self._adapt(time.perf_counter() - started)
            return found

        return after

    def _adapt(self, seconds: float) -> None:
        """Make fewer transitions between two looks at the clock if the last ones took long, else more."""
        slow = seconds > EXPANSION_S
        self._expansion = max(1, self._expansion // 2) if slow else min(EXPANSION, 2 * self._expansion)


def _nodes_after(moves: Sequence[tuple[Candidate, Action]], states: Sequence[Any]) -> list[Candidate]:
    """Return the nodes after some moves, which lead to these states."""
    return [
        Candidate(state, node.schedule.then(action))
        for (node, action), state in zip(moves, states, strict=True)
    ]


def unseen(session: Session, nodes: Iterable[Candidate], seen: set[Hashable]) -> list[Candidate]:
    """Return the nodes whose states are new, and add these to `seen`."""
    new: list[Candidate] = []
    for node in nodes:
        identity = session.identity(node)
        if identity not in seen:
            seen.add(identity)
            new.append(node)
    return new
