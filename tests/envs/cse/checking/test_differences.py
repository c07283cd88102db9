"""Differences that no choice explains are never accepted, whatever the runs show."""

import pytest

from irgym.envs.cse.checking.differences import difference_of
from irgym.envs.cse.checking.validation import Comparison
from irgym.envs.cse.ir.analysis import Analysed, analysed
from irgym.envs.cse.programs.preparing import prepared
from irgym.llvmir.ir.function import Function
from irgym.llvmir.ir.modules import ModuleText

SOURCE = """
int f(int *p, int n, int m) {
  int s = (n + m) / 3;
  p[0] = s;
  p[1] = p[n & 7] * 5;
  if (s > 1) s += (n + m) / 3;
  return s;
}
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> ModuleText:
    path = tmp_path_factory.mktemp("differences") / "code.c"
    path.write_text(SOURCE)
    return ModuleText.read(prepared(str(path), "x86-64").decode())


@pytest.fixture(scope="module")
def function(module: ModuleText) -> Analysed:
    return analysed(module, "@f")


def place_of(lines: list[str], text: str) -> int:
    return next(place for place, line in enumerate(lines) if text in line)


def swapped(lines: list[str]) -> None:
    place = place_of(lines, " store ")
    lines[place], lines[place + 1] = lines[place + 1], lines[place]


def promising(lines: list[str]) -> None:
    place = place_of(lines, " add nsw ")
    lines[place] = lines[place].replace("add nsw", "add nuw nsw")


def other(lines: list[str]) -> None:
    place = place_of(lines, ", 5")
    lines[place] = lines[place].replace(", 5", ", 6")


def further(lines: list[str]) -> None:
    lines.insert(place_of(lines, " store "), "  %more = add i32 1, 2")


def test_shared_candidates_explain_all_differences(function: Analysed):
    shared = range(len(function.candidates))
    replaced = dict(pair for candidate in function.candidates for pair in candidate.replaced)
    after = Function.read("@f", function.function.header, function.sharing.lines(shared))
    assert replaced and not difference_of(function.function, after, replaced).unexplained
    assert difference_of(function.function, after, {}).unexplained


@pytest.mark.parametrize("plant", [swapped, promising, other, further])
def test_anything_else_is_not_explained(function: Analysed, module: ModuleText, plant):
    lines = function.sharing.lines(())
    plant(lines)
    after = Function.read("@f", function.function.header, lines)
    assert difference_of(function.function, after, {}).unexplained
    assert not Comparison(module, function, 1, 0).compare(lines, {}, {}).checked


def test_a_difference_that_no_run_shows_is_not_checked(function: Analysed, module: ModuleText):
    lines = function.sharing.lines(())
    further(lines)
    validation = Comparison(module, function, 1, 0).compare(lines, {}, {})
    assert validation.ok and "a difference is not explained by sharing" in validation.blind
