"""Evaluation of a policy on the methods of a JIT CSE gymnasium, beside the compiler's own heuristic."""

import csv
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.base.errors import IrgymError, explained

Begin = Callable[[], Callable[[NDArray[np.float32], NDArray[np.bool_]], int]]
"""Begins an episode: returns a function from an observation and a mask to an action."""


@dataclass(frozen=True)
class MethodResult:
    """Result of a policy on a method.

    Attributes:
        method: The method.
        heuristic: Score of the compiler's own choice; None where the method did not compile.
        nothing: Score with nothing shared; likewise.
        score: Score of the policy's choice; None where the compiler failed.
        chosen: The shared candidates, in order.
        failure: Why there is no score; empty where there is one.
    """

    method: str
    heuristic: float | None
    nothing: float | None
    score: float | None
    chosen: tuple[int, ...] = ()
    failure: str = ""

    @property
    def ratio(self) -> float | None:
        """The heuristic's score over the policy's: above 1, the policy is better."""
        return None if self.score is None or self.heuristic is None else self.heuristic / self.score


@dataclass(frozen=True)
class Evaluation:
    """Results of a policy on some methods."""

    results: tuple[MethodResult, ...]

    @property
    def ratios(self) -> list[float]:
        """The heuristic's scores over the policy's, where both are known."""
        return [result.ratio for result in self.results if result.ratio is not None]

    @property
    def failures(self) -> list[MethodResult]:
        """The methods on which the compiler failed after choices of the policy, or these were invalid."""
        return [result for result in self.results if result.score is None and result.heuristic is not None]

    @property
    def left_out(self) -> list[MethodResult]:
        """The methods that the environment cannot use."""
        return [result for result in self.results if result.heuristic is None]

    @property
    def mean(self) -> float | None:
        """Geometric mean exp(mean(log(heuristic / policy))); None where no method has both scores."""
        return float(np.exp(np.mean(np.log(self.ratios)))) if self.ratios else None

    def count(self, better: bool) -> int:
        """Return on how many methods the policy is better than the heuristic, or worse."""
        return sum(
            ratio > 1 if better else ratio < 1 for ratio in self.ratios if not math.isclose(ratio, 1.0)
        )

    @property
    def text(self) -> str:
        """The results in lines: counts, the geometric mean, and each failure."""
        mean = "-" if self.mean is None else f"{self.mean:.4f}"
        lines = [
            f"{len(self.ratios)} methods: {self.count(better=True)} improved, {self.count(better=False)} "
            f"regressed, {len(self.ratios) - self.count(better=True) - self.count(better=False)} unchanged, "
            f"{len(self.failures)} failed; {len(self.left_out)} others cannot be used",
            f"geometric mean of heuristic score / policy score: {mean}",
        ]
        told = [*self.failures, *self.left_out]
        return "\n".join([*lines, *(f"{result.method}: {result.failure}" for result in told)])

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {"geometric_mean": self.mean, "methods": [asdict(result) for result in self.results]}

    def write_csv(self, path: Path) -> None:
        """Write a line for each method.

        Raises:
            StorageError: The file cannot be written.
        """
        with explained(f"cannot write {path}", "choose another file"), path.open("w", newline="") as file:
            table = csv.writer(file)
            names = [field.name for field in fields(MethodResult)]
            table.writerow([*names, "ratio"])
            for result in self.results:
                row = asdict(result) | {"chosen": " ".join(map(str, result.chosen))}
                table.writerow([*(row[name] for name in names), result.ratio])


def evaluate(env: Any, begin: Begin, methods: Sequence[str]) -> Evaluation:
    """Return what a policy comes to on methods: one episode each, and no more.

    Args:
        env: A `JitCseEnv`, or a wrapper of one that changes its observations.
        begin: Begins an episode of the policy.
        methods: The methods.
    """
    return Evaluation(tuple(_on_method(env, begin, method) for method in methods))


def _on_method(env: Any, begin: Begin, method: str) -> MethodResult:
    try:
        observation, info = env.reset(options={"method": method})
    except IrgymError as error:
        return MethodResult(
            method, None, None, None, failure=str(error).removeprefix(f"{method} cannot be used: ")
        )
    heuristic, nothing = info["heuristic_method"].perf_score, info["no_cse_method"].perf_score
    over, choose = False, begin()
    while not over:
        action = choose(observation, env.unwrapped.action_masks())
        observation, _, terminated, truncated, info = env.step(action)
        over = terminated or truncated
    chosen = info["current"].cses_chosen
    if not info["terminated"]:
        refused = f"the compiler failed with {info['action']} shared after {list(chosen)}"
        if not info["action_is_valid"]:
            refused = f"the policy chose {info['invalid_actions']} invalid actions after {list(chosen)}"
        return MethodResult(method, heuristic, nothing, None, chosen, refused)
    return MethodResult(method, heuristic, nothing, info["final_score"], chosen)
