import itertools
import math

import pytest

from irgym.core.errors import IrgymError
from irgym.core.reward import EpisodeCosts, LogSpeedup, RelativeImprovement, ThroughputGain


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
