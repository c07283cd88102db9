import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from irgym.measure.checking.agreement import agreement, compare
from irgym.measure.checking.expected import exactly, rounded, within
from irgym.measure.checking.power import blind_spots

SHAPES = arrays.array_shapes(max_dims=3, max_side=8)
FLOATS = arrays.arrays(np.float32, SHAPES, elements=st.floats(width=32))


def noisy(values, seed=0, relative=4e-7):
    """Return values perturbed in their last bits, like those of a run with coarser rounding."""
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], values.shape)
    return (values.astype(np.float64) * (1 + relative * signs)).astype(values.dtype)


def samples(values):
    return [noisy(values, seed) for seed in (1, 2)]


@settings(deadline=None)
@given(FLOATS)
def test_whatever_was_computed_agrees_with_itself(values):
    with np.errstate(over="ignore", invalid="ignore"):
        others = samples(values)
    for expected in (exactly(values), exactly(values, keeps_zeros=True), rounded(values, others)):
        assert compare(expected, values.copy()).ok


@settings(deadline=None)
@given(FLOATS, st.data())
def test_no_other_value_is_exactly_the_same(values, data):
    other = values.copy()
    place = data.draw(st.integers(0, values.size - 1))
    was = other.flat[place]
    with np.errstate(over="ignore"):
        other.flat[place] = np.float32(0.0) if np.isnan(was) else np.nextafter(was, np.float32(-np.inf))
    same = other.flat[place] == was
    assert compare(exactly(values), other).ok == same


def test_each_element_counts_by_itself():
    rng = np.random.default_rng(0)
    values = rng.standard_normal((64, 64)).astype(np.float32)
    values[0, 0], values[1] = 1e7, -1e9
    expected = rounded(values, samples(values))
    wrong = values.copy()
    wrong[2:] *= -0.5
    found = compare(expected, wrong)
    assert not found.ok and "3968 of 4096" in found.detail and found.error > 1e4
    wrong = values.copy()
    wrong[5, 5] *= 1.0001
    assert "1 of 4096 numbers differ, the first at [5, 5]" in compare(expected, wrong).detail


def test_only_results_sensitive_to_rounding_may_be_far_off():
    """The difference of large numbers next to small numbers of the same size."""
    rng = np.random.default_rng(1)
    great = 1e6 * rng.standard_normal(1000).astype(np.float32)
    clean = rng.standard_normal(200).astype(np.float32)
    values = np.concatenate([np.float32(1e-2) * rng.standard_normal(1000).astype(np.float32), clean])
    moved = [np.concatenate([values[:1000] + noisy(great, seed) - great, clean]) for seed in (1, 2, 3)]
    expected = rounded(values, moved)
    right = np.concatenate([values[:1000] + noisy(great, 9) - great, clean])
    assert compare(expected, right).ok
    assert not compare(expected, np.concatenate([right[:1000] + 100, clean])).ok


def test_an_element_that_samples_happen_to_leave_is_judged_by_its_peers():
    values = np.ones(1000, np.float32)
    moved = values + np.float32(1e-3)
    moved[7] = 1.0
    wrong = values.copy()
    wrong[7] += np.float32(2e-3)
    assert compare(rounded(values, [moved]), wrong).ok


def test_no_type_elsewhere_loosens_a_result():
    single = np.linspace(1, 2, 100, dtype=np.float32)
    coarse = np.ones(1, ml_dtypes.bfloat16)
    expected = [rounded(single, samples(single)), rounded(coarse, [coarse])]
    assert agreement(expected, [single, coarse]).ok
    assert "result 0" in agreement(expected, [single * np.float32(1.0001), coarse]).detail


@pytest.mark.parametrize(
    ("dtype", "within_reach", "beyond"),
    [
        (np.float64, 5e-16, 1e-12),
        (np.float32, 3e-7, 1e-5),
        (np.float16, 1e-3, 0.1),
        (ml_dtypes.bfloat16, 1e-2, 0.3),
    ],
)
def test_a_type_sets_how_far_a_last_bit_goes(dtype, within_reach, beyond):
    values = np.linspace(1, 2, 50).astype(dtype)
    expected = rounded(values, [values])
    assert compare(expected, (values.astype(np.float64) * (1 + within_reach)).astype(dtype)).ok
    assert not compare(expected, (values.astype(np.float64) * (1 + beyond)).astype(dtype)).ok


def test_whole_numbers_may_flip_only_as_many_and_as_far_as_rounding_flips_them():
    values = np.arange(1000, dtype=np.int32)
    sample = values.copy()
    sample[3] += 1
    expected = rounded(values, [sample])
    flipped = values.copy()
    flipped[[10, 20, 30, 40]] += 4
    assert compare(expected, flipped).ok
    flipped[50] += 1
    assert not compare(expected, flipped).ok
    far = values.copy()
    far[10] += 5
    assert not compare(expected, far).ok
    assert not compare(rounded(values, [values]), far).ok


