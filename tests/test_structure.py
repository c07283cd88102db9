"""The structure of the sources: sizes that a person can read, and calls that a person can remember."""

import ast
from functools import cache
from pathlib import Path

import irgym

SOURCE = Path(irgym.__file__).parent
LONGEST_FILE = 400
LONGEST_FUNCTION = 60
MOST_PARAMETERS = 8
FRONT_DOOR = {"api/tuning.py:tune": 10}
"""The function that users call first has two more: the alternative is an object that holds some of them."""

DATA = {"envs/hlo/programs/numeric_families.py"}
"""Files that are tables: their length says nothing."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def functions(path: Path) -> list[Function]:
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, Function)]


def files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def body_lines(function: Function) -> int:
    """Return the lines of a function from the first statement after its docstring."""
    body = function.body
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    return 0 if not body else (body[-1].end_lineno or 0) - body[0].lineno + 1


def parameters(function: Function) -> int:
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return len([argument for argument in named if argument.arg not in ("self", "cls")])


def test_files_can_be_read_in_one_sitting():
    long = {
        place: lines
        for path in files()
        if (lines := len(path.read_text().splitlines())) > LONGEST_FILE
        and (place := path.relative_to(SOURCE).as_posix()) not in DATA
    }
    assert not long, long


def test_functions_fit_a_screen():
    long = {
        f"{path.relative_to(SOURCE)}:{function.lineno} {function.name}": lines
        for path in files()
        for function in functions(path)
        if (lines := body_lines(function)) > LONGEST_FUNCTION
    }
    assert not long, long


def test_public_functions_have_few_parameters():
    many = {
        f"{path.relative_to(SOURCE)}:{function.lineno} {function.name}": count
        for path in files()
        for function in functions(path)
        if not function.name.startswith("_")
        and (count := parameters(function))
        > FRONT_DOOR.get(f"{path.relative_to(SOURCE).as_posix()}:{function.name}", MOST_PARAMETERS)
    }
    assert not many, many
