import logging
from dataclasses import replace

import dials
import numpy as np
import pytest
import torch
import wild
from learners import SMALL
from trainings import contents, learns

from irgym.agents.algorithms.apex import ApexConfig, epsilons
from irgym.agents.checkpoint import restore
from irgym.agents.training import train
from irgym.base.errors import IrgymError
from irgym.conformance.training import check_training
from irgym.core.cost import Call
from irgym.core.reward import RelativeImprovement
from irgym.measure.cache import CostCache
from irgym.measure.evaluators import Measured
from irgym.measure.farm import LocalFarm
from irgym.measure.isolation.protocol import Limits
from irgym.networks.storage import difference
from irgym.policies.run_folder import RunFolder

LEARNS = ApexConfig(
    iterations=60,
    episodes=32,
    actors=2,
    updates=16,
    lr=2e-3,
    lr_end=1e-4,
    target_every=16,
    hidden=(64,),
    replay=10_000,
)
QUICK = replace(
    LEARNS, iterations=6, episodes=8, hidden=(16,), updates=4, minibatch=16, warmup=32, replay=128
)
CODES = dials.CODES[7::30]
LIMITS = Limits(timeout_s=1.0)


@pytest.fixture(scope="module")
def farm():
    with LocalFarm(1, LIMITS) as opened:
        yield opened


def on(farm, reward=None, cache=None):
    return replace(dials.problem(CODES, reward), evaluator=Measured(farm, cache))


def wild_on(farm, behaviour, cache=None):
    """The toy whose candidates behave so."""
    tasks = [wild.Wild(code, behaviour) for code in CODES]
    makers = [Call("wild:Wild", (code, behaviour)) for code in CODES]
    return replace(on(farm, cache=cache), tasks=tasks, makers=makers)


def trained(problem, config=QUICK, iterations=4):
    """Return all that a learner has come to after some iterations."""
    learner = config.build(problem)
    outcomes = [learner.iterate()[0] for _ in range(iterations)]
    return learner.state_dict(), [outcome.returns.tolist() for outcome in outcomes]


@pytest.mark.parametrize("reward", [None, RelativeImprovement()], ids=["at the end", "every step"])
def test_learns_the_dials(farm, reward):
    problem = on(farm, reward)
    best = dials.BEST_RETURN if reward is None else 7 / 8
    assert learns(LEARNS, problem, 0.9 * best)


def test_it_keeps_the_rules(farm):
    check_training(SMALL["apex"], on(farm))


def test_a_training_depends_on_the_seed_and_the_actors_and_not_on_the_workers(farm):
    alone = trained(on(farm))
    with LocalFarm(2, LIMITS) as two:
        assert not difference(trained(on(two)), alone)
    assert difference(trained(on(farm), replace(QUICK, seed=1)), alone)
    assert difference(trained(on(farm), replace(QUICK, actors=4)), alone)


def test_a_training_is_the_same_on_workers_of_a_scheduler(farm, tmp_path):
    pytest.importorskip("distributed")
    from farm_site import Site

    from irgym.measure.farm.dask import DaskFarm

    site = Site(tmp_path)
    try:
        site.serve()
        site.workers("anna")
        with DaskFarm(site.endpoint, LIMITS) as far:
            assert not difference(trained(on(far)), trained(on(farm)))
    finally:
        site.close()


def test_actors_differ_by_their_epsilons():
    config = replace(LEARNS, actors=8, epsilon=0.4, epsilon_exponent=7.0)
    assert epsilons(config) == pytest.approx([0.4 ** (1 + n) for n in range(8)])
    assert epsilons(replace(config, actors=1)) == [0.4]


def test_first_priorities_are_the_errors_that_the_actors_saw(farm):
    learner = replace(QUICK, warmup=100, alpha=1.0).build(on(farm, RelativeImprovement()))
    learner.iterate()
    size, steps = learner.replay.size, learner.replay.sample(2000, 0.0, np.random.default_rng(0))
    assert sorted(set(steps.places)) == list(range(size)) and learner.updates == 0
    with torch.no_grad():
        q = learner.network(steps.observations)[:, 0].gather(1, steps.choices[:, None])[:, 0]
        ahead = learner.network(steps.next_observations).masked_fill(~steps.next_legal, -torch.inf)
    following = torch.where(steps.discounts > 0, ahead.amax(-1)[:, 0], 0.0)
    errors = learner.scale.factor * steps.rewards + steps.discounts * following - q
    drawn = np.bincount(steps.places, minlength=size) / len(steps.places)
    priorities = np.zeros(size)
    priorities[steps.places] = errors.abs().numpy()
    assert priorities.std() > 0.1
    np.testing.assert_allclose(drawn, priorities / priorities.sum(), atol=2.01 / 2000)


