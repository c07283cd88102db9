"""Random rewrites, checked step by step: no unsound graph, wrong result or shared digest.

Each sequence repeatedly draws an applicable rule and then a site for it; every second time, the rule is one
that only earlier rewrites made applicable, if there is any. The checks on the way:
- the incremental sites equal the sites of a full search; later steps do not change a state;
- graphs are consistent and have no circles; types agree with those that ONNX infers;
- graphs with equal digests are isomorphic, by another algorithm; renamed graphs have equal digests, and
  graphs that differ in an attribute, an operator, an operand or a weight have different ones;
- the schedule, parsed and replayed by a new task, gives the same graph with the same names.
The last graph of each sequence is compared with the original model: in ONNX Runtime, and in numpy in float64
if the reference supports all operators.
"""

import hashlib
import traceback
from collections import Counter
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuzz.fuzzer import Tally
from fuzz.graph.making.doubles import Doubles, computed, doubled
from fuzz.graph.making.instances import written
from fuzz.graph.making.programs import HEAVY, PROGRAMS
from fuzz.graph.making.structure import check_structure, check_types, mutants, renamed, same
from irgym.base.errors import ProgramError
from irgym.core.actions import Action
from irgym.core.cost import Validation
from irgym.core.schedule import Schedule, replay
from irgym.envs.graph.checking.problems import feeds_of
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

SEQUENCES = 3
"""Sequences of a seed, all of one program."""

STEPS = 25
"""Greatest number of rewrites in a sequence."""

STEPS_OF_INSTANCES = 8
"""Greatest number of rewrites in a sequence that starts from an instance of a rule."""

FEWER = 6
"""Factor by which heavy families have fewer sequences."""

CHECKED = 0.4
"""Share of the intermediate states that are checked; the last state always is."""

CLOSE = 1e-6
"""Greatest accepted difference in float64, relative to the greatest value: numbers in rules have 24 bits."""

GROWN = 600
"""Number of operators at which a sequence ends: some rules multiply operators."""


