"""Train TorchRL's PPO on small matmuls, masks included, then compare its policy with a search.

The default is short and shows the interface; use --steps 100000 or more to see it learn.
"""

import gymnasium
import torch
import tyro
from tensordict.nn import TensorDictModule
from torchrl.collectors import Collector
from torchrl.envs import ActionMask, DoubleToFloat, DTypeCastTransform, GymWrapper, TransformedEnv
from torchrl.modules import MLP, MaskedCategorical, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

import irgym
from irgym.gym.masked import MaskedObservation

TRAIN = tuple(f"loops://mm/{m}x{n}x{k}" for m in (32, 64) for n in (32, 64, 96) for k in (32, 64))
UNSEEN = ("loops://mm/48x48x48", "loops://mm/64x80x64")


def main(steps: int = 400, seed: int = 0) -> None:
    torch.manual_seed(seed)
    single = MaskedObservation(gymnasium.make("irgym/Loops-v0", programs=TRAIN))
    wrapped = GymWrapper(single, categorical_action_encoding=True)
    env = TransformedEnv(wrapped, DTypeCastTransform(torch.int8, torch.bool, in_keys=["action_mask"]))
    env.append_transform(ActionMask())
    env.append_transform(DoubleToFloat())
    env.set_seed(seed)
    shown, _ = single.reset(seed=seed)
    inputs, actions = len(shown["observation"]), len(shown["action_mask"])
    scores = TensorDictModule(
        MLP(inputs, actions, num_cells=[128, 128]), in_keys=["observation"], out_keys=["logits"]
    )
    actor = ProbabilisticActor(
        scores,
        in_keys={"logits": "logits", "mask": "action_mask"},  # pyright: ignore[reportArgumentType]
        distribution_class=MaskedCategorical,
        return_log_prob=True,
    )
    critic = ValueOperator(MLP(inputs, 1, num_cells=[128, 128]), in_keys=["observation"])
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
        print(f"mean reward of a step: {batch['next', 'reward'].mean().item():+.4f}")
    comparing = irgym.Comparing(evaluations=20)
    comparison = irgym.compare("loops", UNSEEN, methods=["base", ("torchrl", actor)], comparing=comparing)
    for row in comparison.rows:
        print(f"{row.program} {row.method}: {row.speedup}")


if __name__ == "__main__":
    tyro.cli(main)
