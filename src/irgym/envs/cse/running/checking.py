"""Whether a function with some candidates shared computes what it computed before."""

from collections.abc import Iterable, Mapping, Sequence

from irgym.core.cost import Validation
from irgym.envs.cse.interpreter.machine import Differs, Machine
from irgym.envs.cse.interpreter.poison import Endless, Undefined, Unsupported
from irgym.envs.cse.interpreter.program import Code, Program
from irgym.envs.cse.ir.analysis import Analysed
from irgym.envs.cse.ir.function import Function
from irgym.envs.cse.ir.modules import ModuleText
from irgym.envs.cse.ir.syntax import bare
from irgym.envs.cse.running.exploring import DRAWN, STEPS, Explorer, Run
from irgym.envs.cse.running.numbers import known_in
from irgym.envs.cse.running.touching import Touched, touched
from irgym.envs.cse.scoring.scorer import function_at, module_at, verified

TOLERANCE = "bit for bit"

LONGER = 5
"""How many times as many instructions as the function as written the other may run."""

_SHOWN = 48
"""Runs at most in which a computation may show."""

_NAMED = 4
"""Computations that a message names."""


def compared(path: str, name: str, shared: tuple[int, ...], inputs: int, seed: int) -> Validation:
    """Have LLVM's verifier look at a choice, and run it in made-up worlds beside the function as written.

    Args:
        path: The module, prepared for this machine.
        name: Name of the function, sigil included.
        shared: The places of the candidates that are shared.
        inputs: Random inputs; for each some worlds are drawn.
        seed: Seed of these.
    """
    said = verified(path, name, shared)
    if said:
        return Validation(False, 0.0, "LLVM's verifier", 0, said)
    function = function_at(path, name)
    replaced = {name: kept for place in shared for name, kept in function.candidates[place].replaced}
    comparison = Comparison(module_at(path), function, inputs, seed)
    return comparison.made(function.sharing.lines(shared), replaced, _names(function, shared))


def _names(function: Analysed, shared: Iterable[int]) -> Mapping[str, str]:
    """Return the candidate of each result that is dropped."""
    return {
        name: function.candidates[place].name
        for place in shared
        for name, _ in function.candidates[place].replaced
    }


class Comparison:
    """Runs a function as it is written, and in other forms.

    Args:
        module: The module.
        function: The function.
        inputs: Random inputs.
        seed: Seed of the worlds.
    """

    def __init__(self, module: ModuleText, function: Analysed, inputs: int, seed: int) -> None:
        self._program = Program(module)
        self._inputs = inputs
        self._seed = seed
        self._header = function.function.header
        self._name = function.function.name
        self._lines = function.sharing.lines(())

    def made(
        self, lines: Sequence[str], replaced: Mapping[str, str], candidates: Mapping[str, str]
    ) -> Validation:
        """Return how another form of the function compares with it.

        Args:
            lines: The other form.
            replaced: Results that it drops, each with the one that takes its place.
            candidates: The candidates of these.
        """
        try:
            written = self._program.code_of(self._name, self._header, self._lines, main=True)
        except Unsupported as error:
            return _blind(f"it has no form that can be run: {error}")
        other = self._program.code_of(self._name, self._header, lines, main=True, like=written)
        difference = touched(written.function, other.function, replaced)
        explorer = Explorer(self._program, written, known_in([*self._lines, *lines]), self._seed)
        explorer.draw(range(DRAWN * self._inputs))
        explorer.reach(difference.everywhere)
        runs = explorer.found.runs
        if not runs:
            [(why, _)] = explorer.found.failures.most_common(1)
            return _blind(f"in a made-up world it does not run as written: {why}")
        for run in runs:
            wrong = self._differs(other, run)
            if wrong:
                return Validation(False, 0.0, TOLERANCE, self._inputs, wrong)
        tolerance = f"{TOLERANCE}; {explorer.taken} of {explorer.branches} branches were taken"
        unseen = self._unseen(written, difference, runs)
        if not unseen:
            return Validation(True, 0.0, tolerance, self._inputs)
        names = dict.fromkeys(candidates[one] for one in unseen if one in candidates)
        return Validation(
            True, 0.0, tolerance, self._inputs, blind=_untold(unseen), unseen=tuple(names)
        )

    def _differs(self, other: Code, run: Run) -> str:
        """Return how a run of another form differs from one of the function; empty where it does not."""
        steps = LONGER * max(run.trace.steps, STEPS)
        try:
            Machine(self._program, run.world, steps, run.trace, turn=True).run(other)
        except Differs as error:
            return str(error)
        except (Undefined, Endless, Unsupported) as error:
            return f"it does what the function as written does not: {error}"
        return ""

    def _unseen(self, written: Code, difference: Touched, runs: Sequence[Run]) -> list[str]:
        """Return the computations that are touched and show in no run."""
        unseen: list[str] = []
        for name, block in (*difference.dropped, *difference.changed):
            zeroed = Code(
                written.function, written.parameters, written.numbers, True, written, zeroed=name
            )
            entered = [run for run in runs if block in run.trace.blocks][:_SHOWN]
            if not any(self._differs(zeroed, run) for run in entered):
                unseen.append(name)
        entered_blocks = {block for run in runs for block in run.trace.blocks}
        unseen += [
            written.function.blocks[block].name for block in difference.blocks if block not in entered_blocks
        ]
        return unseen


def _untold(unseen: Sequence[str]) -> str:
    names = ", ".join(bare(one.removeprefix("%")) for one in unseen[:_NAMED])
    more = f" and {len(unseen) - _NAMED} more" if len(unseen) > _NAMED else ""
    return f"in no made-up world it shows what is computed for {names}{more}"


def _blind(why: str) -> Validation:
    return Validation(True, 0.0, TOLERANCE, 0, blind=why)
