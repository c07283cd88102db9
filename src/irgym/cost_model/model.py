"""The cost model: gradient-boosted trees on the logarithm of a cost over that of the program as written."""

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
"""What installs the library of the trees."""

LEAST = 32
"""Measurements from which a model can be fitted."""

GROWTH = 0.05
"""By which share the measurements must have grown before a model is fitted to them anew."""

CAPACITY = 8192
"""Measurements of its own that a model learns from: the newest."""

MANY = 16384
"""Samples from which larger trees are fitted. With 44,000 of linalg, the schedules that these liked best of
other programs cost 5 % less than those that the small ones did."""

_SMALL = {"max_iter": 100, "learning_rate": 0.1, "max_leaf_nodes": 31, "min_samples_leaf": 5}
_LARGE = {"max_iter": 600, "learning_rate": 0.06, "max_leaf_nodes": 63, "min_samples_leaf": 8}

FAILED = math.log(100.0)
"""What counts as the logarithm of a failure's relative cost."""

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
        """Return these samples and some more; either may be none."""
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
    """Return what a model learns from a cost: its logarithm, relative to that of the program as written.

    Args:
        cost: The cost; infinite for a failure.
        first: The cost of the program as written, finite.
    """
    return math.log(cost / first) if 0.0 < cost < math.inf else FAILED


def check_predictable(task: Task[Any]) -> None:
    """Make sure that costs of a task's programs can be predicted here.

    Raises:
        IrgymError: Nothing is measured, or its environment does not say what costs depend on.
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
    """Predicts costs from what was measured before, and corrects itself by what is measured now.

    Trees are fitted to the prior samples once. To what they leave unexplained of the own samples, which are
    fewer, others are fitted again and again.

    Args:
        prior: What was measured before; too few are left out.
    """

    def __init__(self, prior: Samples = NONE) -> None:
        self._prior = prior
        self._base = _fit(prior) if len(prior.targets) >= LEAST else None
        self._own, self._new = NONE, NONE
        self._correction: _Predict | None = None

    @property
    def ready(self) -> bool:
        """Whether enough was measured to predict anything."""
        return self._base is not None or len(self._own.targets) + len(self._new.targets) >= LEAST

    def learn(self, samples: Samples) -> None:
        """Take in what was measured."""
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
        """Fit to the newest of the own samples."""
        self._own = Samples(own.cost_features[-CAPACITY:], own.targets[-CAPACITY:])
        rest = self._own.targets - self._based(self._own.cost_features)
        self._correction = _fit(Samples(self._own.cost_features, rest))

    def _based(self, cost_features: FloatArray) -> NDArray[np.float64]:
        """Return what the prior samples alone say."""
        return np.zeros(len(cost_features)) if self._base is None else self._base(cost_features)

    def state_dict(self) -> dict[str, dict[str, NDArray[Any]]]:
        """Return all that predictions depend on."""
        samples = {"prior": self._prior, "own": self._own, "new": self._new}
        return {name: one._asdict() for name, one in samples.items()}

    @staticmethod
    def of(state: Mapping[str, Mapping[str, NDArray[Any]]]) -> "CostModel":
        """Return the model whose `state_dict` this is: it predicts the same, now and later."""
        model = CostModel(Samples(**state["prior"]))
        if len(state["own"]["targets"]):
            model._correct(Samples(**state["own"]))
        model.learn(Samples(**state["new"]))
        return model


def _fit(samples: Samples) -> _Predict:
    """Fit trees, always the same to the same samples, and return what predicts by them."""
    ensemble: Any = importlib.import_module("sklearn.ensemble")
    threads: Any = importlib.import_module("threadpoolctl")
    size = _LARGE if len(samples.targets) >= MANY else _SMALL
    # The absolute error: it is not worth being exact about failures and what is slow beyond measure.
    trees = ensemble.HistGradientBoostingRegressor(
        loss="absolute_error", max_features=0.3, early_stopping=False, random_state=0, **size
    )
    # Several threads add up in any order; and candidates may be timed on another core.
    with threads.threadpool_limits(1, "openmp"):
        trees.fit(*samples)

    return trees.predict
