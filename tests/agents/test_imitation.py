from dataclasses import replace
from itertools import product

import dials
import pytest
import torch

from irgym.agents.imitation import ImitationConfig, clone, search_schedules, transfer
from irgym.agents.ppo import PPOConfig
from irgym.agents.training import greedy_score
from irgym.core.errors import IrgymError
from irgym.core.schedule import Schedule, replay
from irgym.search import SEARCHES
from irgym.search.session import Budget

CONFIG = ImitationConfig(epochs=150, hidden=(64, 64), lr=3e-3)
PROBLEM = dials.problem(dials.CODES[7::30])


def schedule(text: str) -> Schedule:
    return Schedule.parse(text, dials.SPACE)


EVERY = [schedule(f"turn_0_{a} turn_1_{b} turn_2_{c}") for a, b, c in product(range(dials.DIGITS), repeat=3)]


def test_searches_find_schedules_for_each_program():
    found = search_schedules(
        PROBLEM.tasks[:2],
        PROBLEM.evaluator,
        SEARCHES.load("evolutionary")(),
        Budget(evaluations=150),
        seed=0,
        keep=2,
    )
    assert 2 <= len(found) <= 4 and len(set(found)) == len(found)
    for task in PROBLEM.tasks[:2]:
        costs = [m.cost for m in PROBLEM.evaluator.evaluate([task.job(replay(task, one)) for one in found])]
        assert min(costs) <= 200.0


def test_transfer_takes_the_cheapest_schedule_that_applies():
    long, inapplicable = schedule("turn_0_1 " * 1 + "turn_1_1 " * 3), schedule("stop")
    shown = transfer([long, inapplicable, *EVERY], PROBLEM.tasks, PROBLEM.evaluator)
    assert [demo.cost for demo in shown] == [100.0] * len(PROBLEM.tasks)


def test_transfer_says_when_nothing_runs():
    with pytest.raises(IrgymError, match="no schedule runs"):
        transfer([schedule("stop")], PROBLEM.tasks, PROBLEM.evaluator)


@pytest.mark.parametrize("actions", ["structured", "flat"])
def test_a_clone_repeats_what_it_was_shown_and_ppo_starts_from_it(actions, tmp_path):
    shown = transfer(EVERY, PROBLEM.tasks, PROBLEM.evaluator)
    policy = clone(replace(CONFIG, actions=actions), shown)
    assert greedy_score(policy, PROBLEM.tasks, PROBLEM) == pytest.approx(dials.BEST_RETURN)

    policy.save(tmp_path / "start.pt")
    config = PPOConfig(
        start=str(tmp_path / "start.pt"), actions=actions, hidden=(64, 64), lr=1e-9, lr_end=1e-9, episodes=8
    )
    learner = config.build(PROBLEM)
    learner.iterate()
    assert greedy_score(learner.policy(), PROBLEM.tasks, PROBLEM) == pytest.approx(dials.BEST_RETURN)
    with pytest.raises(IrgymError, match="another network"):
        replace(config, hidden=(32,)).build(PROBLEM).iterate()


def test_cloning_is_deterministic():
    shown = transfer(EVERY, PROBLEM.tasks, PROBLEM.evaluator)
    first, second = (clone(replace(CONFIG, epochs=3), shown) for _ in range(2))
    for left, right in zip(first.network.parameters(), second.network.parameters(), strict=True):
        assert torch.equal(left, right)
