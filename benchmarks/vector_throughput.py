"""Environment steps a second of the vector entry point beside Gymnasium's `sync`, with recorded costs.

Both play the same episodes, with LoopTune's reward, which asks for a cost at each step. `sync` makes a
request for each environment. The vector entry point makes one for all, and knows the states that earlier
episodes passed through: a policy that has learnt something comes back to them, random actions seldom do.

python benchmarks/vector_throughput.py
"""

import statistics
import tempfile
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import gymnasium
import numpy as np
import tyro
from numpy.typing import NDArray

import irgym  # noqa: F401  (registers irgym/Loops-v0)
from irgym.core.cost import Evaluator, Job, Measurement, Outcome
from irgym.core.reward import ThroughputGain
from irgym.envs.loops.environment import LOOPS
from irgym.measure.cache import CostCache
from irgym.measure.evaluators import Recorded
from irgym.policies.plain import PlainPolicy

Vector = gymnasium.vector.VectorEnv[Any, Any, Any]

MODES = ("sync", "vector_entry_point")


@dataclass(frozen=True)
class Options:
    """Options of the benchmark."""

    environments: int = 64
    """Environments side by side."""
    steps: int = 100
    """Steps of each in a round."""
    rounds: int = 7
    """Rounds, each of both in turn."""
    dataset: str = "mm64_128_16_range"
    """Data set of `loops`."""


class Inventing:
    """Records a made-up cost of each job, so that nothing is measured."""

    def __init__(self, cache: CostCache) -> None:
        self._cache = cache

    def evaluate(self, jobs: Sequence[Job]) -> list[Measurement]:
        """Return costs that follow from the schedules, and record them."""
        costs = [1000.0 + zlib.crc32(job.schedule.encode()) % 1000 for job in jobs]
        measured = [Measurement(Outcome.OK, (cost,)) for cost in costs]
        self._cache.put_many(jobs, measured)
        return measured


def made(mode: str, options: Options, evaluator: Evaluator) -> Vector:
    """Return the environments."""
    return gymnasium.make_vec(
        "irgym/Loops-v0",
        num_envs=options.environments,
        vectorization_mode=mode,
        dataset=options.dataset,
        evaluator=evaluator,
        reward=ThroughputGain(),
        peak_gflops=100.0,
    )


def played(env: Vector, options: Options, seed: int, policy: PlainPolicy | None) -> list[NDArray[np.int64]]:
    """Return the actions of a round: of a policy, sampled, or at random where it is None."""
    rng = np.random.default_rng(seed)
    env.reset(seed=seed)
    singles = [single.unwrapped for single in cast(Any, env).envs]
    taken: list[NDArray[np.int64]] = []
    for _ in range(options.steps):
        masks = [single.task.mask(single.state) for single in singles]
        if policy is None:
            applies = np.stack([single.action_masks() for single in singles])
            actions = (rng.random(applies.shape) * applies).argmax(axis=1)
        else:
            over = [single.task.terminal(single.state) for single in singles]
            seen = [single.task.observe(single.state, policy.observation) for single in singles]
            going = [place for place, ended in enumerate(over) if not ended]
            chosen = policy.act([seen[place] for place in going], [masks[place] for place in going], rng)
            actions = np.zeros(len(singles), np.int64)
            for place, action in zip(going, chosen, strict=True):
                actions[place] = singles[place].task.space.flat_index(action)
        taken.append(actions)
        env.step(actions)
    return taken


def rate(env: Vector, seed: int, rounds: list[NDArray[np.int64]]) -> float:
    """Return steps a second over the actions of a round."""
    env.reset(seed=seed)
    started = time.perf_counter()
    for actions in rounds:
        env.step(actions)
    return len(rounds) * env.num_envs / (time.perf_counter() - started)


def main(options: Options) -> None:
    """Print the rates and their ratio, for random actions and for those of a trained policy."""
    policy = PlainPolicy.load(LOOPS.policies()["default"])
    for name, actor in {"random actions": None, "the policy that ships": policy}.items():
        with tempfile.TemporaryDirectory() as folder:
            cache = CostCache(Path(folder) / "costs.sqlite")
            recording = made("sync", options, Inventing(cache))
            rounds = [played(recording, options, number, actor) for number in range(options.rounds)]
            environments = [made(mode, options, Recorded(cache)) for mode in MODES]
            rates = [[rate(env, number, row) for env in environments] for number, row in enumerate(rounds)]
            for env in (*environments, recording):
                env.close()
            cache.close()
        ratios = [vector / sync for sync, vector in rates]
        sync, vector = (statistics.median(row) for row in zip(*rates, strict=True))
        print(
            f"{name}: sync {sync:,.0f}, vector {vector:,.0f} steps/s; ratio {statistics.median(ratios):.1f} "
            f"({', '.join(f'{ratio:.1f}' for ratio in ratios)}), {options.environments} environments"
        )


if __name__ == "__main__":
    main(tyro.cli(Options))
