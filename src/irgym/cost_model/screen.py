"""A screen: an evaluator that measures the promising ones of new programs, and predicts the others."""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from irgym.base.errors import IrgymError
from irgym.core import capabilities
from irgym.core.cost import CostHistory, Evaluator, Job, Measurement, Outcome
from irgym.core.task import Task
from irgym.cost_model.choice import promising
from irgym.cost_model.model import NONE, CostModel, FloatArray, Samples, check_predictable, log_ratio
from irgym.cost_model.quality import Quality, quality_of
from irgym.cost_model.recorded import cost_features_of, recorded_samples

_Identity = tuple[str, str]


class _Candidate(NamedTuple):
    """A new program whose cost can be predicted."""

    job: Job
    first: float
    cost_features: FloatArray


def check_share(share: float) -> None:
    """Make sure that a share of programs can be measured.

    Raises:
        IrgymError: It is none, or more than all.
    """
    if not 0.0 < share <= 1.0:
        raise IrgymError(f"a share of {share:g} cannot be measured: choose more than 0 and at most 1")


class Screen:
    """An evaluator that measures a share of the new programs of each batch, and predicts the others' costs.

    Of each family of programs it measures those predicted to gain most over the best schedule of the same
    program measured so far, and some at random. What is recorded, what is as written, and what there is not
    enough to predict from yet is not predicted.

    Args:
        evaluator: Measures.
        tasks: The programs; those of others are always measured.
        share: Of the new programs of a batch that is measured.
        seed: Of the random choices.
        families: The family of each program by its URI: where one gains most, the others would never be
            measured. Those that are not named are all of one.

    Attributes:
        quality: Of the predictions for those of the last batch that were measured; None for fewer than three.

    Raises:
        IrgymError: The share makes no sense, or costs of such programs cannot be predicted.
        BackendError: The library for it is missing.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        tasks: Sequence[Task[Any]],
        share: float,
        seed: int,
        families: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        check_share(share)
        check_predictable(tasks[0])
        if capabilities.recorded(tasks[0], tasks[0].key(tasks[0].initial())) is None:
            raise IrgymError(
                f"a screen needs costs that can be read back, unlike those of {tasks[0].uri}: leave it out"
            )
        self.quality: Quality | None = None
        self._evaluator = evaluator
        self._history = capabilities.ask(evaluator, CostHistory)
        self._tasks = {task.uri: task for task in tasks}
        self._families = families
        self._share = share
        self._rng = np.random.default_rng(seed)
        self._best: dict[str, float] = {}
        self._model: CostModel | None = None

    @property
    def model(self) -> CostModel:
        """The cost model, which has learnt from what was recorded of the tasks before."""
        if self._model is None:
            prior = NONE
            if self._history is not None:
                first = next(iter(self._tasks.values()))
                prior = recorded_samples(self._history, first, self._tasks.get, limit=None)
            self._model = CostModel(prior)
        return self._model

    def evaluate(self, jobs: Sequence[Job]) -> list[Measurement]:
        """Return one measurement or prediction for each job, in order."""
        distinct = {_identity(job): job for job in jobs}
        programs = {job.program for job in jobs}
        written = [task.job(task.initial()) for uri, task in self._tasks.items() if uri in programs]
        answers = self._measured(written)
        firsts = {program: one.cost for (program, _), one in answers.items() if one.ok}
        fresh = [job for identity, job in distinct.items() if identity not in answers]
        candidates = self._candidates(fresh, firsts)
        predicted = self._predicted(candidates)
        left = self._left(candidates, predicted)
        answers |= self._measured([job for job in fresh if _identity(job) not in left])
        self._learn(candidates, predicted, answers)
        answers |= left
        return [answers[_identity(job)] for job in jobs]

    def _measured(self, jobs: Sequence[Job]) -> dict[_Identity, Measurement]:
        return dict(zip(map(_identity, jobs), self._evaluator.evaluate(jobs), strict=True))

    def _candidates(self, jobs: Sequence[Job], firsts: Mapping[str, float]) -> list[_Candidate]:
        """Return those of distinct jobs that are new, and whose costs can be predicted.

        Args:
            jobs: None as written.
            firsts: Costs of the programs as written.
        """
        recalled = [None] * len(jobs) if self._history is None else self._history.recall(jobs)
        found: list[_Candidate] = []
        for job, known in zip(jobs, recalled, strict=True):
            if known is None and job.program in firsts:
                cost_features = cost_features_of(self._tasks[job.program], job.schedule)
                if cost_features is not None:
                    found.append(_Candidate(job, firsts[job.program], cost_features))
        return found

    def _predicted(self, candidates: Sequence[_Candidate]) -> NDArray[np.float64] | None:
        """Return the logarithms of the candidates' relative costs; None as long as nothing can be said."""
        if not candidates or not self.model.ready:
            return None
        return self.model.predict(np.stack([one.cost_features for one in candidates]))

    def _left(
        self, candidates: Sequence[_Candidate], predicted: NDArray[np.float64] | None
    ) -> dict[_Identity, Measurement]:
        """Return predictions for the candidates that are not worth measuring."""
        if predicted is None:
            return {}
        best = np.array([self._best.get(one.job.program, 0.0) for one in candidates])
        families = np.array([self._families.get(one.job.program, "") for one in candidates])
        chosen: set[int] = set()
        for family in np.unique(families):
            places = np.flatnonzero(families == family)
            count = math.ceil(self._share * len(places))
            chosen |= set(places[promising((predicted - best)[places], count, self._rng)].tolist())
        return {
            _identity(one.job): Measurement(Outcome.OK, (one.first * math.exp(ratio),), predicted=True)
            for place, (one, ratio) in enumerate(zip(candidates, predicted.tolist(), strict=True))
            if place not in chosen
        }

    def _learn(
        self,
        candidates: Sequence[_Candidate],
        predicted: NDArray[np.float64] | None,
        answers: Mapping[_Identity, Measurement],
    ) -> None:
        """Learn from the candidates that were measured, and note how well they had been predicted."""
        places = [place for place, one in enumerate(candidates) if _identity(one.job) in answers]
        measured = [candidates[place] for place in places]
        ratios = np.array([log_ratio(answers[_identity(one.job)].cost, one.first) for one in measured])
        for one, ratio in zip(measured, ratios.tolist(), strict=True):
            self._best[one.job.program] = min(ratio, self._best.get(one.job.program, 0.0))
        self.quality = None if predicted is None else quality_of(predicted[places], ratios)
        if measured:
            rows = np.stack([one.cost_features for one in measured])
            self.model.learn(Samples(rows, ratios))

    def state_dict(self) -> dict[str, Any]:
        """Return all that determines what is measured further on, as arrays and plain values."""
        return {
            "model": None if self._model is None else self._model.state_dict(),
            "best": dict(self._best),
            "rng": self._rng.bit_generator.state,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` returned, exactly."""
        self._model = None if state["model"] is None else CostModel.of(state["model"])
        self._best = dict(state["best"])
        self._rng.bit_generator.state = state["rng"]


def _identity(job: Job) -> _Identity:
    return job.program, job.schedule
