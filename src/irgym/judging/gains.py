"""Gains of the actions of a schedule, in groups: known exactly, or timed in turn with the state before."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from irgym.base.errors import IrgymError
from irgym.core.bench import Bench
from irgym.core.capabilities import Stages, ask
from irgym.core.objective import Objective
from irgym.core.schedule import Schedule, states_along
from irgym.core.task import Task
from irgym.judging.statistics import median_interval
from irgym.judging.units import cost_text

MOST = 24
"""Most groups that are timed."""

LIMIT_S = 15.0
"""Time that timing the groups may take: with less than that left, groups are joined."""

SURE = 0.01
"""Relative difference that says nothing however many the rounds: it may come from where arrays lie."""

NAMED = 3
"""Most kinds of actions that the label of a group names."""


@dataclass(frozen=True)
class Group:
    """Some consecutive actions of a schedule.

    Attributes:
        begin: Place of the first.
        end: Place after the last.
        kinds: How many there are of each kind, by name.
    """

    begin: int
    end: int
    kinds: Counter[str]

    @property
    def label(self) -> str:
        """The kinds and their numbers in words, such as `conv-relu x 25`; of many kinds the most frequent."""
        shown = dict(self.kinds.most_common(NAMED)) if len(self.kinds) > NAMED + 1 else self.kinds
        named = [name if count == 1 else f"{name} x {count}" for name, count in shown.items()]
        others = sum(self.kinds.values()) - sum(shown.values())
        return ", ".join([*named, f"{others} others"] if others else named)

    def joined(self, following: "Group") -> "Group":
        """Return the actions of this group and of the one after it."""
        return Group(self.begin, following.end, self.kinds + following.kinds)


@dataclass(frozen=True)
class Gain:
    """Gain of a group of consecutive actions.

    Attributes:
        label: The group in words: the text of its action, or kinds and their numbers.
        actions: Texts of its actions.
        before: Cost before them: the median of some rounds where costs are timed.
        after: Cost after them, timed in turn.
        ratio: Cost before over cost after: the median of the rounds; None where a known cost is 0.
        low: Lower end of the median's 95 % confidence interval; as `ratio` where costs are known.
        high: Upper end.
    """

    label: str
    actions: tuple[str, ...]
    before: float
    after: float
    ratio: float | None
    low: float | None
    high: float | None

    @property
    def gain(self) -> float:
        """Cost before minus cost after."""
        return self.before - self.after

    @property
    def share(self) -> float:
        """Gain as a share of the cost before, by the median of the rounds."""
        return 0.0 if self.ratio is None else 1.0 - 1.0 / self.ratio

    @property
    def clear(self) -> bool:
        """Whether a gain or a loss that was timed stands out of the noise."""
        if self.low is None or self.high is None:
            return False
        return self.low > 1.0 + SURE or self.high < 1.0 / (1.0 + SURE)


def groups_of(task: Task[Any], schedule: Schedule) -> list[Group]:
    """Return the actions of a schedule in groups.

    Consecutive rewrites by one rule, at several candidates, are one group; any other action is alone.
    """
    groups: list[Group] = []
    for place, action in enumerate(schedule.actions):
        kind = task.space.kinds[action.kind]
        group = Group(place, place + 1, Counter([kind.name]))
        if kind.candidates and groups and groups[-1].kinds.keys() == {kind.name}:
            groups[-1] = groups[-1].joined(group)
        else:
            groups.append(group)
    return groups


def join(groups: Sequence[Group], most: int) -> list[Group]:
    """Return at most some number of groups: neighbours with the fewest actions are joined first."""
    left = list(groups)
    while len(left) > max(most, 1):
        sizes = [after.end - before.begin for before, after in pairwise(left)]
        place = sizes.index(min(sizes))
        left[place : place + 2] = [left[place].joined(left[place + 1])]
    return left


def gains_of(
    bench: Bench,
    task: Task[Any],
    schedule: Schedule,
    limit_s: float = LIMIT_S,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[Gain, ...]:
    """Return what the actions of a schedule gain, in groups.

    Nothing where states know no costs, and the task does not offer to time what is on the way.

    Args:
        bench: Where groups are timed.
        task: The program.
        schedule: A schedule whose last program runs.
        limit_s: Time that this may take, in seconds; the last group may go over it.
        clock: Tells the time, in seconds.

    Raises:
        ScheduleError: An action does not apply.
        IrgymError: The last program does not run.
    """
    states = states_along(task, schedule)
    texts = tuple(task.space.text(action) for action in schedule.actions)
    groups = groups_of(task, schedule)
    costs = [known.cost for state in states if (known := task.job(state).known) is not None and known.ok]
    if len(costs) == len(states):
        return tuple(_known(group, texts, costs) for group in groups)
    stages = ask(task, Stages) if task.objective.timed else None
    if stages is None:
        return ()
    changing = [
        group
        for group in groups
        if not task.space.kinds[schedule.actions[group.begin].kind].ends
        or task.key(states[group.begin]) != task.key(states[group.end])
    ]
    return _timed(bench, stages, states, texts, changing, limit_s, clock)


def _known(group: Group, texts: Sequence[str], costs: Sequence[float]) -> Gain:
    before, after = costs[group.begin], costs[group.end]
    ratio = before / after if before and after else None
    return Gain(
        label_of(group, texts), tuple(texts[group.begin : group.end]), before, after, ratio, ratio, ratio
    )


def _timed(
    bench: Bench,
    stages: Stages,
    states: Sequence[Any],
    texts: Sequence[str],
    groups: Sequence[Group],
    limit_s: float,
    clock: Callable[[], float],
) -> tuple[Gain, ...]:
    """Time the programs before and after each group in turn; groups are joined where time is short."""
    begin, calls = clock(), 0
    left, gains = join(groups, MOST), list[Gain]()
    while left:
        spent = clock() - begin
        affordable = int((limit_s - spent) * calls / max(spent, 1e-9)) if calls else MOST
        first = join(left, affordable)[0]
        others = [group for group in left if group.begin >= first.end]
        calls += 1
        try:
            rounds: list[tuple[float, float]] = bench.call(
                stages.stage_call(states[first.begin], states[first.end])
            )
        except IrgymError:
            # Not every program on the way must run: what makes it run again belongs to the group.
            if not others:
                raise
            left = [first.joined(others[0]), *others[1:]]
            continue
        gains.append(_of_rounds(first, texts, rounds))
        left = others
    return tuple(gains)


def _of_rounds(group: Group, texts: Sequence[str], rounds: Sequence[tuple[float, float]]) -> Gain:
    before, after = (median(times) for times in zip(*rounds, strict=True))
    ratios = [first / second for first, second in rounds]
    actions = tuple(texts[group.begin : group.end])
    return Gain(label_of(group, texts), actions, before, after, median(ratios), *median_interval(ratios))


def label_of(group: Group, texts: Sequence[str]) -> str:
    """Return the text of a group's one action, or its several ones in words."""
    return texts[group.begin] if group.end == group.begin + 1 else group.label


def gain_headings(objective: Objective) -> list[str]:
    """Return the headings of the table of gains."""
    if objective.timed:
        return ["rewrites", "before", "after", "gain"]
    return ["action", objective.name, "gain", "share"]


def gain_cells(gains: Sequence[Gain], objective: Objective) -> list[list[str]]:
    """Return the table of gains, a row a group; what the noise hides is said to be noise."""
    if objective.timed:
        return [
            [gain.label, *(cost_text(cost, objective) for cost in (gain.before, gain.after)), _percent(gain)]
            for gain in gains
        ]
    whole = sum(gain.gain for gain in gains)
    return [
        [
            gain.label,
            *(cost_text(value, objective) for value in (gain.after, gain.gain)),
            f"{gain.gain / whole:.1%}" if whole > 0 else "-",
        ]
        for gain in gains
    ]


def _percent(gain: Gain) -> str:
    if gain.clear or gain.low is None or gain.high is None:
        return f"{gain.share:+.1%}"
    return f"noise (±{max(SURE, abs(1 - 1 / gain.low), abs(1 - 1 / gain.high)):.1%})"
