"""Set-ups of published trainings, as far as options here have them; each names its source.

Environments offer them by name: `irgym train linalg --recipe mlir-rl`.
"""

from irgym.core.recipe import Recipe

LOOPTUNE = Recipe(
    agent="apex",
    hyperparameters={
        "hidden": (1000,) * 8,
        "activation": "tanh",
        "n_step": 3,
        "minibatch": 32,
        "replay": 2_000_000,
        "gamma": 0.95,
        "lr": 1e-6,
        "lr_end": 1e-6,
        "iterations": 5000,
    },
    dataset="mm64_256_16_range",
    reward="throughput",
    observation="loops_tensor",
    horizon=10,
    actions="up,down,swap_up,swap_down,split_4,split_8,split_16",
    source="arXiv 2309.01825; dqn/ApexTrainer.py and rllib_agent.py of github.com/loopstack/looptune, "
    "5000 iterations on 80 cores",
)

XLA = Recipe(
    hyperparameters={"value_features": True, "normalise_observations": True},
    dataset="gpt2",
    reward="shaped",
    source="arXiv 2308.14364: PPO with both of its enhancements, shaping and cost features for the value",
)

MLIR_RL = Recipe(
    hyperparameters={
        "hidden": (512, 512, 512),
        "activation": "relu",
        "encoder": "lstm",
        "iterations": 20_000,
        "episodes": 64,
        "epochs": 4,
        "minibatch": 64,
        "lr": 1e-3,
        "lr_end": 1e-3,
        "gamma": 1.0,
        "gae_lambda": 0.95,
        "clip": 0.2,
        "entropy": 0.01,
        "entropy_end": 0.01,
        "value_coefficient": 0.5,
        "normalise_rewards": False,
    },
    source="arXiv 2409.11068; config/example.json and model.py of github.com/mohph197/MLIR-RL-artifact",
)

X_RLFLOW = Recipe(
    hyperparameters={
        "attention": "gat",
        "no_op": True,
        "hidden": (64, 64, 64, 64, 64),
        "shared": True,
        "iterations": 100,
        "episodes": 10,
        "epochs": 4,
        "minibatch": 16,
        "lr": 5e-4,
        "lr_end": 5e-4,
        "gamma": 0.99,
        "gae_lambda": 0.95,
        "clip": 0.2,
        "target_kl": 0.05,
        "entropy": 0.01,
        "entropy_end": 0.01,
        "value_coefficient": 0.25,
        "normalise_rewards": False,
    },
    reward="x-rlflow",
    observation="meta-graph",
    source="MLSys 2023; examples/run_ppo.py of github.com/ucamrl/xrlflow: 1000 episodes on one network",
)

JIT_CSE = Recipe(
    hyperparameters={
        "hidden": (64, 64),
        "iterations": 49,
        "episodes": 256,
        "epochs": 10,
        "minibatch": 64,
        "lr": 3e-4,
        "lr_end": 3e-4,
        "gamma": 0.99,
        "gae_lambda": 0.95,
        "clip": 0.2,
        "entropy": 0.01,
        "entropy_end": 0.01,
        "normalise_rewards": False,
    },
    source="dotnet/runtime PR 101856: Stable-Baselines3's PPO with ent_coef 0.01, about 100,000 steps",
)
