import numpy as np
import pytest


def pool(rng, rank, index):
    kernel = tuple(int(size) for size in rng.integers(1, 4, rank))
    dilations = tuple(int(step) for step in rng.integers(1, 3, rank))
    given = {"kernel_shape": kernel, "ceil_mode": index >> 1 & 1}
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    if index % 4:
        given |= {"strides": tuple(int(step) for step in rng.integers(1, 4, rank)), "dilations": dilations}
    else:
        spans = kernel
    auto = ("NOTSET", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")[index % 5]
    if auto == "NOTSET":
        given["pads"] = tuple(int(rng.integers(0, size)) for size in (*kernel, *kernel))
    else:
        given["auto_pad"] = auto
        if auto != "VALID":
            given["dilations"], spans = (1,) * rank, kernel
            strides = given.get("strides", (1,) * rank)
            given["strides"] = tuple(min(pair) for pair in zip(strides, kernel, strict=True))
    spatial = [size + int(rng.integers(0, 6)) for size in spans]
    return rng.uniform(-3, 3, (rng.integers(1, 3), rng.integers(1, 4), *spatial)).astype(np.float32), given


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_maximum(oracle, rng, rank):
    for index in range(40):
        x, given = pool(rng, rank, index)
        oracle.agrees("MaxPool", [x], given)


@pytest.mark.parametrize("rank", [1, 2])
def test_places_of_maxima(oracle, rng, rank):
    for index in range(40):
        x, given = pool(rng, rank, index)
        oracle.agrees("MaxPool", [np.round(x) if index % 2 else x], given, outputs=2)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("padding", [0, 1])
def test_average(oracle, rng, rank, padding):
    for index in range(40):
        x, given = pool(rng, rank, index)
        oracle.agrees("AveragePool", [x], {**given, "count_include_pad": padding})


@pytest.mark.parametrize("operator", ["GlobalAveragePool", "GlobalMaxPool"])
def test_global(oracle, rng, operator):
    for _ in range(20):
        shape = rng.integers(1, 6, rng.integers(3, 6))
        oracle.agrees(operator, [rng.uniform(-3, 3, shape).astype(np.float32)])
