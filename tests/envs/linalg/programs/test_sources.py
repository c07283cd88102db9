import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlir_execution import execute, random_inputs

from irgym.base.errors import BackendError, ProgramError, StorageError
from irgym.core.cost import Call
from irgym.envs.linalg.programs import sources as sources_module
from irgym.envs.linalg.programs.operators import Operator
from irgym.envs.linalg.programs.sources import Sources, answer
from irgym.envs.linalg.programs.uris import parse_uri
from irgym.measure.isolation.child import Child


@pytest.fixture(scope="module")
def sources() -> Iterator[Sources]:
    """A child process shared by all tests."""
    opened = Sources()
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("IRGYM_CACHE_DIR", str(folder))
    return folder


def test_operators_are_written_as_they_are(sources: Sources, cache: Path):
    source = parse_uri("linalg://matmul/4x5x6")
    assert isinstance(source.origin, Operator)
    file = sources.file(source)
    assert file.is_relative_to(cache) and file.suffix == ".mlir" and file.stem.startswith("matmul-")
    assert file.read_text() == sources.text(source) == source.origin.text()
    assert [path for path in cache.rglob("*") if path.is_file()] == [file]


def test_networks_are_imported_once(sources: Sources, monkeypatch: pytest.MonkeyPatch):
    file = sources.file(parse_uri("linalg://transformer?length=8&width=16"))
    text = file.read_text()
    assert "func.func @main" in text
    assert sources.file(parse_uri("linalg://transformer?length=16&width=16")) != file
    file.write_text("damaged")
    assert sources.text(parse_uri("linalg://transformer?length=8&width=16")) == text, "it is imported again"

    def again(*arguments: object) -> str:
        raise AssertionError("it was imported before")

    monkeypatch.setattr(sources_module, "answer", again)
    assert sources.file(parse_uri("linalg://transformer?width=16&length=8")) == file


def test_without_torch_a_network_says_what_to_install(sources: Sources, monkeypatch: pytest.MonkeyPatch):
    def missing(name: str) -> str:
        raise sources_module.PackageNotFoundError(name)

    monkeypatch.setattr(sources_module, "version", missing)
    with pytest.raises(BackendError, match=r"torch.*pip install 'irgym\[learn\]'"):
        sources.file(parse_uri("linalg://transformer"))
    assert sources.file(parse_uri("linalg://relu/4")).exists()


BODY = """%0 = linalg.add ins(%a, %a : TYPE, TYPE) outs(%a : TYPE) -> TYPE
  return %0 : TYPE"""


def _function(name: str = "main", kind: str = "tensor<4xf32>", arguments: str = "", before: str = "") -> str:
    body = BODY.replace("TYPE", kind)
    return f"func.func @{name}(%a: {kind}{arguments}) -> {kind} {{\n  {before}{body}\n}}\n"


def _read(sources: Sources, folder: Path, text: str) -> str:
    file = folder / "mine.mlir"
    file.write_text(text)
    return sources.text(parse_uri(f"linalg:{file}"))


def test_a_file_becomes_a_program_named_main(sources: Sources, tmp_path: Path):
    private = _function("helper").replace("func.func @", "func.func private @")
    text = _read(sources, tmp_path, private + _function("double"))
    assert text.count("func.func") == 1 and "func.func @main(%arg0: tensor<4xf32>)" in text
    inputs = random_inputs(text)
    assert (execute(text, inputs)[0] == 2 * inputs[0]).all()
    assert _read(sources, tmp_path, text) == text


def test_a_changed_file_is_read_again(sources: Sources, tmp_path: Path):
    texts = {_read(sources, tmp_path, _function(kind=kind)) for kind in ("tensor<4xf32>", "tensor<5xf32>")}
    assert len(texts) == 2


