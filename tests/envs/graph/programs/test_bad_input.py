"""Files that are no models, unsupported models, and odd but supported ones, at the command line."""

import gzip
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from commands import without_progress
from odd_models import ODD, halved, ramp, text, with_a_place, with_weights
from onnx import TensorProto, helper

from irgym.cli.main import main
from irgym.core.schedule import Schedule, replay
from irgym.envs.graph import runner
from irgym.envs.graph.checking.problems import feeds_of
from irgym.envs.graph.environment import GRAPH
from irgym.envs.graph.ir.outside import HEAVY
from irgym.envs.graph.running.artefacts import model_at
from irgym.envs.graph.running.sessions import Program

Make = Callable[[Path], object]

OPEN = "g (float[batch, sequence, 4] x) => (float[batch, both] y) { r = Relu(x) y = Reshape(r, s) }"


def said(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Run a command that is refused; return its message of one sentence."""
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    err = without_progress(err)
    assert end.value.code == 2 and not out and err.startswith("irgym: ") and err.count("\n") == 1, (out, err)
    assert len(err) < 1000 and "Traceback" not in err
    return err


def _content(content: bytes) -> Make:
    return lambda path: path.write_bytes(content)


def _model(body: str, **weights: np.ndarray) -> Make:
    return lambda path: onnx.save(with_weights(text(body), **weights), path)


def _changed(change: Callable[[onnx.ModelProto], object]) -> Make:
    """Return a function that writes a small model after a change."""

    def write(path: Path) -> None:
        model = with_weights(
            text("g (float[2,8] x) => (float[2,4] y) { a = MatMul(x, w) y = Relu(a) }"), w=ramp(8, 4)
        )
        change(model)
        path.write_bytes(model.SerializeToString())

    return write


def _opset(version: int) -> Make:
    return _changed(lambda model: setattr(model.opset_import[0], "version", version))


def _external(location: str, content: bytes | None = None) -> Make:
    """Return a function that writes a model with external weights, and content at their place."""

    def write(path: Path) -> None:
        def change(model: onnx.ModelProto) -> None:
            [tensor] = model.graph.initializer
            tensor.ClearField("raw_data")
            tensor.data_location = TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value=location.format(path.parent.parent))
            tensor.external_data.add(key="length", value=str(8 * 4 * 4))

        path = path.parent / "inner" / path.name
        path.parent.mkdir()
        _changed(change)(path)
        if content is not None:
            (path.parent / location.format(path.parent.parent)).write_bytes(content)

    return write


def _linked(path: Path) -> None:
    _external("weights.bin")(path)
    (path.parent / "elsewhere.bin").write_bytes(bytes(128))
    (path.parent / "inner" / "weights.bin").symlink_to(path.parent / "elsewhere.bin")


def _results(kind: onnx.TypeProto, *nodes: onnx.NodeProto) -> Make:
    """Return a function that writes a model with a result of some type."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (2, 3))
    graph = helper.make_graph(nodes, "g", [x], [helper.make_value_info("y", kind)])
    domains = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 3)]
    return lambda path: onnx.save(helper.make_model(graph, opset_imports=domains, ir_version=10), path)


_FLOATS = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
_SEQUENCE = _results(
    helper.make_sequence_type_proto(_FLOATS), helper.make_node("SplitToSequence", ["x"], ["y"], axis=0)
)
_MAPS = _results(
    helper.make_sequence_type_proto(helper.make_map_type_proto(TensorProto.INT64, _FLOATS)),
    helper.make_node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", classlabels_int64s=[1, 2, 3]),
)
_OPTIONAL = _results(helper.make_optional_type_proto(_FLOATS), helper.make_node("Optional", ["x"], ["y"]))
_TRAINING = "g (float[2,4] x) => (float[2,4] y) <float p = {0.5}, bool t = {1}> { y, m = Dropout(x, p, t) }"
_STRINGS = "g (string[2] x) => (string[2] y) { y = StringConcat(x, x) }"

