"""Search for worlds in which a function takes all its branches.

Worlds are drawn at random first. Then worlds that reach a branch never taken are changed, one drawn value at
a time: values that occur in a comparison are replaced by the other operand and by its neighbours
(input-to-state correspondence: Aschermann et al., REDQUEEN, NDSS 2019).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from irgym.llvmir.interpreter.machine import Machine
from irgym.llvmir.interpreter.numbers import Value
from irgym.llvmir.interpreter.poison import Endless, Undefined, Unsupported
from irgym.llvmir.interpreter.program import Code, Program
from irgym.llvmir.interpreter.running import Running
from irgym.llvmir.interpreter.traces import Differs, Trace
from irgym.llvmir.interpreter.watching import Feature, wished
from irgym.llvmir.ir.instruction import Instruction
from irgym.llvmir.worlds.numbers import Known, mixed
from irgym.llvmir.worlds.steering import Change, redrawing, replacing, shifting
from irgym.llvmir.worlds.world import STYLES, Style, World

STEPS = 4_000
"""Greatest number of instructions of a run."""

PATIENT = 50_000
"""Greatest number of instructions of a run while none has ended so far."""

DRAWN, TRIES, ALL_STEPS = 24, 400, 300_000
"""Worlds drawn for each input, greatest number of changed worlds, and of instructions of all runs."""

_TRIES_OF_EDGE, _TRIES_OF_CASE, _ORIGINS = 64, 32, 6
_ENOUGH, _AROUND = 6, 12
_TRANSPARENT = frozenset(("and", "or", "xor", "select", "freeze", "zext", "trunc", "icmp"))


Starts = Callable[[Program, World, int, Trace | None, bool], Running]
"""Returns a run of the program in a world; also takes the limit on its steps, the trace of a run to compare
with, and whether to use the alternative undefined values."""


@dataclass(frozen=True)
class Setting:
    """How functions are run, and how much may be spent.

    Attributes:
        starts: Makes runs.
        styles: Styles of the worlds, in turn.
        steps: Greatest number of instructions of a run.
        patient: Greatest number of instructions of a run while none has ended so far.
        all_steps: Greatest number of instructions of all runs, from the first on that ended.
        vain_steps: Greatest number of instructions of the runs before.
        tries: Greatest number of changed worlds.
        run_steps: Number of instructions that take as long as the begin and the end of a run.
        drawn_share: Share of `all_steps` after which no more worlds are drawn, if some run has ended.
    """

    starts: Starts = Machine
    styles: tuple[Style, ...] = STYLES
    steps: int = STEPS
    patient: int = PATIENT
    all_steps: int = ALL_STEPS
    vain_steps: int = ALL_STEPS
    tries: int = TRIES
    run_steps: int = 0
    drawn_share: float = 1.0


@dataclass(frozen=True)
class Run:
    """A world, and the trace of the function's run in it."""

    world: World
    trace: Trace


@dataclass
class Explored:
    """Results of the search.

    Attributes:
        runs: Runs with defined behaviour, in the order in which they were found.
        edges: Branches taken in these runs.
        features: Cases that arose in these runs, with the number of runs.
        failures: Reasons why other runs do not count, with the number of runs.
    """

    runs: list[Run] = field(default_factory=list[Run])
    edges: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    features: Counter[Feature] = field(default_factory=Counter[Feature])
    failures: Counter[str] = field(default_factory=Counter[str])


