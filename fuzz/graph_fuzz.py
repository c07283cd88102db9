"""Random rewrites of models of all families: no unsound graph, no wrong result, no shared digest.

Each sequence repeatedly draws an applicable rule and then a site for it; every second time, the rule is one
that only earlier rewrites made applicable, if there is any. The checks on the way:
- the incremental sites equal the sites of a full search; later steps do not change a state;
- graphs are consistent and have no circles; types agree with those that ONNX infers;
- graphs with equal digests are isomorphic, by another algorithm; renamed graphs have equal digests, and
  graphs that differ in an attribute, an operator, an operand or a weight have different ones;
- the schedule, parsed and replayed by a new task, gives the same graph with the same names.
The last graph of each sequence is compared with the original model: in ONNX Runtime, and in numpy in float64
if the reference supports all operators. A sequence depends only on the seed, the program and its number, so
that a run can be split, and a failure repeated: `--families dalle --first 17 --sequences 1`.

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
from irgym.envs.graph.checking.checks import feeds_of
from irgym.envs.graph.environment import GRAPH, RUNNING
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.reference.calls import OperatorError
from irgym.envs.graph.rewriting.verification import error_of
from irgym.envs.graph.rules.catalogue import RULES
from irgym.envs.graph.running.artefacts import model_at
from irgym.envs.graph.running.toolchain import toolchain
from irgym.envs.graph.state import GraphState
from irgym.envs.graph.task import GraphTask, block_of
from irgym.measure.isolation.child import Child, Returned
from irgym.measure.target import target_of

Array = NDArray[Any]

FEWER = 6
"""Factor by which heavy families have fewer sequences."""

CHECKED = 0.4
"""Share of the intermediate states that are checked; the last state always is."""

CLOSE = 1e-6
"""Greatest accepted difference in float64, relative to the greatest value: numbers in rules have 24 bits."""

GROWN = 600
"""Number of operators at which a sequence ends: some rules multiply operators."""


@dataclass(frozen=True)
class Options:
    """Options of a run."""

    sequences: int = 230
    """Random sequences over all programs."""
    first: int = 0
    """Number of the first sequence of each program."""
    steps: int = 25
    """Greatest number of rewrites in a sequence."""
    seed: int = 0
    """Seed of rewrites and inputs."""
    workers: int = 1
    """Number of processes."""
    families: tuple[str, ...] = ()
    """Families of models, or rules of instances; by default all."""
    instances: bool = False
    """Use instances of rules, as ONNX files, instead of families: every rule has a site."""
    tiny: bool = False
    """Use only the models of the data set `tiny`."""


@dataclass
class Tally:
    """Results of sequences.

    Attributes:
        counts: Number of checks, by kind.
        rules: Number of rewrites by each rule.
        applied: Number of times that each rule was applicable.
        failures: Failures, with options to repeat them.
        worst: Greatest error in ONNX Runtime, relative to the accepted one, and in float64.
        unknown: Operators that the reference does not support.
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
        """Add the results of other sequences."""
        self.counts += other.counts
        self.rules += other.rules
        self.applied += other.applied
        self.failures += other.failures
        self.worst = max(self.worst[0], other.worst[0]), max(self.worst[1], other.worst[1])
        self.unknown |= other.unknown
        self.print = hashlib.sha256(f"{self.print}{other.print}".encode()).hexdigest()[:16]


