"""Comparison of a function under a choice with the original, by runs in random worlds."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from irgym.core.cost import Validation
from irgym.envs.cse.actions import names_of
from irgym.envs.cse.checking.differences import Difference, difference_of
from irgym.envs.cse.compiling.scorer import function_at, module_at, verified
from irgym.envs.cse.ir.analysis import Analysed
from irgym.llvmir.interpreter.machine import Machine
from irgym.llvmir.interpreter.poison import Endless, Undefined, Unsupported
from irgym.llvmir.interpreter.program import Code, Program
from irgym.llvmir.interpreter.traces import Differs
from irgym.llvmir.interpreter.watching import CASES
from irgym.llvmir.ir.modules import ModuleText
from irgym.llvmir.ir.syntax import bare
from irgym.llvmir.worlds.exploring import DRAWN, STEPS, Explorer, Run
from irgym.llvmir.worlds.numbers import known_in

TOLERANCE = "bit for bit"
"""The tolerance of comparisons, for messages."""

LONGER = 5
"""Limit on the instructions of the other form, as a multiple of those of the original."""

_SHOWN = 48
"""Greatest number of runs in which the effect of a computation is looked for."""

_STRESSED = 24
"""Greatest number of computations whose operands are stressed."""

_VARIED = 40
"""Number of changed worlds tried for a computation without a visible effect."""

_FOCUSED = 6
"""Number of runs from which branches are explored again for a computation without a visible effect."""

_SEARCHED = 3_000_000
"""Approximate limit on the instructions run in order to see the effects of a function's computations."""

_NAMED = 4
"""Number of computations that a message names."""


def compared(path: str, name: str, shared: tuple[int, ...], inputs: int, seed: int) -> Validation:
    """Run LLVM's verifier on a choice, and compare its runs in random worlds with those of the original.

    Args:
        path: File of the module, prepared for this machine.
        name: Name of the function, sigil included.
        shared: Places of the shared candidates.
        inputs: Number of random inputs; several worlds are drawn for each.
        seed: Seed of the worlds.
    """
    complaint = verified(path, name, shared)
    if complaint:
        return Validation(False, 0.0, "LLVM's verifier", 0, complaint)
    function = function_at(path, name)
    replaced = {name: kept for place in shared for name, kept in function.candidates[place].replaced}
    comparison = Comparison(module_at(path), function, inputs, seed)
    return comparison.compare(function.sharing.lines(shared), replaced, _names(function, shared))


def _names(function: Analysed, shared: Iterable[int]) -> Mapping[str, str]:
    """Return the candidate of each dropped result."""
    named = names_of(function.candidates)
    return {name: named[place] for place in shared for name, _ in function.candidates[place].replaced}


