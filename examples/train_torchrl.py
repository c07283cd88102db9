"""Train TorchRL's PPO or DQN on small matmuls, masks included, then compare the policy with a search.

The default is short and shows the interface; use --steps 100000 or more to see it learn.
"""

from typing import Literal

import gymnasium
import torch
import tyro
from tensordict.nn import TensorDictModule, TensorDictSequential
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
from torchrl.envs import ActionMask, DoubleToFloat, DTypeCastTransform, GymWrapper, TransformedEnv
from torchrl.modules import (
    MLP,
    EGreedyModule,
    MaskedCategorical,
    ProbabilisticActor,
    QValueActor,
    ValueOperator,
)
from torchrl.objectives import ClipPPOLoss, DQNLoss, SoftUpdate
from torchrl.objectives.value import GAE

import irgym
from irgym.gym.masked import MaskedObservation

TRAIN = tuple(f"loops://mm/{m}x{n}x{k}" for m in (32, 64) for n in (32, 64, 96) for k in (32, 64))
UNSEEN = ("loops://mm/48x48x48", "loops://mm/64x80x64")


def main(algorithm: tuple[Literal["ppo", "dqn"], ...] = ("ppo",), steps: int = 400, seed: int = 0) -> None:
    policies = []
    for name in algorithm:
        torch.manual_seed(seed)
        env = masked(seed)
        actor = {"ppo": ppo, "dqn": dqn}[name](env, steps)
        policies.append((f"torchrl-{name}", actor))
    comparing = irgym.Comparing(evaluations=20)
    comparison = irgym.compare("loops", UNSEEN, methods=["base", *policies], comparing=comparing)
    for row in comparison.rows:
        print(f"{row.program} {row.method}: {row.speedup}")


def masked(seed: int) -> TransformedEnv:
    single = MaskedObservation(gymnasium.make("irgym/Loops-v0", programs=TRAIN))
    wrapped = GymWrapper(single, categorical_action_encoding=True)
    env = TransformedEnv(wrapped, DTypeCastTransform(torch.int8, torch.bool, in_keys=["action_mask"]))
    env.append_transform(ActionMask())
    env.append_transform(DoubleToFloat())
    env.set_seed(seed)
    return env


def network(env: TransformedEnv, outputs: int) -> MLP:
    return MLP(env.observation_spec["observation"].shape[-1], outputs, num_cells=[128, 128])


def actions(env: TransformedEnv) -> int:
    return env.observation_spec["action_mask"].shape[-1]


def ppo(env: TransformedEnv, steps: int) -> ProbabilisticActor:
    scores = TensorDictModule(network(env, actions(env)), in_keys=["observation"], out_keys=["logits"])
    actor = ProbabilisticActor(
        scores,
        in_keys={"logits": "logits", "mask": "action_mask"},  # pyright: ignore[reportArgumentType]
        distribution_class=MaskedCategorical,
        return_log_prob=True,
    )
    critic = ValueOperator(network(env, 1), in_keys=["observation"])
    loss = ClipPPOLoss(actor, critic, entropy_coeff=0.01)
    advantages = GAE(gamma=1.0, lmbda=0.95, value_network=critic)
    optimiser = torch.optim.Adam(loss.parameters(), lr=1e-3)
    for batch in Collector(env, actor, frames_per_batch=200, total_frames=steps):
        for _ in range(4):
            advantages(batch)
            losses = loss(batch.reshape(-1))
            optimiser.zero_grad()
            (losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]).backward()
            optimiser.step()
        print(f"ppo: mean reward of a step: {batch['next', 'reward'].mean().item():+.4f}")
    return actor


def dqn(env: TransformedEnv, steps: int) -> QValueActor:
    actor = QValueActor(
        network(env, actions(env)),
        in_keys=["observation"],
        spec=env.action_spec,
        action_mask_key="action_mask",
    )
    exploration = EGreedyModule(env.action_spec, annealing_num_steps=steps, action_mask_key="action_mask")
    loss = DQNLoss(actor, double_dqn=True, delay_value=True)
    loss.make_value_estimator(gamma=1.0)
    target = SoftUpdate(loss, eps=0.99)
    optimiser = torch.optim.Adam(loss.parameters(), lr=1e-3)
    replay = TensorDictReplayBuffer(storage=LazyTensorStorage(100_000), batch_size=64)
    collector = Collector(
        env, TensorDictSequential([actor, exploration]), frames_per_batch=200, total_frames=steps
    )
    for batch in collector:
        replay.extend(batch.reshape(-1))
        for _ in range(50):
            losses = loss(replay.sample())
            optimiser.zero_grad()
            losses["loss"].backward()
            optimiser.step()
            target.step()
        exploration.step(batch.numel())
        print(f"dqn: mean reward of a step: {batch['next', 'reward'].mean().item():+.4f}")
    return actor


if __name__ == "__main__":
    tyro.cli(main)