class Fuzz:
    """Random sequences on a program.

    Args:
        uri: The program.
        options: Options of the run.
    """

    def __init__(self, uri: str, options: Options) -> None:
        self.task = GRAPH.task(uri) if uri.startswith("graph:") else _task_of(uri)
        task = self.task
        self.other = GraphTask(task.uri, task.path, task.graph, task.target, task.threads, task.toolchain)
        self.options = options
        self.tally = Tally()
        self.weights = model_at(self.task.path).weights
        self.doubles = Doubles(self.weights)
        self.feeds = {name: doubled(array) for name, array in feeds_of(self.task.path, options.seed).items()}
        self.expected = self.in_doubles(self.task.graph)
        self.met: dict[str, Graph] = {}
        self.at_first = {kind for kind, _ in self.task.mask(self.task.initial()).candidates}

    def in_doubles(self, graph: Graph) -> list[Array] | None:
        """Return the results of a graph in float64; None if the reference does not support an operator."""
        try:
            return computed(graph, self.doubles, self.feeds, self.task.finder.block)
        except OperatorError as error:
            self.tally.unknown.add(str(error))
            return None

    def run(self, child: Child, number: int) -> None:
        """Run and check a sequence; failures go to the tally."""
        rng = np.random.default_rng((self.options.seed, zlib.crc32(self.task.uri.encode()), number))
        states, taken = [self.task.initial()], list[Action]()
        try:
            self.drawn(rng, states, taken)
            self.check_state(rng, states[-1])
            self.check_replay(states, taken)
            self.check_results(child, states, taken)
        except Exception as error:  # noqa: BLE001 - any exception is a failure of this sequence only
            text = Schedule(tuple(taken)).text(self.task.space)
            place = traceback.extract_tb(error.__traceback__)[-1]
            said = f"{type(error).__name__} in {place.name}: {error}".partition("\n")[0]
            self.failed(f"number {number}, {said}\n    {text}")
        names = [f"{state.digest} {' '.join(state.graph.nodes)}" for state in states]
        whole = self.tally.print + "\n".join(names)
        self.tally.print = hashlib.sha256(whole.encode()).hexdigest()[:16]
        self.tally.counts["sequences"] += 1

    def failed(self, said: str) -> None:
        """Record a failure."""
        self.tally.failures.append(f"{self.task.uri} {said}")
        print(f"  FAILED {self.tally.failures[-1]}", flush=True)

    def drawn(self, rng: np.random.Generator, states: list[GraphState], taken: list[Action]) -> None:
        """Append random rewrites and the states after them, and check the states."""
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
        """Check a state against one computed from its graph alone."""
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
        """Check that a digest depends on everything except names."""
        other = renamed(state.graph, rng)
        assert same(other, state.graph, self.weights), "a renamed graph is another"
        assert other.digest == state.digest, "names matter to the digest"
        for what, mutant in mutants(state.graph, self.weights, rng):
            self.tally.counts["mutants"] += 1
            alike = same(mutant, state.graph, self.weights, wired=False)
            equal = mutant.digest == state.digest
            assert alike or not equal, f"equal digests with another {what}"

    def check_replay(self, states: list[GraphState], taken: list[Action]) -> None:
        """Check that the text of a schedule leads a new task to the same state."""
        text = Schedule(tuple(taken)).text(self.task.space)
        again = replay(self.other, Schedule.parse(text, self.other.space))
        assert again == states[-1], "replay leads to another state"
        assert again.graph.nodes == states[-1].graph.nodes, "replay leads to other nodes"
        assert list(again.graph.nodes) == list(states[-1].graph.nodes), "replay keeps nodes in another order"
        assert self.other.mask(again).candidates == self.task.mask(states[-1]).candidates, (
            "replay leads to other sites"
        )

    def check_results(self, child: Child, states: list[GraphState], taken: list[Action]) -> None:
        """Check the results of a model; if they are wrong, find the first rewrite at fault."""
        wrong = self.wrong(child, states[-1])
        if not wrong:
            return
        for state, action in zip(states[1:], taken, strict=True):
            if first := self.wrong(child, state):
                raise AssertionError(f"{self.task.space.text(action)}: {first}")
        raise AssertionError(f"{wrong}, and not again")

    def wrong(self, child: Child, state: GraphState) -> str:
        """Return what is wrong with the results of a model; empty if they are right."""
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
    """Return the task of a model that is stored in the form of opened models."""
    name = Path(path).stem
    return GraphTask(name, path, model_at(path).graph, target_of(None), 1, toolchain())


def _snapshot(task: GraphTask, state: GraphState) -> tuple[object, ...]:
    """Return the content of a state, by value."""
    graph = state.graph
    tables = (graph.nodes, graph.producers, graph.users, graph.types, graph.weights)
    copies = tuple(tuple(table.items()) for table in tables)
    return (*copies, graph.inputs, graph.outputs, state.digest, tuple(task.candidates(state).items()))


def fuzzed(work: Sequence[tuple[str, int]], options: Options) -> Tally:
    """Return the results of a number of sequences on each program."""
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
    """Return the programs; instances of rules are written to a folder."""
    if options.instances:
        block = block_of(target_of(None))
        return [str(written(rule, options.seed, block, folder)) for rule in RULES]
    tiny = (*GRAPH.dataset("tiny").train, *GRAPH.dataset("tiny").test)
    every = [f"graph://{family}?{size}" for family, sizes in PROGRAMS.items() for size in sizes]
    return list(tiny) if options.tiny else every


def family_of(program: str) -> str:
    """Return the family of a program, or the rule of an instance."""
    return GRAPH.family(program) if program.startswith("graph:") else Path(program).stem


def shares(options: Options, folder: Path) -> list[tuple[str, int]]:
    """Return programs with their numbers of sequences."""
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
