"""Rules of matrix products: scales, transposed operands, sums and activations, and linear layers as Gemm."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from irgym.envs.graph.ir.graph import Attribute
from irgym.envs.graph.rules.rule import Rule, Sample

Rng = np.random.Generator

_NAMES = {"MatMul": "matmul", "FusedMatMul": "fused-matmul"}


def _sizes(rng: Rng, count: int) -> list[int]:
    return rng.integers(2, 6, count).tolist()


def _operands(rng: Rng, flip_left: bool, flip_right: bool) -> tuple[Any, Any]:
    """Return two arrays whose product exists, the last two axes of either exchanged first."""
    rows, inner, columns, *lead = _sizes(rng, 3 + int(rng.integers(0, 3)))
    left, right = rng.standard_normal((*lead, rows, inner)), rng.standard_normal((*lead, inner, columns))
    if lead and rng.integers(2):
        right = right[0]
    return (
        left.swapaxes(-1, -2) if flip_left else left,
        right.swapaxes(-1, -2) if flip_right else right,
    )


def _product(kind: str, left: str, right: str) -> str:
    """Return the pattern of a product called m: ONNX's, or the one that may scale and transpose."""
    if kind == "MatMul":
        return f"(m := MatMul({left}, {right}))"
    return f"(m := FusedMatMul({left}, {right}, alpha=u, transA=p, transB=q, transBatchA=0, transBatchB=0))"


def _scaled_sample(kind: str) -> Callable[[Rng], Sample]:
    def sample(rng: Rng) -> Sample:
        fused = kind == "FusedMatMul"
        flips = [bool(fused and rng.integers(2)) for _ in range(2)]
        x, w = _operands(rng, *flips)
        shape = (1,) * int(rng.integers(0, 2))
        values = {"x": x, "w": w, "s": np.full(shape, rng.uniform(0.2, 3))}
        attributes: dict[str, Attribute] = {
            "u": float(rng.uniform(0.2, 3)),
            "p": int(flips[0]),
            "q": int(flips[1]),
        }
        return Sample(values, frozenset("s"), attributes if fused else {})

    return sample


def _scales() -> Iterator[Rule]:
    places = {"left": ("{0}(x, s)", "w"), "right": ("x", "{0}(w, s)"), "result": ("x", "w")}
    for kind in ("MatMul", "FusedMatMul"):
        for factor_name, operator, factor in (
            ("scale", "Mul", "s.number"),
            ("quotient", "Div", "1 / s.number"),
        ):
            for place, (left, right) in places.items():
                product = _product(kind, left.format(operator), right.format(operator))
                scale = factor if kind == "MatMul" else f"u * {factor}"
                attributes = "" if kind == "MatMul" else ", transA=p, transB=q"
                yield Rule(
                    f"{_NAMES[kind]}-{factor_name}-{place}",
                    before=f"y = {f'{operator}({product}, s)' if place == 'result' else product}",
                    where="x.floating and s.number == s.number and s.number != 0 and min(x.rank, w.rank) > 1"
                    " and s.rank <= min(x.rank, w.rank)",
                    after=f"y = FusedMatMul(x, w, alpha={scale}{attributes})",
                    sample=_scaled_sample(kind),
                    source="ONNX Runtime's MatMulScaleFusion",
                )


def _swapped(perm: str, rank: str) -> str:
    """Return the condition that an order of axes exchanges the last two and nothing else."""
    return f"{perm} == (*range({rank} - 2), {rank} - 1, {rank} - 2)"


def _transposed_sample(kind: str, left: bool) -> Callable[[Rng], Sample]:
    def sample(rng: Rng) -> Sample:
        flips = [bool(kind == "FusedMatMul" and rng.integers(2)) for _ in range(2)]
        x, w = _operands(rng, flips[0] ^ left, flips[1] ^ (not left))
        rank = x.ndim if left else w.ndim
        order = (*range(rank - 2), rank - 1, rank - 2)
        fused: dict[str, Attribute] = {
            "u": float(rng.uniform(0.2, 3)),
            "p": int(flips[0]),
            "q": int(flips[1]),
        }
        return Sample({"x": x, "w": w}, attributes={"o": order, **(fused if kind == "FusedMatMul" else {})})

    return sample


