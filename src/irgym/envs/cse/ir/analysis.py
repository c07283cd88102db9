"""The analysis of a function: control flow, candidates, block frequencies."""

from collections.abc import Sequence
from dataclasses import dataclass

from irgym.base.errors import ProgramError
from irgym.envs.cse.ir.candidates import Candidate, Values
from irgym.envs.cse.ir.flow import Flow
from irgym.envs.cse.ir.frequencies import frequencies, shares
from irgym.envs.cse.ir.sharing import Sharing
from irgym.llvmir.ir.effects import Effects
from irgym.llvmir.ir.function import Function
from irgym.llvmir.ir.modules import ModuleText, header_of_copy
from irgym.llvmir.ir.syntax import bare

CAPACITY = 64
"""Greatest number of candidates, those with the most weight; the .NET JIT has the same limit."""

COPY = "irgym.copy."
"""Prefix of the names of copies; a number follows."""


@dataclass(frozen=True, eq=False)
class Analysed:
    """A function and its analysis.

    Attributes:
        function: The function.
        flow: Its control flow.
        values: Its expressions.
        candidates: The candidates by descending weight, at most `CAPACITY`.
        left_out: Number of candidates beyond that limit.
        frequencies: Executions of each block per call, by name; blocks with which LLVM splits edges included.
        sharing: Writes the function under a choice.
    """

    function: Function
    flow: Flow
    values: Values
    candidates: tuple[Candidate, ...]
    left_out: int
    frequencies: dict[str, float]
    sharing: Sharing

    def together(self, module: ModuleText, choices: Sequence[Sequence[int]]) -> str:
        """Return a module with a copy of the function for each choice."""
        parts = module.around("", self.function.header, self.sharing.lines(()))
        for place, chosen in enumerate(choices):
            copy = f"@{self.copy_name(place)}"
            parts += [header_of_copy(self.function.name, self.function.header, copy)]
            parts += [*self.sharing.lines(chosen), "}"]
        return "\n".join([*parts, ""])

    def copy_name(self, place: int) -> str:
        """Return the name of the function's copy for a choice, without sigil."""
        return f"{COPY}{place}"


def analysed(module: ModuleText, name: str) -> Analysed:
    """Analyse a function of a module.

    Args:
        module: The module.
        name: Name of the function, sigil included.

    Raises:
        KeyError: The module defines no such function.
        ProgramError: The function uses syntax that cse cannot read.
    """
    if name in module.labelled:
        raise ProgramError(
            f"{bare(name)} takes addresses of its labels, so cse cannot copy it: choose another"
        )
    try:
        return _analysed(module, name)
    except ValueError as error:
        raise ProgramError(
            f"{bare(name)} is of a form that cse does not read ({error}): choose another function"
        ) from error


def _analysed(module: ModuleText, name: str) -> Analysed:
    text = module.functions[name]
    function = Function.read(name, text.header, text.lines)
    flow = Flow(function.successors)
    values = Values(function, flow, Effects(module, text.header))
    cold = _cold(function, flow)
    often = frequencies(flow, cold)
    # Types have the same sigil as values: one that is called like a value would be renamed with it.
    safe = [
        candidate
        for candidate in values.candidates
        if not any(member in module.entries for member in candidate.members)
    ]
    ranked = sorted(safe, key=lambda candidate: -_weight(candidate, values, often))
    candidates = tuple(ranked[:CAPACITY])
    return Analysed(
        function,
        flow,
        values,
        candidates,
        len(ranked) - len(candidates),
        _named(function, flow, often, cold),
        Sharing(function, values, candidates),
    )


def _weight(candidate: Candidate, values: Values, often: dict[int, float]) -> float:
    """Return how many computations sharing a candidate saves per call."""
    return sum(often[values.places[name].block] for name, _ in candidate.replaced)


def _cold(function: Function, flow: Flow) -> list[bool]:
    """Return for each block whether it never returns: all paths from it end in `unreachable`."""
    cold = [block.instructions[-1].opcode == "unreachable" for block in function.blocks]
    for block in reversed(flow.order):
        following = flow.successors[block]
        cold[block] = cold[block] or (bool(following) and all(cold[after] for after in following))
    return cold


def _named(function: Function, flow: Flow, often: dict[int, float], cold: Sequence[bool]) -> dict[str, float]:
    names = [block.name for block in function.blocks]
    found = {names[block]: frequency for block, frequency in often.items()}
    for block in flow.order:
        for following, share in zip(flow.successors[block], shares(flow, cold, block), strict=True):
            found.setdefault(f"{names[block]}.{names[following]}_crit_edge", often[block] * share)
    return found
