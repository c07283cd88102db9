"""Programs that a function of Python makes, or that torch.export wrote."""

from pathlib import Path
from typing import Any

import pytest

from irgym.api.objects import named_object
from irgym.base.errors import ProgramError

CODE = """
def pair():
    return len, ([1, 2],)

def one_input():
    return len, [[1, 2]]

def bare():
    return len, "ab"

def alone():
    return len

def failing():
    raise KeyError("weights")

number = 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a file and a package of functions."""
    (tmp_path / "made.py").write_text(CODE)
    (tmp_path / "package_of_mine").mkdir()
    (tmp_path / "package_of_mine" / "models.py").write_text(CODE)
    (tmp_path / "needing.py").write_text("import no_such_package")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("place", ["made.py", "package_of_mine.models"])
def test_functions_by_file_and_by_module(folder: Path, place: str):
    assert named_object(f"{place}:pair") == (len, ([1, 2],))
    assert named_object(f"{place}:one_input") == (len, [[1, 2]])
    assert named_object(f"{place}:bare") == (len, ("ab",))


@pytest.mark.parametrize("name", ["loops://mm/8x8x8", "linalg:made.py", "made.py", "a.onnx?batch=1", "hlo:x"])
def test_other_names_are_left_alone(folder: Path, name: str):
    assert named_object(name) is None


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("made.py:nothing", "made.py has no function nothing"),
        ("made.py:number", "made.py has no function number"),
        ("made.py:alone", "must return a pair: the program, and a tuple of its inputs"),
        ("made.py:failing", "made.py:failing raised KeyError: 'weights'"),
        ("missing.py:pair", "there is no file missing.py"),
        ("no_such_module:pair", "'no_such_module' is no program: there is no module of that name"),
        ("needing:pair", "needing needs no_such_package, which is not installed"),
        ("needing.py:pair", "needing.py:pair raised ModuleNotFoundError"),
    ],
)
def test_bad_names_are_refused_in_one_sentence(folder: Path, name: str, words: str):
    with pytest.raises(ProgramError) as caught:
        named_object(name)
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_a_file_of_torch_export(folder: Path):
    torch: Any = pytest.importorskip("torch")
    module, x = torch.nn.Linear(3, 2), torch.randn(4, 3)
    torch.export.save(torch.export.export(module, (x,)), folder / "model.pt2")
    made = named_object("model.pt2")
    assert made is not None
    loaded, inputs = made
    assert torch.equal(inputs[0], x) and torch.equal(loaded(x), module(x))  # pyright: ignore
    (folder / "broken.pt2").write_bytes(b"nothing")
    with pytest.raises(ProgramError, match=r"broken\.pt2 is no archive of torch\.export"):
        named_object("broken.pt2")
