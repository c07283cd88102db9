import numpy as np
import pytest


def floats(rng, sizes, low=-2.0, high=2.0):
    return np.asarray(rng.uniform(low, high, sizes), np.float32)


def shape(rng, least=2, most=5):
    return tuple(int(size) for size in rng.integers(2, 6, rng.integers(least, most)))


def epsilon(index, *, default=True):
    return {"epsilon": 10.0 ** -(index % 4 + 2)} if index % 3 or not default else {}


def test_batch(oracle, rng):
    for index in range(24):
        x = floats(rng, shape(rng))
        scale, bias, mean, variance = (floats(rng, x.shape[1]) for _ in range(4))
        oracle.agrees("BatchNormalization", [x, scale, bias, mean, abs(variance) + 0.1], epsilon(index))


@pytest.mark.parametrize("outputs", [1, 2, 3])
def test_layer(oracle, rng, outputs):
    for index in range(30):
        x = floats(rng, shape(rng))
        axis = int(rng.integers(-x.ndim, x.ndim)) if index % 2 else -1
        scale, bias = (floats(rng, x.shape[axis % x.ndim :]) for _ in range(2))
        given = {"axis": axis, **epsilon(index, default=False)}
        inputs = [x, scale, bias] if index % 5 else [x, scale]
        # ONNX Runtime says the statistics of float64 are float32.
        oracle.agrees("LayerNormalization", inputs, given, outputs, rtol=1e-4, doubles=outputs == 1)


def test_root_mean_square(oracle, rng):
    for index in range(24):
        x = floats(rng, shape(rng))
        axis = int(rng.integers(-x.ndim, x.ndim)) if index % 2 else -1
        given = {"axis": axis, **epsilon(index, default=False)}
        oracle.agrees("RMSNormalization", [x, floats(rng, x.shape[axis % x.ndim :])], given, opset=23)


@pytest.mark.parametrize("outputs", [1, 2])
def test_simplified(oracle, rng, outputs):
    for index in range(24):
        x = floats(rng, shape(rng))
        given = {"axis": -1, **epsilon(index, default=False)}
        inputs = [x, floats(rng, x.shape[-1])]
        oracle.agrees("SimplifiedLayerNormalization", inputs, given, outputs, doubles=outputs == 1)


def test_instance(oracle, rng):
    for index in range(24):
        x = floats(rng, shape(rng, 3))
        oracle.agrees(
            "InstanceNormalization", [x, *(floats(rng, x.shape[1]) for _ in range(2))], epsilon(index)
        )


@pytest.mark.parametrize("opset", [18, 21])
def test_group(oracle, rng, opset):
    for index in range(24):
        groups, each = (int(size) for size in rng.integers(1, 4, 2))
        x = floats(rng, (2, groups * each, *shape(rng, 1, 3)))
        scale, bias = (floats(rng, groups if opset == 18 else groups * each) for _ in range(2))
        given = {"num_groups": groups, **epsilon(index)}
        oracle.agrees("GroupNormalization", [x, scale, bias], given, opset=opset, atol=1e-3, doubles=False)


def test_embeddings(oracle, rng):
    for index in range(24):
        batch, length, hidden = (int(size) for size in rng.integers(2, 6, 3))
        words, segments, places = (
            rng.integers(0, most, (batch, length)).astype(np.int32) for most in (9, 2, 7)
        )
        tables = [floats(rng, (rows, hidden)) for rows in (9, 7, 2)]
        mask = (np.arange(length) < rng.integers(1, length + 1, (batch, 1))).astype(np.int32)
        inputs = [words, segments, *tables, *(floats(rng, hidden) for _ in range(2))]
        if index & 4:
            inputs[1] = inputs[4] = None
        inputs += [mask if index & 1 else None, places if index & 2 else None]
        given = epsilon(index, default=False)
        oracle.agrees("com.microsoft.EmbedLayerNormalization", inputs, given, outputs=3, rtol=1e-4)


SKIPS = ("com.microsoft.SkipLayerNormalization", "com.microsoft.SkipSimplifiedLayerNormalization")


@pytest.mark.parametrize("operator", SKIPS)
@pytest.mark.parametrize("outputs", [1, 4])
def test_skip(oracle, rng, operator, outputs):
    for index in range(30):
        x = floats(rng, shape(rng, 3, 4))
        added = [x.shape, (1, *x.shape[1:]), x.shape[1:]][index % 3]
        vectors = [floats(rng, x.shape[-1]) for _ in range(3)]
        if operator.endswith("SkipLayerNormalization"):
            vectors[1] = vectors[1] if index % 2 else None
        else:
            del vectors[1]
        vectors[-1] = vectors[-1] if index & 4 else None
        # ONNX Runtime leaves the statistics out.
        compared = (0,) if outputs == 1 else (0, 3)
        given = epsilon(index, default=False)
        oracle.agrees(
            operator, [x, floats(rng, added), *vectors], given, outputs, compared=compared, rtol=1e-4
        )
