"""Train sb3-contrib's MaskablePPO on small matmuls, then let it schedule shapes that it has not seen.

The default is short and shows the interface; use --steps 100000 or more to see it learn.
"""

import gymnasium
import tyro
from sb3_contrib import MaskablePPO

import irgym  # noqa: F401  (registers irgym/Loops-v0)

TRAIN = tuple(f"loops://mm/{m}x{n}x{k}" for m in (32, 64) for n in (32, 64, 96) for k in (32, 64))
UNSEEN = ("loops://mm/48x48x48", "loops://mm/64x80x64")


def main(steps: int = 2000, seed: int = 0) -> None:
    env = gymnasium.make("irgym/Loops-v0", programs=TRAIN, observation="features")
    model = MaskablePPO(
        "MlpPolicy", env, n_steps=500, batch_size=100, gamma=1.0, ent_coef=0.01, seed=seed, device="cpu"
    )
    model.learn(steps)
    for uri in UNSEEN:
        observation, info = env.reset(options={"program": uri})
        done = False
        while not done:
            action, _ = model.predict(observation, action_masks=info["action_mask"], deterministic=True)
            observation, _, terminated, truncated, info = env.step(action)
            done = terminated or truncated
        print(f"{uri}: {info['speedup']:.2f}x over the original program by: {info['schedule']}")
    env.close()


if __name__ == "__main__":
    tyro.cli(main)
