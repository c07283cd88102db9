"""Evolution that a learned cost model screens."""

import numpy as np
import pytest
from knobs import Knobs, Remembering
from passes import URIS, PassBench, PassTask

from irgym.base.errors import BackendError, IrgymError
from irgym.cost_model import model
from irgym.search.budget import Budget
from irgym.search.request import SearchRequest
from irgym.search.run import run_search
from irgym.search.strategies.evolutionary import Evolutionary
from irgym.search.strategies.screened import Screened


def found(strategy, evaluations, history=None):
    """Return the geometric mean of the best costs of five searches."""
    budget = Budget(evaluations)
    results = [
        run_search(strategy, Knobs(), Remembering(), SearchRequest(budget, seed, history=history))
        for seed in range(5)
    ]
    return np.exp(np.mean([np.log(result.cost) for result in results]))


@pytest.fixture(scope="module")
def screened() -> float:
    return found(Screened(), 64)


def test_it_finds_better_programs_with_as_many_evaluations(screened):
    assert screened < 0.6 * found(Evolutionary(), 64)


def test_it_learns_from_what_was_measured_in_the_past(screened):
    past = Remembering()
    run_search(Evolutionary(), Knobs(), past, SearchRequest(Budget(300), seed=9))
    assert found(Screened(), 64, past) < 0.7 * screened


def test_it_measures_a_generation_at_once_and_nothing_twice():
    evaluator = Remembering()
    run_search(
        Screened(Evolutionary(population=16, offspring=8)),
        Knobs(),
        evaluator,
        SearchRequest(Budget(97), seed=0),
    )
    sizes = [len(batch) for batch in evaluator.batches]
    # The first is the original program; before the model predicts, generations may repeat themselves.
    assert sizes[0] == 1 and sizes[6:-1] == [8] * len(sizes[6:-1])
    asked = [text for batch in evaluator.batches for text in batch]
    assert len(set(asked)) == len(asked) == 97


def test_known_costs_are_refused():
    with pytest.raises(IrgymError, match="there is nothing to predict"):
        run_search(Screened(), PassTask(URIS[0]), PassBench(), SearchRequest(Budget(10), seed=0))


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setattr(model.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BackendError, match=r"irgym\[screen\]"):
        found(Screened(), 10)
