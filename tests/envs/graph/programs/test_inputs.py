"""Inputs are drawn in range, and ranges follow from metadata or from the graph."""

import numpy as np
import onnx
import pytest
from onnx import parser

from irgym.base.errors import ProgramError
from irgym.envs.graph.programs.inputs import Input, draw, inputs_of, ranges_of, wrapping
from irgym.envs.graph.programs.metadata import write_ranges

TABLE = "int64 d = {5}, float[2] v = {0, 1}, float[7, 4] table = {" + ", ".join(["1"] * 28) + "}"


def model(body: str, inputs: str, output: str = "float[N] y", constants: str = TABLE) -> onnx.ModelProto:
    return parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 20, "com.example" : 1]> g ({inputs}) => ({output}) '
        f"<{constants}> {{ {body} }}"
    )


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("y = Gather(table, i)", 7),
        ("y = Gather<axis = 1>(table, i)", 4),
        ("y = Gather<axis = -1>(table, i)", 4),
        ("c = Cast<to = 6>(i) s = Constant<value_ints = [6]>() r = Reshape(c, s) y = Gather(table, r)", 7),
        ("u = Unsqueeze(i, i) y = Gather(table, u)", None),
        ("a = Gather(table, i) b = Gather<axis = 1>(table, i) y = Add(a, b)", 4),
        ("a = Gather(table, i) b = Equal(i, i) c = Cast<to = 1>(b) y = Mul(a, c)", 7),
        ("a = ArgMax(i) y = Gather(table, i)", 7),
        ("c = Transpose(table) y = Gather(c, i)", None),
        ("y = Gather(x, i)", 2),
        ("y = GatherND(table, i)", 4),
        ("y = GatherElements<axis = 1>(x, i)", 3),
        ("y = ScatterElements<axis = 1>(x, i, x)", 3),
        ("n = NonZero(x) y = Gather(n, i)", None),
        ("y = OneHot(i, d, v)", 5),
        ("j = Add(i, i) y = Gather(table, j)", None),
        ("y = com.example.Look(table, i)", None),
        ("c = Cast<to = 9>(i) y = Where(c, x, x)", 2),
        ("c = Cast<to = 1>(i) o = Constant<value = float {1}>() s = Sub(o, c) y = Add(x, s)", 2),
        ("c = Cast<to = 1>(i) m = Mul(x, c) n = ReduceSum(c) y = Div(m, n)", 2),
        ("c = Cast<to = 1>(i) o = Constant<value = float {1}>() y = Mul(c, o)", None),
        ("c = Cast<to = 1>(i) y = Add(x, c)", None),
        ("u = Identity(i) p = Mul(i, u) c = Cast<to = 9>(p) y = Where(c, x, x)", 2),
        ("p = Mul(i, k) c = Cast<to = 9>(p) y = Where(c, x, x)", None),
        ("p = Mul(i, i) y = Gather(table, p)", None),
    ],
)
def test_ranges_follow_from_the_graph(body: str, wanted: int | None):
    found = model(body, "int64[2, 3] i, float[2, 3] x" + (", int64[2, 3] k" if "k)" in body else ""))
    if wanted is None:
        with pytest.raises(ProgramError) as caught:
            ranges_of(found)
        assert "--range i=0:100 for 0 to 99" in str(caught.value)
    else:
        assert ranges_of(found) == {"i": (0, wanted)}


@pytest.mark.parametrize(
    ("inputs", "wanted"), [("int64[2, 3] i", (-8, 8)), ("uint16[2] i", (0, 8)), ("int8[2] i", (-128, 128))]
)
@pytest.mark.parametrize("body", ["y = Identity(x)", "y = Identity(i)", "a = ArgMax(i) y = Identity(i)"])
def test_an_input_that_is_only_passed_on_may_hold_any_number(body: str, inputs: str, wanted: tuple[int, int]):
    assert ranges_of(model(body, f"{inputs}, float[2] x")) == {"i": wanted}


