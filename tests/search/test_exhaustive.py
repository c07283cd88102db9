"""Exhaustive search sees everything, and says so only then."""

from itertools import product

import pytest

from irgym.core.objective import Objective
from irgym.search import branches
from irgym.search.budget import Budget
from irgym.search.request import SearchRequest
from irgym.search.run import run_search
from irgym.search.strategies.beam import Beam
from irgym.search.strategies.exhaustive import Exhaustive

EXACT = Objective("sum", "", "a sum", exact=True, timed=False)


@pytest.fixture
def exact(task):
    task.objective = EXACT
    return task


def test_it_sees_every_program_once_and_proves_the_best(exact, evaluator, optimum):
    result = run_search(Exhaustive(), exact, evaluator, SearchRequest(Budget(10_000), 0))
    asked = [text for batch in evaluator.batches for text in batch]
    assert sorted(asked) == sorted(" ".join(map(str, values)) for values in product((1, 2, 4, 8), repeat=4))
    assert result.complete and result.cost == optimum


@pytest.mark.parametrize("budget", [Budget(255), Budget(10_000, seconds=1e-6)])
def test_a_search_that_is_cut_off_proves_nothing(exact, evaluator, budget):
    assert not run_search(Exhaustive(), exact, evaluator, SearchRequest(budget, 0)).complete


def test_noisy_costs_prove_nothing(task, evaluator):
    assert not run_search(Exhaustive(), task, evaluator, SearchRequest(Budget(10_000), 0)).complete


def test_actions_that_were_left_out_prove_nothing(exact, evaluator, monkeypatch):
    monkeypatch.setattr(branches, "BRANCHES", 3)
    assert not run_search(Exhaustive(), exact, evaluator, SearchRequest(Budget(10_000), 0)).complete


def test_other_searches_prove_nothing(exact, evaluator):
    assert not run_search(Beam(1), exact, evaluator, SearchRequest(Budget(10_000), 0)).complete
