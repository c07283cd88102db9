"""Programs as URIs, files and objects; environments and policies by name."""

import functools
from pathlib import Path
from typing import Any

import pytest
from passes import URIS

import irgym
from irgym.base.errors import BackendError, IrgymError, ProgramError
from irgym.core.catalogue import ENVIRONMENTS, locate

LINALG = "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { linalg.fill }"
STABLEHLO = "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { stablehlo.add }"


def place(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("name", "text", "environment"),
    [
        ("a.mlir", LINALG, "linalg"),
        ("a.MLIR", LINALG, "linalg"),
        ("a.mlir", STABLEHLO, "hlo"),
        ("a.hlo.txt", "HloModule m", "hlo"),
        ("a.pb", "", "hlo"),
        ("a.stablehlo", STABLEHLO, "hlo"),
        ("a.onnx", "", "graph"),
    ],
)
def test_a_files_suffix_and_content_tell_its_environment(
    name: str, text: str, environment: str, tmp_path: Path
):
    path = place(tmp_path / name, text)
    for given in (path, str(path)):
        found, uri = locate(given)
        assert (found.name, uri) == (environment, f"{environment}:{path}")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.mlir", "module {}", "of no environment that knows it"),
        ("a.tflite", "", "of no environment that knows it"),
        ("a.mlir", LINALG + STABLEHLO, "of several environments"),
    ],
)
def test_a_file_of_no_single_environment_is_refused_in_one_sentence(
    name: str, text: str, words: str, tmp_path: Path
):
    with pytest.raises(ProgramError, match=f"{words}: name the environment, as in [a-z]+:"):
        locate(place(tmp_path / name, text))


def test_sizes_follow_a_file(tmp_path: Path):
    path = place(tmp_path / "a.onnx", "")
    found, uri = locate(f"{path}?batch=1&length=2")
    assert (found.name, uri) == ("graph", f"graph:{path}?batch=1&length=2")
    with pytest.raises(ProgramError, match=r"there is no file .*b\.onnx"):
        locate(f"{tmp_path / 'b.onnx'}?batch=1")


def test_an_environment_is_named_for_objects_only(tmp_path: Path):
    path = place(tmp_path / "a.onnx", "")
    assert locate(path, environment="graph")[1] == f"graph:{path}"
    with pytest.raises(ProgramError, match="is a program of graph: name no other environment"):
        locate(path, environment="linalg")
    with pytest.raises(IrgymError, match="there is no environment 'tvm'"):
        locate(object(), environment="tvm")
    with pytest.raises(ProgramError, match="no program of hlo: give a URI, or a JAX function"):
        locate(object(), environment="hlo")


def test_a_uri_is_one_even_where_a_file_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    place(tmp_path / "hlo:x.mlir", LINALG)
    assert locate("hlo:x.mlir")[0].name == "hlo"


def test_tasks():
    task = irgym.task(URIS[0], objective="time")
    assert (task.uri, task.objective.name) == (URIS[0], "time")
    assert irgym.task(URIS[0]).objective.name == "ops"
    assert irgym.task("loops://mm/8x8x8", backend="llvm").uri == "loops://mm/8x8x8"
    with pytest.raises(BackendError, match="no back end 'gpu'"):
        irgym.task("loops://mm/8x8x8", backend="gpu")
    with pytest.raises(IrgymError, match="no objective 'colour'"):
        irgym.task(URIS[0], objective="colour")


@pytest.mark.parametrize(
    ("named", "environment", "needed"),
    [(None, "graph", "onnxscript"), ("linalg", "linalg", "torch_mlir")],
)
def test_a_torch_module_with_its_inputs(named: str | None, environment: str, needed: str):
    torch = pytest.importorskip("torch")
    pytest.importorskip(needed)
    module = torch.nn.Linear(4, 3).eval()
    result = irgym.replay(module, "", torch.zeros(2, 4), environment=named)
    assert result.program.startswith(f"{environment}:") and "Linear" in result.program and result.validated
    with pytest.raises(ProgramError, match="Linear comes without inputs"):
        irgym.task(module, environment=named)


@pytest.mark.parametrize(("environment", "needed"), [("graph", "onnxscript"), ("linalg", "torch_mlir")])
def test_a_tuned_module_is_called_in_its_place(environment: str, needed: str):
    torch = pytest.importorskip("torch")
    pytest.importorskip(needed)

    class Layers(torch.nn.Module):
        """Returns tensors in a structure."""

        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))

        def forward(self, x: Any, y: Any) -> Any:
            out = self.layers(x)
            return {"out": out, "pair": (out + y, None)}

    module, example = Layers().eval(), (torch.zeros(2, 4), torch.zeros(2, 3))
    result = irgym.tune(
        module, *example, environment=environment, searching=irgym.Searching(search="random", evaluations=3)
    )
    inputs = torch.randn(2, 4), torch.randn(2, 3)
    found = result(*inputs)
    with torch.no_grad():
        wanted = module(*inputs)
    assert list(found) == ["out", "pair"] and found["pair"][1] is None
    torch.testing.assert_close(found["out"], wanted["out"])
    torch.testing.assert_close(found["pair"][0], wanted["pair"][0])
    again = result(*example)
    assert not torch.equal(again["out"], found["out"]), "results are not written over"
    others = torch.randn(3, 4), torch.randn(3, 3)
    with pytest.warns(UserWarning, match=r"Layers was tuned for .2x4 float32, 2x3 float32., not for .3x4"):
        fallen = result(*others)
    with torch.no_grad():
        assert torch.equal(fallen["out"], module(*others)["out"]), "the module itself"


def test_a_module_with_inputs_in_a_structure():
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_mlir")
    module = torch.nn.LSTMCell(4, 6).eval()
    state = torch.zeros(2, 6), torch.zeros(2, 6)
    result = irgym.replay(module, "", torch.zeros(2, 4), state, environment="linalg")
    x, state = torch.randn(2, 4), (torch.randn(2, 6), torch.randn(2, 6))
    with torch.no_grad():
        torch.testing.assert_close(result(x, state), module(x, state))


def test_the_result_of_a_named_program_is_not_callable():
    result = irgym.replay("loops://mm/8x8x8", "")
    with pytest.raises(IrgymError, match="given by its name, so there is nothing to call it like: export it"):
        result(1)


def test_a_jax_function_with_its_arguments(engine: None):
    jax = pytest.importorskip("jax")
    numpy = jax.numpy

    def double(x: Any) -> Any:
        return x + x + 0.0 * x

    uris = [
        irgym.task(function, numpy.ones(4)).uri
        for function in (double, jax.jit(double), functools.partial(double))
    ]
    assert all(uri.startswith("hlo:") for uri in uris) and len(uris) == 3
    assert irgym.task(uris[0]).uri == uris[0]
    assert (
        irgym.tune(
            double, numpy.ones(4), searching=irgym.Searching(evaluations=4, search="random")
        ).objective.name
        == "ops"
    )


def test_environments_say_what_runs_here():
    found = {status.name: status for status in irgym.environments()}
    assert list(found) == ENVIRONMENTS.names() and found["loops"].summary
    assert [backend.name for backend in found["passes"].backends] == ["toy"]


def test_policies_by_name():
    torch = pytest.importorskip("torch")
    policy = irgym.load_policy("default", "loops")
    assert policy.environment == "loops" and isinstance(policy.network, torch.nn.Module)
    with pytest.raises(IrgymError, match="of which environment it is"):
        irgym.load_policy("default")
    with pytest.raises(IrgymError, match=r"or one of .*default"):
        irgym.load_policy("best", "loops")
