"""Whether a function with some candidates shared computes what it computed before."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from irgym.core.cost import Validation
from irgym.envs.cse.actions import names_of
from irgym.envs.cse.checking.exploring import DRAWN, STEPS, Explorer, Run
from irgym.envs.cse.checking.numbers import known_in
from irgym.envs.cse.checking.touching import Touched, touched
from irgym.envs.cse.compiling.scorer import function_at, module_at, verified
from irgym.envs.cse.interpreter.machine import Machine
from irgym.envs.cse.interpreter.poison import Endless, Undefined, Unsupported
from irgym.envs.cse.interpreter.program import Code, Program
from irgym.envs.cse.interpreter.traces import Differs
from irgym.envs.cse.interpreter.watching import CASES
from irgym.envs.cse.ir.analysis import Analysed
from irgym.envs.cse.ir.modules import ModuleText
from irgym.envs.cse.ir.syntax import bare

TOLERANCE = "bit for bit"

LONGER = 5
"""How many times as many instructions as the function as written the other may run."""

_SHOWN = 48
"""Runs at most in which a computation may show."""

_STRESSED = 24
"""Computations at most for whose operands special values are looked for."""

_VARIED = 40
"""Changed worlds that are tried where a computation does not show."""

_FOCUSED = 6
"""Runs from which branches are taken anew, for a computation that does not show yet."""

_SEARCHED = 3_000_000
"""Instructions that may run, about, to see what the computations of a function show."""

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
    named = names_of(function.candidates)
    return {name: named[place] for place in shared for name, _ in function.candidates[place].replaced}


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
        self._left = 0

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
        cases = _cases(written, difference)
        written.watched = frozenset(cases)
        explorer = Explorer(self._program, written, known_in([*self._lines, *lines]), self._seed)
        explorer.draw(range(DRAWN * self._inputs))
        explorer.reach(difference.everywhere)
        explorer.stress(cases)
        runs = explorer.found.runs
        if not runs:
            [(why, _)] = explorer.found.failures.most_common(1)
            return _blind(f"in a made-up world it does not run as written: {why}")
        unseen = self._unseen(written, difference, explorer)
        for run in runs:
            wrong = self._differs(other, run)
            if wrong:
                return Validation(False, 0.0, TOLERANCE, self._inputs, wrong)
        tolerance = f"{TOLERANCE}; {explorer.taken} of {explorer.branches} branches were taken"
        if difference.unexplained:
            told = f"not only what is shared differs: {difference.unexplained[0]}"
            return Validation(True, 0.0, tolerance, self._inputs, blind=told)
        if not unseen:
            return Validation(True, 0.0, tolerance, self._inputs)
        names = tuple(dict.fromkeys(candidates[one] for one in unseen if one in candidates))
        return Validation(True, 0.0, tolerance, self._inputs, blind=_untold(unseen), unseen=names)

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

    def _unseen(self, written: Code, difference: Touched, explorer: Explorer) -> list[str]:
        """Return the computations that are touched and show in no run."""
        self._left = _SEARCHED
        unseen = [
            name
            for name, block in (*difference.dropped, *difference.changed)
            if not self._shows(self._without(written, zeroed=name), block, explorer)
        ]
        for block, place in difference.effects:
            if place == len(written.function.blocks[block].instructions) - 1:
                shows = any(block in run.trace.blocks for run in explorer.found.runs)
            else:
                shows = self._shows(self._without(written, muted=(block, place)), block, explorer)
            if not shows:
                unseen.append(written.function.blocks[block].name)
        return unseen

    def _without(self, written: Code, zeroed: str = "", muted: tuple[int, int] | None = None) -> Code:
        """Return the function as written, but for a result that is 0, or an instruction that is left out."""
        numbers, parameters = written.numbers, written.parameters
        return Code(written.function, parameters, numbers, True, written, zeroed, muted, written.watched)

    def _shows(self, changed: Code, block: int, explorer: Explorer) -> bool:
        """Say whether a function with a change in some block does something else in some run."""
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
        """Say whether a run does something else with a change, as long as there is time for it."""
        if self._left <= 0:
            return False
        self._left -= run.trace.steps
        return bool(self._differs(changed, run))

    def _edges(self, other: Code, run: Run) -> set[tuple[int, int]]:
        """Return the branches that another form takes, as far as it does what the function does."""
        machine = Machine(self._program, run.world, LONGER * STEPS, run.trace, turn=True)
        with suppress(Differs, Undefined, Endless, Unsupported):
            machine.run(other)
        return machine.edges


def _cases(written: Code, difference: Touched) -> Mapping[str, Sequence[str]]:
    """Return what to look for at the computations that are touched."""
    made = {one.result: one.opcode for _, one in written.function if one.result}
    names = [name for name, _ in (*difference.changed, *difference.dropped)]
    return {name: CASES[made[name]] for name in names[:_STRESSED] if made[name] in CASES}


def _untold(unseen: Sequence[str]) -> str:
    names = ", ".join(bare(one.removeprefix("%")) for one in unseen[:_NAMED])
    more = f" and {len(unseen) - _NAMED} more" if len(unseen) > _NAMED else ""
    return f"in no made-up world it shows what is computed for {names}{more}"


def _blind(why: str) -> Validation:
    return Validation(True, 0.0, TOLERANCE, 0, blind=why)
