"""A baseline for policies: gradient-boosted trees that predict the gain of sharing a single candidate.

They learn from the functions of the training split that are small enough to score all choices, and share all
candidates with a predicted gain above 0. Shares of the best choices' gain are those of `cse_policy.py`.

    python benchmarks/cse_ranking.py
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import tyro
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor

from irgym.agents.imitation.outcomes import Outcomes, all_outcomes
from irgym.base.errors import ProgramError
from irgym.core.catalogue import tasks_of
from irgym.core.cost import Evaluator
from irgym.envs.cse.environment import CSE
from irgym.envs.cse.state import CseState
from irgym.envs.cse.task import CseTask
from irgym.measure.machine import fingerprint

LARGEST = 0.15
"""Bound to which gains and losses, as logarithms of scores, are clipped."""


@dataclass(frozen=True)
class Options:
    """Options of the benchmark."""

    dataset: str = "packages"
    """Data set."""
    target: str = "x86-64"
    """Target of the code."""
    choices: int = 512
    """Greatest number of choices of a function."""
    seed: int = 0
    """Seed of the trees."""


Known = tuple[CseTask, Outcomes]


def left_out(uri: str, error: ProgramError) -> None:
    """Print why a function is skipped."""
    print(f"{uri}: left out: {error}")


def outcomes_of(uris: Sequence[str], evaluator: Evaluator, options: Options) -> list[Known]:
    """Return all outcomes of the functions with few enough choices."""
    tasks = tasks_of(uris, lambda uri: CSE.task(uri, target=options.target), left_out)
    found = all_outcomes((task for task in tasks if task.names), evaluator, 2 * options.choices)
    return [
        (task, outcomes) for task, outcomes in found if isinstance(task, CseTask) and outcomes is not None
    ]


def rows(task: CseTask) -> NDArray[np.float32]:
    """Return the features of each candidate and of its function."""
    seen = task.features.candidates
    whole: NDArray[np.float32] = np.tile(task.features.function, (len(seen), 1))
    return np.concatenate([seen, whole], axis=1)


def cost(outcomes: Outcomes, shared: frozenset[int]) -> float:
    """Return the logarithm of a choice's score."""
    return float(outcomes.costs[outcomes.states.index(CseState(shared))])


def gains(task: CseTask, outcomes: Outcomes) -> list[float]:
    """Return the gain of sharing each candidate alone."""
    nothing = cost(outcomes, frozenset())
    return [nothing - cost(outcomes, frozenset([place])) for place in range(len(task.names))]


def main(options: Options) -> None:
    """Print the share of the best choices' gain that the trees reach."""
    print(fingerprint().text())
    dataset = CSE.dataset(options.dataset)
    with CSE.bench() as bench:
        train = outcomes_of(dataset.train, bench.evaluator, options)
        test = outcomes_of(dataset.test, bench.evaluator, options)
    wanted = np.clip(np.concatenate([gains(*known) for known in train]), -LARGEST, LARGEST)
    trees = HistGradientBoostingRegressor(
        max_iter=300, learning_rate=0.05, max_leaf_nodes=15, l2_regularization=5.0, random_state=options.seed
    ).fit(np.concatenate([rows(task) for task, _ in train]), wanted)
    reached = best = 0.0
    for task, outcomes in test:
        predicted = trees.predict(rows(task))
        everything = cost(outcomes, frozenset(range(len(predicted))))
        reached += everything - cost(outcomes, frozenset(np.flatnonzero(predicted > 0).tolist()))
        best += everything - float(outcomes.least[0])
    mean = math.exp(-reached / len(test))
    print(f"{len(train)} functions to learn from, {len(test)} of the test split")
    print(f"trees over all: {mean:.4f}; {reached / best:.1%} of the best choices' gain")


if __name__ == "__main__":
    main(tyro.cli(Options))