class Stop(Exception):
    """An error that ends a training at a bad moment."""


class Ending(Measured):
    """Ends the training once the actors have been sent out so many times."""

    left = 5

    def run(self, calls):
        replies = super().run(calls)
        self.left -= 1
        if not self.left:
            raise Stop
        return replies


def test_a_resumed_run_equals_the_uninterrupted_one(farm, tmp_path):
    config = replace(QUICK, checkpoint_every=0.0, normalise_observations=True)
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    train(config, on(farm), whole)
    with pytest.raises(Stop):
        train(config, replace(on(farm), evaluator=Ending(farm)), broken)
    assert len(contents(broken)) == 4
    train(config, on(farm), broken, resume=True)
    assert contents(broken) == contents(whole)
    assert not difference(*[restore(RunFolder(run))["learner"] for run in (whole, broken)])


def test_recorded_costs_repeat_a_training_of_which_each_measurement_differs(farm, tmp_path):
    with CostCache(tmp_path / "costs.sqlite") as cache:
        first = trained(wild_on(farm, "scatter", cache))
        rows = cache.stats().rows
        farm.close()  # its process had remembered what it measured
        assert not difference(trained(wild_on(farm, "scatter", cache)), first)
        assert cache.stats().rows == rows > 20


@pytest.mark.parametrize(("behaviour", "words"), [("crash", "crash"), ("hang", "time-out")])
def test_an_actor_that_dies_costs_its_episodes(farm, behaviour, words, caplog):
    learner = QUICK.build(wild_on(farm, behaviour))
    steps, lost = 0, []
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            outcomes, _ = learner.iterate()
            steps += outcomes.steps
            lost.append(int(np.isinf(outcomes.first).sum()))
            assert len(outcomes.returns) == QUICK.episodes
            assert outcomes.failures == lost[-1] <= outcomes.evaluations
            assert not outcomes.returns[np.isinf(outcomes.first)].any()
    assert set(lost) <= {0, 4, 8} and 0 < sum(lost) < 24
    assert len(caplog.records) == sum(lost) // 4 and words in caplog.text
    assert learner.replay.size == min(steps, QUICK.replay) > 0


def test_the_time_limit_is_that_of_a_candidate(farm):
    outcomes, _ = replace(QUICK, actors=1).build(wild_on(farm, "nap")).iterate()
    assert outcomes.evaluations * 0.3 > LIMITS.timeout_s and outcomes.failures == 0


def test_a_bug_ends_the_training(farm):
    with pytest.raises(RuntimeError, match="KeyError"):
        QUICK.build(wild_on(farm, "bug")).iterate()


def test_actors_are_as_many_as_workers_unless_told(farm, tmp_path):
    open_config = replace(QUICK, actors=0)
    assert open_config.build(on(farm)).config.actors == 8
    with LocalFarm(9) as nine:
        assert replace(open_config, episodes=32).build(on(nine)).config.actors == 9
        assert open_config.build(on(nine)).config.actors == 8  # no more than episodes
    train(open_config, on(farm), tmp_path / "run", iterations=0)
    assert RunFolder(tmp_path / "run").describe()["config"]["actors"] == 8


@pytest.mark.parametrize("change", [{"actors": 9}, {"actors": -1}, {"epsilon": 1.5}, {"replay": 10}])
def test_senseless_values_are_refused(farm, change):
    with pytest.raises(IrgymError, match="choose"):
        replace(QUICK, **change).build(on(farm))


def test_a_problem_that_cannot_be_played_elsewhere_is_refused(farm):
    with pytest.raises(IrgymError, match="use dqn"):
        QUICK.build(dials.problem(CODES))
    with pytest.raises(IrgymError, match="maker"):
        QUICK.build(replace(on(farm), makers=()))
