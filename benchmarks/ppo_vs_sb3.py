"""Environment steps a second of irgym's PPO and of Stable-Baselines3's, side by side in one run.

Both train on the same trivial problem: match a code, one symbol a step. Same observations, episode
length, flat actions, parallel episodes, steps an iteration, minibatches, epochs, widths and thread.
Each is used as its documentation recommends: SB3 with MlpPolicy over a DummyVecEnv of plain Gymnasium
environments. Repetitions are interleaved; the ratio is the median over them.

    python benchmarks/ppo_vs_sb3.py [--repetitions 7] [--steps 8192]
"""

import argparse
import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import gymnasium
import numpy as np
import torch
from stable_baselines3 import PPO as BaselinePPO
from stable_baselines3.common.vec_env import DummyVecEnv

from irgym.agents.algorithms.ppo import PPO, PPOConfig
from irgym.agents.problem import Problem
from irgym.core.actions import Action, ActionSpace, Mask
from irgym.core.cost import Call, Job, Measurement, Outcome
from irgym.core.kinds import ActionKind
from irgym.core.objective import Objective
from irgym.core.observation import array_view, views_of
from irgym.core.reward import RelativeImprovement
from irgym.core.task import Task

SYMBOLS, LENGTH = 8, 16
CODE = np.random.default_rng(0).integers(SYMBOLS, size=LENGTH).tolist()
# The observation of each step: the step and the wanted symbol, both one-hot.
SIGHTS = np.concatenate(
    [np.eye(LENGTH + 1, LENGTH, dtype=np.float32), np.eye(SYMBOLS, dtype=np.float32)[[*CODE, 0]]], axis=1
)
State = tuple[int, int]


@dataclass(frozen=True)
class Workload:
    """Settings that both learners share."""

    environments: int
    minibatch: int
    epochs: int
    hidden: tuple[int, ...]


WORKLOADS = {
    "SB3's defaults, 8 environments": Workload(8, 64, 10, (64, 64)),
    "wide batches, 64 environments": Workload(64, 256, 4, (64, 64)),
}


class CodeTask(Task[State]):
    """State: steps taken and symbols matched."""

    space = ActionSpace(tuple(ActionKind(f"symbol{number}") for number in range(SYMBOLS)))
    horizon = LENGTH
    uri = "code://benchmark"
    objective = Objective("mismatches", "", "symbols that differ", exact=True, timed=False)
    everything = Mask(np.ones(SYMBOLS, dtype=np.bool_), np.zeros(0, dtype=np.bool_))

    def initial(self) -> State:
        """Return no step taken."""
        return 0, 0

    def mask(self, state: State) -> Mask:
        """Allow everything."""
        return self.everything

    def step(self, state: State, action: Action) -> State:
        """Count a match."""
        return state[0] + 1, state[1] + (action.kind == CODE[state[0]])

    def terminal(self, state: State) -> bool:
        """Say whether the code is complete."""
        return state[0] >= LENGTH

    views = views_of(
        array_view(
            "sight", "the step and the symbol wanted", SIGHTS[0].shape, lambda _, state: SIGHTS[state[0]]
        )
    )

    def key(self, state: State) -> str:
        """Return the state as text."""
        return str(state)

    def job(self, state: State) -> Job:
        """Return the request for the number of mismatches."""
        return Job(Call("", (LENGTH - state[1],)), self.uri, self.key(state), "", target="")

    def validation(self, state: State, inputs: int, seed: int) -> Call:
        """Not needed here."""
        raise NotImplementedError

    def describe(self, state: State) -> str:
        """Return the state."""
        return str(state)

    def export(self, state: State, path: Path) -> list[Path]:
        """Not needed here."""
        raise NotImplementedError


class Mismatches:
    """Answers with the number of mismatches."""

    def evaluate(self, jobs: Sequence[Job]) -> list[Measurement]:
        """Return one measurement for each job."""
        return [Measurement(Outcome.OK, (float(job.call.arguments[0]),)) for job in jobs]


class CodeEnv(gymnasium.Env[Any, Any]):
    """The same problem for SB3; the same reward: the share of symbols matched, at the end."""

    def __init__(self) -> None:
        self.observation_space = gymnasium.spaces.Box(0, 1, (LENGTH + SYMBOLS,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(SYMBOLS)
        self.place = self.matched = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin again."""
        self.place = self.matched = 0
        return SIGHTS[0], {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Count a match."""
        self.matched += int(action == CODE[self.place])
        self.place += 1
        done = self.place >= LENGTH
        return SIGHTS[self.place], self.matched / LENGTH if done else 0.0, done, False, {}


def ours(workload: Workload, lr: float = 3e-4, seed: int = 0) -> PPO:
    """Return irgym's learner."""
    config = PPOConfig(
        episodes=workload.environments,
        minibatch=workload.minibatch,
        epochs=workload.epochs,
        hidden=workload.hidden,
        lr=lr,
        lr_end=lr,
        gamma=0.99,
        entropy=0.0,
        seed=seed,
    )
    return config.build(Problem([CodeTask()], Mismatches(), RelativeImprovement(every=0)))


def baseline(workload: Workload, lr: float = 3e-4, seed: int = 0) -> BaselinePPO:
    """Return SB3's learner."""
    return BaselinePPO(
        "MlpPolicy",
        DummyVecEnv([CodeEnv] * workload.environments),
        n_steps=LENGTH,
        batch_size=workload.minibatch,
        n_epochs=workload.epochs,
        learning_rate=lr,
        policy_kwargs={"net_arch": list(workload.hidden)},
        device="cpu",
        seed=seed,
    )


def ours_rate(learner: PPO, steps: int) -> float:
    """Train for `steps` environment steps; return steps a second."""
    start, done = time.perf_counter(), 0
    while done < steps:
        done += learner.iterate()[0].steps
    return done / (time.perf_counter() - start)


def baseline_rate(learner: BaselinePPO, steps: int) -> float:
    """Train for `steps` environment steps; return steps a second."""
    start, before = time.perf_counter(), learner.num_timesteps
    learner.learn(steps, reset_num_timesteps=False)
    return (learner.num_timesteps - before) / (time.perf_counter() - start)


def main() -> None:
    """Print a line for each workload."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--steps", type=int, default=8192, help="environment steps of a repetition")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name, workload in WORKLOADS.items():
        learners = ours(workload), baseline(workload)
        ours_rate(learners[0], 1024), baseline_rate(learners[1], 1024)
        rates = [
            (ours_rate(learners[0], arguments.steps), baseline_rate(learners[1], arguments.steps))
            for _ in range(arguments.repetitions)
        ]
        ratios = sorted(a / b for a, b in rates)
        print(
            f"{name}: irgym {statistics.median(a for a, _ in rates):,.0f} env-steps/s, "
            f"SB3 {statistics.median(b for _, b in rates):,.0f}, "
            f"ratio {statistics.median(ratios):.2f} "
            f"({ratios[0]:.2f} to {ratios[-1]:.2f} over {len(ratios)} repetitions)"
        )


if __name__ == "__main__":
    main()