def test_truncated_noise_is_bounded_in_size():
    p = np.random.default_rng(0).uniform(0.05, 1, 100).astype(np.float32)
    values = (np.float32(1e7) * p).astype(np.int32)
    expected = rounded(values, [(np.float32(1e7) * noisy(p, seed)).astype(np.int32) for seed in (1, 2)])
    assert compare(expected, (np.float32(1e7) * noisy(p, 3)).astype(np.int32)).ok
    assert not compare(expected, np.zeros_like(values)).ok


def test_specials_are_compared_as_such():
    values = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0], np.float32)
    expected = rounded(values, [values])
    wrongs = ((0, 1.0), (1, -np.inf), (1, np.nan), (1, 3e38), (2, np.inf), (5, np.nan), (5, np.inf))
    for place, other in wrongs:
        wrong = values.copy()
        wrong[place] = other
        found = compare(expected, wrong)
        assert not found.ok and not np.isnan(found.error)
    flipped = values.copy()
    flipped[3] = -0.0
    assert compare(expected, flipped).ok and compare(exactly(values), flipped).ok
    assert not compare(exactly(values, keeps_zeros=True), flipped).ok


def test_an_infinity_from_rounding_is_accepted():
    values = np.array([1.0, 3.4e38], np.float32)
    expected = rounded(values, [np.array([1.0, np.inf], np.float32)])
    assert compare(expected, np.array([1.0, np.inf], np.float32)).ok
    assert not compare(expected, np.array([2.0, np.inf], np.float32)).ok


def test_a_true_that_is_no_true_shows():
    values = np.array([True, False])
    found = values.copy()
    found.view(np.uint8)[0] = 165
    assert compare(exactly(values), values.copy()).ok and not compare(exactly(values), found).ok


def test_complex_numbers_count_by_their_parts():
    values = np.array([1e6 + 1e-3j, 1 - 1j], np.complex64)
    assert compare(rounded(values, [values]), values.copy()).ok
    assert not compare(rounded(values, [values]), np.array([1e6 + 2e-3j, 1 - 1j], np.complex64)).ok


def test_other_shapes_types_and_numbers_of_results_differ():
    values = np.zeros((2, 3), np.float32)
    expected = exactly(values)
    for other in (np.zeros((3, 2), np.float32), np.zeros((2, 3), np.float64), np.zeros(6, np.float32)):
        assert np.isinf(compare(expected, other).error) and not compare(expected, other).ok
    assert "1 results instead of 2" in agreement([expected, expected], [values]).detail


def test_references_bound_each_sum():
    reference = np.array([1.0, 1.0])
    expected = within(np.zeros(2, np.float32), reference, np.array([1e-3, 1e-6]))
    assert compare(expected, np.array([1.0005, 1.0], np.float32)).error == pytest.approx(0.5, rel=1e-3)
    assert not compare(expected, np.array([1.0, 1.0005], np.float32)).ok


SCALARS = (1.5, 0.0, -0.0, np.nan, np.inf, -np.inf)


@pytest.mark.parametrize("wanted", SCALARS)
def test_numbers_without_dimensions_are_compared_too(wanted):
    value = np.asarray(wanted, np.float32)
    moves = ([], [value], [np.asarray(2.0, np.float32)], [np.asarray(np.nan, np.float32)])
    for expected in (exactly(value), *(rounded(value, samples) for samples in moves)):
        for found in SCALARS:
            said = compare(expected, np.asarray(found, np.float32))
            if expected.ignored is None and (expected.allowance is None or expected.allowance < 1e-3):
                assert said.ok == (found == wanted or bool(np.isnan(found) and np.isnan(wanted)))
        for answer in (np.asarray(scalar, np.float32) for scalar in SCALARS):
            blind_spots([expected], {"other": [answer]}, {"slight": [answer]})
    whole = np.asarray(7, np.int32)
    assert compare(rounded(whole, [np.asarray(8, np.int32)]), np.asarray(9, np.int32)).ok
    assert not compare(rounded(whole, [whole]), np.asarray(9, np.int32)).ok


def test_a_cancelled_sum_keeps_the_noise_of_its_terms():
    """One of 1,000 sums of a network was 9e-4, and happened not to move in the only coarser run."""
    rng = np.random.default_rng(0)
    values = (1.8 * rng.standard_normal(1000)).astype(np.float32)
    values[np.abs(values) < 2e-3] += 0.1
    values[369] = 8.8e-4
    moved = (values + 1e-4 * rng.standard_normal(1000)).astype(np.float32)
    moved[369] = values[369]
    found = values.copy()
    found[369] += 8.5e-6
    assert compare(rounded(values, [moved]), found).ok
    found[369] += 8.5e-3
    assert not compare(rounded(values, [moved]), found).ok


def test_few_numbers_are_not_excused_by_what_is_far_greater():
    rng = np.random.default_rng(0)
    values = rng.standard_normal(100).astype(np.float32)
    values[0], values[1:4] = -1e9, 1e-6
    moved = noisy(values)
    found = values.copy()
    found[1] += 1e-5
    assert not compare(rounded(values, [moved]), found).ok
