"""Screening: an evaluator that measures the promising candidates and predicts the costs of the others."""

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
from irgym.cost_model.recorded import recorded_samples

_Identity = tuple[str, str]


class _Candidate(NamedTuple):
    """A new candidate whose cost can be predicted."""

    job: Job
    first: float
    cost_features: FloatArray


def check_share(share: float) -> None:
    """Check a share of candidates to measure.

    Raises:
        IrgymError: It is not above 0 and at most 1.
    """
    if not 0.0 < share <= 1.0:
        raise IrgymError(f"a share of {share:g} cannot be measured: choose more than 0 and at most 1")


class Screen:
    """An evaluator that measures a share of the new candidates of each batch, and predicts the others' costs.

    In each family of programs it measures the candidates with the greatest predicted gain over the program's
    incumbent, and some random ones. Recorded costs and original programs are never predicted; nor is anything
    before the model has enough samples.

    Args:
        evaluator: Measures costs.
        tasks: The programs; candidates of other programs are always measured.
        share: Share of a batch's new candidates to measure.
        seed: Seed of the random choices.
        families: The family of each program by its URI, so that a family with large gains does not crowd out
            the others. All other programs are of one family.

    Attributes:
        quality: Quality of the last batch's predictions for measured candidates; None for fewer than three.

    Raises:
        IrgymError: The share is invalid, or costs of such programs cannot be predicted.
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
        if _features_of(tasks[0], tasks[0].job(tasks[0].initial())) is None:
            raise IrgymError(
                f"a screen needs programs that can be read back, unlike those of {tasks[0].uri}: leave it out"
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
        """The cost model, fitted to the recorded costs of the tasks at first use."""
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
        originals = [task.job(task.initial()) for uri, task in self._tasks.items() if uri in programs]
        answers = self._measured(originals)
        firsts = {program: answer.cost for (program, _), answer in answers.items() if answer.ok}
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
        """Return the candidates among distinct jobs: those without a record that can be predicted.

        Args:
            jobs: Jobs of modified programs.
            firsts: Costs of the original programs.
        """
        recalled = [None] * len(jobs) if self._history is None else self._history.recall(jobs)
        found: list[_Candidate] = []
        for job, known in zip(jobs, recalled, strict=True):
            if known is None and job.program in firsts:
                cost_features = _features_of(self._tasks[job.program], job)
                if cost_features is not None:
                    found.append(_Candidate(job, firsts[job.program], cost_features.astype(np.float32)))
        return found

    def _predicted(self, candidates: Sequence[_Candidate]) -> NDArray[np.float64] | None:
        """Return predicted logarithms of relative costs; None if the model is not ready."""
        if not candidates or not self.model.ready:
            return None
        return self.model.predict(np.stack([candidate.cost_features for candidate in candidates]))

    def _left(
        self, candidates: Sequence[_Candidate], predicted: NDArray[np.float64] | None
    ) -> dict[_Identity, Measurement]:
        """Return predictions as measurements, for the candidates that are not chosen to be measured."""
        if predicted is None:
            return {}
        best = np.array([self._best.get(candidate.job.program, 0.0) for candidate in candidates])
        families = np.array([self._families.get(candidate.job.program, "") for candidate in candidates])
        chosen: set[int] = set()
        for family in np.unique(families):
            places = np.flatnonzero(families == family)
            count = math.ceil(self._share * len(places))
            chosen |= set(places[promising((predicted - best)[places], count, self._rng)].tolist())
        return {
            _identity(candidate.job): Measurement(
                Outcome.OK, (candidate.first * math.exp(ratio),), predicted=True
            )
            for place, (candidate, ratio) in enumerate(zip(candidates, predicted.tolist(), strict=True))
            if place not in chosen
        }

    def _learn(
        self,
        candidates: Sequence[_Candidate],
        predicted: NDArray[np.float64] | None,
        answers: Mapping[_Identity, Measurement],
    ) -> None:
        """Learn from the measured candidates, and update the quality of predictions."""
        places = [place for place, candidate in enumerate(candidates) if _identity(candidate.job) in answers]
        measured = [candidates[place] for place in places]
        ratios = np.array(
            [log_ratio(answers[_identity(candidate.job)].cost, candidate.first) for candidate in measured]
        )
        for candidate, ratio in zip(measured, ratios.tolist(), strict=True):
            self._best[candidate.job.program] = min(ratio, self._best.get(candidate.job.program, 0.0))
        self.quality = None if predicted is None else quality_of(predicted[places], ratios)
        if measured:
            rows = np.stack([candidate.cost_features for candidate in measured])
            self.model.learn(Samples(rows, ratios))

    def state_dict(self) -> dict[str, Any]:
        """Return the complete state, as arrays and plain values."""
        return {
            "model": None if self._model is None else self._model.state_dict(),
            "best": dict(self._best),
            "rng": self._rng.bit_generator.state,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state from `state_dict`, exactly."""
        self._model = None if state["model"] is None else CostModel.of(state["model"])
        self._best = dict(state["best"])
        self._rng.bit_generator.state = state["rng"]


def _identity(job: Job) -> _Identity:
    return job.program, job.schedule


def _features_of(task: Task[Any], job: Job) -> NDArray[np.float64] | None:
    """Return the cost features of the program that a job runs, shape [K]; None where nothing says them."""
    features = capabilities.ask(task, capabilities.JobFeatures)
    if features is not None:
        return features.job_features(job)
    state = capabilities.recorded(task, job.schedule)
    return None if state is None else capabilities.cost_features(task, state)
