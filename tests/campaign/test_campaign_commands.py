"""The campaign of command lines: exit code 2 and one sentence, or 0 and the work done; and soon."""

from itertools import groupby
from pathlib import Path

import pytest
from campaign_options import HEADLINES, Row
from campaign_options import rows as option_rows
from campaign_runner import Run
from campaign_table import ROWS
from campaign_uris import rows as uri_rows
from commands import Result

SENTENCE = 1000
"""Greatest length of a sentence: those that list all choices are long."""

BOX = 30
"""Greatest number of lines of what tyro says to a command line that it cannot read."""


def refused(result: Result, row: Row) -> None:
    """One sentence on stderr, or tyro's box, exit code 2, and no output; one of the row's words is in it."""
    assert row.words is not None and result.code == 2, result
    assert "Traceback" not in result.err, result.err
    assert not result.out or (result.out.startswith(HEADLINES) and result.out.count("\n") == 1), result
    if result.err.startswith("irgym: "):
        assert result.err.endswith("\n") and result.err.count("\n") == 1 and len(result.err) < SENTENCE, (
            result.err
        )
        assert all(letter.isprintable() for letter in result.err[:-1]), result.err
    else:
        assert result.err.startswith("╭─") and result.err.count("\n") < BOX, result.err
    assert any(word in result.err for word in row.words), (row.words, result.err)


def succeeded(result: Result, row: Row) -> None:
    """Exit code 0, nothing on stderr, and something that can be checked on stdout."""
    assert result.code == 0 and not result.err, result
    assert all(word in result.out for word in row.output), (row.output, result.out)


ALL = sorted([*option_rows(), *uri_rows(), *ROWS], key=lambda row: row.arguments[:1])
"""The rows of each command together."""

COMMANDS = {
    "".join(command) or "-": tuple(rows) for command, rows in groupby(ALL, lambda row: row.arguments[:1])
}


def trouble(row: Row, run: Run, inputs: Path, folder: Path) -> str:
    """Run a row in a folder; return what is wrong with its end, nothing where all is as expected."""
    result = run(row, folder)
    try:
        if row.words is None:
            succeeded(result, row)
            return ""
        words = tuple(word.replace("{inputs}", str(inputs)) for word in row.words)
        refused(result, Row(row.arguments, words, row.why))
        assert not list(folder.iterdir()), "a refused command leaves nothing behind"
    except AssertionError as error:
        return f"{row.name}: {error}"
    return ""


# One test a command: two thousand tests would take longer to set up than their commands take to run.
@pytest.mark.parametrize("command", COMMANDS)
def test_rows(command: str, run: Run, inputs: Path, tmp_path: Path) -> None:
    found: list[str] = []
    for number, row in enumerate(COMMANDS[command]):
        folder = tmp_path / str(number)
        folder.mkdir()
        found.append(trouble(row, run, inputs, folder))
    assert not any(found), "\n".join(filter(None, found))


def test_there_are_enough_rows() -> None:
    assert len({row.arguments for row in ALL}) > 1600
    assert {"tune", "compare", "train", "report", "farm"} <= set(COMMANDS)


NOT_A_NUMBER = """
func.func @main(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<8x8xf32>
  %r = linalg.generic {
    indexing_maps = [affine_map<(i,j)->(i,j)>, affine_map<(i,j)->(i,j)>],
    iterator_types = ["parallel","parallel"]
  } ins(%a : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%x: f32, %o: f32):
    %zero = arith.subf %x, %x : f32
    %nan = arith.divf %zero, %zero : f32
    linalg.yield %nan : f32
  } -> tensor<8x8xf32>
  return %r : tensor<8x8xf32>
}
"""


def test_a_program_whose_own_results_are_nan(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("torch_mlir")
    program = tmp_path / "nan.mlir"
    program.write_text(NOT_A_NUMBER)
    result = run(Row(("replay", f"linalg:{program}", ""), None, "NaN"), tmp_path)
    # Whether such results can be checked is the comparison's to say.
    assert "Traceback" not in result.err
    if result.code:
        refused(result, Row(("replay",), ("nan.mlir",), "NaN"))
