"""Verify the rewrite rules of tensor graphs on odd instances, in ONNX Runtime and in numpy.

Each instance of a rule's pattern is made odd in up to four ways: sizes of 0 and 1, broadcast operands, other
ranks, axes, orders, attributes, types and operators, constants at the edge of their type, operands used
twice, inner values that are outputs. Instances that ONNX Runtime runs without optimisation are rewritten
wherever the rule applies, and run again. A faulty instance is reduced to the fewest odd changes that show the
fault.

    python fuzz/graph_rules.py --seconds 600
    python fuzz/graph_rules.py --count 2000 --rules conv-sum split-batch-product

It runs until stopped, or as long as `--seconds` and `--count` allow, prints the smallest instance of each
fault as an ONNX model, and exits with 1 if there is any.
"""

import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import tyro
from graph_fuzzing.apart import Apart, Died
from graph_fuzzing.odd import Odd, plain
from graph_fuzzing.perturbed import perturbed
from graph_fuzzing.rule_checks import Checked, Fault, built, checked

from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Node
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.rewriting.rule import Rule
from irgym.envs.graph.rules.catalogue import RULES
from irgym.envs.graph.task import block_of
from irgym.measure.target import target_of

MOST = 4
"""Greatest number of odd changes to an instance."""

BLOCK = block_of(target_of(None))
"""Channels of a block in the layout of ONNX Runtime's nchwc operators on this machine."""

SHRINKS = 60
"""Number of instances tried to reduce a faulty one."""


@dataclass(frozen=True)
class Options:
    """Options of a run."""

    rules: tuple[str, ...] = ()
    """Names of rules; by default all."""
    count: int | None = None
    """Instances of each rule."""
    seconds: float | None = None
    """Seconds to run."""
    seed: int = 0
    """Seed of all instances."""
    first: int = 0
    """Number of the first instance."""


@dataclass
class Tally:
    """Results of instances, by rule.

    Attributes:
        tried: Number of instances.
        valid: Number of instances that ONNX Runtime runs.
        applied: Number of sites where the rule applied.
        faults: The faults.
    """

    tried: Counter[str] = field(default_factory=Counter[str])
    valid: Counter[str] = field(default_factory=Counter[str])
    applied: Counter[str] = field(default_factory=Counter[str])
    faults: dict[str, list[tuple[Odd, Fault]]] = field(default_factory=dict)


def drawn(rule: Rule, seed: int, number: int) -> tuple[Odd, np.random.Generator, int]:
    """Return a sample of a rule, a generator to make it odd, and the number of odd changes."""
    rng = np.random.default_rng((seed, zlib.crc32(rule.name.encode()), number))
    return plain(rule, rng), rng, int(rng.integers(MOST + 1))


def instance(rule: Rule, seed: int, number: int, ways: int | None = None) -> Odd:
    """Return an odd sample of a rule."""
    odd, rng, count = drawn(rule, seed, number)
    for _ in range(count if ways is None else min(ways, count)):
        odd = perturbed(odd, rng)
    return odd


class Checker:
    """Checks instances of rules in a separate process.

    Args:
        rules: The rules.
    """

    def __init__(self, rules: Sequence[Rule] = RULES) -> None:
        self._rules = {rule.name: rule for rule in rules}
        self._apart = Apart(self._check)

    def _check(self, note: Callable[[str], None], name: str, *which: int | None) -> Checked:
        rule = self._rules[name]
        return checked(note, rule, instance(rule, *which), BLOCK)

    def close(self) -> None:
        """End the process."""
        self._apart.close()

    def __call__(self, rule: Rule, seed: int, number: int, ways: int | None = None) -> Checked:
        """Check one instance of a rule."""
        try:
            return self._apart(rule.name, seed, number, ways)
        except Died as error:
            if not error.stage:
                return Checked(False)  # ONNX Runtime dies of the instance itself
            built_ = built(rule, instance(rule, seed, number, ways), BLOCK)
            fault = None if built_ is None else Fault("death", "ONNX Runtime dies of it", built_.graph)
            return Checked(True, 1, fault)


