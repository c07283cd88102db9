"""Queries of URIs on the inputs of files."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irgym.base.errors import ProgramError
from irgym.core.queries import Query, quoted, read_query, with_inputs, with_ranges, with_sizes


def test_ranges_stand_beside_bindings():
    uri = with_ranges("graph:m.onnx?batch=2", ["ids=0:10", "mask=-1:2"])
    assert uri == "graph:m.onnx?batch=2&range.ids=0:10&range.mask=-1:2"
    assert with_ranges("m.onnx", ["x=0:3"]) == "m.onnx?range.x=0:3" and with_ranges("m.onnx", []) == "m.onnx"
    assert read_query(uri, uri.partition("?")[2], True) == Query(
        {"batch": 2}, {"ids": (0, 10), "mask": (-1, 2)}
    )


def test_a_dimension_may_be_called_like_a_range():
    assert read_query("u", "range.0=4", True) == Query({"range.0": 4}, {})


@pytest.mark.parametrize("text", ["x", "x=5", "x=1:", "=1:2", "x=1:2:3", "x=a:b"])
def test_malformed_ranges_are_refused(text: str):
    with pytest.raises(ProgramError, match="write NAME=LOW:HIGH"):
        with_ranges("m.onnx", [text])


def test_sizes_join_the_query():
    assert with_sizes("m.onnx", ["batch=1,width=320"]) == "m.onnx?batch=1&width=320"
    assert with_sizes("m.onnx", ["batch=1:0.7"]) == "m.onnx?batch=1", "a single weight says nothing"
    assert (
        with_sizes("m.onnx?batch=1", ["x.0=3"]) == "m.onnx?batch=1&x.0=3"
        and with_sizes("m.onnx", []) == "m.onnx"
    )
    for text in ("batch", "batch=", "=3", "batch=-1", "batch=1,,width=2", "batch=two"):
        with pytest.raises(ProgramError, match="is no size of a dimension: write NAME=SIZE"):
            with_sizes("m.onnx", [text])


def test_several_sizes_join_the_query_and_are_read_back():
    uri = with_sizes("m.onnx?width=2", ["batch=1:0.7", "batch=8:0.3"])
    assert uri == "m.onnx?width=2&sizes=batch=1:0.7&sizes=batch=8:0.3"
    found = read_query(uri, uri.partition("?")[2], True, inputs=True)
    assert found.bindings == {"batch": 1, "width": 2}, "the first"
    assert [profile.text for profile in found.profiles] == ["batch=1,width=2:0.7", "batch=8,width=2:0.3"]
    assert read_query("u", "sizes=batch=1,width=2:3", True, inputs=True) == Query(
        {"batch": 1, "width": 2}, {}
    )
    assert read_query("u", "sizes=4", True, inputs=True) == Query({"sizes": 4}, {}), "a dimension's name"
    with pytest.raises(ProgramError, match="several sizes are for ONNX files alone"):
        read_query("u", "sizes=a=1&sizes=a=2", False)
    with pytest.raises(ProgramError, match="each profile names all of them"):
        with_sizes("m.onnx", ["batch=1", "width=2"])


def test_inputs_join_the_query(tmp_path: Path):
    uri = with_inputs("m.onnx?batch=2", tmp_path)
    assert uri == f"m.onnx?batch=2&inputs={tmp_path}" and with_inputs("m.onnx", None) == "m.onnx"
    query = uri.partition("?")[2]
    assert read_query(uri, query, True, inputs=True) == Query({"batch": 2}, {}, tmp_path)
    assert read_query("u", "inputs=4", True, inputs=True) == Query({"inputs": 4}, {})


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("inputs=", "names nothing"),
        ("inputs=no.npz", "no file or folder"),
        ("inputs=.&inputs=.", "given twice"),
    ],
)
def test_inputs_that_are_not_there_are_refused(query: str, said: str):
    with pytest.raises(ProgramError, match=said):
        read_query("u", query, True, inputs=True)


@pytest.mark.parametrize("name", ["a&b.npz", "12"])
def test_inputs_that_no_uri_can_name_are_refused(name: str):
    with pytest.raises(ProgramError, match="rename them"):
        with_inputs("m.onnx", Path(name))


@given(st.text(min_size=1))
def test_texts_read_back(text: str) -> None:
    found = read_query("u", f"args={quoted(text)}&with=a.c", False, texts=("args", "with"))
    assert found.texts == {"args": text, "with": "a.c"} and found.text == f"?args={quoted(text)}&with=a.c"


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("n=1", "'n=1' is no option of a file; its options: args, with"),
        ("args", "'args' is no option"),
        ("args=1&args=2", "args is given twice"),
        ("args=a&b", "with %26 for an & in a value"),
    ],
)
def test_wrong_texts_are_refused(query: str, said: str) -> None:
    with pytest.raises(ProgramError, match=said):
        read_query("u", query, False, texts=("args", "with"))
