"""Models that onnxruntime.quantization made: read, rewritten, and equal bit for bit without an optimiser."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)
from onnxruntime.quantization.shape_inference import quant_pre_process

from irgym.core.actions import Action
from irgym.core.cost import Validation
from irgym.envs.graph.actions import STOP, STOP_ALL
from irgym.envs.graph.checking.checks import checks_on
from irgym.envs.graph.checking.rounding import runners_of
from irgym.envs.graph.environment import GRAPH
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.running.artefacts import model_at
from irgym.envs.graph.running.sessions import Program
from irgym.envs.graph.sketches import INTEGERS, UNSIGNED, closed, quantised_stages
from irgym.envs.graph.state import GraphState
from irgym.envs.graph.task import GraphTask

KERNELS = {"a": (8, 3, 3, 3), "b": (8, 8, 1, 1), "c": (8, 8, 3, 3), "d": (4, 16, 1, 1)}


def convolutions() -> onnx.ModelProto:
    """Return two convolutions of one result, joined, and pooled before a third."""
    rng = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name)
        for name, shape in KERNELS.items()
    ]
    nodes = [
        helper.make_node("Conv", ["x", "a"], ["p"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["p"], ["q"]),
        helper.make_node("Conv", ["q", "b"], ["r"]),
        helper.make_node("Conv", ["q", "c"], ["s"], pads=[1, 1, 1, 1]),
        helper.make_node("Concat", ["r", "s"], ["t"], axis=1),
        helper.make_node("MaxPool", ["t"], ["u"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["u", "d"], ["y"]),
    ]
    return model_of(nodes, weights, (1, 3, 8, 8))


def products() -> onnx.ModelProto:
    """Return three products of one array, added up."""
    rng = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(rng.standard_normal((16, 16)).astype(np.float32), name) for name in "abc"
    ]
    nodes = [helper.make_node("MatMul", ["x", name], [f"p{name}"]) for name in "abc"]
    nodes.append(helper.make_node("Sum", ["pa", "pb", "pc"], ["y"]))
    return model_of(nodes, weights, (4, 16))


def model_of(nodes: list[Any], weights: list[Any], shape: tuple[int, ...]) -> onnx.ModelProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "small", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


class Drawn(CalibrationDataReader):
    """Random numbers to calibrate with."""

    def __init__(self) -> None:
        rng = np.random.default_rng(1)
        self._batches: Iterator[Any] = iter(
            [{"x": rng.standard_normal((1, 3, 8, 8)).astype(np.float32)} for _ in range(3)]
        )

    def get_next(self) -> Any:
        return next(self._batches, None)


def static(folder: Path, form: QuantFormat, **options: Any) -> GraphTask:
    """Return the task of the convolutions, quantised; by default to signed integers."""
    plain, ready, path = (folder / f"{name}.onnx" for name in ("plain", "ready", "quantised"))
    onnx.save(convolutions(), plain)
    quant_pre_process(plain, ready, skip_symbolic_shape=True)
    quantize_static(ready, path, Drawn(), quant_format=form, per_channel=True, **options)
    return GRAPH.task(f"graph:{path}")


def rewritten(task: GraphTask, names: tuple[str, ...]) -> GraphState:
    kinds = {kind.name: place for place, kind in enumerate(task.space.kinds)}
    return closed(task, task.initial(), [kinds[name] for name in names])[0]


def session(path: Path, level: str) -> onnxruntime.InferenceSession:
    settings = onnxruntime.SessionOptions()
    settings.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    settings.intra_op_num_threads, settings.log_severity_level = 1, 4
    settings.optimized_model_filepath = str(path.with_suffix(".optimised"))
    return onnxruntime.InferenceSession(path, settings, ["CPUExecutionProvider"])


def results(task: GraphTask, state: GraphState, folder: Path) -> list[Any]:
    """Return the results of a state for random inputs, without ONNX Runtime's optimiser."""
    path = folder / "written.onnx"
    task.export(task.step(state, Action(STOP)), path)
    run, rng = session(path, "ORT_DISABLE_ALL"), np.random.default_rng(2)
    shape = task.graph.types["x"].shape
    return [run.run(None, {"x": rng.standard_normal(shape).astype(np.float32) * 2})[0] for _ in range(5)]


def operators(graph: Graph) -> Counter[str]:
    return Counter(node.operator.rpartition(".")[2] for node in graph.nodes.values())


def activations(graph: Graph) -> set[str]:
    return {graph.types[value].dtype for node in graph.nodes.values() for value in node.results}


def test_onnx_runtime_fuses_more_of_a_model_in_qdq_once_it_is_unsigned(tmp_path: Path):
    task = static(tmp_path, QuantFormat.QDQ)
    state = rewritten(task, UNSIGNED)
    assert "int8" in activations(task.graph) and "int8" not in activations(state.graph)
    counts = []
    for before in (task.initial(), state):
        path = tmp_path / "written.onnx"
        task.export(task.step(before, Action(STOP)), path)
        session(path, "ORT_ENABLE_ALL")
        fused = onnx.load(path.with_suffix(".optimised"))
        counts.append(Counter(node.op_type for node in fused.graph.node)["QLinearConv"])
    assert counts[0] < counts[1] == len(KERNELS)
    for wanted, got in zip(
        results(task, task.initial(), tmp_path), results(task, state, tmp_path), strict=True
    ):
        np.testing.assert_array_equal(got, wanted)