def smallest(check: Checker, rule: Rule, seed: int, number: int, fault: Fault) -> tuple[Odd, Fault]:
    """Return the instance with the fewest odd changes that shows a fault of the same kind."""
    best = instance(rule, seed, number), fault
    for ways in range(MOST):
        odd = instance(rule, seed, number, ways)
        other = check(rule, seed, number, ways).fault
        if other is not None and other.kind == fault.kind:
            best = odd, other
            break
    for attempt in range(SHRINKS):
        # Other samples with as few odd things: the smallest of those that fail alike.
        which = seed + 1 + attempt, number, max(1, len(best[0].steps))
        odd = instance(rule, *which)
        if len(odd.steps) > len(best[0].steps):
            continue
        other = check(rule, *which).fault
        if other is not None and other.kind == fault.kind and _weight(odd, other) < _weight(*best):
            best = odd, other
    return best


def _weight(odd: Odd, fault: Fault) -> tuple[int, int]:
    sizes = sum(kind.size for kind in fault.graph.types.values())
    return len(odd.steps), sizes


def numbers(options: Options) -> Iterator[int]:
    """Yield the numbers of instances until the time is up."""
    end = None if options.seconds is None else time.monotonic() + options.seconds
    number = options.first
    while (options.count is None or number < options.first + options.count) and (
        end is None or time.monotonic() < end
    ):
        yield number
        number += 1


def shown(odd: Odd, fault: Fault, number: int) -> str:
    """Return a description of a fault, with the model."""
    arrays = {name: weight.array for name, weight in fault.graph.weights.items() if hasattr(weight, "array")}
    parts = [
        f"  number {number}: {fault.kind}: {fault.detail}",
        f"  odd: {'; '.join(odd.steps) or 'nothing'}",
    ]
    for title, graph in (("before", fault.graph), ("after", fault.after)):
        if graph is not None:
            lines = [
                f"    {', '.join(node.outputs)} = {node.operator}({', '.join(node.inputs)})"
                f" {dict(node.attributes)} {[f'{t.dtype}{list(t.shape)}' for t in _types(graph, node)]}"
                for node in graph.order
            ]
            parts.append(f"  {title}:\n" + "\n".join(lines))
    few = {name: array.ravel()[:4].tolist() for name, array in arrays.items()}
    return "\n".join([*parts, f"  weights: {few}"])


def _types(graph: Graph, node: Node) -> list[TensorType]:
    return [graph.types[name] for name in (*node.operands, *node.results) if name in graph.types]


def main() -> None:
    options = tyro.cli(Options, description=__doc__)
    check = Checker()
    rules = [rule for rule in RULES if not options.rules or rule.name in options.rules]
    tally = Tally()
    started = time.monotonic()
    try:
        for number in numbers(options):
            for rule in rules:
                tried(check, tally, rule, options.seed, number)
    except KeyboardInterrupt:
        print("stopped")
    total = sum(tally.tried.values())
    print(
        f"{len(rules)} rules, {total} instances, {sum(tally.valid.values())} that ONNX Runtime runs,"
        f" {sum(tally.applied.values())} places; {time.monotonic() - started:.0f} s"
    )
    never = [rule.name for rule in rules if not tally.applied[rule.name]]
    print(f"never applied: {', '.join(never) or 'none'}")
    print(f"{sum(map(len, tally.faults.values()))} faults of {len(tally.faults)} rules")
    sys.exit(1 if tally.faults else 0)


def tried(check: Checker, tally: Tally, rule: Rule, seed: int, number: int) -> None:
    """Check an instance, and add the result to the tally."""
    result = check(rule, seed, number)
    tally.tried[rule.name] += 1
    tally.valid[rule.name] += result.valid
    tally.applied[rule.name] += result.sites
    if result.fault is None:
        return
    known = tally.faults.setdefault(rule.name, [])
    if result.fault.kind in {fault.kind for _, fault in known}:
        return
    known.append(smallest(check, rule, seed, number, result.fault))
    print(f"{rule.name}\n{shown(*known[-1], number)}", flush=True)


if __name__ == "__main__":
    main()
