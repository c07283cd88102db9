"""Scores of the choices in one function. It runs in a child process."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from irgym.base.errors import ProgramError
from irgym.envs.cse.compiling.assembly import functions_of
from irgym.envs.cse.compiling.instructions import COSTS
from irgym.envs.cse.compiling.llvm import assembly, read
from irgym.envs.cse.compiling.machines import MACHINES
from irgym.envs.cse.compiling.score import Score, score_of
from irgym.envs.cse.ir.analysis import Analysed, analysed
from irgym.envs.cse.ir.modules import ModuleText

AT_ONCE = 16
"""Choices that LLVM makes code of at once, as functions of one module: beginning takes most of the time."""


@lru_cache(maxsize=4)
def module_at(path: str) -> ModuleText:
    """Return a module, read once."""
    return ModuleText.read(Path(path).read_text())


@lru_cache(maxsize=64)
def function_at(path: str, name: str) -> Analysed:
    """Return what is known of a function of a module, found out once."""
    return analysed(module_at(path), name)


def scores(path: str, name: str, choices: Sequence[Sequence[int]], target: str) -> list[Score]:
    """Return the scores of some choices.

    Args:
        path: The module, prepared.
        name: Name of the function, sigil included.
        choices: For each, the places of the candidates that are shared.
        target: Name of what code is made for.
    """
    found: list[Score] = []
    for begin in range(0, len(choices), AT_ONCE):
        found += _scores(path, name, choices[begin : begin + AT_ONCE], target)
    return found


def together(path: str, name: str, choices: Sequence[Sequence[int]]) -> str:
    """Return a module with a copy of a function for each of some choices."""
    return function_at(path, name).together(module_at(path), choices)


def _scores(path: str, name: str, choices: Sequence[Sequence[int]], target: str) -> list[Score]:
    machine, function = MACHINES[target], function_at(path, name)
    text = together(path, name, choices)
    cost = COSTS[machine.architecture]
    of = {
        name: score_of(lines, function.frequencies, cost)
        for name, lines in functions_of(assembly(text, target), machine.remark)
    }
    return [of[function.copy_name(place)] for place in range(len(choices))]


def verified(path: str, name: str, chosen: Sequence[int]) -> str:
    """Have LLVM's verifier look at a choice; return what it finds wrong, in one line, or nothing.

    Args:
        path: The module, prepared.
        name: Name of the function, sigil included.
        chosen: The places of the candidates that are shared.
    """
    try:
        read(together(path, name, [chosen]), "what irgym wrote")
    except ProgramError as error:
        return str(error)
    return ""
