"""All rewrite rules of tensor graphs on odd instances, in ONNX Runtime and in numpy.

Each instance of a rule's pattern is made odd in up to four ways: sizes of 0 and 1, broadcast operands, other
ranks, axes, orders, attributes, types and operators, constants at the edge of their type, operands used
twice, inner values that are outputs. Instances that ONNX Runtime runs without optimisation are rewritten
wherever the rule applies, and run again. A faulty instance is reduced to the fewest odd changes that show the
fault, and printed as an ONNX model.
"""

import zlib
from collections.abc import Callable, Sequence
from contextlib import closing

import numpy as np

from fuzz.fuzzer import Tally
from fuzz.graph.making.apart import Apart, Died
from fuzz.graph.making.odd import Odd, plain
from fuzz.graph.making.perturbed import perturbed
from fuzz.graph.making.rule_checks import Checked, Fault, built, checked
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


def run(seed: int) -> Tally:
    """Check an instance of every rule."""
    tally = Tally()
    with closing(Checker()) as check:
        for rule in RULES:
            result = check(rule, 0, seed)
            said = ""
            if result.fault is not None:
                said = f"{rule.name}\n{shown(*smallest(check, rule, 0, seed, result.fault), seed)}"
            tally.add("instances that run" if result.valid else "instances that do not run", said)
            tally.notes["places"] += result.sites
            if result.sites:
                tally.reach("rules applied", [rule.name])
    return tally
