"""Conversion of sparse tensors to dense ones."""

import numpy as np
import pytest
from odd_models import text
from onnx import helper, numpy_helper

from irgym.envs.graph.ir.dense import dense, make_dense

WANTED = np.array([[0.0, 2.0, 0.0], [3.0, 0.0, 0.0]], np.float32)


@pytest.mark.parametrize("places", [[1, 3], [[0, 1], [1, 0]]])
def test_places_are_flat_or_have_a_row_each(places: list[object]):
    values = numpy_helper.from_array(np.array([2.0, 3.0], np.float32))
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(np.array(places, np.int64)), [2, 3])
    np.testing.assert_array_equal(numpy_helper.to_array(dense(sparse)), WANTED)


def test_places_outside_are_refused():
    values = numpy_helper.from_array(np.array([2.0], np.float32), "w")
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(np.array([6], np.int64)), [2, 3])
    with pytest.raises(ValueError, match="w has places beyond its sizes"):
        dense(sparse)


def test_weights_and_constants_of_inner_graphs_become_dense():
    model = text(
        "g (bool c, float[2,3] x) => (float[2,3] y) { y = If(c) <then_branch = t () => (float[2,3] a)"
        " { k = Constant<value_int = 0>() a = Add(x, k) },"
        " else_branch = e () => (float[2,3] b) { b = Neg(x) }> }"
    )
    values = numpy_helper.from_array(np.array([2.0, 3.0], np.float32), "w")
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(np.array([1, 3], np.int64)), [2, 3])
    inner = model.graph.node[0].attribute[0].g
    del inner.node[0].attribute[:]
    inner.node[0].attribute.append(helper.make_attribute("sparse_value", sparse))
    model.graph.sparse_initializer.append(sparse)
    make_dense(model.graph)
    [weight], [constant] = model.graph.initializer, inner.node[0].attribute
    assert weight.name == "w" and constant.name == "value" and not model.graph.sparse_initializer
    for tensor in (weight, constant.t):
        np.testing.assert_array_equal(numpy_helper.to_array(tensor), WANTED)