class Explorer:
    """Finds worlds for a function.

    Args:
        program: The module.
        code: The function.
        known: Numbers in the function's code.
        seed: Seed of the worlds.
        setting: How functions are run; as `cse` runs them by default.
        others: Functions of the module that it may call, whose branches are to be taken too.

    Attributes:
        steps: Approximate number of instructions run.
        found: Results of the search.
    """

    def __init__(
        self,
        program: Program,
        code: Code,
        known: Known,
        seed: int,
        setting: Setting | None = None,
        others: Sequence[Code] = (),
    ) -> None:
        self._setting = setting or Setting()
        self._others = others
        self._program = program
        self._code = code
        self._known = known
        self._seed = seed
        self._made: dict[str, Instruction] = {}
        self._successors: dict[int, tuple[int, ...]] = {}
        self._ends: dict[int, tuple[Code, Instruction]] = {}
        for each in (code, *others):
            for number, block in enumerate(each.function.blocks):
                following = each.function.successors[number]
                self._successors[each.base + number] = tuple(each.base + place for place in following)
                self._ends[each.base + number] = each, block.instructions[-1]
            self._made.update({each.label(made.result): made for _, made in each.function if made.result})
        self.steps = 0
        self._vain = 0
        self._tries = 0
        self._patience = self._setting.steps
        self.found = Explored()

    @property
    def branches(self) -> int:
        """Number of branches: edges out of blocks with several successors."""
        return sum(len(following) for following in self._successors.values() if len(following) > 1)

    @property
    def edges(self) -> set[tuple[int, int]]:
        """The branches, as pairs of block numbers."""
        return {
            (block, following)
            for block, several in self._successors.items()
            if len(several) > 1
            for following in several
        }

    @property
    def taken(self) -> int:
        """Number of branches taken."""
        return sum(len(self._successors[block]) > 1 for block, _ in self.found.edges)

    @property
    def _spent(self) -> float:
        """Share of the instructions that were run."""
        if self.found.runs:
            return (self.steps - self._vain) / self._setting.all_steps
        return self.steps / self._setting.vain_steps if self._patience >= self._setting.patient else 0.0

    def draw(self, worlds: Iterable[int]) -> None:
        """Run the function in the worlds of some numbers."""
        for number in worlds:
            if self._spent > (self._setting.drawn_share if self.found.runs else 1.0):
                return
            if number == len(self._setting.styles) and not self.found.runs:
                self._patience = self._setting.patient
            self._tried(World.numbered(self._seed, number, self._known, self._setting.styles))

    def reach(self, wanted: Iterable[int] = ()) -> None:
        """Change worlds in order to take branches that were never taken.

        Args:
            wanted: Blocks to reach first.
        """
        blocks = frozenset(wanted)
        given_up: set[tuple[int, int]] = set()
        while self._spent <= 1.0 and self._tries < self._setting.tries:
            edge = self._next(blocks, given_up)
            if edge is None:
                return
            if not self._solved(edge):
                given_up.add(edge)

    def focused(self, runs: Sequence[Run]) -> "Explorer":
        """Return an explorer that knows only some runs, in order to take branches again from there."""
        other = Explorer(self._program, self._code, self._known, self._seed ^ 5, self._setting, self._others)
        other._patience = self._patience
        other.found.runs += runs
        other.found.edges |= {edge for run in runs for edge in run.trace.edges}
        return other

    def varied(self, run: Run, number: int) -> Run | None:
        """Run the function in a world with some drawn values changed; return None if the run does not count.

        Args:
            run: The run whose world is changed.
            number: Seed of the change.
        """
        drawn = list(run.trace.drawn.items())
        other = World.numbered(self._seed ^ 3, number, self._known, self._setting.styles)
        count = 1 + number % 3
        random = mixed(self._seed, number)
        changed = [drawn[(random >> (16 * place)) % len(drawn)] for place in range(count if drawn else 0)]
        world = run.world.with_fixed({key: other.bits(key, kind) for key, (kind, _) in changed})
        return self._tried(world)

    def _next(self, wanted: frozenset[int], given_up: set[tuple[int, int]]) -> tuple[int, int] | None:
        entered = {block for run in self.found.runs for block in run.trace.blocks}
        left = [
            (block, following)
            for block in sorted(entered)
            for following in self._successors.get(block, ())
            if (block, following) not in self.found.edges and (block, following) not in given_up
        ]
        missing = wanted - entered
        return min(
            left, key=lambda edge: (not missing & self._behind(edge[1]), edge[1] in entered), default=None
        )

    def _behind(self, block: int) -> set[int]:
        """Return the blocks reachable from a block, itself included."""
        found: set[int] = set()
        waiting = [block]
        while waiting:
            reached = waiting.pop()
            if reached not in found:
                found.add(reached)
                waiting += self._successors[reached]
        return found

    def _solved(self, edge: tuple[int, int]) -> bool:
        origins = [run for run in self.found.runs if edge[0] in run.trace.blocks]
        origins.sort(key=lambda run: run.trace.steps)
        pairs = [
            (run, observed, _near(other))
            for run in origins[:_ORIGINS]
            for first, second in self._compared(run, edge[0])
            for observed, other in ((first, second), (second, first))
        ]
        changes = self._changes(pairs, origins[:_ORIGINS])
        return self._steered(changes, _TRIES_OF_EDGE, lambda: edge in self.found.edges)

    def stress(self, cases: Mapping[str, Sequence[str]]) -> None:
        """Change worlds so that operands take values at which similar operations differ.

        Args:
            cases: Wanted cases by result; the code watches these results.
        """
        for name, wanted in cases.items():
            for case in wanted:
                if self.found.features[name, case] < _ENOUGH:
                    self._provoke(name, case)
                self._surround(name, case)

    def _provoke(self, name: str, case: str) -> None:
        origins = [run for run in self.found.runs if name in run.trace.operands]
        origins.sort(key=lambda run: run.trace.steps)
        pairs: list[tuple[Run, Value, Sequence[Value]]] = []
        for run in origins[:_ORIGINS]:
            operands, sign = run.trace.operands[name]
            pairs += [(run, operands[place], [value]) for place, value in wished(case, operands, sign)]
        changes = self._changes(pairs, origins[:_ORIGINS])
        self._steered(changes, _TRIES_OF_CASE, lambda: self.found.features[name, case] >= _ENOUGH)

    def _surround(self, name: str, case: str) -> None:
        """Run worlds in which a case arises with other values changed, which may reveal its effect."""
        origins = [run for run in self.found.runs if (name, case) in run.trace.features]
        origins.sort(key=lambda run: run.trace.steps)
        for number in range(_AROUND if origins and self._spent <= 1.0 else 0):
            self.varied(origins[number % min(len(origins), _ORIGINS)], number)

    def _changes(
        self, pairs: Sequence[tuple[Run, Value, Sequence[Value]]], origins: Sequence[Run]
    ) -> Iterator[tuple[Run, Change]]:
        """Yield changes of worlds, the most promising first.

        Args:
            pairs: Runs, each with the value of an operand and its wanted values.
            origins: The runs.
        """
        for way in (replacing, shifting):
            yield from (
                (run, change) for run, value, wanted in pairs for change in way(run.trace, value, wanted)
            )
        yield from ((run, change) for run in origins for change in redrawing(run.trace, run.world))

    def _steered(
        self, changes: Iterable[tuple[Run, Change]], tries: int, arrived: Callable[[], bool]
    ) -> bool:
        """Try changed worlds; say whether `arrived` holds after one of them."""
        for run, fixed in islice(changes, tries):
            if self._tries >= self._setting.tries or self._spent > 1.0:
                return False
            self._tries += 1
            self._tried(run.world.with_fixed(fixed), only_new=True)
            if arrived():
                return True
        return False

    def _compared(self, run: Run, block: int) -> Iterator[tuple[Value, Value]]:
        """Yield the operands of the comparisons that decide the branch at the end of a block."""
        code, last = self._ends[block]
        if last.opcode == "switch":
            held, _ = run.trace.seen.get(f"switch {block}", (None, None))
            for case in last.rest.partition("[")[2].split(", label")[:-1]:
                text = case.rpartition(" ")[2]
                yield held, int(text == "true") if text in ("true", "false") else int(text)
            return
        waiting, seen = list(map(code.label, last.operands[:1])), set[str]()
        while waiting and len(seen) < 16:
            name = waiting.pop(0)
            made = self._made.get(name)
            if made is None or name in seen:
                continue
            seen.add(name)
            if name in run.trace.seen:
                yield run.trace.seen[name]
            if made.opcode in _TRANSPARENT:
                waiting += map(code.label, made.operands)

    def _tried(self, world: World, only_new: bool = False) -> Run | None:
        """Run the function in a world; keep and return the run if its behaviour is defined."""
        machine = self._setting.starts(self._program, world, self._patience, None, False)
        self.steps += self._setting.run_steps
        try:
            trace = machine.run(self._code)
            if trace.vague:
                self._setting.starts(self._program, world, 2 * self._patience, trace, True).run(self._code)
        except (Undefined, Unsupported, Endless) as error:
            self.steps += self._patience - max(machine.steps, 0) + machine.work
            self.found.failures[str(error)] += 1
            return None
        except Differs:
            self.steps += self._patience - max(machine.steps, 0) + machine.work
            self.found.failures["its behaviour depends on undefined values"] += 1
            return None
        self.steps += trace.steps * (2 if trace.vague else 1)
        run = Run(world, trace)
        rare = any(self.found.features[feature] < _ENOUGH for feature in trace.features)
        if not self.found.runs:
            self._vain = self.steps
        if not only_new or rare or trace.edges - self.found.edges:
            self.found.runs.append(run)
            self.found.edges |= trace.edges
            self.found.features.update(trace.features)
        return run


def _near(value: Value) -> Sequence[Value]:
    """Return a value and its neighbours."""
    if isinstance(value, float):
        return (value, value * 2 + 1, value - 1, float("nan"))
    return (value, value + 1, value - 1) if isinstance(value, int) else ()
