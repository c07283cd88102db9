"""Random rewrites of models of all families: no unsound graph, no wrong result, no two graphs of one digest.

Each sequence draws a rule among those that apply, then a place for it, a random number of times; every other
time among those that only other rules made possible, where there are some. On the way:
- sites kept from step to step are those found anew; a state is not changed by what follows from it;
- the graph fits together, without circles; types are those that ONNX infers;
- graphs of equal digests compute the same things, each as often, by another algorithm; renamed ones have
  equal digests, and those that differ in an attribute, an operator, an operand or a weight have others;
- the schedule, parsed and replayed by a task of its own, gives the same graph with the same names.
The last graph of each is compared with the model as written: in ONNX Runtime, and in double precision in
numpy where that knows all its operators. A sequence is drawn by the seed, the program and its number alone,
so that a run can be split, and a failure repeated: `--families dalle --first 17 --sequences 1`.

    python fuzz/graph_fuzz.py --sequences 5000
    python fuzz/graph_fuzz.py --sequences 3200 --steps 8 --instances
"""

import hashlib
import sys
import time
import traceback
import zlib
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import tyro
from graph_fuzzing.doubles import Doubles, computed, doubled
from graph_fuzzing.instances import written
from graph_fuzzing.programs import HEAVY, PROGRAMS
from graph_fuzzing.structure import check_structure, check_types, mutants, renamed, same
from numpy.typing import NDArray

from irgym.base.errors import ProgramError
from irgym.core.actions import Action
from irgym.core.cost import Validation
from irgym.core.schedule import Schedule, replay
from irgym.envs.graph.actions import RULES
from irgym.envs.graph.checking.checks import feeds_of
from irgym.envs.graph.environment import GRAPH, RUNNING
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.reference.calls import OperatorError
from irgym.envs.graph.rewriting.verification import error_of
from irgym.envs.graph.running.artefacts import model_at
from irgym.envs.graph.running.toolchain import toolchain
from irgym.envs.graph.state import GraphState
from irgym.envs.graph.task import GraphTask, block_of
from irgym.measure.isolation.child import Child, Returned
from irgym.measure.target import target_of

Array = NDArray[Any]

FEWER = 6
"""How many times fewer sequences heavy families have."""

CHECKED = 0.4
"""Share of the states on the way that are checked; the last one of a sequence always is."""

CLOSE = 1e-6
"""Greatest difference in double precision, as a share of the greatest: numbers in rules have 24 bits."""

GROWN = 600
"""Operators from which on a sequence ends: some rules make many of few."""


@dataclass(frozen=True)
class Options:
    """What to check."""

    sequences: int = 230
    """Random sequences over all programs."""
    first: int = 0
    """Number of the first sequence of each program."""
    steps: int = 25
    """Most rewrites of a sequence."""
    seed: int = 0
    """Seed of rewrites and inputs."""
    workers: int = 1
    """Processes."""
    families: tuple[str, ...] = ()
    """Families of models, or rules of instances; by default all."""
    instances: bool = False
    """Take instances of rules, an ONNX file for each, in the place of families: all rules have a place."""
    tiny: bool = False
    """Take the models of the data set `tiny` alone."""


@dataclass
class Tally:
    """What came of sequences.

    Attributes:
        counts: What was checked, by what it is.
        rules: How often each rule was taken.
        applied: How often each rule might have been.
        failures: What went wrong, with what repeats it.
        worst: Greatest error in ONNX Runtime, as a share of what is allowed, and in double precision.
        unknown: Operators that numpy does not know.
        print: Digest of all names and digests: equal for runs with equal options.
    """

    counts: Counter[str] = field(default_factory=Counter[str])
    rules: Counter[str] = field(default_factory=Counter[str])
    applied: Counter[str] = field(default_factory=Counter[str])
    failures: list[str] = field(default_factory=list[str])
    worst: tuple[float, float] = (0.0, 0.0)
    unknown: set[str] = field(default_factory=set[str])
    print: str = ""

    def add(self, other: "Tally") -> None:
        """Add what came of other sequences."""
        self.counts += other.counts
        self.rules += other.rules
        self.applied += other.applied
        self.failures += other.failures
        self.worst = max(self.worst[0], other.worst[0]), max(self.worst[1], other.worst[1])
        self.unknown |= other.unknown
        self.print = hashlib.sha256(f"{self.print}{other.print}".encode()).hexdigest()[:16]


