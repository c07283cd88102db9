import numpy as np
import pytest

from irgym.envs.graph.reference.calls import type_of
from irgym.envs.graph.reference.operators import types_of


def floats(rng, sizes):
    return rng.uniform(-1, 1, sizes).astype(np.float32)


def attributes(rng, rank, index):
    """Return attributes of a window of 1 to 3 elements along each axis, and the least input for them."""
    kernel = tuple(int(size) for size in rng.integers(1, 4, rank))
    dilations = tuple(int(step) for step in rng.integers(1, 3, rank))
    given = {
        "kernel_shape": kernel,
        "strides": tuple(int(step) for step in rng.integers(1, 4, rank)),
        "dilations": dilations,
    }
    auto = ("NOTSET", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")[index % 5]
    if auto == "NOTSET":
        given["pads"] = tuple(int(pad) for pad in rng.integers(0, 3, 2 * rank))
    else:
        given["auto_pad"] = auto
        if auto != "VALID":
            given["dilations"] = dilations = (1,) * rank
    if index % 4 == 0:
        given = {key: value for key, value in given.items() if key in ("pads", "auto_pad")}
        dilations = (1,) * rank
    return kernel, given, [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]


def convolution(rng, rank, index):
    kernel, given, least = attributes(rng, rank, index)
    group, inner, outer = (int(size) for size in rng.integers(1, 4, 3))
    spatial = [size + int(rng.integers(0, 6)) for size in least]
    x = floats(rng, (rng.integers(1, 3), group * inner, *spatial))
    weights = floats(rng, (group * outer, inner, *kernel))
    bias = floats(rng, group * outer) if index % 2 else None
    return [x, weights, bias], {**given, **({"group": group} if group > 1 else {})}


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_convolution(oracle, rng, rank):
    for index in range(40):
        oracle.agrees("Conv", *convolution(rng, rank, index))


ACTIVATIONS = {
    "Clip": (-0.3, 0.4),
    "HardSigmoid": (0.3, 0.6),
    "HardSwish": (),
    "LeakyRelu": (0.2,),
    "Relu": (),
    "Sigmoid": (),
    "Tanh": (),
    "": (),
}


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_fused(oracle, rng, activation):
    for index in range(24):
        inputs, given = convolution(rng, 2, index)
        if activation:
            given["activation"] = activation
        if ACTIVATIONS[activation]:
            given["activation_params"] = ACTIVATIONS[activation]
        if index % 3:
            kinds = [array if array is None else type_of(array) for array in inputs]
            (result,) = types_of("Conv", kinds, given)
            inputs.append(floats(rng, result.shape))
        oracle.agrees("com.microsoft.FusedConv", inputs, given)


@pytest.mark.parametrize("rank", [1, 2])
def test_transposed(oracle, rng, rank):
    for index in range(24):
        kernel, given, _ = attributes(rng, rank, 5 * index + 1)
        group, inner, outer = (int(size) for size in rng.integers(1, 4, 3))
        given["group"] = group
        if index % 3 == 0:
            strides = given["strides"] = (3,) * rank
            given["output_padding"] = tuple(int(rng.integers(0, step)) for step in strides)
        x = floats(rng, (2, group * inner, *(int(size) for size in rng.integers(6, 9, rank))))
        bias = floats(rng, group * outer) if index % 2 else None
        oracle.agrees("ConvTranspose", [x, floats(rng, (group * inner, outer, *kernel)), bias], given)
