"""Hostile models; `fuzz/hostile/files.py` opens the same ones by the command line."""

from itertools import pairwise
from pathlib import Path

import onnx
import pytest
from fuzz.hostile import models
from onnx import helper

from irgym.base.errors import ProgramError
from irgym.envs.graph.programs.bounds import NODES, check_expansion, check_inputs
from irgym.envs.graph.programs.digests import files
from irgym.envs.graph.programs.files import bound

KINDS = ("external_", "dimension_negative", "dimension_2", "dimensions_", "rank_", "functions_", "function_")


@pytest.mark.parametrize("name", [name for name in models.CASES if name.startswith(KINDS)])
def test_a_hostile_model_is_refused(name: str, tmp_path: Path):
    models.CASES[name](tmp_path, "")
    path = tmp_path / "hostile.onnx"
    with pytest.raises(ProgramError, match=r"hostile\.onnx"):
        bound(str(path), (), files(path).beside)


def test_weights_in_another_file_are_found(tmp_path: Path):
    weight = onnx.TensorProto(name="w", data_type=models.FLOAT, dims=(2, 2))
    weight.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", "inner/weights.bin"), ("offset", "8"), ("length", "16")):
        weight.external_data.add(key=key, value=value)
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "weights.bin").write_bytes(bytes(24))
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph(
        [node],
        "good",
        [helper.make_tensor_value_info("x", models.FLOAT, (2, 2))],
        [helper.make_tensor_value_info("y", models.FLOAT, (2, 2))],
        [weight],
    )
    path = tmp_path / "good.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=models.OPSETS, ir_version=9).SerializeToString())
    found = files(path)
    assert list(found.beside) == [str((tmp_path / "inner" / "weights.bin").resolve())]
    assert found.size == path.stat().st_size + 24
    [given] = onnx.load_model_from_string(bound(str(path), (), found.beside)).graph.initializer
    assert given.raw_data == bytes(16)


def called(times: int, copies: int) -> onnx.ModelProto:
    """Return a model that calls a function with some operators some number of times."""
    names = [f"v{place}" for place in range(copies + 1)]
    inner = [helper.make_node("Neg", [a], [b]) for a, b in pairwise(names)]
    function = helper.make_function("f", "F", ["v0"], [names[-1]], inner, models.OPSETS)
    outer = [helper.make_node("F", ["x"], [f"y{place}"], domain="f") for place in range(times)]
    value = helper.make_tensor_value_info("x", models.FLOAT, (2, 2))
    graph = helper.make_graph(outer, "g", [value], [])
    return helper.make_model(graph, functions=[function])


def test_operators_are_counted_with_functions_written_out():
    check_expansion(called(NODES // 50, 50), "m")
    with pytest.raises(ProgramError, match=r"m has 50,050 operators after inlining its functions"):
        check_expansion(called(NODES // 50 + 1, 50), "m")


def test_operators_within_operators_count():
    inner = helper.make_graph(
        [helper.make_node("F", ["x"], ["y"], domain="f")] * (NODES // 50 + 1),
        "branch",
        [],
        [helper.make_tensor_value_info("y", models.FLOAT, (2, 2))],
    )
    model = called(1, 50)
    model.graph.node.append(helper.make_node("If", ["c"], ["z"], then_branch=inner, else_branch=inner))
    with pytest.raises(ProgramError, match="at most"):
        check_expansion(model, "m")


def test_inputs_have_a_size_together():
    value = helper.make_tensor_value_info("x", models.FLOAT, (1 << 30,))
    other = helper.make_tensor_value_info("z", models.FLOAT, (1 << 30,))
    model = helper.make_model(helper.make_graph([], "g", [value], []))
    check_inputs(model, "m")
    model.graph.input.append(other)
    with pytest.raises(ProgramError, match=r"m takes inputs of 8 GiB, and at most 4 GiB"):
        check_inputs(model, "m")
