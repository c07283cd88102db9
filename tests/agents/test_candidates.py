"""All learners where actions name candidates of the state; judged on chains that they were not trained on."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import rewriting
from trainings import SEEDS, learns

from irgym.agents.algorithms.a2c import A2CConfig
from irgym.agents.algorithms.apex import ApexConfig
from irgym.agents.algorithms.dqn import DQNConfig
from irgym.agents.algorithms.ppo import PPOConfig
from irgym.agents.episodes.replay import Replay
from irgym.agents.episodes.rollout import rollout as play
from irgym.agents.evaluation import greedy_score
from irgym.agents.imitation.cloning import ImitationConfig, clone
from irgym.agents.imitation.demonstrations import Demonstration
from irgym.agents.imitation.expert_iteration import Searches, expert_iteration
from irgym.agents.training import Setup, train
from irgym.conformance.training import check_training
from irgym.core.schedule import replay
from irgym.gym.env import TaskEnv
from irgym.measure.evaluators import Measured
from irgym.measure.farm import LocalFarm
from irgym.measure.isolation.protocol import Limits
from irgym.networks.policy import TorchPolicy
from irgym.policies import heads
from irgym.policies.layout import FlatLayout
from irgym.search import SEARCHES
from irgym.search.budget import Budget
from irgym.search.request import SearchRequest
from irgym.search.run import run_search

PPO = PPOConfig(
    iterations=60, episodes=32, minibatch=128, lr=3e-3, lr_end=1e-3, gamma=0.98, entropy=0.02, hidden=(32,)
)
DQN = DQNConfig(
    iterations=60, episodes=32, updates=16, lr=4e-3, lr_end=5e-4, gamma=0.95, exploration=0.5, hidden=(32,)
)
A2C = A2CConfig(iterations=300, episodes=16, lr=5e-3, gamma=0.98, hidden=(32,))
LEARN = {
    "ppo": PPO,
    "autoregressive": replace(PPO, actions="autoregressive"),
    "flat": replace(PPO, actions="flat", shared=True, normalise_observations=True),
    "reuse": replace(PPO, reuse="top-k", value_epochs=2),
    "dqn": DQN,
    "a2c": A2C,
}
HELD_OUT = rewriting.problem(rewriting.TEST)
LARGE = [task for task in rewriting.TEST if len(task.ops) > 7][:5]


@cache
def best() -> float:
    """Return the mean gain over the held-out programs of a policy that finds each optimum."""
    optima = [rewriting.optimum(task) / rewriting.cost(task.initial()) for task in rewriting.TEST]
    return 1 - float(np.mean(optima))


@pytest.mark.parametrize("name", LEARN)
def test_reaches_the_optimum_of_every_held_out_program(name):
    # Neither `stop` too early nor a step too many: the last states themselves are the best ones.
    assert learns(LEARN[name], rewriting.problem(), best() - 1e-6, judge=HELD_OUT)


def test_imitation_learns_the_rule_from_a_search(tmp_path):
    search, budget = SEARCHES.load("greedy2")(), Budget(evaluations=50)
    shown = []
    for task in rewriting.TRAIN:
        found = run_search(search, task, rewriting.Known(), SearchRequest(budget, seed=0))
        shown.append(Demonstration(task, found.schedule, found.cost))
    policy = clone(ImitationConfig(epochs=30, lr=5e-3, hidden=(32,)), shown)
    policy.save(tmp_path / "start.pt")
    assert greedy_score(policy, rewriting.TEST, HELD_OUT) > 0.97 * best()
    config = replace(PPO, start=str(tmp_path / "start.pt"), iterations=30)
    assert learns(config, rewriting.problem(), best() - 1e-6, judge=HELD_OUT)
    for name in ("rollout", "guided"):
        search = SEARCHES.load(name)()
        for task in LARGE:
            found = run_search(search, task, rewriting.Known(), SearchRequest(budget, 0, policy))
            assert found.cost == rewriting.optimum(task)


def test_expert_iteration_shows_what_its_searches_find():
    config = ImitationConfig(epochs=20, lr=5e-3, hidden=(32,))
    searches = Searches(SEARCHES.load("greedy2")(), Budget(evaluations=30), programs=6, transferred=2)
    programs = [task for task in rewriting.TRAIN if len(task.ops) > 5]  # no search sees all of these
    rounds = expert_iteration(config, searches, programs, rewriting.Known())
    first, second = next(rounds), next(rounds)
    assert second.share is not None and second.share > 0.8 and len(second.shown) > len(first.shown)
    for shown in second.shown:
        assert rewriting.cost(replay(shown.task, shown.schedule)) == shown.cost


EVERYTHING = {
    "ppo": replace(PPO, episodes=8, reuse="random", value_epochs=1, epsilon=0.2, normalise_observations=True),
    "a2c": replace(A2C, normalise_observations=True),
    "dqn": replace(DQN, episodes=8, updates=4, warmup=64, replay=512, normalise_observations=True),
}


@pytest.mark.parametrize("name", EVERYTHING)
def test_it_keeps_the_rules(name):
    check_training(EVERYTHING[name], rewriting.problem(rewriting.TRAIN[:20]))


def test_a_run_leaves_a_policy_that_names_candidates(tmp_path):
    config = replace(PPO, iterations=2, validate_every=1)
    train(config, rewriting.problem(), tmp_path / "run", Setup(validation=rewriting.TEST))
    policy = TorchPolicy.load(tmp_path / "run" / "policy.pt")
    task = rewriting.Rewriting("sbt")
    policy.check(task.space, task.observe(task.initial()))
    for _ in range(20):
        [action] = policy.act(
            [task.observe(task.initial())], [task.mask(task.initial())], np.random.default_rng(0)
        )
        assert task.space.text(action) in ("stop", "split@x1")


def played(seed: int = 0):
    """Random episodes on chains of very different lengths."""
    rng, layout = np.random.default_rng(seed), FlatLayout(rewriting.SPACE)
    network = DQN.build(rewriting.problem()).network

    def choose(batch, legal):
        return heads.sample(np.zeros(legal.shape, np.float32), legal, layout, rng)

    tasks = [rewriting.Rewriting(ops) for ops in ("st", "bbbbbbbb", "ts", "sbtsbt")]
    steps, _ = play(tasks, rewriting.problem(), network.encoder, layout, choose)
    return tasks, layout, network, steps


def test_rollouts_take_what_was_chosen():
    tasks, layout, network, steps = played()
    seen = network.encoder.separate(steps.observations)
    for number, task in enumerate(tasks):
        state = task.initial()
        for row in np.flatnonzero(steps.episode == number):
            mask = task.mask(state)
            np.testing.assert_array_equal(seen[row].candidates, task.observe(state).candidates)
            own = steps.legal[row, 0]
            assert own[layout.width :].sum() == len(mask.candidates) == len(seen[row].candidates)
            state = task.step(state, layout.actions(steps.choices[[row]], [mask])[0])


def test_the_replay_keeps_numbers_of_candidates_not_lists_of_them():
    _, layout, network, steps = played()
    kept = Replay(1000, layout.width, network.encoder, alpha=0.0)
    kept.add(steps, 1, 0.9)
    batch = kept.sample(100, 1.0, np.random.default_rng(0))
    for observed, legal in (
        (batch.observations, batch.legal),
        (batch.next_observations, batch.next_legal),
    ):
        counts = observed[2]
        assert legal.shape[-1] == layout.width + int(counts.max())
        assert legal[:, 0, layout.width :].sum(-1).tolist() == counts.tolist()
    wide = max(value.shape[-1] for value in kept.state_dict().values() if getattr(value, "ndim", 0) == 3)
    assert wide == layout.width < steps.legal.shape[-1]


def test_actors_in_other_processes_play_it():
    config = ApexConfig(
        iterations=4, episodes=8, actors=2, updates=4, minibatch=16, warmup=16, replay=2048, hidden=(16,)
    )
    with LocalFarm(1, Limits(timeout_s=20.0)) as farm:
        problem = replace(rewriting.problem(), evaluator=Measured(farm, None))
        learner = config.build(problem)
        outcomes = [learner.iterate()[0] for _ in range(3)]
    assert all(np.isfinite(outcome.last).all() and outcome.steps > 8 for outcome in outcomes)
    assert learner.replay.size == sum(outcome.steps for outcome in outcomes) and learner.updates > 0


def test_maskable_ppo_learns_on_the_gymnasium_view(monkeypatch):
    sb3 = pytest.importorskip("irgym.agents.algorithms.sb3")
    pytest.importorskip("sb3_contrib")
    monkeypatch.setattr("irgym.gym.setting.ENVIRONMENTS", rewriting.ENVIRONMENTS)
    tasks = rewriting.TRAIN[:10]
    uris = [task.uri for task in tasks]

    def gain(task, cost):
        return 1 - cost / rewriting.cost(task.initial())

    def score(seed):
        policy = sb3.train_sb3(
            "maskable-ppo",
            lambda: TaskEnv("rewriting", uris, evaluator=rewriting.Known()),
            rewriting.SPACE,
            steps=4000,
            seed=seed,
            n_steps=64,
            n_epochs=6,
            batch_size=128,
            learning_rate=3e-3,
            ent_coef=0.01,
            gamma=0.98,
            policy_kwargs={"net_arch": [64]},
        )
        gains: list[float] = []
        for task in tasks:
            state = task.initial()
            [probabilities] = policy.probabilities([task.observe(state)], [task.mask(state)])
            assert probabilities.sum() == pytest.approx(1.0) and len(probabilities) == 25
            for _ in range(task.horizon):
                if not task.terminal(state):
                    state = task.step(state, policy.act([task.observe(state)], [task.mask(state)], None)[0])
            gains.append(gain(task, rewriting.cost(state)))
        return float(np.mean(gains))

    # Random episodes come to a fifth of the greatest gain.
    best = float(np.mean([gain(task, rewriting.optimum(task)) for task in tasks]))
    assert any(score(seed) > 0.8 * best for seed in SEEDS)
