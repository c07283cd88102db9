import itertools
import math

import pytest

from irgym.core.errors import IrgymError
from irgym.core.reward import (
    EpisodeCosts,
    LogSpeedup,
    NegativeCost,
    RelativeImprovement,
    Shaped,
    ThroughputGain,
)


def test_throughput_gains_add_up_to_the_whole_episode():
    costs = [100.0, 80.0, 120.0, 50.0]
    steps = [
        ThroughputGain()(EpisodeCosts(100.0, before, after, 25.0), final=False)
        for before, after in itertools.pairwise(costs)
    ]
    whole = ThroughputGain(every_step=False)(EpisodeCosts(100.0, 120.0, 50.0, 25.0), final=True)
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
    assert shaped.shaped and shaped.every_step == reward.every_step