REFUSED: dict[str, tuple[Make, str]] = {
    "a text": (_content(b"# no model\n"), "is no ONNX model, or was cut off: export it again"),
    "nothing": (_content(b""), "is empty: export the model again"),
    "a part": (lambda path: (_opset(20)(path), os.truncate(path, 150)), "is no ONNX model, or was cut off"),
    "a folder": (lambda path: path.mkdir(), "is a folder: name a file"),
    "gzip": (_content(gzip.compress(b"x")), "is packed by gzip: unpack it"),
    "an archive": (_content(b"PK\3\4 and more"), "is an archive"),
    "ONNX Runtime's format": (
        _content(b"\x1c\0\0\0ORTM"),
        "is of ONNX Runtime's own format: give the ONNX file",
    ),
    "weights missing": (_external("weights.bin"), "has weights in weights.bin, which does not exist"),
    "weights cut off": (_external("weights.bin", bytes(100)), "is no valid ONNX model"),
    "weights above": (_external("../weights.bin", bytes(128)), "outside its folder: save it again"),
    "weights at a path": (_external("{}/weights.bin", bytes(128)), "outside its folder: save it again"),
    "weights behind a link": (_linked, "outside its folder: save it again"),
    "an old opset": (_opset(6), "is of opset 6, and those from 7 to "),
    "a future opset": (_opset(99), "is of opset 99, and those from 7 to "),
    "a future format": (_changed(lambda model: setattr(model, "ir_version", 99)), "is no valid ONNX model"),
    "an unknown operator": (
        _changed(lambda model: setattr(model.graph.node[1], "op_type", "Relux")),
        "Relux",
    ),
    "no operators": (_changed(lambda model: model.graph.ClearField("node")), "holds no operations"),
    "no results": (_changed(lambda model: model.graph.ClearField("output")), "has no results"),
    "a circle": (_model("g (float[2] x) => (float[2] y) { a = Add(x, b) b = Neg(a) y = Neg(b) }"), "sorted"),
    "a name twice": (
        _model("g (float[2] x) => (float[2] y) { y = Neg(x) y = Exp(x) }"),
        "is no valid ONNX model",
    ),
    "a value that nothing makes": (
        _model("g (float[2] x) => (float[2] y) { y = Add(x, z) }"),
        "is no valid ONNX model",
    ),
    "a sequence given": (
        _model("g (seq(float[2]) x) => (float[2] y) { y = ConcatFromSequence <axis = 0> (x) }"),
        "the input x is no tensor: export it with tensors only",
    ),
    "a sequence made": (_SEQUENCE, "the result y is a sequence, and only tensors are compared"),
    "maps made": (_MAPS, "zipmap=False"),
    "an optional made": (_OPTIONAL, "only tensors are compared"),
    "texts given": (_model(_STRINGS), "holds strings"),
    "texts inside": (
        _changed(
            lambda model: model.graph.initializer.append(
                helper.make_tensor("s", TensorProto.STRING, [1], [b"a"])
            )
        ),
        "has strings among its weights",
    ),
    "random numbers": (
        _model("g (float[2] x) => (float[2] y) { r = RandomNormalLike(x) y = Add(x, r) }"),
        "draws random numbers (RandomNormalLike)",
    ),
    "training": (_model(_TRAINING), "draws random numbers (Dropout)"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_unusable_files_are_refused_in_one_sentence(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    make, words = REFUSED[name]
    path = tmp_path / "m.onnx"
    make(path)
    [path] = tmp_path.rglob("m.onnx")
    assert words in said(capsys, "tune", f"graph:{path}", "--evaluations", 2)
    if path.is_file():
        assert words in said(capsys, "tune", path, "--evaluations", 2), "the same without a scheme"


RUN: dict[str, tuple[Make, str]] = {
    "an operator of others": (
        _model("g (float[2] x) => (float[2] y) { y = own.Thing(x) }"),
        "has no operator Thing of the domain own",
    ),
    "numbers without a range": (_model("g (int64[2] x) => (int64[2] y) { y = Add(x, x) }"), "irgym.range.x"),
    "bfloat16 given": (
        _model("g (bfloat16[2] x) => (float[2] y) { y = Cast <to = 1> (x) }"),
        "holds bfloat16",
    ),
    "what ONNX Runtime lacks": (
        _model("g (float[2] x) => (float[2] y) { a = Cast <to = 16> (x) b = Sin(a) y = Cast <to = 1> (b) }"),
        "has no Sin of bfloat16 on a CPU",
    ),
    "shapes that do not fit": (
        _model("g (float[2,3] x) => (float[4] y) <int64[1] s = {4}> { a = Neg(x) y = Reshape(a, s) }"),
        "",
    ),
}


@pytest.mark.parametrize("name", RUN)
def test_a_model_that_does_not_run_is_refused_in_one_sentence(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    make, words = RUN[name]
    make(tmp_path / "m.onnx")
    assert words in said(capsys, "replay", tmp_path / "m.onnx", "")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("?batch=1&width=2", "has no open dimension 'width'; its open dimensions: batch, sequence"),
        ("?batch=1&sequence=2&x.0=3", "has no open dimension 'x.0'; its open dimensions: batch, sequence"),
        ("?batch=0&sequence=2", "batch must be a whole number in 1 to"),
        ("?batch=two&sequence=2", "batch must be a whole number in 1 to"),
        ("?batch=-1&sequence=2", "batch must be a whole number in 1 to"),
        ("?batch=1&batch=1", "batch is given twice"),
        ("?batch", "binds no name; write name=number"),
    ],
)
def test_dimensions_are_bound_without_a_scheme_too(
    query: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "open.onnx"
    onnx.save(with_weights(text(OPEN), s=np.array([0, -1])), path)
    for uri in (f"{path}{query}", f"graph:{path}{query}"):
        assert words.format(path=path) in said(capsys, "tune", uri, "--evaluations", 2)


def test_a_bare_file_with_sizes_is_rewritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "open.onnx"
    model = text(
        "g (float[batch, 8] x) => (float[batch, 4] y) { a = MatMul(x, w) b = Add(a, v) y = Relu(b) }"
    )
    onnx.save(with_weights(model, w=ramp(8, 4), v=ramp(4)), path)
    result = tmp_path / "fast.onnx"
    main(["replay", f"{path}?batch=3", "matmul-as-gemm@b", "--objective", "nodes", "--export", str(result)])
    assert f"graph:{path}?batch=3" in capsys.readouterr().out
    assert "Gemm" in {node.op_type for node in onnx.load(result).graph.node}


@pytest.mark.parametrize("suffix", ["ort", "onnx.gz", "onnx.zip", "onnx.data", "onnx_data"])
def test_packed_and_converted_models_are_named(
    suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / f"m.{suffix}"
    path.write_bytes(b"x")
    for uri in (path, f"graph:{path}"):
        assert f"m.{suffix} " in (told := said(capsys, "tune", uri)) and ": " in told


@pytest.mark.parametrize("name", ODD)
def test_odd_models_are_rewritten_and_exported(name: str, tmp_path: Path):
    path = tmp_path / "odd.onnx"
    model = ODD[name]()
    onnx.save(with_a_place(model) if name != "no opset of ONNX" else model, path)
    task = GRAPH.task(f"graph:{path}")
    first = task.initial()
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    if name not in ("functions",):
        plain = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
        feeds = feeds_of(task.path, 3)
        ours = Program(first.graph, model_at(task.path).weights, 1).run(feeds)
        for wanted, found in zip(plain.run(None, feeds), ours, strict=True):
            np.testing.assert_allclose(found, wanted, 1e-2 if found.dtype == np.float16 else 1e-4, 1e-3)
    rng, states, taken = np.random.default_rng(0), [first], []
    while len(taken) < 6 and (pairs := task.mask(states[-1]).candidates):
        kind, site = pairs[rng.integers(len(pairs))]
        taken.append(task.space.parse(f"{task.space.kinds[kind].name}@{site}"))
        states.append(task.step(states[-1], taken[-1]))
    assert taken or name in UNTOUCHED
    written = Schedule(tuple(taken)).text(task.space)
    assert replay(task, Schedule.parse(written, task.space)) == states[-1]
    found = runner.validate(task.path, states[-1].graph, 1, 0, 1)
    assert found.ok, (found, written)
    [file] = task.export(states[-1], tmp_path / "rewritten.onnx")
    onnxruntime.InferenceSession(file, options, ["CPUExecutionProvider"])
    again = GRAPH.task(f"graph:{file}")
    assert runner.validate(again.path, again.initial().graph, 1, 0, 1).ok, "what was written can be read"


UNTOUCHED = {
    "no opset of ONNX",
    "a Loop",
    "an operator of ONNX Runtime",
    "an old opset with others",
    "sizes that depend on numbers",
    "numbers chosen by a mask",
}
"""Odd models without known shapes, which rules ask for."""


def test_states_share_their_weights(tmp_path: Path):
    """A weight that no constant depends on is mapped once; no state and no job holds a copy."""
    path = tmp_path / "large.onnx"
    weights = {"w": ramp(600, 600), "v": ramp(600)}  # large enough to be set aside when the model is read
    assert weights["w"].nbytes > HEAVY
    onnx.save(
        with_weights(
            text("g (float[2,600] x) => (float[2,600] y) { a = MatMul(x, w) b = Add(a, v) y = Relu(b) }"),
            **weights,
        ),
        path,
    )
    task = GRAPH.task(f"graph:{path}")
    first = task.initial()
    after = task.step(first, task.space.parse("matmul-as-gemm@b"))
    assert after.graph.weights["w"] is first.graph.weights["w"]
    arrays = model_at(task.path).weights
    [before, other] = [arrays.array(state.graph.weights["w"]) for state in (first, after)]
    assert np.shares_memory(before, other) and not before.flags.owndata and not before.flags.writeable
    assert np.array_equal(before, weights["w"])
    assert all(len(pickle.dumps(task.job(state))) < 100_000 for state in (first, after))
    assert runner.validate(task.path, after.graph, 1, 0, 1).ok


TINY = GRAPH.dataset("tiny")


@pytest.mark.parametrize("uri", [TINY.test[0], TINY.test[1], TINY.test[3]])
def test_models_of_half_precision(uri: str, tmp_path: Path):
    path = tmp_path / "half.onnx"
    single = GRAPH.task(uri)
    single.export(single.initial(), path)
    onnx.save(halved(onnx.load(path)), path)
    task = GRAPH.task(f"graph:{path}")
    rng, state = np.random.default_rng(1), task.initial()
    assert {kind.dtype for kind in state.graph.types.values()} <= {"float16", "int64", "bool"}
    for _ in range(12):
        pairs = task.mask(state).candidates
        kind, site = pairs[rng.integers(len(pairs))]
        state = task.step(state, task.space.parse(f"{task.space.kinds[kind].name}@{site}"))
    assert runner.validate(task.path, state.graph, 1, 0, 1).ok
