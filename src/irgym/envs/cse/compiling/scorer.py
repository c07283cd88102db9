"""Scores of choices in one function. It runs in a child."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from irgym.base.errors import ProgramError
from irgym.envs.cse.compiling.assembly import functions_of
from irgym.envs.cse.compiling.instructions import COSTS
from irgym.envs.cse.compiling.llvm import assembly, read
from irgym.envs.cse.compiling.score import Score, score_of
from irgym.envs.cse.ir.analysis import Analysed, analysed
from irgym.llvmir.ir.modules import ModuleText
from irgym.llvmir.programs.machines import MACHINES

AT_ONCE = 16
"""Choices compiled at once, as functions of one module: LLVM's start-up takes most of the time."""


@lru_cache(maxsize=4)
def module_at(path: str) -> ModuleText:
    """Return a module, cached."""
    return ModuleText.read(Path(path).read_text())


@lru_cache(maxsize=64)
def function_at(path: str, name: str) -> Analysed:
    """Return the analysis of a function of a module, cached."""
    return analysed(module_at(path), name)


def scores(path: str, name: str, choices: Sequence[Sequence[int]], target: str) -> list[Score]:
    """Return the scores of some choices.

    Args:
        path: File of the prepared module.
        name: Name of the function, sigil included.
        choices: Places of the shared candidates, for each choice.
        target: Name of the target.
    """
    found: list[Score] = []
    for begin in range(0, len(choices), AT_ONCE):
        found += _scores(path, name, choices[begin : begin + AT_ONCE], target)
    return found


def together(path: str, name: str, choices: Sequence[Sequence[int]]) -> str:
    """Return a module with a copy of a function for each choice."""
    return function_at(path, name).together(module_at(path), choices)


def _scores(path: str, name: str, choices: Sequence[Sequence[int]], target: str) -> list[Score]:
    machine, function = MACHINES[target], function_at(path, name)
    text = together(path, name, choices)
    cost = COSTS[machine.architecture]
    by_name = {
        name: score_of(lines, function.frequencies, cost)
        for name, lines in functions_of(assembly(text, target), machine.remark)
    }
    return [by_name[function.copy_name(place)] for place in range(len(choices))]


def verified(path: str, name: str, chosen: Sequence[int]) -> str:
    """Run LLVM's verifier on a choice; return its complaint in one line, or an empty text.

    Args:
        path: File of the prepared module.
        name: Name of the function, sigil included.
        chosen: Places of the shared candidates.
    """
    try:
        read(together(path, name, [chosen]), "what irgym wrote")
    except ProgramError as error:
        return str(error)
    return ""
