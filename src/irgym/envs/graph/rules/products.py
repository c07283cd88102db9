"""Rules for matrix products: scales, transposed operands, activations, and linear layers as Gemm."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from irgym.envs.graph.ir.node import Attribute
from irgym.envs.graph.rewriting.rule import Rule, Sample
from irgym.envs.graph.rewriting.samples.operands import Rng, random_sizes

_KINDS = {"matmul": "MatMul", "fused-matmul": "FusedMatMul"}


def _operands(rng: Rng, flip_left: bool, flip_right: bool) -> tuple[Any, Any]:
    """Return two arrays that fit a product once the last two axes of flipped ones are swapped."""
    rows, inner, columns, *lead = random_sizes(rng, 3 + int(rng.integers(0, 3)), 2)
    left, right = rng.standard_normal((*lead, rows, inner)), rng.standard_normal((*lead, inner, columns))
    if lead and rng.integers(2):
        right = right[0]
    return (
        left.swapaxes(-1, -2) if flip_left else left,
        right.swapaxes(-1, -2) if flip_right else right,
    )


_SIDES = {"left": ("x", "A"), "right": ("w", "B")}
"""Operands of a product by side, with their letter in the attributes of FusedMatMul."""


def _products(form: str) -> Iterator[tuple[str, str, str]]:
    """Return a rule name, the side of an operand and a pattern for MatMul and FusedMatMul and each operand.

    Args:
        form: Pattern of the operand, with `{0}` for the value inside. The product is named m.
    """
    for name, kind in _KINDS.items():
        for side, (operand, letter) in _SIDES.items():
            operands = ", ".join(form.format(value) if value == operand else value for value in "xw")
            upright = f", transBatch{letter}=0" if kind == "FusedMatMul" else ""
            yield f"{name}-{{}}-{side}", side, f"(m := {kind}({operands}{upright}))"


def _fused(rng: Rng, pattern: str, **more: Attribute) -> dict[str, dict[str, Attribute]]:
    """Return random attributes for the product of a pattern; MatMul has none."""
    fused = "Fused" in pattern
    return {"m": {"alpha": float(rng.uniform(0.2, 3)), **more}} if fused else {}


def _scaled_sample(pattern: str) -> Callable[[Rng], Sample]:
    def sample(rng: Rng) -> Sample:
        flips = [bool("Fused" in pattern and rng.integers(2)) for _ in range(2)]
        x, w = _operands(rng, *flips)
        values = {"x": x, "w": w, "s": np.full((1,) * int(rng.integers(0, 2)), rng.uniform(0.2, 3))}
        node = _fused(rng, pattern, transA=int(flips[0]), transB=int(flips[1]))
        return Sample(values, frozenset("s"), nodes=node)

    return sample


def _scales() -> Iterator[Rule]:
    whole = [(f"{name}-{{}}-result", f"(m := {kind}(x, w))") for name, kind in _KINDS.items()]
    for word, operator, factor in (("scale", "Mul", "s.number"), ("quotient", "Div", "1 / s.number")):
        inside = [(name, pattern) for name, _, pattern in _products(f"{operator}({{0}}, s)")]
        outside = [(name, f"{operator}({pattern}, s)") for name, pattern in whole]
        for name, pattern in (*inside, *outside):
            yield Rule(
                name.format(word),
                before=f"y = {pattern}",
                where="x.floating and s.number == s.number and s.number != 0 and min(x.rank, w.rank) > 1"
                " and s.rank <= min(x.rank, w.rank)",
                after=f"y = FusedMatMul(x, w, **{{**m, 'alpha': m.get('alpha', 1.0) * {factor}}})",
                sample=_scaled_sample(pattern),
                source="ONNX Runtime's MatMulScaleFusion",
            )


_ORDERS = {
    "transpose": ("{0}.rank - 1, {0}.rank - 2", False, True),
    "transpose-batch": ("{0}.rank - 2, 0, {0}.rank - 1", True, False),
    "transpose-batch-last": ("{0}.rank - 2, {0}.rank - 1, 0", True, True),
}
"""Transpositions of an operand by name: the end of the order, whether the first axis moves behind the other
batch axes, and whether the last two axes are swapped then."""


def _transposed_sample(side: str, pattern: str, batch: bool, swap: bool) -> Callable[[Rng], Sample]:
    def sample(rng: Rng) -> Sample:
        fused, left = "Fused" in pattern, side == "left"
        flips = [bool(fused and rng.integers(2)) for _ in range(2)]
        other = bool(fused and rng.integers(2))
        rows, inner, columns, *lead = random_sizes(rng, 5, 2)
        x, w = rng.standard_normal((*lead, rows, inner)), rng.standard_normal((*lead, inner, columns))
        x, w = (array.swapaxes(-1, -2) if flip else array for array, flip in zip((x, w), flips, strict=True))
        order = (1, 2, 3, 0) if batch and swap else (1, 2, 0, 3) if batch else (0, 1, 3, 2)
        back = tuple(np.argsort(order).tolist())
        x, w = (x.transpose(back), w) if left else (x, w.transpose(back))
        if other:
            x, w = (x, np.moveaxis(w, -2, 0)) if left else (np.moveaxis(x, -2, 0), w)
        turned = {f"transBatch{'B' if left else 'A'}": int(other)}
        node = _fused(rng, pattern, transA=int(flips[0]), transB=int(flips[1]), **turned)
        return Sample({"x": x, "w": w}, attributes={"o": order}, nodes=node)

    return sample


def _transposes() -> Iterator[Rule]:
    for word, (end, batch, swap) in _ORDERS.items():
        for name, side, pattern in _products("Transpose({0}, perm=o)"):
            operand, letter = _SIDES[side]
            lead = f"range(1, {operand}.rank - 2)" if batch else f"range({operand}.rank - 2)"
            changes = [f"'transBatch{letter}': 1"] if batch else []
            changes += [f"'trans{letter}': 0 if m.get('trans{letter}', 0) else 1"] if swap else []
            yield Rule(
                name.format(word),
                before=f"y = {pattern}",
                # ONNX Runtime moves the first axis only if both operands have the same rank.
                where=f"x.floating and {'x.rank == w.rank > 2' if batch else 'min(x.rank, w.rank) > 1'}"
                f" and o == (*{lead}, {end.format(operand)})",
                after=f"y = FusedMatMul(x, w, **{{**m, {', '.join(changes)}}})",
                sample=_transposed_sample(side, pattern, batch, swap),
                source="ONNX Runtime's MatmulTransposeFusion",
            )


def _linear(rank: int | None = None, bias: int = 1) -> Callable[[Rng], Sample]:
    """Return samples of x, w and b of a linear layer; `bias` is the rank of b."""

    def sample(rng: Rng) -> Sample:
        inner, out, *lead = random_sizes(rng, 2 + (rank - 1 if rank else int(rng.integers(2, 4))), 2)
        values = {"x": rng.standard_normal((*lead, inner)), "w": rng.standard_normal((inner, out))}
        values["b"] = rng.standard_normal((out,) if bias == 1 else (lead[0], out))
        return Sample(values, frozenset("wb"))

    return sample


def _apart(biased: bool) -> Callable[[Rng], Sample]:
    """Return samples of a Gemm between two Reshapes."""

    def sample(rng: Rng) -> Sample:
        made = _linear()(rng).values
        x, w = made["x"], made["w"]
        values = {**made, "s": np.array([-1, x.shape[-1]]), "t": np.array([*x.shape[:-1], w.shape[1]])}
        if not biased:
            del values["b"]
        return Sample(values, frozenset("swtb"))

    return sample


def _gemm(rng: Rng, biased: bool, flip: bool) -> Sample:
    rows, inner, out = random_sizes(rng, 3, 2)
    w = rng.standard_normal((inner, out))
    values: dict[str, Any] = {"x": rng.standard_normal((rows, inner)), "w": w.T.copy() if flip else w}
    values["rest"] = [rng.standard_normal(out)] if biased else []
    node: dict[str, Attribute] = {"alpha": float(rng.uniform(0.5, 2)), "beta": float(rng.uniform(0.5, 2))}
    return Sample(values, frozenset({"w", "rest"}), nodes={"g": node})


_ACTIVATIONS: Mapping[str, tuple[str, ...]] = {
    "Relu": (),
    "Sigmoid": (),
    "Tanh": (),
    "Softplus": (),
    "Softsign": (),
    "Elu": ("alpha",),
    "LeakyRelu": ("alpha",),
    "ThresholdedRelu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
}
"""Activations that FusedGemm supports, with their attributes."""


def _activations() -> Iterator[Rule]:
    for name, attributes in _ACTIVATIONS.items():
        wanted = "".join(f", {parameter}={parameter}_" for parameter in attributes)
        given = "".join(f", activation_{parameter}={parameter}_" for parameter in attributes)

        def sample(rng: Rng, attributes: tuple[str, ...] = attributes) -> Sample:
            made = _gemm(rng, bool(rng.integers(2)), False)
            return Sample(
                made.values, made.weights, {f"{parameter}_": 0.3 for parameter in attributes}, made.nodes
            )

        yield Rule(
            f"gemm-{name.lower()}",
            before=f"y = {name}(g := Gemm(x, w, *rest){wanted})",
            where="x.floating",
            after=f"y = FusedGemm(x, w, *rest, activation={name!r}{given}, **g)",
            sample=sample,
            source="ONNX Runtime's GemmActivationFusion",
        )


def _constants(rng: Rng, biased: bool) -> Sample:
    made = _linear()(rng).values
    values = {name: made[name] for name in ("x", "w", *("b" if biased else ""))}
    return Sample({**values, "s": np.array(rng.uniform(0.2, 3))}, frozenset("wbs"))


_LINEAR = "x.floating and x.rank > 2 and w.rank == 2 and x.type.size > 0 and y.type.size > 0"
_GEMM = "alpha=1.0, beta=1.0, transA=0, transB=0"
_BETWEEN = (
    "w.rank == 2 and x.rank > 2 and y.shape == (*x.shape[:-1], w.shape[1]) and x.shape[-1] == w.shape[0]"
)

RULES = (
    *_scales(),
    *_transposes(),
    Rule(
        "plain-matmul",
        before="y = FusedMatMul(x, w, alpha=1.0, transA=0, transB=0, transBatchA=0, transBatchB=0)",
        after="y = MatMul(x, w)",
        sample=lambda rng: Sample(dict(zip("xw", _operands(rng, False, False), strict=True))),
        source="definition of FusedMatMul",
    ),
    Rule(
        "linear-gemm",
        before="y = Add(MatMul(x, w), b)",
        where=f"{_LINEAR} and b.rank <= 1 and y.shape[-1] == w.shape[1]",
        after="""
