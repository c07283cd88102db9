import numpy as np
import pytest

from irgym.envs.graph.reference.calls import OperatorError, type_of
from irgym.envs.graph.reference.layout import block_channels, block_weights, unblock_channels, unblock_weights
from irgym.envs.graph.reference.operators import evaluate, types_of

NCHWC = "com.microsoft.nchwc."
ACTIVATIONS = {
    "": (),
    "Clip": (-0.3, 0.4),
    "HardSigmoid": (0.3, 0.6),
    "HardSwish": (),
    "LeakyRelu": (0.2,),
    "Relu": (),
    "Sigmoid": (),
    "Tanh": (),
}


def floats(rng, sizes):
    return rng.uniform(-1, 1, sizes).astype(np.float32)


def image(rng, channels):
    return floats(rng, (rng.integers(1, 3), channels, *rng.integers(4, 9, 2)))


@pytest.mark.parametrize("last", [0, 1])
def test_reorders(oracle, rng, last):
    block = oracle.block
    for _ in range(20):
        channels = 4 * int(rng.integers(1, 12))
        x = image(rng, channels)
        given = np.ascontiguousarray(np.moveaxis(x, 1, -1)) if last else x
        oracle.agrees(f"{NCHWC}ReorderInput", [given], {"channels_last": last})
        inside = block_channels(x, block)
        oracle.agrees(f"{NCHWC}ReorderOutput", [inside], {"channels": channels, "channels_last": last})


def test_blocks_and_back(rng):
    for block in (8, 16):
        x, weights = image(rng, 3 * block), floats(rng, (2 * block, 3 * block, 3, 2))
        np.testing.assert_array_equal(unblock_channels(block_channels(x, block), block), x)
        for inputs in (False, True):
            mixed = block_weights(weights, block, inputs=inputs)
            np.testing.assert_array_equal(unblock_weights(mixed, block, inputs=inputs), weights)
        assert block_weights(weights[:5, :3], block, inputs=True).shape == (block, block, 3, 2)
        assert block_weights(weights[:5, :3], block, inputs=False).shape == (block, 3, 3, 2)


def convolution(oracle, rng, kind, index):
    """Return a plain convolution's inputs and attributes, and the inputs in blocks."""
    block = oracle.block
    filters = block * int(rng.integers(1, 3))
    channels, group = block * int(rng.integers(1, 3)), 1
    if kind == "few channels":
        channels = int(rng.integers(1, block))
    elif kind == "depthwise":
        filters = group = channels
    elif kind == "groups":
        group = 2
        channels, filters = 2 * channels, 2 * filters
    kernel = (1, 1) if kind == "pointwise" else tuple(int(size) for size in rng.integers(1, 4, 2))
    x, weights = image(rng, channels), floats(rng, (filters, channels // group, *kernel))
    bias = floats(rng, filters) if index % 3 else None
    given = {"group": group, "kernel_shape": kernel}
    if index & 1:
        given["strides"] = tuple(int(step) for step in rng.integers(1, 3, 2))
        given["pads"] = tuple(int(pad) for pad in rng.integers(0, 2, 4))
    if index & 2 and max(kernel) < 3:
        given["dilations"] = tuple(int(step) for step in rng.integers(1, 3, 2))
    if index % 5 == 4:
        given = {"group": group, "auto_pad": "SAME_UPPER"}
    inside = x if channels < block else block_channels(x, block)
    mixed = block_weights(weights, block, inputs=channels // group >= block)
    return [x, weights, bias], given, [inside, mixed, bias]


@pytest.mark.parametrize("kind", ["blocks", "pointwise", "few channels", "depthwise", "groups"])
def test_convolution(oracle, rng, kind):
    for index in range(28):
        plain, given, inputs = convolution(oracle, rng, kind, index)
        activation = list(ACTIVATIONS)[index % len(ACTIVATIONS)]
        fused = {"activation": activation} if activation else {}
        if ACTIVATIONS[activation]:
            fused["activation_params"] = ACTIVATIONS[activation]
        (expected,) = evaluate("Conv", plain, given)
        added = None
        if index // len(ACTIVATIONS) & 1:
            added = floats(rng, expected.shape)
            inputs.append(block_channels(added, oracle.block))
        oracle.agrees(f"{NCHWC}Conv", inputs, {**given, **fused}, rtol=1e-4)
        # ONNX Runtime's FusedConv on the plain inputs is the same.
        (result,) = evaluate(f"{NCHWC}Conv", inputs, {**given, **fused}, block=oracle.block)
        (fused_result,) = evaluate("com.microsoft.FusedConv", [*plain, added], {**given, **fused})
        np.testing.assert_allclose(unblock_channels(result, oracle.block), fused_result, 1e-5, 1e-5)


@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool"])
def test_pools(oracle, rng, operator):
    for index in range(24):
        x = block_channels(image(rng, oracle.block * int(rng.integers(1, 3))), oracle.block)
        kernel = tuple(int(size) for size in rng.integers(1, 4, 2))
        given = {"kernel_shape": kernel, "strides": tuple(int(step) for step in rng.integers(1, 4, 2))}
        if index & 1:
            given["pads"] = tuple(int(rng.integers(0, size)) for size in (*kernel, *kernel))
        given["ceil_mode"] = index >> 1 & 1
        if operator == "AveragePool":
            given["count_include_pad"] = index >> 2 & 1
        elif index % 3 == 0 and max(kernel) < 3:
            given["dilations"] = (2, 1)
        oracle.agrees(f"{NCHWC}{operator}", [x], given)


@pytest.mark.parametrize("operator", ["GlobalMaxPool", "GlobalAveragePool"])
def test_global_pools(oracle, rng, operator):
    for _ in range(20):
        oracle.agrees(f"{NCHWC}{operator}", [image(rng, oracle.block * int(rng.integers(1, 3)))])


def test_upsampling(oracle, rng):
    for _ in range(20):
        scales = (1, 1, *(int(size) for size in rng.integers(1, 4, 2)))
        oracle.agrees(f"{NCHWC}Upsample", [image(rng, oracle.block)], {"scales": scales, "mode": "nearest"})


def test_channels_that_do_not_fit_into_blocks_are_refused():
    x, weights = np.zeros((1, 16, 3, 3)), np.zeros((16, 16, 1, 1))
    for array, other in ((x[:, :12], weights[:, :12]), (x, weights[:4])):
        with pytest.raises(OperatorError, match="whole blocks of 8"):
            evaluate(f"{NCHWC}Conv", [array, other], {}, block=8)
    with pytest.raises(OperatorError, match="groups of 4"):
        evaluate(f"{NCHWC}Conv", [x, weights[:, :4]], {"group": 4}, block=8)
    with pytest.raises(OperatorError, match="nearest"):
        evaluate(f"{NCHWC}Upsample", [x], {"mode": "linear", "scales": (1, 1, 2, 2)})


def test_blocks_of_both_sizes_mean_the_same(rng):
    for block in (8, 16):
        x, weights = image(rng, 32), floats(rng, (32, 32, 3, 3))
        inputs = [block_channels(x, block), block_weights(weights, block, inputs=True)]
        (mixed,) = evaluate(f"{NCHWC}Conv", inputs, {}, block=block)
        (result,) = evaluate(f"{NCHWC}ReorderOutput", [mixed], {"channels": 32}, block=block)
        np.testing.assert_allclose(result, evaluate("Conv", [x, weights], {})[0], 1e-5, 1e-5)
        (kind,) = types_of(f"{NCHWC}ReorderInput", [type_of(x[:, :12])], {}, block=block)
        assert kind.shape[1] == 16