class Comparison:
    """Runs the original form of a function and other forms.

    Args:
        module: The module.
        function: The function.
        inputs: Number of random inputs.
        seed: Seed of the worlds.
    """

    def __init__(self, module: ModuleText, function: Analysed, inputs: int, seed: int) -> None:
        self._program = Program(module)
        self._inputs = inputs
        self._seed = seed
        self._header = function.function.header
        self._name = function.function.name
        self._lines = function.sharing.lines(())
        self._left = 0

    def compare(
        self, lines: Sequence[str], replaced: Mapping[str, str], candidates: Mapping[str, str]
    ) -> Validation:
        """Compare another form of the function with the original.

        Args:
            lines: Lines of the other form.
            replaced: The replacement of each dropped result.
            candidates: The candidate of each dropped result.
        """
        try:
            original = self._program.code_of(self._name, self._header, self._lines, main=True)
        except Unsupported as error:
            return _blind(f"it cannot be run: {error}")
        other = self._program.code_of(self._name, self._header, lines, main=True, like=original)
        difference = difference_of(original.function, other.function, replaced)
        cases = _cases(original, difference)
        original.watched = frozenset(cases)
        explorer = Explorer(self._program, original, known_in([*self._lines, *lines]), self._seed)
        explorer.draw(range(DRAWN * self._inputs))
        explorer.reach(difference.blocks)
        explorer.stress(cases)
        runs = explorer.found.runs
        if not runs:
            [(why, _)] = explorer.found.failures.most_common(1)
            return _blind(f"the original does not run in any random world: {why}")
        unseen = self._unseen(original, difference, explorer)
        for run in runs:
            wrong = self._differs(other, run)
            if wrong:
                return Validation(False, 0.0, TOLERANCE, self._inputs, wrong)
        tolerance = f"{TOLERANCE}; {explorer.taken} of {explorer.branches} branches were taken"
        if difference.unexplained:
            blind = f"a difference is not explained by sharing: {difference.unexplained[0]}"
            return Validation(True, 0.0, tolerance, self._inputs, blind=blind)
        if not unseen:
            return Validation(True, 0.0, tolerance, self._inputs)
        names = tuple(dict.fromkeys(candidates[name] for name in unseen if name in candidates))
        return Validation(True, 0.0, tolerance, self._inputs, blind=_unseen_text(unseen), unseen=names)

    def _differs(self, other: Code, run: Run) -> str:
        """Return how a run of another form differs from the original run; empty if it does not."""
        steps = LONGER * max(run.trace.steps, STEPS)
        try:
            Machine(self._program, run.world, steps, run.trace, turn=True).run(other)
        except Differs as error:
            return str(error)
        except (Undefined, Endless, Unsupported) as error:
            return f"its behaviour is not that of the original: {error}"
        return ""

    def _unseen(self, original: Code, difference: Difference, explorer: Explorer) -> list[str]:
        """Return the changed computations that have a visible effect in no run."""
        self._left = _SEARCHED
        unseen = [
            name
            for name, block in (*difference.dropped, *difference.changed)
            if not self._shows(self._without(original, zeroed=name), block, explorer)
        ]
        for block, place in difference.effects:
            if place == len(original.function.blocks[block].instructions) - 1:
                shows = any(block in run.trace.blocks for run in explorer.found.runs)
            else:
                shows = self._shows(self._without(original, muted=(block, place)), block, explorer)
            if not shows:
                unseen.append(original.function.blocks[block].name)
        return unseen

    def _without(self, original: Code, zeroed: str = "", muted: tuple[int, int] | None = None) -> Code:
        """Return the original function with a result set to 0, or with an instruction left out."""
        numbers, parameters = original.numbers, original.parameters
        return Code(original.function, parameters, numbers, True, original, zeroed, muted, original.watched)

    def _shows(self, changed: Code, block: int, explorer: Explorer) -> bool:
        """Say whether a change in a block has a visible effect in some run."""
        entered = [run for run in explorer.found.runs if block in run.trace.blocks]
        if any(self._tells(changed, run) for run in entered[:_SHOWN]):
            return True
        if not entered:
            return False
        entered.sort(key=lambda run: run.trace.steps)
        for number in range(_VARIED):
            if self._left <= 0:
                return False
            run = explorer.varied(entered[number % len(entered)], number)
            if run is not None and block in run.trace.blocks and self._tells(changed, run):
                return True
        if self._left <= 0:
            return False
        matters = [run for run in entered[:_SHOWN] if self._edges(changed, run) ^ run.trace.edges]
        seeds = (matters or entered)[:_FOCUSED]
        focused = explorer.focused(seeds)
        focused.reach()
        self._left -= focused.steps
        new = focused.found.runs[len(seeds) :]
        explorer.found.runs += new
        return any(self._tells(changed, run) for run in new)

    def _tells(self, changed: Code, run: Run) -> bool:
        """Say whether a change has a visible effect in a run; False once the instructions are used up."""
        if self._left <= 0:
            return False
        self._left -= run.trace.steps
        return bool(self._differs(changed, run))

    def _edges(self, other: Code, run: Run) -> set[tuple[int, int]]:
        """Return the branches that another form takes until its behaviour differs."""
        machine = Machine(self._program, run.world, LONGER * STEPS, run.trace, turn=True)
        with suppress(Differs, Undefined, Endless, Unsupported):
            machine.run(other)
        return machine.edges


def _cases(original: Code, difference: Difference) -> Mapping[str, Sequence[str]]:
    """Return the cases to look for in the changed computations."""
    made = {
        instruction.result: instruction.opcode for _, instruction in original.function if instruction.result
    }
    names = [name for name, _ in (*difference.changed, *difference.dropped)]
    return {name: CASES[made[name]] for name in names[:_STRESSED] if made[name] in CASES}


def _unseen_text(unseen: Sequence[str]) -> str:
    names = ", ".join(bare(name.removeprefix("%")) for name in unseen[:_NAMED])
    more = f" and {len(unseen) - _NAMED} more" if len(unseen) > _NAMED else ""
    return f"no random world shows an effect of {names}{more}"


def _blind(why: str) -> Validation:
    return Validation(True, 0.0, TOLERANCE, 0, blind=why)
