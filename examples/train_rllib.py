"""Train RLlib's PPO, which LoopTune is built on, on small matmuls, masks included.

The default is short and shows the interface; use --iterations 100 or more to see it learn. It needs
pip install "ray[rllib]".
"""

import gymnasium
import numpy as np
import ray  # pyright: ignore[reportMissingImports]
import tyro
from ray.rllib.algorithms.ppo import PPOConfig  # pyright: ignore[reportMissingImports]
from ray.rllib.core.rl_module.rl_module import RLModuleSpec  # pyright: ignore[reportMissingImports]
from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule  # pyright: ignore[reportMissingImports]
from ray.tune.registry import register_env  # pyright: ignore[reportMissingImports]

import irgym  # noqa: F401  (registers irgym/Loops-v0)
from irgym.gym.masked import MaskedObservation

TRAIN = tuple(f"loops://mm/{m}x{n}x{k}" for m in (32, 64) for n in (32, 64, 96) for k in (32, 64))


def masked(options: dict) -> gymnasium.Env:
    return MaskedObservation(gymnasium.make("irgym/Loops-v0", programs=TRAIN), np.float32, "observations")


def main(iterations: int = 1, seed: int = 0) -> None:
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    register_env("masked-loops", masked)
    env = masked({})
    config = (
        PPOConfig()
        .environment("masked-loops")
        .env_runners(num_env_runners=0, num_envs_per_env_runner=4)
        .training(train_batch_size_per_learner=200, minibatch_size=100, num_epochs=2, gamma=1.0)
        .rl_module(
            rl_module_spec=RLModuleSpec(
                module_class=ActionMaskingTorchRLModule,
                observation_space=env.observation_space,
                action_space=env.action_space,
                model_config={"head_fcnet_hiddens": [64, 64], "head_fcnet_activation": "relu"},
            )
        )
        .debugging(seed=seed)
    )
    env.close()
    algorithm = config.build_algo()
    for _ in range(iterations):
        result = algorithm.train()
        print(f"mean return of episodes: {result['env_runners']['episode_return_mean']:+.4f}")
    algorithm.stop()
    ray.shutdown()


if __name__ == "__main__":
    tyro.cli(main)
