"""Inputs that users have for a program, given in Python and at the command line."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from commands import without_progress
from onnx import parser

import irgym
from irgym.api.inputs import named_with
from irgym.base.errors import IrgymError
from irgym.cli.main import main

MODEL = """
<ir_version: 10, opset_import: ["" : 20]>
g (float[n] x, int64[n] places) => (float[n] z)
{
  y = Gather(x, places)
  a = Neg(y)
  b = Neg(a)
  z = Relu(b)
}
"""

FEW = irgym.Searching(evaluations=3, search="random")
NODES = irgym.Measuring(objective="nodes")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    onnx.save(parser.parse_model(MODEL), path)
    return path


def inputs(size: int = 4) -> dict[str, Any]:
    return {"x": np.linspace(-1, 1, size, dtype=np.float32), "places": np.arange(size)[::-1]}


def test_arrays_by_name_are_named_in_the_uri_and_found_again(model: Path):
    result = irgym.tune(model, inputs=inputs(), searching=FEW, measuring=NODES)
    assert result.validation is not None and "first on the 1 sample given" in result.validation.tolerance
    assert result.program == named_with(f"graph:{model}", inputs())
    again = irgym.replay(result.program, result.schedule, measuring=NODES)
    assert again.cost == result.cost and again.program == result.program
    [known] = irgym.history(model, inputs=inputs(), measuring=NODES)
    assert known.schedule == result.schedule
    assert not irgym.history(model, inputs=inputs(5), measuring=NODES)


def test_a_list_of_samples(model: Path):
    result = irgym.replay(str(model), "", inputs=[inputs(), inputs(7)], measuring=NODES)
    assert result.validation is not None and "first on the 2 samples given" in result.validation.tolerance
    # Places up to 6 do not fit the first sample of 4 numbers, so the range of that one is taken.
    assert "left out: inputs within" not in result.validation.tolerance and result.validation.inputs > 5


@pytest.mark.parametrize(
    "given", [5, "none.npz", [], {}, [3], [{}], {"x": "a"}, {"x": None}, np.zeros(3), {1: 2}]
)
def test_other_inputs_are_refused_in_one_sentence(given: Any, model: Path):
    with pytest.raises(IrgymError) as error:
        irgym.tune(model, inputs=given, searching=FEW)
    assert "\n" not in str(error.value)


def test_objects_have_their_inputs_after_them():
    with pytest.raises(IrgymError, match="give its inputs after it"):
        irgym.tune(print, inputs=inputs())


def test_programs_without_named_inputs_refuse_them():
    with pytest.raises(IrgymError, match="no option 'inputs'"):
        irgym.tune("loops://mm/8x8x8", inputs=inputs())


def test_the_command_takes_a_file(model: Path, capsys: pytest.CaptureFixture[str]):
    np.savez(model.parent / "mine.npz", **inputs())
    main(["tune", str(model), "--inputs", str(model.parent / "mine.npz"), "--evaluations", "3"])
    out, _ = capsys.readouterr()
    assert "mine.npz" in out and "sample given" in " ".join(out.replace("│", " ").split())


def test_the_command_refuses_inputs_of_an_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "mine.py").write_text("def made():\n    return print, ()\n")
    with pytest.raises(SystemExit):
        main(["tune", f"{tmp_path / 'mine.py'}:made", "--inputs", str(tmp_path)])
    assert "--inputs is for a model in a file" in without_progress(capsys.readouterr().err)
