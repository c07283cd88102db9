import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from irgym.cost_model.choice import promising
from irgym.cost_model.model import FAILED, LEAST, CostModel, Samples, log_ratio
from irgym.cost_model.quality import quality_of

RNG = np.random.default_rng(0)


def samples(count: int, sign: float = 1.0) -> Samples:
    """Costs that depend on two of four figures, not linearly."""
    rows = RNG.uniform(-1, 1, size=(count, 4)).astype(np.float32)
    return Samples(rows, sign * (np.abs(rows[:, 0]) + (rows[:, 1] > 0.3)).astype(np.float64))


def error(model: CostModel, truth: Samples) -> float:
    return float(np.abs(model.predict(truth.cost_features) - truth.targets).mean())


def test_it_learns_and_says_nothing_before():
    model, fresh = CostModel(), samples(200)
    model.learn(samples(LEAST - 1))
    assert not model.ready
    model.learn(samples(1))
    assert model.ready
    before = error(model, fresh)
    model.learn(samples(400))
    assert error(model, fresh) < 0.06 < before


def test_new_measurements_correct_old_ones():
    before, now = samples(300), samples(600, sign=-1.0)
    model = CostModel(before)
    assert model.ready and error(model, samples(100)) < 0.1
    model.learn(now)
    assert error(model, samples(100, sign=-1.0)) < 0.1


def test_the_past_spares_measurements():
    now = Samples(*(column[:40] for column in samples(40)))
    alone, knowing = CostModel(), CostModel(samples(400))
    alone.learn(now)
    knowing.learn(now)
    truth = samples(200)
    assert error(knowing, truth) < 0.6 * error(alone, truth)


def test_a_model_continues_exactly():
    model, fresh = CostModel(samples(50)), samples(30)
    model.learn(samples(40))
    model.predict(fresh.cost_features)
    model.learn(samples(7))
    again = CostModel.of(model.state_dict())
    later = samples(20)
    for each in (model, again):
        each.learn(later)
    np.testing.assert_array_equal(model.predict(fresh.cost_features), again.predict(fresh.cost_features))


def test_failures_count_as_very_slow():
    assert log_ratio(math.inf, 3.0) == FAILED > log_ratio(30.0, 3.0) == pytest.approx(math.log(10.0))


@given(
    st.lists(st.floats(-5, 5), min_size=1, max_size=30),
    st.integers(1, 40),
    st.sampled_from([0.0, 0.1, 0.5, 1.0]),
)
def test_the_best_predicted_and_some_others_are_chosen(predicted, count, explored):
    costs = np.array(predicted)
    chosen = promising(costs, count, np.random.default_rng(0), explored).tolist()
    assert len(set(chosen)) == len(chosen) == min(count, len(costs))
    best = len(costs) if count >= len(costs) else max(1, count - math.ceil(explored * count))
    assert costs[chosen[0]] == costs.min()
    others = np.delete(costs, chosen[:best])
    assert all(costs[place] <= other for place in chosen[:best] for other in others)


def test_every_candidate_may_be_chosen():
    costs, rng = np.arange(12.0), np.random.default_rng(0)
    seen = {place for _ in range(200) for place in promising(costs, 4, rng, 0.25).tolist()}
    assert seen == set(range(12))


VALUES = st.sampled_from([-2.0, -1.0, 0.0, 0.5, 1.0, 3.0])


@given(st.lists(st.tuples(VALUES, VALUES), min_size=0, max_size=20))
def test_quality_is_spearmans(pairs):
    predicted, measured = (np.array([pair[place] for pair in pairs]) for place in range(2))
    found = quality_of(predicted, measured)
    if len(pairs) < 3 or len(set(predicted)) < 2 or len(set(measured)) < 2:
        assert found is None
    else:
        assert found is not None
        assert found.rank_correlation == pytest.approx(spearmanr(predicted, measured).statistic)
        assert found.error == pytest.approx(np.sqrt(((predicted - measured) ** 2).mean()))
