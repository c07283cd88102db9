"""Queries of URIs on the inputs of files."""

import pytest

from irgym.base.errors import ProgramError
from irgym.core.queries import read_query, with_ranges, with_sizes


def test_ranges_stand_beside_bindings():
    uri = with_ranges("graph:m.onnx?batch=2", ["ids=0:10", "mask=-1:2"])
    assert uri == "graph:m.onnx?batch=2&range.ids=0:10&range.mask=-1:2"
    assert with_ranges("m.onnx", ["x=0:3"]) == "m.onnx?range.x=0:3" and with_ranges("m.onnx", []) == "m.onnx"
    assert read_query(uri, uri.partition("?")[2], True) == ({"batch": 2}, {"ids": (0, 10), "mask": (-1, 2)})


def test_a_dimension_may_be_called_like_a_range():
    assert read_query("u", "range.0=4", True) == ({"range.0": 4}, {})


@pytest.mark.parametrize("text", ["x", "x=5", "x=1:", "=1:2", "x=1:2:3", "x=a:b"])
def test_malformed_ranges_are_refused(text: str):
    with pytest.raises(ProgramError, match="write NAME=LOW:HIGH"):
        with_ranges("m.onnx", [text])


def test_sizes_join_the_query():
    assert with_sizes("m.onnx", ["batch=1,width=320", "height=2"]) == "m.onnx?batch=1&width=320&height=2"
    assert (
        with_sizes("m.onnx?batch=1", ["x.0=3"]) == "m.onnx?batch=1&x.0=3"
        and with_sizes("m.onnx", []) == "m.onnx"
    )
    for text in ("batch", "batch=", "=3", "batch=-1", "batch=1,,width=2", "batch=two"):
        with pytest.raises(ProgramError, match="is no size of a dimension: write NAME=SIZE"):
            with_sizes("m.onnx", [text])
