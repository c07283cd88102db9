"""A user's own programs by one name: trained on, evaluated, compared, listed, saved."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import Command
from passes import URIS
from small_graphs import graph_of

from irgym.core.dataset import spread
from irgym.core.datasets import DATASETS, DatasetSpec
from irgym.envs.graph.ir.node import Node
from irgym.envs.graph.ir.weights import Weights
from irgym.envs.graph.ir.writing import model_of

pytest.importorskip("torch")

HLO = """
HloModule m{n}

ENTRY main {{
  x = f32[{n}]{{0}} parameter(0)
  zero = f32[] constant(0)
  zeros = f32[{n}]{{0}} broadcast(zero), dimensions={{}}
  ROOT sum = f32[{n}]{{0}} add(x, zeros)
}}
"""
MLIR = """
func.func @main(%a: tensor<{n}x4xf32>, %b: tensor<{n}x4xf32>) -> tensor<{n}x4xf32> {{
  %c = linalg.add ins(%a, %b : tensor<{n}x4xf32>, tensor<{n}x4xf32>)
      outs(%a : tensor<{n}x4xf32>) -> tensor<{n}x4xf32>
  return %c : tensor<{n}x4xf32>
}}
"""
C = "int f(int *p, int n) {{ int s = p[n * {n} + 9]; if (s > 1) s += p[n * {n} + 9]; return s; }}\n"


def onnx(number: int) -> bytes:
    nodes = [Node("Relu", ("x",), ("a",)), Node("Relu", ("a",), ("y",))]
    graph = graph_of(nodes, {"x": (number, 4)}, {}, ["y"])
    return model_of(graph, Weights({}), whole=True).SerializeToString()


def texts(name: str, text: str) -> Callable[[Path], str]:
    """Return what writes twelve programs into a folder."""

    def written(folder: Path) -> str:
        for number in range(1, 13):
            (folder / name.format(n=number)).write_text(text.format(n=number))
        return str(folder)

    return written


def models(folder: Path) -> str:
    for number in range(1, 13):
        (folder / f"m{number}.onnx").write_bytes(onnx(number))
    return str(folder / "*.onnx")


def uris(folder: Path) -> str:
    (folder / "list.txt").write_text("# twelve\n" + "\n".join(f"loops://mm/{n}x4x4" for n in range(1, 13)))
    return str(folder / "list.txt")


@pytest.mark.parametrize(
    ("environment", "write"),
    [
        ("loops", uris),
        ("hlo", texts("m{n}.txt", HLO)),
        ("linalg", texts("m{n}.mlir", MLIR)),
        ("graph", models),
        ("cse", texts("m{n}.c", C)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_twelve_programs_by_one_name(
    environment: str,
    write: Callable[[Path], str],
    irgym: Command,
    tmp_path: Path,
    request: pytest.FixtureRequest,
):
    if environment == "hlo":
        request.getfixturevalue("engine")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "README.txt").write_text("My programs.\n")
    data = ("--dataset", write(tmp_path / "mine"))
    run, done = tmp_path / "run", tmp_path / "compared.json"
    small = ("--iterations", "1", "--set", "episodes=2", "hidden=4")
    assert irgym("train", environment, "--run", run, *data, *small).code == 0
    assert irgym("programs", environment, *data, "--json", tmp_path / "all.json").code == 0
    everything = read(tmp_path / "all.json")["programs"]
    assert len(everything) == 12 and read(run / "config.json")["dataset"] == data[1]
    assert irgym("evaluate", run, "--limit", "1").code == 0
    again = irgym("compare", environment, *data, "--methods", "base", "--limit", "1", "--json", done)
    assert again.code == 0 and programs_of(done) == programs_of(run / "evaluation.json")
    assert set(programs_of(done)) < set(everything)


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def programs_of(path: Path) -> list[str]:
    """Return the programs of a comparison."""
    return list(dict.fromkeys(row["program"] for row in read(path)["rows"]))


def test_a_resumed_run_notices_that_its_programs_changed(irgym: Command, tmp_path: Path):
    folder = tmp_path / "mine"
    folder.mkdir()
    texts("m{n}.c", C)(folder)
    words = (
        "train",
        "cse",
        "--dataset",
        folder,
        "--run",
        tmp_path / "run",
        "--set",
        "episodes=2",
        "hidden=4",
    )
    assert irgym(*words, "--iterations", "1").code == 0
    resumed = (*words, "--iterations", "2", "--resume")
    content = (folder / "m1.c").read_text()
    (folder / "m1.c").write_text(content.replace("s > 1", "s > 2"))
    refused = irgym(*resumed)
    assert refused.code == 2 and "the programs of the run in" in refused.err and "have changed" in refused.err
    (folder / "m1.c").write_text(content)
    assert irgym(*resumed).code == 0


def test_shares_are_kept_with_the_run(irgym: Command, tmp_path: Path):
    words = ("--dataset", "mm:m=4:40,n=4,k=4", "--holdout", "0.5")
    small = ("--iterations", "1", "--set", "episodes=2", "hidden=4")
    assert irgym("train", "loops", "--run", tmp_path / "run", *words, *small).code == 0
    assert read(tmp_path / "run" / "config.json")["holdout"] == 0.5
    split = tmp_path / "split.json"
    assert irgym("programs", "loops", *words, "--split", "test", "--json", split).code == 0
    assert irgym("evaluate", tmp_path / "run", "--limit", "3").code == 0
    evaluated = programs_of(tmp_path / "run" / "evaluation.json")
    found = read(split)["programs"]
    assert evaluated == spread(found, 3) and len(found) > 10
    given = ("loops://mm/5x5x5", "loops://mm/6x5x5")
    assert irgym("evaluate", tmp_path / "run", "--programs", *given).code == 0
    assert programs_of(tmp_path / "run" / "evaluation.json") == list(given)
    refused = irgym("evaluate", tmp_path / "run", "--programs", *given, "--limit", "1")
    assert refused.code == 2 and "exclude each other" in refused.err


def test_programs_filters_and_saves(irgym: Command, tmp_path: Path):
    saved = tmp_path / "list.txt"
    grid = ("programs", "linalg", "--dataset", "matmul:m=4:24:4,n=8,k=8+add:a=1:9,b=2")
    assert irgym(*grid, "--family", "add", "--match", "*x2", "--limit", "5", "--save", saved).code == 0
    lines = saved.read_text().splitlines()
    assert len([line for line in lines if line.startswith("linalg://add/")]) == 5
    assert {"# train", "# test"} < set(lines)
    again = irgym("programs", "linalg", "--dataset", saved)
    assert f"# {saved}: the programs that {saved} lists; 4 train, 1 test" in again.out
    assert irgym(*grid, "--limit", "1").code == 0
    refused = irgym(*grid, "--family", "towers")
    assert refused.code == 2 and "--family and --match" in refused.err
    refused = irgym(*grid, "--save", tmp_path / "nowhere" / "list.txt")
    assert refused.code == 2 and "nowhere" in refused.err


@pytest.mark.parametrize("environment", ["cse", "llvm"])
def test_what_is_left_out_is_told(irgym: Command, tmp_path: Path, environment: str):
    texts("m{n}.c", C)(tmp_path)
    (tmp_path / "broken.c").write_text("int f(")
    listed = irgym("programs", environment, "--dataset", tmp_path)
    assert listed.code == 0 and f"# left out: 1 of {tmp_path}, such as: clang cannot compile" in listed.out
    compared = irgym("compare", environment, "--dataset", tmp_path, "--methods", "base", "--limit", "1")
    assert compared.code == 0 and "left out: 1 of" in compared.out + compared.err


def test_names_of_ones_own_are_listed(irgym: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setitem(DATASETS.added, "small", DatasetSpec("passes", URIS[:3], description="small ones"))
    monkeypatch.setitem(DATASETS.added, "lost", DatasetSpec("towers", URIS))
    listed = irgym("programs", "passes")
    assert "# data sets: all, small" in listed.out and "small" not in irgym("programs", "hlo").out
    monkeypatch.setattr("irgym.cli.envs.environments", list)
    found = irgym("envs", "--json", tmp_path / "envs.json")
    assert (
        "small ones" in found.out and "'lost' cannot be used: there is no environment 'towers'" in found.out
    )
    assert read(tmp_path / "envs.json")["datasets"] == {"small": "passes"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("programs", "loops", "--holdout", "1"), "a share of 1 for testing is out of range"),
        (("train", "loops", "--run", "x", "--holdout", "-1"), "out of range"),
        (("imitate", "loops", "--out", "x", "--dataset", "towers.txt"), "no file or folder towers.txt"),
        (("compare", "loops", "--dataset", "mm:m=1:4,n=4,k=4", "--holdout", "0"), "has no test programs"),
        (("compare", "loops", "--dataset", "mm:m=4:1,n=4,k=4"), "'4:1' is no range"),
        (("compare", "hlo", "--dataset", "loops://mm/4x4x4"), "is a program of loops: name one of hlo"),
    ],
)
def test_bad_input(words: tuple[str, ...], message: str, irgym: Command):
    refused = irgym(*words)
    assert refused.code == 2 and message in refused.err and "Traceback" not in refused.err