def _transposes() -> Iterator[Rule]:
    for kind in ("MatMul", "FusedMatMul"):
        for place, left, right in (
            ("left", "Transpose(x, perm=o)", "w"),
            ("right", "x", "Transpose(w, perm=o)"),
        ):
            one = "x" if place == "left" else "w"
            attributes = {
                ("MatMul", "left"): "transA=1",
                ("MatMul", "right"): "transB=1",
                ("FusedMatMul", "left"): "alpha=u, transA=1 - p, transB=q",
                ("FusedMatMul", "right"): "alpha=u, transA=p, transB=1 - q",
            }
            yield Rule(
                f"{_NAMES[kind]}-transpose-{place}",
                before=f"y = {_product(kind, left, right)}",
                where=f"x.floating and min(x.rank, w.rank) > 1 and {_swapped('o', f'{one}.rank')}",
                after=f"y = FusedMatMul(x, w, {attributes[kind, place]})",
                sample=_transposed_sample(kind, place == "left"),
                source="ONNX Runtime's MatmulTransposeFusion",
            )


def _linear(rank: int | None = None, bias: int = 1) -> Callable[[Rng], Sample]:
    """Return samples of a linear layer's x, w and, of a number of dimensions, b."""

    def sample(rng: Rng) -> Sample:
        inner, out, *lead = _sizes(rng, 2 + (rank - 1 if rank else int(rng.integers(2, 4))))
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
    rows, inner, out = _sizes(rng, 3)
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
"""Activations that FusedGemm has, and their attributes."""


def _activations() -> Iterator[Rule]:
    for name, attributes in _ACTIVATIONS.items():
        wanted = "".join(f", {one}={one}_" for one in attributes)
        given = "".join(f", activation_{one}={one}_" for one in attributes)

        def sample(rng: Rng, attributes: tuple[str, ...] = attributes) -> Sample:
            made = _gemm(rng, bool(rng.integers(2)), False)
            return Sample(made.values, made.weights, {f"{one}_": 0.3 for one in attributes}, made.nodes)

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


_LINEAR = "x.floating and x.rank > 2 and w.rank == 2 and y.type.size > 0"
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
        "matmul-add-gemm",
        before="y = Add(MatMul(x, w), b)",
        where="x.floating and x.rank == 2 and w.rank == 2 and b.rank <= 2"
        " and y.shape == (x.shape[0], w.shape[1])",
        after="y = Gemm(x, w, b)",
        sample=lambda rng: _linear(2, int(rng.integers(1, 3)))(rng),
        source="ONNX Runtime's MatMulAddFusion",
    ),
    Rule(
        "linear-gemm",
        before="y = Add(MatMul(x, w), b)",
        where=f"{_LINEAR} and b.rank <= 1",
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
        source="ONNX Runtime's MatMulAddFusion, backwards",
    ),
    Rule(
        "gemm-linear-unbiased",
        before=f"y = Reshape(Gemm(Reshape(x, s), w, {_GEMM}), t)",
        where=_BETWEEN,
        after="y = MatMul(x, w)",
        sample=_apart(biased=False),
        source="ONNX Runtime's MatMulAddFusion, backwards",
    ),
    Rule(
        "gemm-matmul-add",
        before=f"y = Gemm(x, w, b, {_GEMM})",
        where="x.floating",
        after="y = Add(MatMul(x, w), b)",
        sample=_linear(2),
        source="definition of Gemm",
    ),
    Rule(
        "gemm-transposed-weights",
        before="y = (g := Gemm(x, w, *rest, transB=1))",
        where="w.constant",
        after="y = Gemm(x, transpose(w, (1, 0)), *rest, **{**g, 'transB': 0})",
        sample=lambda rng: _gemm(rng, bool(rng.integers(2)), True),
        source="folding of constants",
    ),
    *_activations(),
    Rule(
        "linear-scale",
        before="y = Mul(Add(MatMul(x, w), b), s)",
        where="x.floating and w.constant and b.constant and b.rank <= 1"
        " and s.number == s.number and s.rank <= 1 and w.rank > 1",
        after="y = Add(MatMul(x, multiply(w, s)), multiply(b, s))",
        sample=lambda rng: _constants(rng, True),
        source="distributivity: the scale into the weights",
    ),
    Rule(
        "matmul-scale-weights",
        before="y = Mul(MatMul(x, w), s)",
        where="x.floating and w.constant and s.number == s.number and s.rank <= 1 and w.rank > 1",
        after="y = MatMul(x, multiply(w, s))",
        sample=lambda rng: _constants(rng, False),
        source="distributivity: the scale into the weights",
    ),
)
"""Rules of matrix products."""
