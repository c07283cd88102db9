"""Extreme inputs match their descriptions, and are as valid as ordinary ones."""

import numpy as np
import pytest

from irgym.envs.graph.programs.extremes import STYLES, Style, extremes
from irgym.envs.graph.programs.inputs import Input, draw

FLOATS = Input("x", np.dtype(np.float32), (6, 16))
IDS = Input("i", np.dtype(np.int64), (6, 16))
LIMITED = Input("j", np.dtype(np.int32), (6, 16))
MASK = Input("m", np.dtype(np.bool_), (6, 16))
EVERY = (FLOATS, IDS, LIMITED, MASK)
RANGES = {"i": (0, 9), "j": (3, 5)}


def drawn(*inputs: Input, seed: int = 0) -> dict[str, tuple[Style, dict[str, np.ndarray]]]:
    ordinary = draw(inputs, RANGES, seed)
    found = extremes(inputs, ordinary, RANGES, frozenset({"i"}), seed)
    return {style.name.removeprefix("inputs "): (style, values) for style, values in found}


@pytest.mark.parametrize("inputs", [(FLOATS,), (IDS,), (MASK,), EVERY])
def test_only_styles_that_change_something_are_drawn(inputs: tuple[Input, ...]):
    ordinary = draw(inputs, RANGES, 0)
    found = drawn(*inputs)
    for _, values in found.values():
        assert any(not np.array_equal(values[name], ordinary[name]) for name in ordinary)
    assert (len(found) == len(STYLES)) == (FLOATS in inputs)


def test_values_keep_their_types_and_their_ranges():
    for _, values in drawn(*EVERY).values():
        for given in EVERY:
            assert (values[given.name].dtype, values[given.name].shape) == (given.dtype, given.shape)
        assert set(np.unique(values["i"])) <= set(range(-9, 9)) and set(np.unique(values["j"])) <= {3, 4}


def test_floats_are_what_the_style_says():
    found = {name: values["x"] for name, (_, values) in drawn(FLOATS).items()}
    usual = np.abs(draw((FLOATS,), {}, 0)["x"]).max()
    assert np.abs(found["of a hundred times the usual size"]).max() == pytest.approx(100 * usual)
    assert np.abs(found["of a millionth of the usual size"]).max() == pytest.approx(1e-6 * usual)
    assert (found["positive inputs"] >= 0).all() and not found["of zeros"].any()
    tied = found["with equal numbers"]
    assert (tied == 0.5).sum() > 1 and (tied == 0).sum() > 1 and (tied == 2).sum() > 1
    assert np.isinf(found["with infinities"]).any() and np.isnan(found["with NaN"]).any()


def test_some_rows_of_masks_are_closed_and_some_hardly_open():
    rows = {name: values["m"].sum(axis=1) for name, (_, values) in drawn(MASK).items()}
    assert 0 in rows["of ten times the usual size"] and 0 in rows["with equal numbers"]
    assert (rows["of a hundred times the usual size"] == 1).all()
    assert (rows["of a millionth of the usual size"] == 16).all()


def test_half_precision_is_not_scaled_beyond_its_squares():
    half = Input("x", np.dtype(np.float16), (6, 16))
    values = drawn(half)["of a hundred times the usual size"][1]["x"]
    assert np.isfinite(values).all() and np.abs(values).max() < 60


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0)])
def test_any_shape_can_be_drawn(shape: tuple[int, ...]):
    inputs = [Input(name, np.dtype(kind), shape) for name, kind in (("x", "f4"), ("i", "i8"), ("m", "?"))]
    found = extremes(inputs, draw(inputs, RANGES, 0), RANGES, frozenset(), 0)
    assert all(values[given.name].shape == shape for _, values in found for given in inputs)


def test_the_same_seed_gives_the_same():
    first, again, other = drawn(*EVERY), drawn(*EVERY), drawn(*EVERY, seed=1)
    for name in first:
        for given in EVERY:
            assert np.array_equal(first[name][1][given.name], again[name][1][given.name], given is FLOATS)
    assert not np.array_equal(first["positive inputs"][1]["x"], other["positive inputs"][1]["x"])
