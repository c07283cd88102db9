"""What counts as the same result."""

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irgym.envs.hlo.agreement import Noise, agreement

NUMBERS = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16, np.complex64, np.int32, np.bool_]


def values(*numbers, dtype=np.float32):
    return np.array(numbers).astype(dtype)


@settings(deadline=None)
@given(seed=st.integers(0, 1 << 20), dtype=st.sampled_from(NUMBERS), size=st.integers(0, 20))
def test_equal_results_agree_exactly(seed, dtype, size):
    one = (np.random.default_rng(seed).standard_normal(size) * 10).astype(dtype)
    found = agreement([one], [one.copy()], 0.0)
    assert found.ok
    assert found.error == 0


@settings(deadline=None)
@given(seed=st.integers(0, 1 << 20), relative=st.floats(1e-3, 1.0), scale=st.floats(1e-30, 1e30))
def test_a_relative_change_shows_at_any_scale(seed, relative, scale):
    one = np.random.default_rng(seed).standard_normal(16) * scale
    found = agreement([one], [one * (1 + relative)], 1e-5)
    assert not found.ok
    # The greatest element is judged by itself and by its array.
    assert relative / 2 <= found.error <= relative


def test_rounding_passes_and_a_wrong_element_does_not():
    one = np.linspace(-1, 1, 100, dtype=np.float32)
    assert agreement([one], [one * np.float32(1 + 1e-6)], 1e-5).ok
    wrong = one.copy()
    wrong[3] += 0.001
    assert not agreement([one], [wrong], 1e-5).ok


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_equals_itself_only(odd):
    assert agreement([values(1, odd)], [values(1, odd)], 1e-5).ok
    for other in {1.0, math.inf, -math.inf} - {odd}:
        assert agreement([values(1, odd)], [values(1, other)], 1e-5).error == math.inf
        assert agreement([values(1, other)], [values(1, odd)], 1e-5).error == math.inf


def test_other_results_are_no_results():
    one = values(1, 2)
    for other in ([], [one, one], [one.astype(np.float64)], [one.reshape(2, 1)]):
        assert agreement([one], other, 0.5).error == math.inf


def test_whole_numbers_are_exact_unless_noise_flips_them():
    one, other = values(1, 2, 3, 4, dtype=np.int32), values(1, 2, 3, 5, dtype=np.int32)
    assert not agreement([one], [other], 1e-5).ok
    assert not agreement([one], [other], 1e-5, Noise([one], 1e-7)).ok
    assert agreement([one], [other], 1e-5, Noise([values(1, 2, 9, 4, dtype=np.int32)], 1e-7)).ok


def test_a_difference_of_equal_numbers_is_judged_by_those_numbers():
    # Mathematically zero: what is left is rounding, which the noise shows to be just that.
    one, other = values(3e-8, -2e-8), values(-5e-8, 1e-8)
    assert not agreement([one], [other], 1e-5).ok
    assert agreement([one], [other], 1e-5, Noise([values(-1e-8, 4e-8)], 5e-7)).ok
    assert not agreement([one], [values(0.1, 0.2)], 1e-5, Noise([values(-1e-8, 4e-8)], 5e-7)).ok


def test_zero_must_stay_zero():
    assert agreement([values(0, 0)], [values(0, 1e-20)], 1e-5).error == math.inf
    assert agreement([values(0, 0)], [values(0, -0.0)], 1e-5).ok


def test_the_parts_of_complex_numbers_count():
    one = values(1 + 1j, dtype=np.complex64)
    assert not agreement([one], [values(1 - 1j, dtype=np.complex64)], 1e-5).ok