def test_assertions_go_and_large_constants_become_arguments(sources: Sources, tmp_path: Path):
    def with_constant(count: int) -> str:
        kind = f"tensor<{count}xf32>"
        values = ", ".join(f"{number}.0" for number in range(count))
        assertion = '%true = arith.constant true\n  cf.assert %true, "never"\n  '
        constant = f"{assertion}%c = arith.constant dense<[{values}]> : {kind}\n  "
        return _function(kind=kind, before=constant).replace("ins(%a, %a", "ins(%a, %c")

    small, large = (_read(sources, tmp_path, with_constant(count)) for count in (16, 17))
    assert "dense<" in small and "%arg1" not in small
    assert "dense<" not in large and "%arg1: tensor<17xf32>" in large
    assert "cf.assert" not in small + large


CALL = "%b = func.call @other(%a) : (tensor<4xf32>) -> tensor<4xf32>\n  "
ATOMIC = """%i = arith.constant 0 : index
  %c = arith.constant 1.0 : f32
  %z = memref.atomic_rmw addf %c, %m[%i] : (f32, memref<4xf32>) -> f32
  """
OTHER = "func.func private @other(tensor<4xf32>) -> tensor<4xf32>\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("func.func @main(", r"mine.mlir:1 is no valid MLIR: expected"),
        (_function().replace("return", "\nretrun"), r"mine.mlir:4 is no valid MLIR: .*retrun"),
        (_function().replace("%0 = linalg", "%0 = tosa2"), "mine.mlir:2 uses the dialect `tosa2` of another"),
        (
            _function().replace("return", '"mine.own"() : () -> ()\n  return'),
            "mine.mlir:3 uses the dialect `mine` of another project: remove",
        ),
        ("", "no public function with a body"),
        (OTHER, "no public function with a body"),
        (_function("one") + _function("two"), r"several functions \(@one, @two\): choose one, as in .*#one"),
        (OTHER + _function(before=CALL).replace("%a, %a", "%a, %b"), "more than its function @.*func.func"),
        (_function(kind="tensor<?xf32>"), r"leaves sizes open: bind them, as in .*mine.mlir\?arg0.0=64$"),
        (_function(kind="tensor<*xf32>").replace("linalg.add ins", "foo"), "is no valid MLIR"),
        (_function(kind="tensor<4xf80>"), "argument 0 is tensor<4xf80>: convert it to float32"),
        (_function(kind="tensor<300000x1000xf32>"), "of more than 268435456 elements"),
        (
            _function(arguments=", %m: memref<4xf32>", before=ATOMIC),
            "memref.atomic_rmw works on buffers and has no counterpart on tensors: give the program",
        ),
        (
            "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }",
            "no linalg operation",
        ),
        ("func.func @main(%a: tensor<4xf32>) { return }", "returns nothing"),
    ],
)
def test_invalid_programs_are_refused_in_one_sentence(
    sources: Sources, tmp_path: Path, text: str, words: str
):
    with pytest.raises(ProgramError, match=words) as caught:
        _read(sources, tmp_path, text)
    assert "mine.mlir" in str(caught.value) and "\n" not in str(caught.value)


def test_bytecode_is_refused(sources: Sources, tmp_path: Path):
    file = tmp_path / "mine.mlir"
    file.write_bytes(b"ML\xefR\x00\xff")
    with pytest.raises(ProgramError, match="is no text"):
        sources.file(parse_uri(f"linalg:{file}"))


def test_a_file_that_goes_away_is_named(sources: Sources, tmp_path: Path):
    file = tmp_path / "mine.mlir"
    file.write_text(_function())
    source = parse_uri(f"linalg:{file}")
    file.unlink()
    with pytest.raises(ProgramError, match=r"cannot read .*mine\.mlir"):
        sources.file(source)


def test_a_cache_that_cannot_be_written_is_named(sources: Sources, cache: Path):
    cache.write_text("a file in the way")
    with pytest.raises(StorageError, match="cannot make"):
        sources.file(parse_uri("linalg://relu/4"))


def test_a_crash_of_the_compiler_is_reported_in_one_sentence():
    with Child() as child, pytest.raises(ProgramError, match=r"mine\.mlir: the compiler crashed on it"):
        answer(child, Call(f"{os.abort.__module__}:abort", ()), "mine.mlir")
