import itertools
import math

import pytest

from irgym.base.errors import IrgymError
from irgym.core.reward import (
    EpisodeCosts,
    LogSpeedup,
    NegativeCost,
    PeriodicImprovement,
    RelativeImprovement,
    Shaped,
    ThroughputGain,
    asks,
)


def test_throughput_gains_add_up_to_the_whole_episode():
    costs = [100.0, 80.0, 120.0, 50.0]
    steps = [
        ThroughputGain()(EpisodeCosts(100.0, before, after, 25.0), final=False)
        for before, after in itertools.pairwise(costs)
    ]
    whole = ThroughputGain(every=0)(EpisodeCosts(100.0, 100.0, 50.0, 25.0), final=True)
    assert sum(steps) == pytest.approx(whole) == pytest.approx(0.25)


def test_a_failed_state_has_no_throughput():
    assert ThroughputGain()(EpisodeCosts(100.0, 50.0, math.inf, 25.0), final=True) == -0.5


def test_throughput_needs_an_ideal_cost():
    with pytest.raises(IrgymError, match="ideal"):
        ThroughputGain()(EpisodeCosts(1.0, 1.0, 1.0), final=True)


def test_log_speedup_pays_at_the_end_only():
    reward = LogSpeedup()
    assert reward(EpisodeCosts(100.0, 100.0, 10.0), final=False) == 0.0
    assert reward(EpisodeCosts(100.0, 20.0, 10.0), final=True) == pytest.approx(1.0)
    assert reward(EpisodeCosts(100.0, 20.0, math.inf), final=True) == reward.failure


def test_relative_improvement_recovers_after_a_failure():
    reward = RelativeImprovement()
    assert reward(EpisodeCosts(100.0, 80.0, 60.0), final=False) == pytest.approx(0.2)
    assert reward(EpisodeCosts(100.0, 80.0, math.inf), final=False) == -1.0
    assert reward(EpisodeCosts(100.0, math.inf, 60.0), final=False) == pytest.approx(0.4)


def test_improvement_in_percent_every_fifth_step_and_a_tenth_between():
    reward = PeriodicImprovement()
    costs = [100.0, 90.0, 95.0, 80.0, 70.0, 60.0, 10.0, 45.0]  # the second of which is never asked for
    last, paid = costs[0], []
    for step, cost in enumerate(costs[1:], start=1):
        final = step == len(costs) - 1
        asked = asks(reward.every, step, final)
        paid.append(reward(EpisodeCosts(100.0, last, cost if asked else last, asked=asked), final))
        last = cost if asked else last
    assert paid == pytest.approx([0.1, 0.1, 0.1, 0.1, 40.0, 0.1, 15.0])
    assert reward(EpisodeCosts(100.0, 60.0, math.inf), final=True) == reward.failure
    assert reward(EpisodeCosts(100.0, math.inf, 60.0), final=True) == pytest.approx(40.0)


@pytest.mark.parametrize(("every", "steps"), [(0, [0, 7]), (1, list(range(8))), (5, [0, 5, 7])])
def test_costs_are_requested_every_few_steps_and_at_the_end(every, steps):
    assert [step for step in range(8) if asks(every, step, step == 7)] == steps


def test_negative_cost_is_paid_at_every_step():
    reward = NegativeCost(scale=10.0)
    assert reward(EpisodeCosts(100.0, 80.0, 60.0), final=False) == pytest.approx(-6.0)
    assert reward(EpisodeCosts(100.0, 80.0, 60.0), final=True) == pytest.approx(-6.0)
    assert reward(EpisodeCosts(100.0, 80.0, math.inf), final=True) == -10.0


@pytest.mark.parametrize("gamma", [1.0, 0.9])
@pytest.mark.parametrize("reward", [RelativeImprovement(), LogSpeedup()])
def test_shaping_changes_every_discounted_return_by_the_first_potential_alone(reward, gamma):
    costs, potentials = [100.0, 80.0, 120.0, 50.0], [-1.0, -0.7, -1.3, -0.4]
    shaped = Shaped(reward, gamma=gamma, weight=2.0)
    plain = with_shaping = 0.0
    for place, (before, after) in enumerate(itertools.pairwise(costs)):
        step = EpisodeCosts(100.0, before, after, None, (potentials[place], potentials[place + 1]))
        final = place == len(costs) - 2
        plain += gamma**place * reward(step, final)
        with_shaping += gamma**place * shaped(step, final)
    assert with_shaping - plain == pytest.approx(-2.0 * potentials[0])
    assert shaped.shaped and shaped.every == reward.every
