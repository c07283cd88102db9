import itertools
import math

import pytest
from steps import paid

from irgym.base.errors import IrgymError
from irgym.core.reward import (
    EpisodeCosts,
    LogSpeedup,
    NegativeCost,
    PeriodicImprovement,
    RelativeImprovement,
    Saving,
    Shaped,
    ThroughputGain,
    asks,
)


def test_throughput_gains_add_up_to_the_whole_episode():
    costs = [100.0, 80.0, 120.0, 50.0]
    steps = [
        paid(ThroughputGain(), EpisodeCosts(100.0, before, after, 25.0), final=False)
        for before, after in itertools.pairwise(costs)
    ]
    whole = paid(ThroughputGain(every=0), EpisodeCosts(100.0, 100.0, 50.0, 25.0), final=True)
    assert sum(steps) == pytest.approx(whole) == pytest.approx(0.25)


def test_a_failed_state_has_no_throughput():
    assert paid(ThroughputGain(), EpisodeCosts(100.0, 50.0, math.inf, 25.0), final=True) == -0.5


def test_throughput_needs_an_ideal_cost():
    with pytest.raises(IrgymError, match="ideal"):
        paid(ThroughputGain(), EpisodeCosts(1.0, 1.0, 1.0), final=True)


def test_log_speedup_pays_at_the_end_only():
    reward = LogSpeedup()
    assert paid(reward, EpisodeCosts(100.0, 100.0, 100.0, asked=False), final=False) == 0.0
    assert paid(reward, EpisodeCosts(100.0, 100.0, 10.0), final=True) == pytest.approx(1.0)
    assert paid(reward, EpisodeCosts(100.0, 100.0, math.inf), final=True) == reward.failure


def test_log_speedups_of_single_steps_add_up_to_that_of_the_episode():
    costs = [100.0, 80.0, 120.0, 50.0]
    steps = [
        paid(LogSpeedup(every=1), EpisodeCosts(100.0, before, after), final=False)
        for before, after in itertools.pairwise(costs)
    ]
    assert sum(steps) == pytest.approx(math.log10(2.0))


def test_relative_improvement_recovers_after_a_failure():
    reward = RelativeImprovement()
    assert paid(reward, EpisodeCosts(100.0, 80.0, 60.0), final=False) == pytest.approx(0.2)
    assert paid(reward, EpisodeCosts(100.0, 80.0, math.inf), final=False) == -1.0
    assert paid(reward, EpisodeCosts(100.0, math.inf, 60.0), final=False) == pytest.approx(0.4)


def test_improvement_in_percent_every_fifth_step_and_a_tenth_between():
    reward = PeriodicImprovement()
    costs = [100.0, 90.0, 95.0, 80.0, 70.0, 60.0, 10.0, 45.0]  # the second of which is never asked for
    last, rewards = costs[0], []
    for step, cost in enumerate(costs[1:], start=1):
        final = step == len(costs) - 1
        asked = asks(reward.every, step, final)
        costs_known = EpisodeCosts(100.0, last, cost if asked else last, asked=asked)
        rewards.append(paid(reward, costs_known, final=final))
        last = cost if asked else last
    assert rewards == pytest.approx([0.1, 0.1, 0.1, 0.1, 40.0, 0.1, 15.0])
    assert paid(reward, EpisodeCosts(100.0, 60.0, math.inf), final=True) == reward.failure
    assert paid(reward, EpisodeCosts(100.0, math.inf, 60.0), final=True) == pytest.approx(40.0)


@pytest.mark.parametrize(("every", "steps"), [(0, [0, 7]), (1, list(range(8))), (5, [0, 5, 7])])
def test_costs_are_requested_every_few_steps_and_at_the_end(every, steps):
    assert [step for step in range(8) if asks(every, step, step == 7)] == steps


def test_negative_cost_is_paid_at_every_step():
    reward = NegativeCost(scale=10.0)
    assert paid(reward, EpisodeCosts(100.0, 80.0, 60.0), final=False) == pytest.approx(-6.0)
    assert paid(reward, EpisodeCosts(100.0, 80.0, 60.0), final=True) == pytest.approx(-6.0)
    assert paid(reward, EpisodeCosts(100.0, 80.0, math.inf), final=True) == -10.0


def test_a_saving_is_paid_as_it_is_or_as_a_share_of_what_a_pipeline_saves():
    costs = [100.0, 90.0, 95.0, 40.0]
    for reward, reference, wanted in [
        (Saving(), None, [10.0, -5.0, 55.0]),
        (Saving("oz"), 60.0, [0.25, -0.125, 1.375]),
        (Saving("oz"), 100.0, [0.1, -0.05, 0.55]),
        (Saving("oz"), 120.0, [0.1, -0.05, 0.55]),
        (Saving("oz"), math.inf, [0.1, -0.05, 0.55]),
        (Saving("oz"), None, [0.1, -0.05, 0.55]),
    ]:
        steps = [
            paid(reward, EpisodeCosts(100.0, before, after, reference=reference), final=False)
            for before, after in itertools.pairwise(costs)
        ]
        assert steps == pytest.approx(wanted)
    assert paid(Saving("oz", failure=-2.0), EpisodeCosts(100.0, 90.0, math.inf), final=True) == -2.0
    assert paid(Saving(), EpisodeCosts(100.0, 90.0, 90.0, asked=False), final=False) == 0.0


@pytest.mark.parametrize("gamma", [1.0, 0.9])
@pytest.mark.parametrize("reward", [RelativeImprovement(), LogSpeedup()])
def test_shaping_changes_every_discounted_return_by_the_first_potential_alone(reward, gamma):
    costs, potentials = [100.0, 80.0, 120.0, 50.0], [-1.0, -0.7, -1.3, -0.4]
    shaped = Shaped(reward, gamma=gamma, weight=2.0)
    plain = with_shaping = 0.0
    for place, (before, after) in enumerate(itertools.pairwise(costs)):
        step = EpisodeCosts(100.0, before, after, None, (potentials[place], potentials[place + 1]))
        final = place == len(costs) - 2
        plain += gamma**place * paid(reward, step, final)
        with_shaping += gamma**place * paid(shaped, step, final)
    assert with_shaping - plain == pytest.approx(-2.0 * potentials[0])
    assert shaped.shaped and shaped.every == reward.every