def test_negative_indices_count_from_the_end_where_an_input_only_chooses():
    inputs = "int64[2] i, uint8[2] u, int64[2] m, int64[2] p, int64[2] k, float[2, 3] x"
    body = """a = Gather(table, i) b = Gather(table, u) c = Cast<to = 9>(m) e = Equal(i, i) y = Where(c, x, x)
        f = Gather(table, p) g = Mul(p, p) h = Cast<to = 9>(g) z = Where(h, x, x) w = Gather(table, k)"""
    found = model(body, inputs)
    write_ranges(found, {"k": (0, 7)})
    assert wrapping(found) == {"i"}


def test_shapes_of_computed_tables_are_used_where_they_are_known():
    found = model("c = Transpose(table) y = Gather(c, i)", "int64[2] i")
    assert ranges_of(onnx.shape_inference.infer_shapes(found)) == {"i": (0, 4)}


def test_a_use_inside_of_another_graph_is_not_known():
    inner = "y = If(b) <then_branch = t () => (float[N] z) { z = Gather(table, i) }, "
    inner += "else_branch = e () => (float[N] w) { w = Gather(table, i) }>"
    with pytest.raises(ProgramError, match="input i may hold"):
        ranges_of(model(inner, "int64[2] i, bool b"))


def test_metadata_counts_more_than_the_graph():
    found = model("j = Add(i, i) y = Gather(table, j)", "int64[2] i")
    write_ranges(found, {"i": (-1, 3)})
    assert ranges_of(found) == {"i": (-1, 3)}
    found.metadata_props[0].value = "3,3"
    with pytest.raises(ProgramError, match="write LOW,HIGH, as in 0,1000"):
        ranges_of(found)
    found.metadata_props[0].value = "all"
    with pytest.raises(ProgramError, match=r"irgym\.range\.i is 'all'"):
        ranges_of(found)


def test_inputs_are_those_without_a_value():
    inputs = "float[2, 3] x, float16[1] h, bool[4] b, uint8[5] u, float[7, 4] table"
    found = inputs_of(model("y = Identity(x)", inputs))
    assert [(given.name, str(given.dtype), given.shape) for given in found] == [
        ("x", "float32", (2, 3)),
        ("h", "float16", (1,)),
        ("b", "bool", (4,)),
        ("u", "uint8", (5,)),
    ]


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ("float[N] x", "the input x has no fixed shape: bind its dimensions"),
        ("float[2, ?] x", "the input x has no fixed shape"),
        ("string[2] x", "the input x holds string"),
    ],
)
def test_inputs_that_cannot_be_drawn_are_named(inputs: str, words: str):
    with pytest.raises(ProgramError, match=words):
        inputs_of(model("y = Identity(x)", inputs))


def test_values_are_in_range_and_the_same_for_the_same_seed():
    inputs = (
        Input("x", np.dtype(np.float32), (40, 50)),
        Input("h", np.dtype(np.float16), (40, 50)),
        Input("i", np.dtype(np.int64), (40, 50)),
        Input("m", np.dtype(np.int32), (40, 50)),
        Input("b", np.dtype(np.bool_), (40, 50)),
        Input("s", np.dtype(np.float64), ()),
    )
    ranges = {"i": (3, 9), "m": (0, 2)}
    values = draw(inputs, ranges, 4)
    for given in inputs:
        assert values[given.name].dtype == given.dtype and values[given.name].shape == given.shape
    assert abs(values["x"].mean()) < 0.1 and abs(values["x"].std() - 1) < 0.1
    assert set(values["i"].flat) == set(range(3, 9))
    for mask in ("m", "b"):
        assert values[mask][:, 0].all() and 0.4 < values[mask].mean() < 0.6
    assert not np.array_equal(values["m"], values["b"]), "inputs differ"
    again = draw(inputs, ranges, 4)
    assert all(np.array_equal(values[name], again[name]) for name in values)
    assert not np.array_equal(draw(inputs, ranges, 5)["x"], values["x"])