class Fuzz:
    """Random sequences on one program.

    Args:
        uri: The program.
        options: What to check.
    """

    def __init__(self, uri: str, options: Options) -> None:
        self.task = GRAPH.task(uri) if uri.startswith("graph:") else _task_of(uri)
        one = self.task
        self.other = GraphTask(one.uri, one.path, one.graph, one.target, one.threads, one.toolchain)
        self.options = options
        self.tally = Tally()
        self.weights = model_at(self.task.path).weights
        self.doubles = Doubles(self.weights)
        self.feeds = {name: doubled(array) for name, array in feeds_of(self.task.path, options.seed).items()}
        self.expected = self.in_doubles(self.task.graph)
        self.met: dict[str, Graph] = {}
        self.at_first = {kind for kind, _ in self.task.mask(self.task.initial()).candidates}

    def in_doubles(self, graph: Graph) -> list[Array] | None:
        """Return a graph's results in double precision; None where numpy does not know an operator."""
        try:
            return computed(graph, self.doubles, self.feeds, self.task.finder.block)
        except OperatorError as error:
            self.tally.unknown.add(str(error))
            return None

    def run(self, child: Child, number: int) -> None:
        """Check a sequence; what goes wrong is noted in the tally."""
        rng = np.random.default_rng((self.options.seed, zlib.crc32(self.task.uri.encode()), number))
        states, taken = [self.task.initial()], list[Action]()
        try:
            self.drawn(rng, states, taken)
            self.check_state(rng, states[-1])
            self.check_replay(states, taken)
            self.check_results(child, states, taken)
        except Exception as error:  # noqa: BLE001 - every failure is one of what is checked, and the rest goes on
            text = Schedule(tuple(taken)).text(self.task.space)
            place = traceback.extract_tb(error.__traceback__)[-1]
            said = f"{type(error).__name__} in {place.name}: {error}".partition("\n")[0]
            self.failed(f"number {number}, {said}\n    {text}")
        names = [f"{state.digest} {' '.join(state.graph.nodes)}" for state in states]
        whole = self.tally.print + "\n".join(names)
        self.tally.print = hashlib.sha256(whole.encode()).hexdigest()[:16]
        self.tally.counts["sequences"] += 1

    def failed(self, said: str) -> None:
        """Note a failure."""
        self.tally.failures.append(f"{self.task.uri} {said}")
        print(f"  FAILED {self.tally.failures[-1]}", flush=True)

    def drawn(self, rng: np.random.Generator, states: list[GraphState], taken: list[Action]) -> None:
        """Append random rewrites and the states after them, which are checked."""
        for _ in range(int(rng.integers(1, self.options.steps + 1))):
            state = states[-1]
            by_rule: dict[int, list[str]] = {}
            for kind, name in self.task.mask(state).candidates:
                by_rule.setdefault(kind, []).append(name)
            if not by_rule or len(state.graph.nodes) > GROWN:
                return
            self.tally.applied.update(self.task.space.kinds[kind].name for kind in by_rule)
            later = sorted(by_rule.keys() - self.at_first) if rng.integers(2) else []
            kinds = later or sorted(by_rule)
            kind = kinds[int(rng.integers(len(kinds)))]
            name = by_rule[kind][int(rng.integers(len(by_rule[kind])))]
            taken.append(Action(kind, candidate=name))
            self.tally.rules[self.task.space.kinds[kind].name] += 1
            before = _snapshot(self.task, state)
            states.append(self.task.step(state, taken[-1]))
            assert _snapshot(self.task, state) == before, "a step changed the state before it"
            self.tally.counts["steps"] += 1
            if rng.random() < CHECKED:
                self.check_state(rng, states[-1])

    def check_state(self, rng: np.random.Generator, state: GraphState) -> None:
        """Check a state against what is found without those before it."""
        self.tally.counts["states"] += 1
        anew = replace(state, sites=self.task.finder.all(state.graph))
        kept, found = self.task.candidates(state), self.task.candidates(anew)
        assert kept.keys() == found.keys(), f"sites kept and found: {set(kept) ^ set(found)}"
        assert kept == found, "sites that are kept are not those that are found"
        check_structure(state.graph)
        self.tally.counts["types"] += check_types(state.graph, self.weights)
        assert replace(state.graph).digest == state.digest, "the digest depends on what was seen before"
        met = self.met.setdefault(state.digest, state.graph)
        if met is not state.graph:
            self.tally.counts["equal digests"] += 1
            assert same(met, state.graph, self.weights, wired=False), "equal digests of graphs that differ"
        if rng.integers(4) == 0:
            self.check_digest(rng, state)

    def check_digest(self, rng: np.random.Generator, state: GraphState) -> None:
        """Check that names do not matter to a digest, and everything else does."""
        other = renamed(state.graph, rng)
        assert same(other, state.graph, self.weights), "a renamed graph is another"
        assert other.digest == state.digest, "names matter to the digest"
        for what, mutant in mutants(state.graph, self.weights, rng):
            self.tally.counts["mutants"] += 1
            alike = same(mutant, state.graph, self.weights, wired=False)
            equal = mutant.digest == state.digest
            assert alike or not equal, f"equal digests with another {what}"

    def check_replay(self, states: list[GraphState], taken: list[Action]) -> None:
        """Check that a schedule's text leads a task that saw nothing else to the same state."""
        text = Schedule(tuple(taken)).text(self.task.space)
        again = replay(self.other, Schedule.parse(text, self.other.space))
        assert again == states[-1], "replay leads to another state"
        assert again.graph.nodes == states[-1].graph.nodes, "replay leads to other nodes"
        assert list(again.graph.nodes) == list(states[-1].graph.nodes), "replay keeps nodes in another order"
        assert self.other.mask(again).candidates == self.task.mask(states[-1]).candidates, (
            "replay leads to other sites"
        )

    def check_results(self, child: Child, states: list[GraphState], taken: list[Action]) -> None:
        """Check what a model computes; where it is wrong, the first rewrite that makes it so is named."""
        wrong = self.wrong(child, states[-1])
        if not wrong:
            return
        for state, action in zip(states[1:], taken, strict=True):
            if first := self.wrong(child, state):
                raise AssertionError(f"{self.task.space.text(action)}: {first}")
        raise AssertionError(f"{wrong}, and not again")

    def wrong(self, child: Child, state: GraphState) -> str:
        """Return what is wrong with a model's results; nothing where they are right."""
        got = None if self.expected is None else self.in_doubles(state.graph)
        if self.expected is not None and got is not None:
            error = max(error_of(a, b) for a, b in zip(self.expected, got, strict=True))
            if not error <= CLOSE:
                return f"off by {error:.1e} in double precision"
            self.tally.worst = self.tally.worst[0], max(self.tally.worst[1], error)
            self.tally.counts["in double precision"] += 1
        reply = child.call(self.task.validation(state, 1, self.options.seed))
        if got is not None and isinstance(reply, Returned) and not reply.value.ok:
            # What is allowed of a few numbers may happen to be too little: other inputs tell.
            self.tally.counts["on other inputs too"] += 1
            reply = child.call(self.task.validation(state, 1, self.options.seed + 1000))
        if not isinstance(reply, Returned) or not isinstance(reply.value, Validation):
            return f"not run: {reply}"
        if not reply.value.ok:
            return f"wrong in ONNX Runtime: {reply.value.detail}"
        self.tally.worst = max(self.tally.worst[0], reply.value.error), self.tally.worst[1]
        self.tally.counts["in ONNX Runtime"] += 1
        return ""


