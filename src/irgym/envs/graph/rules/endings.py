"""The activations that ONNX Runtime's convolutions can end with, for rules and their samples."""

from collections.abc import Callable, Mapping

import numpy as np

from irgym.envs.graph.rewriting.rule import Rule, Sample

GREATEST = 3.4028234663852886e38
"""The greatest float32."""

ACTIVATIONS: Mapping[str, tuple[str, str]] = {
    "Relu": ("", ""),
    "Sigmoid": ("", ""),
    "Tanh": ("", ""),
    "HardSwish": ("", ""),
    "LeakyRelu": (", alpha=alpha", "alpha"),
    "HardSigmoid": (", alpha=alpha, beta=beta", "alpha, beta"),
    "Clip": (", [low], [high]", f"low.number if low else -{GREATEST}, high.number if high else {GREATEST}"),
}
"""For each: what follows its operand in a pattern, and its parameters as ONNX Runtime takes them."""


def words(name: str) -> str:
    """Return an operator's name in lower-case words with hyphens."""
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("-")


def again(name: str, operand: str) -> str:
    """Return an activation with the parameters that a pattern's had, as `after` makes it."""
    return f"{name}({operand}{ACTIVATIONS[name][0].replace('[', '').replace(']', '')})"


def with_parameters(name: str, rng: np.random.Generator, sample: Sample, each: int = 0) -> Sample:
    """Return a sample with the parameters of an activation, where it has some.

    Args:
        name: One of `ACTIVATIONS`.
        rng: What to draw from.
        sample: The sample without.
        each: How many nodes have them, where that is any number.
    """
    values, attributes = dict(sample.values), dict(sample.attributes)
    if name == "Clip":
        values["low"] = np.array(rng.uniform(-1, 0)) if rng.integers(4) else None
        values["high"] = np.array(rng.uniform(0, 1)) if rng.integers(4) else None
    for parameter in ("alpha", "beta"):
        if parameter in ACTIVATIONS[name][1]:
            number = float(rng.uniform(0.1, 1))
            attributes[parameter] = (number,) * each if each else number
    weights = sample.weights | {"low", "high"} if name == "Clip" else sample.weights
    return Sample(values, weights, attributes, sample.nodes, sample.counts)


def fusing(
    name: str,
    operator: str,
    fused: str,
    prefix: str,
    sample: Callable[[np.random.Generator], Sample],
    source: str,
) -> Rule:
    """Return the rule that makes an activation the last step of the convolution before it.

    Args:
        name: One of `ACTIVATIONS`.
        operator: The convolution.
        fused: The convolution with an activation.
        prefix: What the rule's name begins with.
        sample: Samples of the convolution, c, with its operands x and rest.
        source: Where the rule is from.
    """
    follows, parameters = ACTIVATIONS[name]
    given = f", activation_params=({parameters},)" if parameters else ""
    known = "all(not one or one.number == one.number for one in (low, high))" if name == "Clip" else "True"
    return Rule(
        f"{prefix}-{words(name)}",
        before=f"y = {name}(c := {operator}(x, *rest){follows})",
        where=f"'activation' not in c and {known}",
        after=f"y = {fused}(x, *rest, activation={name!r}{given}, **c)",
        sample=lambda rng: with_parameters(name, rng, sample(rng)),
        source=source,
    )
