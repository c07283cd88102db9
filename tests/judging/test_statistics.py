import math
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irgym.judging.statistics import (
    NOISE,
    Interval,
    Verdict,
    decide,
    geometric_interval,
    t_probability,
    t_quantile,
)

ratios = st.lists(st.floats(0.01, 100.0), min_size=2, max_size=30)
quick = settings(max_examples=100, deadline=None)


@pytest.mark.parametrize(
    ("degrees", "quantile"),
    [(1, 12.7062), (2, 4.30265), (3, 3.18245), (10, 2.22814), (30, 2.04227), (100, 1.98397), (219, 1.97086)],
)
def test_t_quantiles_agree_with_the_tables(degrees, quantile):
    assert t_quantile(0.975, degrees) == pytest.approx(quantile, rel=2e-5)


@quick
@given(degrees=st.integers(1, 60), probability=st.floats(0.5, 0.999))
def test_quantile_is_the_inverse_of_the_probability(degrees, probability):
    assert (1 + t_probability(t_quantile(probability, degrees), degrees)) / 2 == pytest.approx(probability)


@quick
@given(ratios)
def test_the_mean_is_geometric_and_inside(values):
    interval = geometric_interval(values)
    assert interval.mean == pytest.approx(statistics.geometric_mean(values))
    assert interval.low <= interval.mean <= interval.high
    assert interval.n == len(values)


@quick
@given(ratios)
def test_inverting_the_ratios_inverts_the_interval(values):
    interval = geometric_interval(values)
    inverse = geometric_interval([1 / value for value in values])
    assert inverse.low == pytest.approx(1 / interval.high)
    assert inverse.high == pytest.approx(1 / interval.low)


@quick
@given(ratios, st.floats(0.1, 10.0))
def test_scaling_the_ratios_scales_the_interval(values, scale):
    interval = geometric_interval(values)
    scaled = geometric_interval([scale * value for value in values])
    assert (scaled.low, scaled.high) == pytest.approx((scale * interval.low, scale * interval.high))


def test_the_interval_covers_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(0)
    samples = np.exp(rng.normal(math.log(1.3), 0.4, size=(2000, 5)))
    intervals = [geometric_interval(list(map(float, row))) for row in samples]
    covered = sum(interval.low <= 1.3 <= interval.high for interval in intervals) / 2000
    assert 0.935 < covered < 0.965


@pytest.mark.parametrize("values", [[], [0.0, 1.0], [1.0, -2.0], [math.inf], [math.nan]])
def test_senseless_ratios_are_refused(values):
    with pytest.raises(ValueError, match="positive"):
        geometric_interval(values)


def test_verdicts():
    assert geometric_interval([1.2, 1.3, 1.25]).verdict is Verdict.FASTER
    assert geometric_interval([0.8, 0.7, 0.75]).verdict is Verdict.SLOWER
    assert geometric_interval([0.7, 1.5, 1.1]).verdict is Verdict.TIE
    assert Interval(1.04, 0.0, math.inf, 1).verdict is Verdict.TIE
    assert geometric_interval([1.4]).verdict is Verdict.FASTER


@quick
@given(st.floats(0.2, 5.0))
def test_a_decision_is_antisymmetric_and_ties_within_the_noise(ratio):
    opposite = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER, Verdict.TIE: Verdict.TIE}
    away = abs(abs(math.log(ratio)) - math.log1p(NOISE)) > 1e-9
    if away:
        assert decide(1 / ratio) is opposite[decide(ratio)]
        assert (decide(ratio) is Verdict.TIE) == (abs(math.log(ratio)) < math.log1p(NOISE))