def _task_of(path: str) -> GraphTask:
    """Return the task of a model that is in the form that is kept."""
    name = Path(path).stem
    return GraphTask(name, path, model_at(path).graph, target_of(None), 1, toolchain())


def _snapshot(task: GraphTask, state: GraphState) -> tuple[object, ...]:
    """Return all that a state holds, by value."""
    graph = state.graph
    tables = (graph.nodes, graph.producers, graph.users, graph.types, graph.weights)
    copies = tuple(tuple(table.items()) for table in tables)
    return (*copies, graph.inputs, graph.outputs, state.digest, tuple(task.candidates(state).items()))


def fuzzed(work: Sequence[tuple[str, int]], options: Options) -> Tally:
    """Return what came of so many sequences on each of some programs."""
    total = Tally()
    with Child(RUNNING) as child:
        for uri, count in work:
            started = time.perf_counter()
            try:
                fuzz = Fuzz(uri, options)
            except ProgramError as error:
                total.counts["programs refused"] += 1
                print(f"{uri} is refused: {error}", flush=True)
                continue
            if said := fuzz.wrong(child, fuzz.task.initial()):
                total.counts["programs refused"] += 1
                print(f"{uri} is refused: {said}", flush=True)
                continue
            fuzz.tally.counts.clear()
            for number in range(options.first, options.first + count):
                fuzz.run(child, number)
            counts = ", ".join(f"{value} {name}" for name, value in fuzz.tally.counts.items())
            print(f"{uri}: {counts}; {time.perf_counter() - started:.0f} s", flush=True)
            total.add(fuzz.tally)
    return total


