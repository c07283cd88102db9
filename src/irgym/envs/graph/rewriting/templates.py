"""Templates: functions that return similar rules, for groups of rules in `irgym.envs.graph.rules`."""

from collections.abc import Callable, Mapping

import numpy as np

from irgym.envs.graph.rewriting.rule import Rule, Sample
from irgym.envs.graph.rewriting.samples.operands import Rng

GREATEST = 3.4028234663852886e38
"""The greatest float32."""

FUSED_ACTIVATIONS: Mapping[str, tuple[str, str]] = {
    "Relu": ("", ""),
    "Sigmoid": ("", ""),
    "Tanh": ("", ""),
    "HardSwish": ("", ""),
    "LeakyRelu": (", alpha=alpha", "alpha"),
    "HardSigmoid": (", alpha=alpha, beta=beta", "alpha, beta"),
    "Clip": (", [low], [high]", f"low.number if low else -{GREATEST}, high.number if high else {GREATEST}"),
}
"""Activations that ONNX Runtime fuses into convolutions.

By operator: the pattern of its operands after the first, and its parameters in ONNX Runtime's order.
"""


def words(name: str) -> str:
    """Return the name of an operator in lower-case words joined by hyphens."""
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("-")


def fusing(
    name: str,
    operator: str,
    fused: str,
    prefix: str,
    sample: Callable[[Rng], Sample],
    source: str,
) -> Rule:
    """Return the rule that fuses an activation into the convolution before it.

    Args:
        name: Operator of the activation, a key of `FUSED_ACTIVATIONS`.
        operator: Operator of the convolution.
        fused: Operator of the convolution with an activation.
        prefix: Beginning of the rule's name.
        sample: Samples of the convolution c with its operands x and rest.
        source: Origin of the rule.
    """
    follows, parameters = FUSED_ACTIVATIONS[name]
    given = f", activation_params=({parameters},)" if parameters else ""
    known = (
        "all(not bound or bound.number == bound.number for bound in (low, high))"
        if name == "Clip"
        else "True"
    )
    return Rule(
        f"{prefix}-{words(name)}",
        before=f"y = {name}(c := {operator}(x, *rest){follows})",
        where=f"'activation' not in c and {known}",
        after=f"y = {fused}(x, *rest, activation={name!r}{given}, **c)",
        sample=lambda rng: _with_parameters(name, rng, sample(rng)),
        source=source,
    )


def _with_parameters(name: str, rng: Rng, sample: Sample) -> Sample:
    """Return a sample with random parameters of an activation, if it has some."""
    values, attributes = dict(sample.values), dict(sample.attributes)
    if name == "Clip":
        values["low"] = np.array(rng.uniform(-1, 0)) if rng.integers(4) else None
        values["high"] = np.array(rng.uniform(0, 1)) if rng.integers(4) else None
    for parameter in ("alpha", "beta"):
        if parameter in FUSED_ACTIVATIONS[name][1]:
            attributes[parameter] = float(rng.uniform(0.1, 1))
    weights = sample.weights | {"low", "high"} if name == "Clip" else sample.weights
    return Sample(values, weights, attributes, sample.nodes, sample.counts)


def sided(
    name: str, before: str, where: str, after: str, sample: Callable[[Rng], Sample], source: str
) -> tuple[Rule, Rule]:
    """Return a rule for an element-wise operator and the rule with its operands swapped.

    Args:
        name: Name of the first rule; the second has the suffix `-left`.
        before: Pattern, with ` | ` between the two operands.
        where: Condition.
        after: Replacement, with ` | ` between the two operands.
        sample: Samples of both rules.
        source: Origin of the rules.
    """
    return (
        Rule(name, before.replace(" | ", ", "), after.replace(" | ", ", "), sample, where, source=source),
        Rule(f"{name}-left", _swapped(before), _swapped(after), sample, where, source=source),
    )


def _swapped(text: str) -> str:
    """Return a text with the operands on both sides of ` | ` swapped."""
    left, right = text.split(" | ")
    start = len(left) - _length(left[::-1], ")(")
    end = _length(right, "()")
    return f"{left[:start]}{right[:end]}, {left[start:]}{right[end:]}"


def _length(text: str, brackets: str) -> int:
    """Return the length of the operand that a text begins with."""
    depth = 0
    for place, letter in enumerate(text):
        if depth == 0 and (letter == brackets[1] or text[place : place + 2] in (", ", " ,")):
            return place
        depth += (letter == brackets[0]) - (letter == brackets[1])
    return len(text)
