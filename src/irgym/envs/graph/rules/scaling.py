"""Rules for factors and biases: moved past products, merged, folded into weights; and Gemm as MatMul.

They hold for real numbers; results differ by rounding. Only weights and single numbers move into a sum or a
product, so that finite results stay finite; numbers as large as those that masks add do not move.
"""

import numpy as np

from irgym.envs.graph.rewriting.rule import Rule, Sample
from irgym.envs.graph.rewriting.samples.operands import Rng, array, pick, random_sizes, sample, shape_of

_TASO = "TASO"
_INTO = "c.constant and not c.masking and"


def _biased_rows(rng: Rng) -> Sample:
    k, n = random_sizes(rng, 2)
    values = {"a": array(rng, *shape_of(rng, 0, 2), k), "b": array(rng, k), "w": array(rng, k, n)}
    return sample(values, "w b")


def _factors(rng: Rng) -> Sample:
    shape = shape_of(rng)
    small = tuple(1 if rng.integers(3) == 0 else size for size in shape)
    values = {"a": array(rng, *shape), "b": array(rng, *shape[1:]), "c": array(rng, *small)}
    return sample(values, "c", operators={"s": pick(rng, "Add", "Sub")})


def _scaled(rng: Rng) -> Sample:
    m, k, n = random_sizes(rng, 3)
    batch = shape_of(rng, 0, 2)
    values = {"x": array(rng, *batch, m, k), "w": array(rng, *batch, k, n)}
    values["c"] = array(rng, *pick(rng, (), (1,), (1, 1)))
    return sample(values, pick(rng, "c", "c w"))


def _scaled_weight(rng: Rng) -> Sample:
    k, n = random_sizes(rng, 2)
    values = {"x": array(rng, *shape_of(rng, 0, 2), k), "w": array(rng, k, n)}
    values["c"] = array(rng, *pick(rng, (), (1,), (n,)))
    return sample(values, "w c")


def _scaled_rows(rng: Rng) -> Sample:
    k, n = random_sizes(rng, 2)
    values = {"x": array(rng, *shape_of(rng, 0, 2), k), "w": array(rng, k, n)}
    values["c"] = array(rng, *pick(rng, (), (1,), (k,)))
    return sample(values, "w c")


def _two_constants(rng: Rng) -> Sample:
    shape = shape_of(rng)
    values = {"x": array(rng, *shape), "b": array(rng, *shape[1:]), "c": array(rng, *shape[-1:])}
    return sample(values, "b c")


def _divided(rng: Rng) -> Sample:
    values = {"x": array(rng, *shape_of(rng)), "c": np.full(pick(rng, (), (1,)), rng.uniform(0.5, 2.0))}
    return sample(values, "c")


def _matrices(rng: Rng) -> Sample:
    m, k, n = random_sizes(rng, 3)
    batch = shape_of(rng, 0, 2)
    rank = len(batch) + 2
    order = (*range(rank - 2), rank - 1, rank - 2)
    values = {"a": array(rng, *batch, m, k), "b": array(rng, *batch, k, n)}
    return sample(values, pick(rng, "", "b"), attributes={"p": order})


def _gemm(rng: Rng) -> Sample:
    m, k, n = random_sizes(rng, 3)
    first, second = int(rng.integers(2)), int(rng.integers(2))
    values = {
        "a": array(rng, *((k, m) if first else (m, k))),
        "w": array(rng, *((n, k) if second else (k, n))),
        "b": pick(rng, None, array(rng, n), array(rng, 1), array(rng, m, 1), array(rng)),
    }
    return sample(values, pick(rng, "w b", "b", ""), attributes={"t": first, "u": second})


def _biased(rng: Rng) -> Sample:
    m, k, n = random_sizes(rng, 3)
    b = array(rng, *pick(rng, (), (n,), (1, n), (m, 1), (m, n)))
    return sample({"a": array(rng, m, k), "w": array(rng, k, n), "b": b}, pick(rng, "", "w b"))


def _gemm_of_transposed(rng: Rng) -> Sample:
    gemm = _gemm(rng)
    values = {"a": gemm.values["a"].T, "rest": [gemm.values["w"]]}
    nodes = {"g": {"transB": gemm.attributes["u"]}}
    return sample(values, attributes={"t": gemm.attributes["t"]}, nodes=nodes)


def _gemm_turned(rng: Rng) -> Sample:
    m, k, n = random_sizes(rng, 3)
    return sample({"a": array(rng, m, k), "w": array(rng, n, k), "rest": [array(rng, n)]}, "w rest")


