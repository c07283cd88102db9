import numpy as np
import pytest

from irgym.envs.graph.reference.calls import OperatorError
from irgym.envs.graph.reference.operators import evaluate

PLAIN = ("HardSwish", "Mish", "Relu", "Sigmoid", "Softplus", "Softsign", "Tanh", "com.microsoft.Gelu")
PARAMETERS = {
    "Elu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
    "LeakyRelu": ("alpha",),
    "Selu": ("alpha", "gamma"),
    "ThresholdedRelu": ("alpha",),
    "com.microsoft.QuickGelu": ("alpha",),
}


def floats(rng, sizes, low=-4.0, high=4.0):
    return np.asarray(rng.uniform(low, high, sizes), np.float32)


def shape(rng):
    return tuple(int(size) for size in rng.integers(1, 6, rng.integers(1, 4)))


@pytest.mark.parametrize("operator", PLAIN)
def test_without_parameters(oracle, rng, operator):
    for _ in range(20):
        oracle.agrees(operator, [floats(rng, shape(rng))], doubles=operator != "HardSwish")


@pytest.mark.parametrize("operator", PARAMETERS)
def test_with_parameters(oracle, rng, operator):
    for index in range(24):
        given = {name: rng.uniform(0.1, 2) for name in PARAMETERS[operator]} if index % 4 else {}
        # ONNX Runtime's defaults are rounded to float32.
        oracle.agrees(operator, [floats(rng, shape(rng))], given, doubles=bool(given))


@pytest.mark.parametrize("approximate", [None, "none", "tanh"])
def test_gelu(oracle, rng, approximate):
    for _ in range(20):
        given = {} if approximate is None else {"approximate": approximate}
        oracle.agrees("Gelu", [floats(rng, shape(rng))], given, doubles=False)


@pytest.mark.parametrize("operator", ["com.microsoft.BiasGelu", "com.microsoft.FastGelu"])
def test_biased(oracle, rng, operator):
    for index in range(24):
        x = floats(rng, shape(rng))
        alone = operator.endswith("FastGelu") and index % 2
        # ONNX Runtime's constants are rounded to float32.
        oracle.agrees(operator, [x] if alone else [x, floats(rng, x.shape[-1])], doubles=False)


@pytest.mark.parametrize(
    ("operator", "given", "message"),
    [
        ("com.microsoft.FusedConv", {"activation": "Elu"}, "Elu cannot be fused here"),
        ("com.microsoft.FusedConv", {"activation": "LeakyRelu"}, "LeakyRelu needs 1 parameters, not 0"),
        ("com.microsoft.FusedGemm", {"activation": "Clip"}, "Clip cannot be fused here"),
    ],
)
def test_fused_activations_are_those_of_onnx_runtime(operator, given, message):
    shape = (1, 1) if operator.endswith("Gemm") else (1, 1, 1, 1)
    with pytest.raises(OperatorError, match=message):
        evaluate(operator, [np.ones(shape), np.ones(shape)], given)


@pytest.mark.parametrize("operator", ["Sigmoid", "Softplus", "Tanh", "Elu", "Mish"])
def test_far_from_zero(oracle, rng, operator):
    for _ in range(20):
        x = np.append(floats(rng, (8,), -500, 500), np.float32(0.5))
        oracle.agrees(operator, [x], rtol=1e-4, doubles=False)