def programs(options: Options, folder: Path) -> list[str]:
    """Return the programs; those that are written for it go to a folder."""
    if options.instances:
        block = block_of(target_of(None))
        return [str(written(rule, options.seed, block, folder)) for rule in RULES]
    tiny = (*GRAPH.dataset("tiny").train, *GRAPH.dataset("tiny").test)
    every = [f"graph://{family}?{size}" for family, sizes in PROGRAMS.items() for size in sizes]
    return list(tiny) if options.tiny else every


def family_of(program: str) -> str:
    """Return a program's family; the rule of an instance."""
    return GRAPH.family(program) if program.startswith("graph:") else Path(program).stem


def shares(options: Options, folder: Path) -> list[tuple[str, int]]:
    """Return programs, and how many sequences each has."""
    found = programs(options, folder)
    if options.families:
        found = [uri for uri in found if family_of(uri) in options.families]
    if not found:
        sys.exit(f"no such family: choose among {', '.join(PROGRAMS)}")
    weights = np.array([1 if family_of(uri) in HEAVY else FEWER for uri in found])
    bounds = np.round(np.cumsum(weights) / weights.sum() * options.sequences).astype(int)
    counts = np.diff(bounds, prepend=0)
    return [(uri, int(count)) for uri, count in zip(found, counts, strict=True) if count]


def main() -> None:
    options = tyro.cli(Options, description=__doc__)
    started, total = time.perf_counter(), Tally()
    with TemporaryDirectory() as folder:
        work = shares(options, Path(folder))
        if options.workers == 1:
            total = fuzzed(work, options)
        else:
            parts = [work[place :: options.workers] for place in range(options.workers)]
            with ProcessPoolExecutor(options.workers) as pool:
                for tally in pool.map(partial(fuzzed, options=options), parts):
                    total.add(tally)
    rules = [rule.name for rule in RULES]
    print(f"{len(work)} programs: " + ", ".join(f"{value} {name}" for name, value in total.counts.items()))
    print(f"{len(total.rules)} of {len(rules)} rules taken: {dict(total.rules.most_common())}")
    print(f"never possible: {', '.join(name for name in rules if name not in total.applied) or 'none'}")
    for said in sorted(total.unknown):
        print(f"not in double precision: {said}")
    print(
        f"greatest error {total.worst[0]:.2g} of what is allowed in ONNX Runtime, {total.worst[1]:.1e} of "
        f"the greatest value in double precision; fingerprint {total.print}"
    )
    print(f"{len(total.failures)} failures, {time.perf_counter() - started:.0f} s")
    sys.exit(1 if total.failures else 0)


if __name__ == "__main__":
    main()
