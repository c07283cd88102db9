import numpy as np
import pytest

from irgym.envs.graph.reference.calls import OperatorError
from irgym.envs.graph.reference.operators import evaluate

COORDINATES = ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners")
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_resize(oracle, rng, coordinates, mode):
    for index in range(32):
        x = rng.uniform(-3, 3, (*rng.integers(1, 3, 2), *rng.integers(1, 6, 2))).astype(np.float32)
        given = {"mode": mode, "coordinate_transformation_mode": coordinates}
        if mode == "nearest":
            given["nearest_mode"] = ROUNDINGS[index % 4]
        if index & 4:
            # Sizes that floats divide exactly, as rounding decides between neighbours.
            factors = rng.choice([1, 2, 4], 2)
            oracle.agrees(
                "Resize", [x, None, None, np.array([*x.shape[:2], *(x.shape[2:] * factors)])], given
            )
        elif coordinates == "align_corners" and mode == "nearest":
            oracle.agrees("Resize", [x, None, None, np.array(x.shape)], given)
        else:
            scales = np.array([1, 1, *rng.choice([0.5, 1, 2], 2)], np.float32)
            scales = np.where(np.array(x.shape) == 1, np.float32(2), scales) if index & 8 else scales
            scales[:2] = 1
            x = np.concatenate([x, x[:, :, ::-1]], 2)
            x = np.concatenate([x, x[..., ::-1]], 3)
            oracle.agrees("Resize", [x, None, scales], given, settings=[2])


def test_sizes_of_some_axes(oracle, rng):
    for _ in range(20):
        x = rng.uniform(-3, 3, (2, 3, *rng.integers(2, 6, 2))).astype(np.float32)
        sizes = rng.integers(1, 9, 2)
        oracle.agrees("Resize", [x, None, None, sizes], {"mode": "linear", "axes": (2, 3)})


@pytest.mark.parametrize("given", [{"mode": "cubic"}, {"antialias": 1}])
def test_unsupported_attributes_are_refused(given):
    with pytest.raises(OperatorError, match="Resize is not known here"):
        evaluate("Resize", [np.zeros((1, 1, 2, 2)), None, np.array([1, 1, 2, 2])], given)
