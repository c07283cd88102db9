"""Models and files become ONNX files with fixed shapes, and small weights inside."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper, parser
from small_models import small

from irgym.base.errors import BackendError, ProgramError
from irgym.envs.graph.environment import GRAPH
from irgym.envs.graph.ir.sizes import symbol
from irgym.envs.graph.programs import sources as sources_module
from irgym.envs.graph.programs.inputs import draw, inputs_of, ranges_of
from irgym.envs.graph.programs.sources import Sources
from irgym.envs.graph.programs.uris import parse_program

OPEN = """
<ir_version: 10, opset_import: ["" : 20]>
g (float[batch, sequence, 4] x, float[sequence] z) => (float[batch, both] y)
<float[4] w = {1, 2, 3, 4}, int64[2] shape = {0, -1}>
{ p = Mul(x, w) r = Reshape(p, shape) y = Relu(r) }
"""


@pytest.fixture(scope="module")
def sources() -> Iterator[Sources]:
    """One child for all tests."""
    opened = Sources()
    yield opened
    opened.close()


def save(path: Path, text: str = OPEN) -> onnx.ModelProto:
    model = parser.parse_model(text)
    onnx.save_model(model, path)
    return model


def refused(sources: Sources, uri: str) -> str:
    with pytest.raises(ProgramError) as caught:
        sources.file(parse_program(uri))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_models_are_exported_once(sources: Sources, monkeypatch: pytest.MonkeyPatch):
    program = parse_program(small("lstm"))
    file = sources.file(program)
    assert file.suffix == ".onnx" and file.name.startswith("lstm-") and file.parent.name == "programs"
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    model = onnx.load_model(file)
    [result] = session.run(None, draw(inputs_of(model), ranges_of(model), 0))
    assert np.isfinite(result).all()
    content = file.read_bytes()
    file.write_bytes(b"damaged")
    assert sources.file(program).read_bytes() == content, "it is exported again, with the same weights"

    def again(*arguments: object) -> bytes:
        raise AssertionError("it was exported before")

    monkeypatch.setattr(sources_module, "answer", again)
    assert sources.file(program) == file


@pytest.mark.parametrize("missing", ["onnxscript", "transformers", "onnx"])
def test_a_missing_package_is_named_with_the_command_that_installs_it(
    sources: Sources, monkeypatch: pytest.MonkeyPatch, missing: str, tmp_path: Path
):
    installed = sources_module.version

    def version(name: str) -> str:
        if name == missing:
            raise sources_module.PackageNotFoundError(name)
        return installed(name)

    monkeypatch.setattr(sources_module, "version", version)
    with pytest.raises(
        BackendError, match=rf"needs {missing}, .* run pip install 'irgym\[graph,graph-models\]'"
    ):
        sources.file(parse_program("graph://bert"))
    if missing == "onnx":
        save(tmp_path / "m.onnx")
        with pytest.raises(BackendError, match=r"needs onnx, .* run pip install 'irgym\[graph\]'"):
            sources.file(parse_program(f"graph:{tmp_path / 'm.onnx'}?batch=1&sequence=2"))


def test_open_dimensions_stay_open_and_are_measured_at_the_sizes_given(sources: Sources, tmp_path: Path):
    path = tmp_path / "open.onnx"
    save(path)
    file = sources.file(parse_program(f"graph:{path}?sequence=3&batch=2"))
    assert [given.shape for given in inputs_of(onnx.load_model(file))] == [(2, 3, 4), (3,)]
    graph = GRAPH.task(f"graph:{path}?sequence=3&batch=2").graph
    batch, sequence = symbol("batch"), symbol("sequence")
    assert graph.types["p"].shape == (batch, sequence, 4)
    assert graph.types["r"].shape == graph.types["y"].shape == (batch, 4 * sequence)
    assert graph.measured.types["y"].shape == (2, 12)
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    [result] = session.run(None, {"x": x, "z": np.zeros(3, np.float32)})
    assert np.array_equal(result, (x * [1, 2, 3, 4]).reshape(2, 12))
    assert sources.file(parse_program(f"graph:{path}?sequence=3&batch=1")) != file


def test_open_dimensions_can_be_fixed(tmp_path: Path):
    path = tmp_path / "open.onnx"
    save(path)
    graph = GRAPH.task(f"graph:{path}?sequence=3&batch=2&fixed=1").graph
    assert not graph.profile and graph.types["y"].shape == (2, 12)


def test_wrong_bindings_are_named(sources: Sources, tmp_path: Path):
    path = tmp_path / "open.onnx"
    save(path)
    said = refused(sources, f"graph:{path}?batch=2&sequence=1&width=3")
    assert "has no open dimension 'width'; its open dimensions: batch, sequence" in said
    save(path, OPEN.replace("batch, sequence, 4", "2, 3, 4").replace("sequence", "3"))
    assert "its open dimensions: none" in refused(sources, f"graph:{path}?batch=2")
    assert sources.file(parse_program(f"graph:{path}"))


def test_sizes_that_nobody_names_are_tried(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "open.onnx"
    save(path, OPEN.replace("{0, -1}", "{0, 256}"))
    task = GRAPH.task(f"graph:{path}")
    assert task.uri == f"graph:{path}?batch=1&sequence=64"
    assert "leaves sizes open: it is measured at batch=1, sequence=64; name others" in capsys.readouterr().err
    save(path, OPEN.replace("{0, -1}", "{0, 4444}"))
    with pytest.raises(ProgramError, match=r"does not run at those that irgym tried .*batch=1&sequence=1$"):
        GRAPH.task(f"graph:{path}")
    assert GRAPH.task(f"graph:{path}?sequence=1111").graph.profile == (("batch", 1), ("sequence", 1111))


def test_a_dimension_without_a_name_is_called_by_its_place(sources: Sources, tmp_path: Path):
    path = tmp_path / "open.onnx"
    save(path, OPEN.replace("float[batch, sequence, 4] x", "float[?, sequence, 4] x"))
    model = onnx.load_model(sources.file(parse_program(f"graph:{path}?x.0=5&sequence=2")))
    assert inputs_of(model)[0].shape == (5, 2, 4)


def _with_external_weights(path: Path) -> None:
    model = parser.parse_model(OPEN)
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.array([1, 2, 3, 4], np.float32), "w"))
    onnx.save_model(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)


def test_small_weights_in_other_files_are_brought_inside(sources: Sources, tmp_path: Path):
    path = tmp_path / "open.onnx"
    _with_external_weights(path)
    uri = f"graph:{path}?batch=1&sequence=1"
    file = sources.file(parse_program(uri))
    model = onnx.load_model(file, load_external_data=False)
    assert np.array_equal(numpy_helper.to_array(model.graph.initializer[0]), [1, 2, 3, 4])
    weights = tmp_path / "weights.bin"
    weights.write_bytes(bytes(weights.stat().st_size))
    assert sources.file(parse_program(uri)) != file, "other weights, another program"
    weights.write_bytes(b"")
    assert "is no valid ONNX model" in refused(sources, uri)
    weights.unlink()
    assert "has weights in weights.bin, which does not exist: put it beside the model" in refused(
        sources, uri
    )


def test_weights_outside_the_folder_are_refused(sources: Sources, tmp_path: Path):
    inner = tmp_path / "inner"
    inner.mkdir()
    _with_external_weights(inner / "open.onnx")
    model = onnx.load_model(inner / "open.onnx", load_external_data=False)
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = "../weights.bin"
    (inner / "open.onnx").write_bytes(model.SerializeToString())
    (inner / "weights.bin").rename(tmp_path / "weights.bin")
    assert "outside its folder" in refused(sources, f"graph:{inner / 'open.onnx'}?batch=1&sequence=1")


def test_too_many_weights_are_refused(sources: Sources, tmp_path: Path):
    path = tmp_path / "open.onnx"
    _with_external_weights(path)
    with (tmp_path / "weights.bin").open("r+b") as file:
        file.truncate(7 << 30)  # a hole
    assert "has 7.0 GiB of weights, and at most 6 are supported: choose" in refused(
        sources, f"graph:{path}?batch=1&sequence=1"
    )


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"# a text that is no model\n", "is no ONNX model"),
        (parser.parse_model(OPEN).SerializeToString()[:-9], "is no ONNX model, or was cut off"),
        (b"\x08\x0a", "holds no operations"),
    ],
)
def test_files_that_are_no_models_are_refused(sources: Sources, tmp_path: Path, content: bytes, words: str):
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    assert words in refused(sources, f"graph:{path}")


def test_invalid_models_are_refused(sources: Sources, tmp_path: Path):
    path = tmp_path / "m.onnx"
    save(path, OPEN.replace("Relu(r)", "Relu(nothing)"))
    assert "is no valid ONNX model" in refused(sources, f"graph:{path}?batch=1&sequence=1")
    save(path, OPEN.replace("float[sequence] z", "seq(float[2]) z"))
    assert "the input z is no tensor" in refused(sources, f"graph:{path}?batch=1&sequence=1")


def test_operators_of_other_domains_are_kept(sources: Sources, tmp_path: Path):
    path = tmp_path / "m.onnx"
    text = OPEN.replace('["" : 20]', '["" : 20, "com.example" : 1]').replace("Relu(r)", "com.example.Own(r)")
    save(path, text)
    model = onnx.load_model(sources.file(parse_program(f"graph:{path}?batch=1&sequence=1")))
    assert model.graph.node[-1].domain == "com.example"
