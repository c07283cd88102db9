"""What the measuring child runs: scores of choices, and their checks."""

import re
from collections.abc import Sequence

from irgym.base.errors import ProgramError
from irgym.core.cost import Measurement, Outcome, Validation
from irgym.envs.cse.compiling.llvm import assembly
from irgym.envs.cse.compiling.scorer import scores, together, verified
from irgym.envs.cse.ir.analysis import COPY
from irgym.envs.cse.ir.syntax import bare

Request = tuple[str, str, tuple[int, ...], str, str]
"""A module, a function with sigil, the places of the candidates that are shared, target and objective."""


def measure(module: str, function: str, shared: tuple[int, ...], target: str, objective: str) -> Measurement:
    """Return the score of a choice."""
    [measured] = measure_many([(module, function, shared, target, objective)])
    return measured


def measure_many(requests: Sequence[Request]) -> list[Measurement]:
    """Return the scores of some choices in one function, for one target and under one objective."""
    module, function, _, target, objective = requests[0]
    try:
        found = scores(module, function, [shared for _, _, shared, _, _ in requests], target)
    except ProgramError as error:
        return [Measurement(Outcome.COMPILE_ERROR, detail=str(error))] * len(requests)
    return [Measurement(Outcome.OK, (one.of(objective),)) for one in found]


def validate(module: str, function: str, shared: tuple[int, ...]) -> Validation:
    """Have LLVM's verifier look at a choice, where code is for another machine than this."""
    said = verified(module, function, shared)
    blind = "code for another machine is not run"
    return Validation(not said, 0.0, "LLVM's verifier", 0, said, "" if said else blind)


def assembly_of(module: str, function: str, shared: tuple[int, ...], target: str) -> str:
    """Return the assembly of a function with some candidates shared, under its own name."""
    text = assembly(together(module, function, [shared]), target)
    name = bare(function)
    own = name if re.fullmatch(r"[\w.$]+", name) else f'"{name}"'
    return re.sub(rf"(?<![\w.]){re.escape(COPY)}0(?![\w.])", lambda _: own, text)
