import ctypes

import ml_dtypes
import numpy as np
import pytest

from irgym.measure.arrays import CACHE_LINE
from irgym.measure.checking.guarded import BAND, Buffers, Guarded

TYPES = (np.float16, np.float32, np.float64, np.bool_, np.int8, np.int32, np.int64)


def poke(address):
    ctypes.memset(address, ctypes.string_at(address, 1)[0] ^ 0xFF, 1)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(3, 5), (), (1000,)])
def test_writes_beyond_either_end_show(shape, dtype):
    for offset in (-1, -BAND, 0, BAND - 1):
        guarded = Guarded(shape, dtype)
        array = guarded.array
        assert array.shape == shape and array.ctypes.data % CACHE_LINE == 0
        array[...] = 1
        assert not guarded.overrun
        poke(array.ctypes.data + (array.nbytes + offset if offset >= 0 else offset))
        assert guarded.overrun


def make():
    inputs = [np.arange(6, dtype=np.float32), np.array([True, False])]
    results = [np.full((2, 3), np.nan, np.float32), np.arange(4, dtype=np.int32), np.array([True, True])]
    return Buffers(inputs, results), results


def test_results_begin_as_what_is_right_nowhere():
    buffers, results = make()
    for array, right in zip(buffers.results[1:], results[1:], strict=True):
        assert (array.view(np.uint8) != right.view(np.uint8)).all()
    assert "result 0 unwritten" in buffers.faults()
    buffers.results[0][...] = np.nan
    assert buffers.faults() == ""
    buffers.blank()
    assert "result 0 unwritten" in buffers.faults()


def test_arguments_may_only_be_read():
    buffers, _ = make()
    buffers.results[0][...] = 0
    buffers.inputs[1][1] = True
    assert buffers.faults() == "it changed argument 1"
    buffers.reset()
    buffers.results[0][...] = 0
    poke(buffers.results[2].ctypes.data + 2)
    assert buffers.faults() == "it wrote beyond result 2"


def test_one_number_left_out_shows():
    buffers, _ = make()
    flat = buffers.results[0].reshape(-1)
    flat[:-1] = 0
    assert "unwritten" in buffers.faults()


def test_narrow_types_are_blanked_too():
    right = np.ones(5, ml_dtypes.bfloat16)
    [found] = Buffers([], [right]).results
    assert found.dtype == right.dtype and (found.view(np.uint16) != right.view(np.uint16)).all()
