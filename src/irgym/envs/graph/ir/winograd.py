"""Winograd's minimal filtering: a convolution of m results by fewer products, as three linear maps.

Window and inputs are taken for polynomials, which are multiplied by their values at some points and at
infinity (the Toom-Cook method; Lavin and Gray, arXiv 1509.09308). A tile of m x m results takes t^2 products
instead of m^2 r^2, where the window is r x r and t = m + r - 1.

Rounding errors are larger than those of a direct convolution and depend on the points (Barabasz et al.,
arXiv 1803.10986). With m = 4 and r = 3 they are 4 times as large with the points used here, and 10 times with
the usual points 0, 1, -1, 2 and -2.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import polynomial
from numpy.typing import NDArray

Array = NDArray[Any]
Shape = tuple[int, ...]

POINTS = {4: (0.0, 1.0, -1.0), 6: (0.0, 5 / 8, -5 / 8, 3 / 2, -3 / 2)}
"""Finite points, by the inputs of a tile in one dimension: m + r - 1."""


class Maps(NamedTuple):
    """The maps of one dimension, for m results and a window of r; t = m + r - 1.

    Attributes:
        inputs: Maps t inputs to the first factors, shape (t, t).
        window: Maps the r weights to the second factors, shape (t, r).
        results: Maps t products to the results, shape (m, t).
    """

    inputs: Array
    window: Array
    results: Array


@cache
def maps(results: int, window: int) -> Maps:
    """Return the maps of one dimension, in double precision.

    Raises:
        KeyError: There are no points for tiles of this size.
    """
    size = results + window - 1
    points = POINTS[size]
    found = Maps(np.zeros((size, size)), np.zeros((size, window)), np.zeros((results, size)))
    for place, point in enumerate(points):
        others = [other for other in points if other != point]
        found.inputs[place, :-1] = polynomial.polyfromroots(others)
        found.window[place] = point ** np.arange(window) / np.prod([point - other for other in others])
        found.results[:, place] = point ** np.arange(results)
    found.inputs[-1] = polynomial.polyfromroots(points)
    found.window[-1, -1] = found.results[-1, -1] = 1
    return found


def weights(array: Array, results: int, block: int) -> Array:
    """Return a convolution's weights as those of the products: a grouped convolution with windows of 1.

    Args:
        array: Shape (filters, channels, r, r).
        results: Results of a tile in one dimension, m.
        block: Filters and channels are padded with zeros to multiples of this.

    Returns:
        Shape (t * t * filters, channels, 1, 1): a group for each product of a tile.
    """
    filters, channels, window, _ = array.shape
    spread = maps(results, window).window
    found = np.einsum("ai,bj,ocij->aboc", spread, spread, array.astype(np.float64), optimize=True)
    found = found.reshape(-1, filters, channels)
    filled = np.pad(found, ((0, 0), (0, -filters % block), (0, -channels % block)))
    return filled.reshape(-1, filled.shape[-1], 1, 1)


def weights_shape(shape: Shape, results: int, block: int) -> Shape:
    """Return the shape of `weights`."""
    filters, channels, window, _ = shape
    return ((results + window - 1) ** 2 * (filters + -filters % block), channels + -channels % block, 1, 1)


def inputs(_: Array, results: int, window: int) -> Array:
    """Return the map of a tile's inputs, shape (t * t, t * t)."""
    single = maps(results, window).inputs
    return np.kron(single, single)


def inputs_shape(_: Shape, results: int, window: int) -> Shape:
    """Return the shape of `inputs`."""
    return ((results + window - 1) ** 2,) * 2


def outputs(_: Array, results: int, window: int) -> Array:
    """Return the map of a tile's products to its results, shape (m * m, t * t)."""
    single = maps(results, window).results
    return np.kron(single, single)


def outputs_shape(_: Shape, results: int, window: int) -> Shape:
    """Return the shape of `outputs`."""
    return (results**2, (results + window - 1) ** 2)


def tiles(_: Array, images: int, planes: int, down: int, along: int, results: int, window: int) -> Array:
    """Return the pixel that each input of each tile reads.

    Args:
        images: Number of images.
        planes: Planes of an image, each with `down` by `along` tiles, stored contiguously.
        down: Tiles in a column.
        along: Tiles in a row.
        results: Results of a tile in one dimension, m.
        window: Size of the window, r.

    Returns:
        Shape (t * t, planes * images * down * along), in this order.
    """
    size = results + window - 1
    height, width = down * results + window - 1, along * results + window - 1
    image, plane = np.arange(images)[:, None, None], np.arange(planes)[:, None, None, None]
    row, column = (results * np.arange(count) for count in (down, along))
    corner = ((image * planes + plane) * height + row[:, None]) * width + column
    beside = np.add.outer(width * np.arange(size), np.arange(size))
    return np.add.outer(beside.reshape(-1), corner.reshape(-1))


def tiles_shape(
    _: Shape, images: int, planes: int, down: int, along: int, results: int, window: int
) -> Shape:
    """Return the shape of `tiles`."""
    return ((results + window - 1) ** 2, planes * images * down * along)
