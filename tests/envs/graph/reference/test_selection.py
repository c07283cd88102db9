import numpy as np
import pytest


def shape(rng, least=1, most=4):
    return tuple(int(size) for size in rng.integers(1, 5, rng.integers(least, most)))


def floats(rng, sizes):
    return np.asarray(rng.uniform(-3, 3, sizes), np.float32)


def places(rng, size, sizes):
    return np.asarray(rng.integers(-size, size, sizes), np.int64)


def test_gather(oracle, rng):
    for index in range(30):
        x = floats(rng, shape(rng))
        axis = int(rng.integers(-x.ndim, x.ndim))
        given = {"axis": axis} if index % 4 else {}
        indices = places(rng, x.shape[given.get("axis", 0)], shape(rng, 0, 3))
        oracle.agrees("Gather", [x, indices], given)


def test_gather_elements(oracle, rng):
    for _ in range(24):
        x = floats(rng, shape(rng))
        axis = int(rng.integers(-x.ndim, x.ndim))
        sizes = [int(rng.integers(1, size + 1)) for size in x.shape]
        sizes[axis] = int(rng.integers(1, 5))
        oracle.agrees("GatherElements", [x, places(rng, x.shape[axis], sizes)], {"axis": axis})


def test_gather_of_tuples(oracle, rng):
    for index in range(40):
        batch = index % 3
        x = floats(rng, tuple(int(size) for size in rng.integers(1, 5, 4)))
        depth = int(rng.integers(1, 4 - batch + 1))
        sizes = (*x.shape[:batch], *shape(rng, 1 if batch == 0 else 0, 3))
        indices = np.stack([places(rng, x.shape[batch + axis], sizes) for axis in range(depth)], -1)
        oracle.agrees("GatherND", [x, indices], {"batch_dims": batch})


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_scatter(oracle, rng, reduction):
    for _ in range(20):
        x = floats(rng, (4, 3, 2))
        depth = int(rng.integers(1, 4))
        # Without a reduction, no place may be written twice.
        chosen = rng.permutation(int(np.prod(x.shape[:depth])))[:3]
        indices = np.stack(np.unravel_index(chosen, x.shape[:depth]), -1).astype(np.int64)
        if reduction != "none":
            indices[1] = indices[0]
        updates = floats(rng, (3, *x.shape[depth:]))
        oracle.agrees("ScatterND", [x, indices, updates], {"reduction": reduction})


def test_where(oracle, rng):
    for _ in range(24):
        whole = shape(rng)
        shapes = [tuple(size if rng.random() < 0.7 else 1 for size in whole) for _ in range(3)]
        condition = np.asarray(rng.random(shapes[0]) < 0.5)
        oracle.agrees("Where", [condition, floats(rng, shapes[1]) + 4, floats(rng, shapes[2]) + 4])
