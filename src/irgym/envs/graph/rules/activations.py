"""Rules for activations: ONNX Runtime has single operators for some that exporters write as several."""

import math
from collections.abc import Callable, Iterator

import numpy as np

from irgym.envs.graph.rewriting.rule import Rule, Sample
from irgym.envs.graph.rewriting.samples.operands import Rng


def _shape(rng: Rng, least: int = 1) -> tuple[int, ...]:
    return tuple(rng.integers(1, 6, int(rng.integers(least, 5))).tolist())


def _sample(**numbers: float) -> Callable[[Rng], Sample]:
    """Return samples of x, of random shape, and of numbers."""

    def sample(rng: Rng) -> Sample:
        values = {name: np.array(number) for name, number in numbers.items()}
        return Sample({"x": 2 * rng.standard_normal(_shape(rng)), **values}, frozenset(numbers))

    return sample


def _near(name: str, number: float) -> str:
    """Return the condition that a weight equals a number up to float32 rounding."""
    return f"abs({name}.number - {number!r}) < {1e-6 * number!r}"


_WHOLE = "x.floating and y.shape == x.shape"

_PRODUCTS = {
    "": "Mul(Mul(x, 0.5), {})",
    "-half-inside": "Mul(x, Mul({}, 0.5))",
    "-half-last": "Mul(Mul(x, {}), 0.5)",
}
"""Patterns for x times a factor times 0.5."""


def _erf_gelu() -> Iterator[Rule]:
    inner = {"": ("Div(x, r)", math.sqrt(2)), "-scaled": ("Mul(x, r)", math.sqrt(0.5))}
    for product, form in _PRODUCTS.items():
        for kind, (argument, number) in inner.items():
            yield Rule(
                f"erf-gelu{product}{kind}",
                before=f"y = {form.format(f'Add(Erf({argument}), 1.0)')}",
                where=f"{_WHOLE} and {_near('r', number)}",
                after="y = MicrosoftGelu(x)",
                sample=_sample(r=number),
                source="ONNX Runtime's GeluFusion",
            )


def _tanh_gelu() -> Iterator[Rule]:
    cubes = {"": "Pow(x, 3.0)", "-product": "Mul(x, Mul(x, x))"}
    scale, share = math.sqrt(2 / math.pi), 0.044715
    for product, form in _PRODUCTS.items():
        for kind, cube in cubes.items():
            factor = f"Add(Tanh(Mul(Add(x, Mul({cube}, c)), s)), 1.0)"
            yield Rule(
                f"tanh-gelu{product}{kind}",
                before=f"y = {form.format(factor)}",
                where=f"{_WHOLE} and x.rank > 0 and {_near('c', share)} and {_near('s', scale)}",
                after="y = FastGelu(x)",
                sample=_sample(c=share, s=scale),
                source="ONNX Runtime's FastGeluFusion",
            )


def _bias(rng: Rng) -> Sample:
    shape = _shape(rng, 2)
    values = {"x": rng.standard_normal(shape), "b": rng.standard_normal(shape[-1])}
    return Sample(values, frozenset("b" if rng.integers(2) else ""))


def _bias_gelu() -> Iterator[Rule]:
    forms = {
        "bias-gelu": ("Gelu(Add(x, b), approximate='none')", "BiasGelu"),
        "bias-gelu-fused": ("MicrosoftGelu(Add(x, b))", "BiasGelu"),
        "bias-fast-gelu": ("FastGelu(Add(x, b))", "FastGelu"),
    }
    for name, (form, fused) in forms.items():
        yield Rule(
            name,
            before=f"y = {form}",
            where=f"{_WHOLE} and b.rank == 1 and b.shape == x.shape[-1:]",
            after=f"y = {fused}(x, b)",
            sample=_bias,
            source="ONNX Runtime's BiasGeluFusion",
        )


_SIXTH = {"p": 1 / 6, "q": 0.5}

RULES = (
    *_erf_gelu(),
    *_tanh_gelu(),
    *_bias_gelu(),
    Rule(
        "fast-gelu",
        before="y = Gelu(x, approximate='tanh')",
        where="x.floating and x.rank > 0",
        after="y = FastGelu(x)",
        sample=_sample(),
        source="ONNX and ONNX Runtime: the same operator under two names",
    ),
    Rule(
        "quick-gelu",
        before="y = Mul(x, Sigmoid(Mul(x, a)))",
        where=f"{_WHOLE} and a.number == a.number",
        after="y = QuickGelu(x, alpha=a.number)",
        sample=lambda rng: _sample(a=float(rng.uniform(-2, 2)))(rng),
        source="ONNX Runtime's QuickGeluFusion",
    ),
    Rule(
        "silu",
        before="y = Mul(x, Sigmoid(x))",
        where="x.floating",
        after="y = QuickGelu(x, alpha=1.0)",
        sample=_sample(),
        source="ONNX Runtime's QuickGeluFusion",
    ),
    Rule(
        "hard-sigmoid",
        before="y = Div(Clip(Add(x, 3.0), 0.0, 6.0), 6.0)",
        where=_WHOLE,
        after="y = HardSigmoid(x, alpha=1 / 6, beta=0.5)",
        sample=_sample(),
        source="MobileNetV3",
    ),
    Rule(
        "hard-swish-clip",
        before="y = Div(Mul(x, Clip(Add(x, 3.0), 0.0, 6.0)), 6.0)",
        where=f"{_WHOLE} and opset >= 14",
        after="y = HardSwish(x)",
        sample=_sample(),
        source="MobileNetV3",
    ),
    Rule(
        "hard-swish",
        before="y = Mul(x, HardSigmoid(x, alpha=p, beta=q))",
        where="x.floating and abs(p - 1 / 6) < 1e-6 and q == 0.5 and opset >= 14",
        after="y = HardSwish(x)",
        sample=lambda rng: Sample({"x": 4 * rng.standard_normal(_shape(rng))}, attributes=_SIXTH),
        source="ONNX's definition of HardSwish",
    ),
    Rule(
        "split-hard-swish",
        before="y = HardSwish(x)",
        where="x.floating",
        after="y = Mul(x, HardSigmoid(x, alpha=1 / 6, beta=0.5))",
        sample=lambda rng: Sample({"x": 4 * rng.standard_normal(_shape(rng))}),
        source="ONNX's definition of HardSwish, as ONNX Runtime computes it",
    ),
)
"""Rules for activations."""
