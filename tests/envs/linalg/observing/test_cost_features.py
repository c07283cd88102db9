"""Features for cost models, and states read back from recorded keys."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from irgym.core.cost import CostHistory
from irgym.core.schedule import Schedule, replay
from irgym.cost_model.model import CostModel
from irgym.cost_model.recorded import recorded_samples, tasks_beside
from irgym.envs.linalg.environment import LINALG, LINALG_SWAPS
from irgym.envs.linalg.observing.cost_features import COST_FEATURES, alignments
from irgym.search.budget import Budget
from irgym.search.request import SearchRequest
from irgym.search.run import run_search
from irgym.search.strategies.screened import Screened

PROGRAMS = (
    "linalg://matmul/16x32x8",
    "linalg://batch_matmul/2x8x16x4",
    "linalg://conv2d/1x4x10x10x8x3x3",
    "linalg://conv2d/1x4x9x9x8x3x3?stride=2",
    "linalg://maxpool/1x8x8x8x2?stride=2",
    "linalg://softmax/8x16",
    "linalg://lattice/1",
    "linalg://sequence/1?length=4",
    "linalg://sequence/2?length=5",
)


def random_end(task, rng):
    state = task.initial()
    while not task.terminal(state):
        state = task.step(state, task.space.sample(task.mask(state), rng))
    return state


def ends(task, rng):
    """Return the terminal states of random episodes and sketches."""
    sketches = [replay(task, Schedule(tuple(task.sketch(rng)))) for _ in range(10)]
    return [random_end(task, rng) for _ in range(15)] + sketches


@pytest.mark.parametrize("environment", [LINALG, LINALG_SWAPS], ids=lambda environment: environment.name)
@pytest.mark.parametrize("uri", PROGRAMS)
def test_a_recorded_text_leads_back_to_equal_code(environment, uri):
    task = environment.task(uri)
    for state in ends(task, np.random.default_rng(0)):
        again = task.recorded(task.key(state))
        assert again is not None and task.job(again) == task.job(state)
        np.testing.assert_array_equal(task.cost_features(again), task.cost_features(state))


def test_rows_of_whole_pages_are_told_from_others():
    found = {
        uri: [2.0 ** (8.0 * figure) for figure in alignments(LINALG.task(uri).program.operations[-1])]
        for uri in ("linalg://matmul/8x1000x2048", "linalg://add/4x48", "linalg://relu/4x4x7")
    }
    assert list(found.values()) == [[1024.0, 8.0, 8.0], [16.0, 16.0, 16.0], [1.0, 1.0, 1.0]]


def test_malformed_texts_are_not_read():
    task = LINALG.task("linalg://matmul/16x32x8")
    assert task.recorded("") is not None
    last = task.order[0]
    for text in (
        "nonsense",
        f"{last}: tile_5",  # does not divide
        f"{last}: tile_8_8_8 burn",
        f"{last}: interchange_0_1_2_3_4",
        f"{last}: vectorise_0",  # not without a tile
        f"{last}: tile_0_0_0",  # does nothing
        "77: tile_8",
        f"{last}: tile_8_8_8 trailing; ",
    ):
        assert task.recorded(text) is None


@pytest.mark.parametrize("uri", PROGRAMS)
def test_cost_features_have_one_length_and_see_what_was_done(uri):
    task = LINALG.task(uri)
    states = {task.key(state): state for state in ends(task, np.random.default_rng(2))}
    rows = [task.cost_features(state) for state in (task.initial(), *states.values())]
    assert all(
        row.shape == (COST_FEATURES,) and np.isfinite(row).all() and abs(row).max() < 20 for row in rows
    )
    # Some differences, such as the order of loops of one iteration, have no effect on features.
    assert len({row.tobytes() for row in rows}) > 0.9 * len(rows)


def test_cost_features_depend_neither_on_the_turn_nor_on_what_is_half_done():
    task = LINALG.task("linalg://matmul/16x32x8")
    state = task.initial()
    begun = replay(task, Schedule.parse("interchange_1", task.space))
    np.testing.assert_array_equal(task.cost_features(state), task.cost_features(begun))


@pytest.mark.timed
def test_a_search_measures_what_it_reports_and_leaves_records_to_learn_from(tmp_path, monkeypatch):
    monkeypatch.setenv("IRGYM_CACHE_DIR", str(tmp_path))
    task = LINALG.task("linalg://matmul/32x48x64")
    with LINALG.bench() as bench:
        result = run_search(Screened(), task, bench.evaluator, SearchRequest(Budget(72), seed=0))
        assert isinstance(bench.evaluator, CostHistory)
        samples = recorded_samples(bench.evaluator, task, tasks_beside(task))
        recorded = bench.evaluator.recall([task.job(finalist.state) for finalist in result.finalists])
    assert len(samples.targets) == result.evaluations - 1 == 71
    assert recorded[0] is not None and recorded[0].cost == result.cost < 0.5 * result.first_cost
    rows, targets = samples.cost_features, samples.targets
    predicted = np.zeros(71)
    for held in np.array_split(np.random.default_rng(0).permutation(71), 6):
        known = np.setdiff1d(np.arange(71), held)
        predicted[held] = CostModel(type(samples)(rows[known], targets[known])).predict(rows[held])
    assert spearmanr(predicted, targets).statistic > 0.35
