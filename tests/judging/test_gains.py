"""Gains of groups of rewrites: how groups are made and timed in turn, and gains that noise hides."""

import random
from collections import Counter
from itertools import pairwise

import pytest
from rewriting import Rewriting, cost
from staged import Staged, Stages

from irgym.base.errors import IrgymError
from irgym.core.objective import TIME
from irgym.core.schedule import Schedule, replay
from irgym.judging.gains import Gain, Group, gain_cells, gains_of, groups_of, join
from irgym.judging.statistics import median_interval

TASK = Staged("ssssttttbst")
TEXT = "merge@x0 merge@x0 merge@x0 merge@x4 merge@x4 merge@x4 fuse@x0 split@x8 stop"


def schedule(text: str = TEXT) -> Schedule:
    return Schedule.parse(text, TASK.space)


def state_cost(task: Staged, text: str) -> float:
    """Return what the toy takes after a schedule, in microseconds."""
    return cost(replay(task, schedule(text)))


def test_rewrites_of_one_rule_are_a_group():
    groups = groups_of(TASK, schedule())
    assert [(group.begin, group.end, group.label) for group in groups] == [
        (0, 6, "merge x 6"),
        (6, 7, "fuse"),
        (7, 8, "split"),
        (8, 9, "stop"),
    ]


def test_joined_groups_name_few_kinds():
    groups = [Group(place, place + 1, Counter([f"rule{place % 6}"])) for place in range(12)]
    joined = join(groups, 1)
    assert [group.label for group in joined] == ["rule0 x 2, rule1 x 2, rule2 x 2, 6 others"]
    for most in (1, 5, 11, 12, 40):
        fewer = join(groups, most)
        assert len(fewer) == min(most, 12)
        assert [group.begin for group in fewer] == [0, *(group.end for group in fewer[:-1])]
        assert fewer[-1].end == 12


def test_groups_are_timed_in_turn():
    bench = Stages()
    gains = gains_of(bench, TASK, schedule())
    assert [gain.label for gain in gains] == ["merge x 6", "fuse@x0", "split@x8"], "stop changes nothing"
    assert gains[0].actions == tuple(TEXT.split()[:6])
    written = state_cost(TASK, "")
    merged = state_cost(TASK, " ".join(TEXT.split()[:6]))
    assert bench.calls[0] == (written, merged) and len(bench.calls) == 3
    assert gains[0].before == 1e3 * written and gains[0].after == 1e3 * merged
    assert gains[0].ratio == written / merged and gains[0].share == pytest.approx(1 - merged / written)
    for gain, after in pairwise(gains):
        assert gain.after == after.before


def test_where_time_is_short_groups_are_joined():
    slow = Stages(seconds=6.0)
    gains = gains_of(slow, TASK, schedule(), limit_s=12.0, clock=slow.clock())
    assert [gain.label for gain in gains] == ["merge x 6", "fuse, split"]
    slow = Stages(seconds=100.0)
    gains = gains_of(slow, TASK, schedule(), limit_s=1.0, clock=slow.clock())
    assert len(gains) == 2 and sum(len(gain.actions) for gain in gains) == 8


def test_a_stage_that_does_not_run_is_joined_to_the_next():
    fused = state_cost(TASK, " ".join(TEXT.split()[:7]))
    gains = gains_of(Stages(broken=frozenset({fused})), TASK, schedule())
    assert [gain.label for gain in gains] == ["merge x 6", "fuse, split"]
    last = state_cost(TASK, TEXT)
    with pytest.raises(IrgymError, match="does not run"):
        gains_of(Stages(broken=frozenset({last})), TASK, schedule())


def test_known_costs_are_told_without_a_bench():
    task = Rewriting(TASK.ops)
    bench = Stages()
    gains = gains_of(bench, task, schedule())
    assert not bench.calls and [gain.gain for gain in gains] == [15.0, 1.0, -1.0, 0.0]
    assert all(gain.low == gain.ratio == gain.high for gain in gains)
    assert gains_of(bench, TASK, Schedule()) == ()


def test_gains_within_the_noise_are_called_noise():
    def cells(ratio: float, low: float, high: float) -> str:
        return gain_cells([Gain("x", ("x",), 1e6 * ratio, 1e6, ratio, low, high)], TIME)[0][-1]

    assert cells(1.25, 1.2, 1.3) == "+20.0%" and cells(0.8, 0.7, 0.9) == "-25.0%"
    assert cells(1.02, 0.97, 1.04) == "noise (±3.8%)"
    assert cells(1.004, 1.003, 1.005) == "noise (±1.0%)", "differences that come from where arrays lie"
    assert cells(0.97, 0.9, 1.0) == "noise (±11.1%)"


def test_the_interval_of_a_median():
    assert median_interval([5.0, 1.0, 4.0, 2.0, 3.0]) == (1.0, 5.0)
    assert median_interval(range(9)) == (1, 7) and median_interval(range(15)) == (3, 11)
    assert median_interval([2.0]) == (2.0, 2.0)
    rng, held = random.Random(3), 0
    for _ in range(2000):
        low, high = median_interval([rng.expovariate(1.0) for _ in range(15)])
        held += low <= 0.6931 <= high
    assert 0.95 < held / 2000 < 0.98
