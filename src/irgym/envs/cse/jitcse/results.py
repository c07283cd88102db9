"""Results of episodes, under the TensorBoard keys of the JIT CSE gymnasium."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from irgym.base.errors import BackendError

KEYS = ("vs_heuristic", "vs_no_cse", "better_than_heuristic", "num_cse", "invalid_choices")
"""The keys, without the prefix `results/`."""


class Results:
    """Episodes that finished since the last call of `take`."""

    def __init__(self) -> None:
        self._rows: list[tuple[float, ...]] = []

    def add(self, info: Mapping[str, Any]) -> None:
        """Add the `info` of a step; only the last step of an episode counts."""
        if "final_score" not in info:
            return
        final, heuristic, none = info["final_score"], info["heuristic_score"], info["no_cse_score"]
        chosen = len(info["current"].cses_chosen)
        better = float(final < heuristic)
        self._rows.append((1 - final / heuristic, 1 - final / none, better, chosen, info["invalid_actions"]))

    def take(self) -> dict[str, float]:
        """Return means over the episodes by key, and forget the episodes; empty if none has finished.

        `vs_heuristic` and `vs_no_cse` are relative reductions of the score against the heuristic and against
        sharing nothing; `better_than_heuristic` is a share of episodes.
        """
        rows, self._rows = self._rows, []
        return dict(zip(KEYS, np.mean(rows, axis=0).tolist(), strict=True)) if rows else {}


def results_callback() -> Any:
    """Return a Stable-Baselines3 callback that records the results after each rollout.

    Raises:
        BackendError: Stable-Baselines3 is not installed.
    """
    try:
        base: Any = import_module("stable_baselines3.common.callbacks").BaseCallback
    except ImportError as error:
        raise BackendError(
            "the callback needs stable_baselines3, which is not installed: run pip install 'irgym[sb3]'"
        ) from error

    results = Results()

    class ResultsCallback(base):
        """Records `results/...` with the model's logger."""

        def _on_step(self) -> bool:
            for info in self.locals["infos"]:
                results.add(info)
            return True

        def _on_rollout_end(self) -> None:
            for key, value in results.take().items():
                self.logger.record(f"results/{key}", value)

    return ResultsCallback()