RULES = (
    Rule(
        "bias-through",
        before="y = MatMul(Add(a, b), w)",
        where="y.floating and b.constant and w.constant and w.rank == 2"
        " and a.rank and b.shape == a.shape[-1:]",
        after="y = Add(MatMul(a, w), matmul(b, w))",
        sample=_biased_rows,
        source="a bias before a product is one after it",
    ),
    Rule(
        "factor-mul",
        before="y = (s := Additive(Mul(a, c), Mul(b, c)))",
        where="y.floating",
        after="y = Mul(Same(s, a, b), c)",
        sample=_factors,
        source=_TASO,
    ),
    Rule(
        "distribute-mul",
        before="y = Mul(s := Additive(a, b), c)",
        where="y.floating and c.constant and not c.masking and not a.constant and not b.constant",
        after="y = Same(s, Mul(a, c), Mul(b, c))",
        sample=_factors,
        source=_TASO,
    ),
    Rule(
        "scale-bias",
        before="y = Mul(Add(x, b), c)",
        where="y.floating and b.constant and c.constant and not c.masking and not x.constant",
        after="y = Add(Mul(x, c), multiply(b, c))",
        sample=_two_constants,
        source="ONNX Runtime's constant folding, past an activation",
    ),
    Rule(
        "merge-muls",
        before="y = Mul(Mul(x, b), c)",
        where="y.floating and b.constant and c.constant and not x.constant"
        " and not b.masking and not c.masking",
        after="y = Mul(x, multiply(b, c))",
        sample=_two_constants,
        source=_TASO,
    ),
    Rule(
        "merge-adds",
        before="y = Add(Add(x, b), c)",
        where="y.floating and b.constant and c.constant and not x.constant",
        after="y = Add(x, add(b, c))",
        sample=_two_constants,
        source=_TASO,
    ),
    Rule(
        "div-as-mul",
        before="y = Div(x, c)",
        where="y.floating and 1e-30 < abs(c.number) < 1e30",
        after="y = Mul(x, divide(like(c, 1), c))",
        sample=_divided,
        source="division by a constant",
    ),
    *(
        Rule(
            f"scale-{name}",
            before=before,
            where=f"y.floating and {finite} c.type.size == 1"
            " and (c.rank == 0 or 1 < min(x.rank, w.rank) >= c.rank)",
            after=after,
            sample=_scaled,
            source="TASO: smul and matmul",
        )
        for name, before, after, finite in (
            ("out-of-left", "y = MatMul(Mul(x, c), w)", "y = Mul(MatMul(x, w), c)", ""),
            ("out-of-right", "y = MatMul(x, Mul(w, c))", "y = Mul(MatMul(x, w), c)", ""),
            ("into-left", "y = Mul(MatMul(x, w), c)", "y = MatMul(Mul(x, c), w)", _INTO),
            ("into-right", "y = Mul(MatMul(x, w), c)", "y = MatMul(x, Mul(w, c))", _INTO),
        )
    ),
    Rule(
        "fold-scale",
        before="y = Mul(MatMul(x, w), c)",
        where="y.floating and w.constant and c.constant and not c.masking and w.rank >= 2 and c.rank <= 1",
        after="y = MatMul(x, multiply(w, c))",
        sample=_scaled_weight,
        source="ONNX Runtime's MatMulScaleFusion, into the weights",
    ),
    Rule(
        "fold-scale-of-input",
        before="y = MatMul(Mul(x, c), w)",
        where="y.floating and w.constant and c.constant and not c.masking and w.rank == 2"
        " and c.rank <= 1 <= x.rank"
        " and broadcast(x.shape, c.shape) == x.shape",
        after="y = MatMul(x, multiply(w, reshape(c, c.shape + (1,))))",
        sample=_scaled_rows,
        source="ONNX Runtime's MatMulScaleFusion, into the weights",
    ),
    Rule(
        "transpose-of-matmul",
        before="y = Transpose(MatMul(a, b), perm=p)",
        where="a.rank == b.rank == y.rank and swaps_last(p)",
        after="""
turned = transpose(b, p) if b.constant else Transpose(b, perm=p)
y = MatMul(turned, Transpose(a, perm=p))
""",
        sample=_matrices,
        source="TASO: (a b)^T = b^T a^T",
    ),
    Rule(
        "matmul-of-transposes",
        before="y = MatMul(Transpose(b, perm=p), Transpose(a, perm=p))",
        where="a.rank == b.rank == y.rank and swaps_last(p)",
        after="y = Transpose(MatMul(a, b), perm=p)",
        sample=lambda rng: sample(
            {"a": (matrices := _matrices(rng)).values["a"], "b": matrices.values["b"]},
            attributes=dict(matrices.attributes),
        ),
        source="TASO: (a b)^T = b^T a^T",
    ),
    Rule(
        "gemm-as-matmul",
        before="y = Gemm(a, w, [b], alpha=1.0, beta=1.0, transA=t, transB=u)",
        after="""
left = Transpose(a, perm=(1, 0)) if t else a
right = w if not u else transpose(w, (1, 0)) if w.constant else Transpose(w, perm=(1, 0))
product = MatMul(left, right)
y = Add(product, b) if b else product
""",
        sample=_gemm,
        source="definition of Gemm; TASO's matmul",
    ),
    Rule(
        "matmul-as-gemm",
        before="y = Add(MatMul(a, w), b)",
        where="y.floating and a.rank == w.rank == 2 and b.rank <= 2 and y.shape == (a.shape[0], w.shape[1])",
        after="y = Gemm(a, w, b)",
        sample=_biased,
        source="ONNX Runtime's MatMulAddFusion",
    ),
    Rule(
        "gemm-of-transpose",
        before="y = (g := Gemm(Transpose(a, perm=(1, 0)), *rest, transA=t))",
        after="y = Same(g, a, *rest, transA=0 if t else 1)",
        sample=_gemm_of_transposed,
        source="ONNX Runtime's GemmTransposeFusion",
    ),
    Rule(
        "turn-weights",
        before="y = (g := Gemm(a, w, *rest, transB=1))",
        where="w.constant",
        after="y = Same(g, a, transpose(w, (1, 0)), *rest, transB=0)",
        sample=_gemm_turned,
        source="weights in the order in which they are read",
    ),
)
"""Rules for factors and biases."""
