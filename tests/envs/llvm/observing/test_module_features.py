import numpy as np
import pytest
from llvm_modules import observed

from irgym.envs.llvm.observing.counts import SIZE
from irgym.envs.llvm.observing.module_features import (
    COUNTED,
    GENERAL,
    MODULE_FEATURES,
    counted,
    module_features,
)


@pytest.fixture
def counts(llvm, sources):
    def after(passes):
        seen = llvm.submit(observed, sources["sorting"], passes).result()["first"]
        return np.frombuffer(seen.counts, dtype=np.int32)

    return after


def test_features_compare_with_the_original_and_the_reference(counts):
    first, now, best = counts(""), counts("mem2reg"), counts("default<O2>")
    vector = module_features(now, first, best)
    assert vector.shape == (MODULE_FEATURES,) and vector.dtype == np.float32 and np.isfinite(vector).all()
    logs, shares, changes, distances = vector[:-GENERAL].reshape(4, -1)
    load = COUNTED.index("Load")
    numbers = [counted(each)[load] for each in (now, first, best)]
    assert numbers[0] < numbers[1]
    assert logs[load] == pytest.approx(np.log1p(numbers[0]) / 5)
    assert shares[load] == pytest.approx(numbers[0] / counted(now)[0])
    assert changes[load] == pytest.approx(np.log1p(numbers[0]) - np.log1p(numbers[1]), abs=1e-6)
    assert distances[load] == pytest.approx(np.log1p(numbers[0]) - np.log1p(numbers[2]), abs=1e-6)
    totals = [counted(each)[0] for each in (now, first, best)]
    np.testing.assert_allclose(
        vector[-GENERAL:], [totals[0] / totals[1], totals[0] / totals[2], np.log1p(totals[0]) / 10], rtol=1e-6
    )


def test_the_original_differs_from_itself_in_nothing(counts):
    first = counts("")
    _, _, changes, distances = module_features(first, first, first)[:-GENERAL].reshape(4, -1)
    assert not changes.any() and not distances.any()


def test_an_empty_module_has_finite_features():
    empty = np.zeros(SIZE, dtype=np.int32)
    assert not module_features(empty, empty, empty).any()


def test_names_are_distinct():
    assert len({*COUNTED}) == len(COUNTED) == (MODULE_FEATURES - GENERAL) // 4


def test_counts_of_another_length_are_refused():
    with pytest.raises(ValueError, match=f"counts have {SIZE} numbers"):
        module_features(np.zeros(80, np.int32), np.zeros(SIZE, np.int32), np.zeros(SIZE, np.int32))
