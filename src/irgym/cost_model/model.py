"""The cost model: gradient-boosted trees on the logarithm of a cost relative to the original program."""

import importlib
import importlib.util
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from irgym.base.errors import BackendError, IrgymError
from irgym.core import capabilities
from irgym.core.task import Task

INSTALL = "pip install 'irgym[screen]'"
"""Command that installs the library of the trees."""

LEAST = 32
"""Least number of measurements to fit a model."""

GROWTH = 0.05
"""Growth of the measurements, as a share, after which the model is fitted again."""

CAPACITY = 8192
"""Number of measurements of the current run that a model learns from, the newest."""

MANY = 16384
"""Least number of samples for the larger trees. With 44,000 samples of linalg, the schedules that these
ranked best on other programs cost 5 % less than those of the small trees."""

_SMALL = {"max_iter": 100, "learning_rate": 0.1, "max_leaf_nodes": 31, "min_samples_leaf": 5}
_LARGE = {"max_iter": 600, "learning_rate": 0.06, "max_leaf_nodes": 63, "min_samples_leaf": 8}

FAILED = math.log(100.0)
"""Logarithm of the relative cost of a failure."""

FloatArray = NDArray[np.float32]


class Samples(NamedTuple):
    """N measurements to learn from.

    Attributes:
        cost_features: Shape [N, K]; see `irgym.core.capabilities.CostFeatures`.
        targets: Shape [N]; logarithms of relative costs.
    """

    cost_features: FloatArray
    targets: NDArray[np.float64]

    def then(self, other: "Samples") -> "Samples":
        """Return these samples and others; either may be empty."""
        if not len(self.targets) or not len(other.targets):
            return self if len(self.targets) else other
        return Samples(
            np.concatenate([self.cost_features, other.cost_features]),
            np.concatenate([self.targets, other.targets]),
        )


NONE = Samples(np.zeros((0, 0), dtype=np.float32), np.zeros(0))
"""No samples."""


_Predict = Callable[[FloatArray], NDArray[np.float64]]


def log_ratio(cost: float, first: float) -> float:
    """Return the model's target for a cost: the logarithm of its ratio to the original program's cost.

    Args:
        cost: The cost; infinite for a failure.
        first: The cost of the original program, finite.
    """
    return math.log(cost / first) if 0.0 < cost < math.inf else FAILED


def check_predictable(task: Task[Any]) -> None:
    """Check that costs of a task can be predicted.

    Raises:
        IrgymError: Its costs are not measured, or the task has no cost features.
        BackendError: The library of the trees is missing.
    """
    initial = task.initial()
    if task.job(initial).known is not None:
        raise IrgymError(f"the states of {task.uri} know their costs: there is nothing to predict")
    if capabilities.cost_features(task, initial) is None:
        raise IrgymError(f"{task.uri} has no cost features that its cost could be predicted from")
    if importlib.util.find_spec("sklearn") is None:
        raise BackendError(f"predicting costs needs scikit-learn: run {INSTALL}")


class CostModel:
    """Predicts costs from past measurements, with corrections from new ones.

    Base trees are fitted once, to the prior samples. Correction trees are fitted repeatedly, to the residuals
    of the current run's samples, which are fewer.

    Args:
        prior: Past measurements; ignored if there are fewer than `LEAST`.
    """

    def __init__(self, prior: Samples = NONE) -> None:
        self._prior = prior
        self._base = _fit(prior) if len(prior.targets) >= LEAST else None
        self._own, self._new = NONE, NONE
        self._correction: _Predict | None = None

    @property
    def ready(self) -> bool:
        """Whether there are enough measurements for predictions."""
        return self._base is not None or len(self._own.targets) + len(self._new.targets) >= LEAST

    def learn(self, samples: Samples) -> None:
        """Add new measurements."""
        self._new = self._new.then(samples)

    def predict(self, cost_features: FloatArray) -> NDArray[np.float64]:
        """Return the logarithms of N relative costs, shape [N]; the model must be ready.

        Args:
            cost_features: Shape [N, K].
        """
        own, new = len(self._own.targets), len(self._new.targets)
        if new and own + new >= LEAST and new >= GROWTH * own:
            self._correct(self._own.then(self._new))
            self._new = NONE
        predicted = self._based(cost_features)
        return predicted if self._correction is None else predicted + self._correction(cost_features)

    def _correct(self, own: Samples) -> None:
        """Fit the correction to the newest of the current run's samples."""
        self._own = Samples(own.cost_features[-CAPACITY:], own.targets[-CAPACITY:])
        rest = self._own.targets - self._based(self._own.cost_features)
        self._correction = _fit(Samples(self._own.cost_features, rest))

    def _based(self, cost_features: FloatArray) -> NDArray[np.float64]:
        """Return the predictions of the base trees."""
        return np.zeros(len(cost_features)) if self._base is None else self._base(cost_features)

    def state_dict(self) -> dict[str, dict[str, NDArray[Any]]]:
        """Return the complete state of the model."""
        samples = {"prior": self._prior, "own": self._own, "new": self._new}
        return {name: part._asdict() for name, part in samples.items()}

    @staticmethod
    def of(state: Mapping[str, Mapping[str, NDArray[Any]]]) -> "CostModel":
        """Restore a model from its `state_dict`; all its predictions stay the same."""
        model = CostModel(Samples(**state["prior"]))
        if len(state["own"]["targets"]):
            model._correct(Samples(**state["own"]))
        model.learn(Samples(**state["new"]))
        return model


def _fit(samples: Samples) -> _Predict:
    """Fit trees, deterministically, and return their prediction function."""
    ensemble: Any = importlib.import_module("sklearn.ensemble")
    threads: Any = importlib.import_module("threadpoolctl")
    size = _LARGE if len(samples.targets) >= MANY else _SMALL
    # Absolute error: the exact costs of failures and very slow programs do not matter.
    trees = ensemble.HistGradientBoostingRegressor(
        loss="absolute_error", max_features=0.3, early_stopping=False, random_state=0, **size
    )
    controller = threads.ThreadpoolController()
    # One thread: several sum in any order, and would disturb timings on other cores.
    with controller.limit(limits=1, user_api="openmp"):
        trees.fit(*samples)

    def predict(cost_features: FloatArray) -> NDArray[np.float64]:
        # Of some hundred rows, each of the trees takes less time than threads take to meet.
        with controller.limit(limits=1, user_api="openmp"):
            return trees.predict(cost_features)

    return predict
