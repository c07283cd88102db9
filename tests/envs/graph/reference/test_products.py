import numpy as np
import pytest

from irgym.envs.graph.reference.calls import OperatorError, type_of
from irgym.envs.graph.reference.operators import evaluate, types_of


def floats(rng, sizes):
    return rng.uniform(-2, 2, sizes).astype(np.float32)


def sizes(rng, count):
    return [int(size) for size in rng.integers(1, 6, count)]


def batches(rng):
    """Return two shapes of batches that broadcast together."""
    whole = sizes(rng, rng.integers(0, 3))
    return [
        [size if rng.random() < 0.7 else 1 for size in whole[rng.integers(0, len(whole) + 1) :]]
        for _ in range(2)
    ]


def test_matmul(oracle, rng):
    for index in range(30):
        m, n, k = sizes(rng, 3)
        left, right = batches(rng)
        a = floats(rng, (k,) if index % 5 == 0 else (*left, m, k))
        b = floats(rng, (k,) if index % 7 == 0 else (*right, k, n))
        oracle.agrees("MatMul", [a, b])


def test_matmul_of_integers(oracle, rng):
    for _ in range(20):
        m, n, k = sizes(rng, 3)
        oracle.agrees("MatMul", [rng.integers(-5, 5, (m, k)), rng.integers(-5, 5, (k, n))])


def gemm(rng, index):
    m, n, k = sizes(rng, 3)
    given = {"transA": index & 1, "transB": index >> 1 & 1}
    if index % 3:
        given |= {"alpha": rng.uniform(0.5, 2), "beta": rng.uniform(0.5, 2)}
    a = floats(rng, (k, m) if given["transA"] else (m, k))
    b = floats(rng, (n, k) if given["transB"] else (k, n))
    c = [None, (n,), (1, n), (m, 1), (m, n), (1,)][index % 6]
    return [a, b, None if c is None else floats(rng, c)], given


def test_gemm(oracle, rng):
    for index in range(30):
        oracle.agrees("Gemm", *gemm(rng, index))


@pytest.mark.parametrize(
    ("activation", "parameters"),
    [
        ("Elu", ("alpha",)),
        ("HardSigmoid", ("alpha", "beta")),
        ("LeakyRelu", ("alpha",)),
        ("Relu", ()),
        ("Sigmoid", ()),
        ("Softplus", ()),
        ("Softsign", ()),
        ("Tanh", ()),
        ("ThresholdedRelu", ("alpha",)),
    ],
)
def test_fused_gemm(oracle, rng, activation, parameters):
    for index in range(20):
        inputs, given = gemm(rng, index)
        given |= {f"activation_{name}": rng.uniform(0.1, 1) for name in parameters}
        oracle.agrees("com.microsoft.FusedGemm", inputs, {**given, "activation": activation})


def test_fused_matmul(oracle, rng):
    for index in range(40):
        m, n, k = sizes(rng, 3)
        batch = sizes(rng, rng.integers(0, 3))
        given = {"transA": index & 1, "transB": index >> 1 & 1, "alpha": rng.uniform(0.5, 2)}
        a = floats(rng, (*batch, k, m) if given["transA"] else (*batch, m, k))
        b = floats(rng, (*batch, n, k) if given["transB"] else (*batch, k, n))
        oracle.agrees("com.microsoft.FusedMatMul", [a, b], given)


def test_fused_matmul_of_vectors(oracle, rng):
    for index in range(24):
        m, k = sizes(rng, 2)
        transposed = index >> 1 & 1
        if index & 1:
            inputs = [floats(rng, (k,)), floats(rng, (m, k) if transposed else (k, m))]
            oracle.agrees(
                "com.microsoft.FusedMatMul", inputs, {"transA": index >> 2 & 1, "transB": transposed}
            )
        else:
            inputs = [floats(rng, (m, k)), floats(rng, (k,))]
            oracle.agrees("com.microsoft.FusedMatMul", inputs, {"transB": transposed})


def test_fused_matmul_refuses_what_onnx_runtime_gets_wrong():
    a, b = np.zeros((2, 3)), np.zeros(2)
    with pytest.raises(OperatorError, match="transA and a vector on the right"):
        evaluate("com.microsoft.FusedMatMul", [a, b], {"transA": 1})
    with pytest.raises(OperatorError, match="transA and a vector on the right"):
        types_of("com.microsoft.FusedMatMul", [type_of(a), type_of(b)], {"transA": 1})


def test_fused_matmul_transposes_batches(oracle, rng):
    for index in range(32):
        m, n, k, first, second = sizes(rng, 5)
        shapes = {"A": (m, k), "B": (k, n)}
        given, inputs = {}, []
        for bit, (which, (rows, columns)) in enumerate(shapes.items()):
            transposed, batch = index >> bit & 1, index >> bit + 2 & 1
            shape = [first, second, *((columns, rows) if transposed else (rows, columns))]
            if batch:
                # The operator reads (rows, first, second, columns).
                shape = [shape[2], first, second, shape[3]]
            given |= {f"trans{which}": transposed, f"transBatch{which}": batch}
            inputs.append(floats(rng, shape))
        oracle.agrees("com.microsoft.FusedMatMul", inputs, given)


EQUATIONS = (
    "ij,jk->ik",
    "bij,bjk->bik",
    "bhid,bhjd->bhij",
    "...ij,...jk->...ik",
    "ij,jk",
    "ba",
    "ij->",
    "ii->i",
    "i,j->ij",
    "bi, bi -> b",
    "Ab,bA->bA",
    "ij,jk,kl->il",
    "...i->...",
    "a...,b...->ab...",
)


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum(oracle, rng, equation):
    for _ in range(20):
        length = dict(zip("AabcdhijklX", sizes(rng, 11), strict=True))
        terms = equation.split("->")[0].replace(" ", "").replace("...", "XX").split(",")
        length["X"] = 2
        oracle.agrees(
            "Einsum",
            [floats(rng, [length[letter] for letter in term]) for term in terms],
            {"equation": equation},
        )