def test_a_model_of_quantised_operators_becomes_unsigned_as_a_whole(tmp_path: Path):
    task = static(tmp_path, QuantFormat.QOperator)
    state = rewritten(task, UNSIGNED)
    assert "int8" in activations(task.graph) and "int8" not in activations(state.graph)
    before, after = operators(task.graph), operators(state.graph)
    assert before["QLinearConv"] == after["QLinearConv"] == len(KERNELS) and before["QLinearConcat"] == 1
    assert after["QuantizeLinear"] <= before["QuantizeLinear"]
    for wanted, got in zip(
        results(task, task.initial(), tmp_path), results(task, state, tmp_path), strict=True
    ):
        np.testing.assert_array_equal(got, wanted)


def test_types_behind_operators_of_another_domain_are_known(tmp_path: Path):
    graph = static(tmp_path, QuantFormat.QOperator).graph
    assert all(value in graph.types for node in graph.nodes.values() for value in node.results)


def test_dynamic_products_of_one_array_become_one(tmp_path: Path):
    plain, path = tmp_path / "plain.onnx", tmp_path / "quantised.onnx"
    onnx.save(products(), plain)
    quantize_dynamic(plain, path, per_channel=True)
    task = GRAPH.task(f"graph:{path}")
    state = rewritten(task, INTEGERS)
    assert (operators(task.graph)["MatMulInteger"], operators(state.graph)["MatMulInteger"]) == (3, 1)
    for wanted, got in zip(
        results(task, task.initial(), tmp_path), results(task, state, tmp_path), strict=True
    ):
        np.testing.assert_array_equal(got, wanted)


def test_searches_see_the_optimiser_where_a_model_waits_for_it(tmp_path: Path):
    for form, waits in ((QuantFormat.QDQ, True), (QuantFormat.QOperator, False)):
        folder = tmp_path / form.name
        folder.mkdir()
        task = static(folder, form, activation_type=QuantType.QUInt8)
        start = task.initial()
        assert task.mask(start).kinds[STOP_ALL] == waits
        ended = task.step(start, Action(STOP_ALL))
        assert not task.mask(ended).kinds.any() and ended.level == "all"
        assert not task.under("nodes").mask(start).kinds[STOP_ALL]


def test_sketches_of_quantised_models_apply_and_end(tmp_path: Path):
    task = static(tmp_path, QuantFormat.QDQ)
    ends = set()
    for seed in range(12):
        state = task.initial()
        for action in task.sketch(np.random.default_rng(seed)):
            assert task.accepts(state, action)
            state = task.step(state, action)
        assert task.terminal(state)
        ends.add(state.level)
    assert ends == {"off", "all"}


def test_stages_of_sketches_differ():
    drawn = {tuple(quantised_stages(np.random.default_rng(seed))) for seed in range(20)}
    assert len(drawn) > 5


@pytest.mark.parametrize("form", [QuantFormat.QDQ, QuantFormat.QOperator])
def test_no_rule_fails_on_a_quantised_model(tmp_path: Path, form: QuantFormat):
    task = static(tmp_path, form)
    rng, state = np.random.default_rng(3), task.initial()
    for _ in range(30):
        pairs = task.mask(state).candidates
        if not pairs:
            break
        kind, name = pairs[int(rng.integers(len(pairs)))]
        state = task.step(state, Action(kind, candidate=name))
    assert not task.failures.counts


def softmax(folder: Path, scale: float) -> GraphTask:
    """Return the task of a softmax between pairs in QDQ, whose results have steps of 1 / 255."""
    constants = {"s": np.float32(0.05), "z": np.uint8(120), "k": np.float32(scale), "o": np.float32(1 / 255)}
    weights = [numpy_helper.from_array(np.array(value), name) for name, value in constants.items()]
    weights.append(numpy_helper.from_array(np.array(0, np.uint8), "n"))
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "k", "z"], ["d"]),
        helper.make_node("Softmax", ["d"], ["p"]),
        helper.make_node("QuantizeLinear", ["p", "o", "n"], ["r"]),
        helper.make_node("DequantizeLinear", ["r", "o", "n"], ["y"]),
    ]
    path = folder / f"softmax-{scale}.onnx"
    onnx.save(model_of(nodes, weights, (16, 33)), path)
    return GRAPH.task(f"graph:{path}")


def judged(task: GraphTask, other: GraphTask, level: str) -> Validation:
    checks_on.cache_clear()
    runners_of.cache_clear()
    run = Program(other.graph, model_at(other.path).weights, 1, level).run
    return checks_on(task.path, 1, 0).judge(run)


def test_a_softmax_of_integers_that_rounds_down_is_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    task = softmax(tmp_path, 0.05)
    accepted = judged(task, task, "all")
    assert accepted.ok and accepted.checked and judged(task, task, "off").error == 0.0
    assert not judged(task, softmax(tmp_path, 0.06), "off").ok, "a wrong scale is still found"
    monkeypatch.setattr("irgym.envs.graph.checking.changes.DOWN", 0.0)
    assert not judged(task, task, "all").ok, "ONNX Runtime rounds results of softmaxes down"