class Fuzz:
    """Random sequences on a program.

    Attributes:
        tally: Results of the sequences.
        print: Digest of all names and digests: equal in every process.

    Args:
        uri: The program, or the path of an instance of a rule.
        seed: Seed of rewrites and inputs.
    """

    def __init__(self, uri: str, seed: int) -> None:
        self.task = GRAPH.task(uri) if uri.startswith("graph:") else _task_of(uri)
        task = self.task
        self.other = GraphTask(task.uri, task.path, task.graph, task.target, task.threads, task.toolchain)
        self.seed = seed
        self.steps = STEPS if uri.startswith("graph:") else STEPS_OF_INSTANCES
        self.tally = Tally()
        self.print = ""
        self.weights = model_at(self.task.path).weights
        self.doubles = Doubles(self.weights)
        self.feeds = {name: doubled(array) for name, array in feeds_of(self.task.path, seed).items()}
        self.expected = self.in_doubles(self.task.graph)
        self.met: dict[str, Graph] = {}
        self.at_first = {kind for kind, _ in self.task.mask(self.task.initial()).candidates}

    def in_doubles(self, graph: Graph) -> list[Array] | None:
        """Return the results of a graph in float64; None if the reference does not support an operator."""
        try:
            return computed(graph, self.doubles, self.feeds, self.task.finder.block)
        except OperatorError as error:
            self.tally.reach("operators not in double precision", [str(error)])
            return None

    def run(self, child: Child, number: int) -> None:
        """Run and check a sequence."""
        rng = np.random.default_rng((self.seed, number))
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
            self.tally.add("failed", f"{self.task.uri} {text!r}: {said}")
        else:
            self.tally.add("right")
        names = [f"{state.digest} {' '.join(state.graph.nodes)}" for state in states]
        self.print = hashlib.sha256((self.print + "\n".join(names)).encode()).hexdigest()[:16]

    def drawn(self, rng: np.random.Generator, states: list[GraphState], taken: list[Action]) -> None:
        """Append random rewrites and the states after them, and check the states."""
        for _ in range(int(rng.integers(1, self.steps + 1))):
            state = states[-1]
            by_rule: dict[int, list[str]] = {}
            for kind, name in self.task.mask(state).candidates:
                by_rule.setdefault(kind, []).append(name)
            if not by_rule or len(state.graph.nodes) > GROWN:
                return
            later = sorted(by_rule.keys() - self.at_first) if rng.integers(2) else []
            kinds = later or sorted(by_rule)
            kind = kinds[int(rng.integers(len(kinds)))]
            name = by_rule[kind][int(rng.integers(len(by_rule[kind])))]
            taken.append(Action(kind, candidate=name))
            self.tally.reach("rules", [self.task.space.kinds[kind].name])
            before = _snapshot(self.task, state)
            states.append(self.task.step(state, taken[-1]))
            assert _snapshot(self.task, state) == before, "a step changed the state before it"
            self.tally.notes["steps"] += 1
            if rng.random() < CHECKED:
                self.check_state(rng, states[-1])

    def check_state(self, rng: np.random.Generator, state: GraphState) -> None:
        """Check a state against one computed from its graph alone."""
        self.tally.notes["states"] += 1
        anew = replace(state, sites=self.task.finder.all(state.graph))
        kept, found = self.task.candidates(state), self.task.candidates(anew)
        assert kept.keys() == found.keys(), f"sites kept and found: {set(kept) ^ set(found)}"
        assert kept == found, "sites that are kept are not those that are found"
        check_structure(state.graph)
        self.tally.notes["types"] += check_types(state.graph, self.weights)
        assert replace(state.graph).digest == state.digest, "the digest depends on what was seen before"
        met = self.met.setdefault(state.digest, state.graph)
        if met is not state.graph:
            self.tally.notes["equal digests"] += 1
            assert same(met, state.graph, self.weights, wired=False), "equal digests of graphs that differ"
        if rng.integers(4) == 0:
            self.check_digest(rng, state)

    def check_digest(self, rng: np.random.Generator, state: GraphState) -> None:
        """Check that a digest depends on everything except names."""
        other = renamed(state.graph, rng)
        assert same(other, state.graph, self.weights), "a renamed graph is another"
        assert other.digest == state.digest, "names matter to the digest"
        for what, mutant in mutants(state.graph, self.weights, rng):
            self.tally.notes["mutants"] += 1
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
            self.tally.notes["in double precision"] += 1
        reply = child.call(self.task.validation(state, 1, self.seed))
        if got is not None and isinstance(reply, Returned) and not reply.value.ok:
            # What is allowed of a few numbers may happen to be too little: other inputs tell.
            self.tally.notes["on other inputs too"] += 1
            reply = child.call(self.task.validation(state, 1, self.seed + 1000))
        if not isinstance(reply, Returned) or not isinstance(reply.value, Validation):
            return f"not run: {reply}"
        if not reply.value.ok:
            return f"wrong in ONNX Runtime: {reply.value.detail}"
        self.tally.notes["in ONNX Runtime"] += 1
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


def program(rng: np.random.Generator, seed: int, folder: Path) -> str:
    """Return a model of a family or, for even seeds, an instance of a rule, which has a site of it."""
    if seed % 2 == 0:
        rule = RULES[int(rng.integers(len(RULES)))]
        return str(written(rule, seed, block_of(target_of(None)), folder))
    tiny = (*GRAPH.dataset("tiny").train, *GRAPH.dataset("tiny").test)
    sized = {f"graph://{family}?{size}": family for family, sizes in PROGRAMS.items() for size in sizes}
    every = (*tiny, *sized)
    weights = np.array([1.0 if sized.get(uri) in HEAVY else FEWER for uri in every])
    return str(rng.choice(every, p=weights / weights.sum()))


def fuzzed(seed: int) -> Fuzz | None:
    """Run the sequences of a seed; return None if their program is refused."""
    rng = np.random.default_rng(seed)
    with TemporaryDirectory() as folder, Child(RUNNING) as child:
        uri = program(rng, seed, Path(folder))
        try:
            made = Fuzz(uri, seed)
        except ProgramError:
            return None
        if made.wrong(child, made.task.initial()):
            return None
        made.tally.notes.clear()
        for number in range(SEQUENCES):
            made.run(child, number)
    return made


def run(seed: int) -> Tally:
    """Run sequences of rewrites on a program."""
    made = fuzzed(seed)
    return Tally(notes=Counter({"programs refused": 1})) if made is None else made.tally
