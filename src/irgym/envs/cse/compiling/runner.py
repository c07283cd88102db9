"""Functions that children run: scores of choices, and assembly."""

import re
from collections.abc import Sequence

from irgym.base.errors import ProgramError
from irgym.core.cost import Measurement, Outcome
from irgym.envs.cse.compiling.llvm import assembly
from irgym.envs.cse.compiling.scorer import scores, together
from irgym.envs.cse.ir.analysis import COPY
from irgym.llvmir.ir.syntax import bare

Request = tuple[str, str, tuple[int, ...], str, str]
"""A module, a function with sigil, the places of the shared candidates, target and objective."""


def measure(module: str, function: str, shared: tuple[int, ...], target: str, objective: str) -> Measurement:
    """Return the score of a choice."""
    [measured] = measure_many([(module, function, shared, target, objective)])
    return measured


def measure_many(requests: Sequence[Request]) -> list[Measurement]:
    """Return the scores of several choices in one function, for one target and objective."""
    module, function, _, target, objective = requests[0]
    try:
        found = scores(module, function, [shared for _, _, shared, _, _ in requests], target)
    except ProgramError as error:
        return [Measurement(Outcome.COMPILE_ERROR, detail=str(error))] * len(requests)
    return [Measurement(Outcome.OK, (score.of(objective),)) for score in found]


def assembly_of(module: str, function: str, shared: tuple[int, ...], target: str) -> str:
    """Return the assembly of a function under a choice, with the function's name in place of the copy's."""
    text = assembly(together(module, function, [shared]), target)
    name = bare(function)
    symbol = name if re.fullmatch(r"[\w.$]+", name) else f'"{name}"'
    return re.sub(rf"(?<![\w.]){re.escape(COPY)}0(?![\w.])", lambda _: symbol, text)