rows = Reshape(x, whole(x.type.size // x.shape[-1], x.shape[-1]))
y = Reshape(Gemm(rows, w, b), whole(*y.shape))
""",
        sample=_linear(),
        source="ONNX Runtime's MatMulAddFusion",
    ),
    Rule(
        "gemm-linear",
        before=f"y = Reshape(Gemm(Reshape(x, s), w, b, {_GEMM}), t)",
        where=f"{_BETWEEN} and b.rank <= 1",
        after="y = Add(MatMul(x, w), b)",
        sample=_apart(biased=True),
        source="ONNX Runtime's MatMulAddFusion, reversed",
    ),
    Rule(
        "gemm-linear-unbiased",
        before=f"y = Reshape(Gemm(Reshape(x, s), w, {_GEMM}), t)",
        where=_BETWEEN,
        after="y = MatMul(x, w)",
        sample=_apart(biased=False),
        source="ONNX Runtime's MatMulAddFusion, reversed",
    ),
    *_activations(),
    Rule(
        "linear-scale",
        before="y = Mul(Add(MatMul(x, w), b), s)",
        where="x.floating and w.constant and b.constant and b.rank <= 1"
        " and s.number == s.number and not s.masking and s.rank <= 1 and w.rank > 1",
        after="y = Add(MatMul(x, multiply(w, s)), multiply(b, s))",
        sample=lambda rng: _constants(rng, True),
        source="distributivity: the scale moves into the weights",
    ),
)
"""Rules for matrix products."""
