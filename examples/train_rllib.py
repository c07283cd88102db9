"""Train RLlib's PPO, DQN or IMPALA, which LoopTune is built on, on small matmuls, masks included.

The modules here mask all three; RLlib has one for PPO alone, among its examples. The default is short and
shows the interface; use --iterations 100 or more to see it learn. It needs pip install "irgym[rllib]".
"""

from typing import Any, Literal, cast

import gymnasium
import numpy as np
import ray  # pyright: ignore[reportMissingImports]
import torch
import tyro
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig  # pyright: ignore[reportMissingImports]
from ray.rllib.algorithms.dqn import DQNConfig  # pyright: ignore[reportMissingImports]
from ray.rllib.algorithms.dqn.default_dqn_rl_module import QF_PREDS  # pyright: ignore[reportMissingImports]
from ray.rllib.algorithms.dqn.torch.default_dqn_torch_rl_module import (  # pyright: ignore[reportMissingImports]
    DefaultDQNTorchRLModule,
)
from ray.rllib.algorithms.impala import IMPALAConfig  # pyright: ignore[reportMissingImports]
from ray.rllib.algorithms.ppo import PPOConfig  # pyright: ignore[reportMissingImports]
from ray.rllib.algorithms.ppo.torch.default_ppo_torch_rl_module import (  # pyright: ignore[reportMissingImports]
    DefaultPPOTorchRLModule,
)
from ray.rllib.core.columns import Columns  # pyright: ignore[reportMissingImports]
from ray.rllib.core.rl_module.rl_module import RLModule, RLModuleSpec  # pyright: ignore[reportMissingImports]
from ray.rllib.utils.torch_utils import FLOAT_MIN  # pyright: ignore[reportMissingImports]
from ray.tune.registry import register_env  # pyright: ignore[reportMissingImports]

import irgym  # noqa: F401  (registers irgym/Loops-v0)
from irgym.gym.masked import MaskedObservation

TRAIN = tuple(f"loops://mm/{m}x{n}x{k}" for m in (32, 64) for n in (32, 64, 96) for k in (32, 64))
Batch = dict[str, Any]


def masked(options: dict) -> gymnasium.Env:
    return MaskedObservation(gymnasium.make("irgym/Loops-v0", programs=TRAIN), np.float32, "observations")


def seen(batch: Batch) -> Batch:
    """Return a batch with the observations alone."""
    return {**batch, Columns.OBS: batch[Columns.OBS]["observations"]}


def forbidden(batch: Batch) -> torch.Tensor:
    """Return which actions do not apply, shape [states, actions]."""
    return batch[Columns.OBS]["action_mask"] == 0


class Masked(RLModule):
    """Builds networks for the observations, and keeps the space that has the masks beside them."""

    def __init__(self, *, observation_space: gymnasium.spaces.Dict, **others: Any) -> None:
        super().__init__(observation_space=observation_space["observations"], **others)
        self.observation_space = observation_space


class MaskedPolicy(Masked, DefaultPPOTorchRLModule):
    """Policy and value of PPO and IMPALA: an action that does not apply has probability 0."""

    def _forward(self, batch: Batch, **others: Any) -> Batch:
        return self._masked(batch, super()._forward(seen(batch), **others))

    def _forward_train(self, batch: Batch, **others: Any) -> Batch:
        return self._masked(batch, super()._forward_train(seen(batch), **others))

    def compute_values(self, batch: Batch, embeddings: Any = None) -> Any:
        return super().compute_values(seen(batch), embeddings)

    def _masked(self, batch: Batch, found: Batch) -> Batch:
        logits = found[Columns.ACTION_DIST_INPUTS]
        return {**found, Columns.ACTION_DIST_INPUTS: logits.masked_fill(forbidden(batch), FLOAT_MIN)}


class MaskedValues(Masked, DefaultDQNTorchRLModule):
    """Action values of DQN; RLlib leaves out infinite values when it explores, acts and learns."""

    def _qf_forward_helper(self, batch: Batch, encoder: Any, head: Any) -> Batch:
        found = super()._qf_forward_helper(seen(batch), encoder, head)
        values = cast(torch.Tensor, found[QF_PREDS])
        return {**found, QF_PREDS: values.masked_fill(forbidden(batch), -torch.inf)}


def ppo() -> AlgorithmConfig:
    return PPOConfig().training(train_batch_size_per_learner=200, minibatch_size=100, num_epochs=2, gamma=1.0)


def dqn() -> AlgorithmConfig:
    return DQNConfig().training(
        train_batch_size_per_learner=32, num_steps_sampled_before_learning_starts=100, gamma=1.0
    )


def impala() -> AlgorithmConfig:
    return IMPALAConfig().training(train_batch_size_per_learner=200, gamma=1.0)


ALGORITHMS = {"ppo": (ppo, MaskedPolicy), "dqn": (dqn, MaskedValues), "impala": (impala, MaskedPolicy)}


def train(algorithm: str, iterations: int, seed: int) -> None:
    configured, module = ALGORITHMS[algorithm]
    env = masked({})
    config = (
        configured()
        .environment("masked-loops")
        .env_runners(num_env_runners=0, num_envs_per_env_runner=4)
        .reporting(min_sample_timesteps_per_iteration=200, min_time_s_per_iteration=0)
        .rl_module(
            rl_module_spec=RLModuleSpec(
                module_class=module,
                observation_space=env.observation_space,
                action_space=env.action_space,
                model_config={"head_fcnet_hiddens": [64, 64], "head_fcnet_activation": "relu"},
            )
        )
        .debugging(seed=seed)
    )
    env.close()
    learner = config.build_algo()
    for _ in range(iterations):
        result = learner.train()
        print(f"{algorithm}: mean return of episodes: {result['env_runners']['episode_return_mean']:+.4f}")
    learner.stop()


def main(
    algorithm: tuple[Literal["ppo", "dqn", "impala"], ...] = ("ppo",), iterations: int = 1, seed: int = 0
) -> None:
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    register_env("masked-loops", masked)
    for name in algorithm:
        train(name, iterations, seed)
    ray.shutdown()


if __name__ == "__main__":
    tyro.cli(main)
