"""Worlds in which a function runs, found so that its branches are taken.

Worlds are drawn first. Then those that reach a branch never taken are changed, one made-up value at a time:
values that stand in a comparison are replaced by what they are compared with, and by what is next to it
(input-to-state correspondence: Aschermann et al., REDQUEEN, NDSS 2019).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from irgym.envs.cse.checking.numbers import Known, mixed
from irgym.envs.cse.checking.steering import Change, redrawing, replacing, shifting
from irgym.envs.cse.checking.world import STYLES, World
from irgym.envs.cse.interpreter.machine import Machine
from irgym.envs.cse.interpreter.numbers import Value
from irgym.envs.cse.interpreter.poison import Endless, Undefined, Unsupported
from irgym.envs.cse.interpreter.program import Code, Program
from irgym.envs.cse.interpreter.traces import Differs, Trace
from irgym.envs.cse.interpreter.watching import Feature, wished
from irgym.envs.cse.ir.instruction import Instruction

STEPS = 4_000
"""Instructions that a run may take."""

PATIENT = 50_000
"""The same where no run has ended so far."""

DRAWN, TRIES, ALL_STEPS = 24, 400, 300_000
"""Worlds that are drawn for each input, changed worlds at most, and instructions that all runs may take."""

_TRIES_OF_EDGE, _TRIES_OF_CASE, _ORIGINS = 64, 32, 6
_ENOUGH, _AROUND = 6, 12
_TRANSPARENT = frozenset(("and", "or", "xor", "select", "freeze", "zext", "trunc", "icmp"))


@dataclass(frozen=True)
class Run:
    """A world, and what the function did there."""

    world: World
    trace: Trace


@dataclass
class Explored:
    """What was found.

    Attributes:
        runs: Runs whose behaviour is defined, in the order in which they were found.
        edges: Branches that were taken in them.
        features: Cases that arose in them, and in how many.
        failures: Why other runs do not count, and how many.
    """

    runs: list[Run] = field(default_factory=list[Run])
    edges: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    features: Counter[Feature] = field(default_factory=Counter[Feature])
    failures: Counter[str] = field(default_factory=Counter[str])


class Explorer:
    """Finds worlds for a function.

    Args:
        program: Its module.
        code: The function.
        known: Numbers in its code.
        seed: Seed of the worlds.

    Attributes:
        steps: Instructions that ran, about.
        found: What was found.
    """

    def __init__(self, program: Program, code: Code, known: Known, seed: int) -> None:
        self._program = program
        self._code = code
        self._known = known
        self._seed = seed
        self._made: Mapping[str, Instruction] = {one.result: one for _, one in code.function if one.result}
        self.steps = 0
        self._tries = 0
        self._patience = STEPS
        self.found = Explored()

    @property
    def branches(self) -> int:
        """How many branches there are: ways out of blocks that have several."""
        return sum(len(one) for one in self._code.function.successors if len(one) > 1)

    @property
    def taken(self) -> int:
        """How many of them were taken."""
        successors = self._code.function.successors
        return sum(len(successors[block]) > 1 for block, _ in self.found.edges)

    def draw(self, worlds: Iterable[int]) -> None:
        """Run the function in worlds by their numbers."""
        for number in worlds:
            if self.steps > ALL_STEPS and (self.found.runs or self._patience >= PATIENT):
                return
            if number == len(STYLES) and not self.found.runs:
                self._patience = PATIENT
            self._tried(World.numbered(self._seed, number, self._known))

    def reach(self, wanted: Iterable[int] = ()) -> None:
        """Change worlds so that branches are taken that never were.

        Args:
            wanted: Blocks that matter most.
        """
        blocks = frozenset(wanted)
        given_up: set[tuple[int, int]] = set()
        while self.steps <= ALL_STEPS and self._tries < TRIES:
            edge = self._next(blocks, given_up)
            if edge is None:
                return
            if not self._solved(edge):
                given_up.add(edge)

    def focused(self, runs: Sequence[Run]) -> "Explorer":
        """Return an explorer that knows some runs only, to take branches anew from there."""
        other = Explorer(self._program, self._code, self._known, self._seed ^ 5)
        other._patience = self._patience
        other.found.runs += runs
        other.found.edges |= {edge for run in runs for edge in run.trace.edges}
        return other

    def varied(self, run: Run, number: int) -> Run | None:
        """Run the function in a changed world, with some made-up values others; None if that does not count.

        Args:
            run: Where the world comes from.
            number: Tells which values change, and to what.
        """
        drawn = list(run.trace.drawn.items())
        other = World.numbered(self._seed ^ 3, number, self._known)
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
            for following in self._code.function.successors[block]
            if (block, following) not in self.found.edges and (block, following) not in given_up
        ]
        missing = wanted - entered
        return min(
            left, key=lambda edge: (not missing & self._behind(edge[1]), edge[1] in entered), default=None
        )

    def _behind(self, block: int) -> set[int]:
        """Return the blocks that a block leads to."""
        found: set[int] = set()
        waiting = [block]
        while waiting:
            one = waiting.pop()
            if one not in found:
                found.add(one)
                waiting += self._code.function.successors[one]
        return found

    def _solved(self, edge: tuple[int, int]) -> bool:
        origins = [run for run in self.found.runs if edge[0] in run.trace.blocks]
        origins.sort(key=lambda run: run.trace.steps)
        pairs = [
            (run, one, _near(other))
            for run in origins[:_ORIGINS]
            for first, second in self._compared(run, edge[0])
            for one, other in ((first, second), (second, first))
        ]
        changes = self._changes(pairs, origins[:_ORIGINS])
        return self._steered(changes, _TRIES_OF_EDGE, lambda: edge in self.found.edges)

    def stress(self, cases: Mapping[str, Sequence[str]]) -> None:
        """Change worlds so that the operands of instructions are what sets operations apart.

        Args:
            cases: By result, the cases that are looked for; the code watches these.
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
        """Run worlds in which a case arises with something else changed: it may be hidden there."""
        origins = [run for run in self.found.runs if (name, case) in run.trace.features]
        origins.sort(key=lambda run: run.trace.steps)
        for number in range(_AROUND if origins and self.steps <= ALL_STEPS else 0):
            self.varied(origins[number % min(len(origins), _ORIGINS)], number)

    def _changes(
        self, pairs: Sequence[tuple[Run, Value, Sequence[Value]]], origins: Sequence[Run]
    ) -> Iterator[tuple[Run, Change]]:
        """Yield changes of worlds, the most promising first.

        Args:
            pairs: Runs, what an operand is there, and what it should be.
            origins: The runs.
        """
        for way in (replacing, shifting):
            yield from ((run, one) for run, value, wanted in pairs for one in way(run.trace, value, wanted))
        yield from ((run, one) for run in origins for one in redrawing(run.trace, run.world))

    def _steered(
        self, changes: Iterable[tuple[Run, Change]], tries: int, arrived: Callable[[], bool]
    ) -> bool:
        """Try changed worlds; say whether one does what is looked for."""
        for run, fixed in islice(changes, tries):
            if self._tries >= TRIES or self.steps > ALL_STEPS:
                return False
            self._tries += 1
            self._tried(run.world.with_fixed(fixed), only_new=True)
            if arrived():
                return True
        return False

    def _compared(self, run: Run, block: int) -> Iterator[tuple[Value, Value]]:
        """Yield the operands of the comparisons that decide how a block is left."""
        last = self._code.function.blocks[block].instructions[-1]
        if last.opcode == "switch":
            held, _ = run.trace.seen.get(f"switch {block}", (None, None))
            for case in last.rest.partition("[")[2].split(", label")[:-1]:
                text = case.rpartition(" ")[2]
                yield held, int(text == "true") if text in ("true", "false") else int(text)
            return
        waiting, seen = list(last.operands[:1]), set[str]()
        while waiting and len(seen) < 16:
            name = waiting.pop(0)
            made = self._made.get(name)
            if made is None or name in seen:
                continue
            seen.add(name)
            if name in run.trace.seen:
                yield run.trace.seen[name]
            if made.opcode in _TRANSPARENT:
                waiting += made.operands

    def _tried(self, world: World, only_new: bool = False) -> Run | None:
        """Run the function in a world, and keep the run if it is defined; return it then."""
        machine = Machine(self._program, world, self._patience)
        try:
            trace = machine.run(self._code)
            if trace.vague:
                Machine(self._program, world, 2 * self._patience, trace, turn=True).run(self._code)
        except (Undefined, Unsupported, Endless) as error:
            self.steps += self._patience - max(machine.steps, 0) + machine.work
            self.found.failures[str(error)] += 1
            return None
        except Differs:
            self.steps += self._patience - max(machine.steps, 0) + machine.work
            self.found.failures["what it does depends on undefined values"] += 1
            return None
        self.steps += trace.steps * (2 if trace.vague else 1)
        run = Run(world, trace)
        rare = any(self.found.features[one] < _ENOUGH for one in trace.features)
        if not only_new or rare or trace.edges - self.found.edges:
            self.found.runs.append(run)
            self.found.edges |= trace.edges
            self.found.features.update(trace.features)
        return run


def _near(value: Value) -> Sequence[Value]:
    """Return a value and those next to it."""
    if isinstance(value, float):
        return (value, value * 2 + 1, value - 1, float("nan"))
    return (value, value + 1, value - 1) if isinstance(value, int) else ()
