"""Rules of Winograd's convolutions (`irgym.envs.graph.ir.winograd`): fewer products, at the price of maps.

On a CPU, ONNX Runtime computes all products of a convolution. With tiles of 4 x 4 results, 36 take the place
of 144 for a window of 3 x 3. They are one batched MatMul here. What is multiplied comes from the inputs of a
tile by a linear map, and what a tile makes from the products by another: these are MatMuls too. Channels come
last meanwhile, so that whatever moves is a row of channels. The maps cost the less, beside the products, the
more channels and filters there are.
"""

import numpy as np

from irgym.envs.graph.rules.rule import Rule, Sample
from irgym.envs.graph.rules.samples import integers

SHARE = 0.6
"""Greatest share of the convolution's products. With more, moving tiles takes longer than the rest saves."""

READ = 12
"""Products that take as long as reading a weight, of which there are more than the convolution has."""

PLAIN = (
    "w.constant and w.rank == 4 and w.shape[2] == w.shape[3] and x.type.dtype != 'float16'"
    " and not any(one != 1 for name in ('strides', 'dilations') for one in c.get(name, ()))"
    " and y.solid"
)
"""Condition that a convolution is one of the plain kind that the maps are for."""


def _sample(rng: np.random.Generator, window: int, results: int) -> Sample:
    """Return a sample with channels and filters enough for the condition."""
    filters, channels = integers(rng, 288 // results, 304 // results, 2)
    size = integers(rng, 24, 29, 2) if results == 2 else integers(rng, 29, 33, 2)
    values = {
        "x": rng.standard_normal((int(rng.integers(1, 3)), channels, *size)),
        "w": rng.standard_normal((filters, channels, window, window)),
        "b": rng.standard_normal(filters) if rng.integers(2) else None,
    }
    nodes = {"c": {"pads": integers(rng, 0, 3, 4)} if rng.integers(4) else {}}
    return Sample(values, frozenset("wb"), nodes=nodes)


def _rule(results: int, windows: tuple[int, ...]) -> Rule:
    """Return the rule for tiles of some size.

    Args:
        results: Results of a tile in one dimension.
        windows: Sizes of windows that there are maps for.
    """

    def sample(rng: np.random.Generator) -> Sample:
        return _sample(rng, int(rng.choice(windows)), results)

    return Rule(
        f"winograd-{results}",
        before="y = (c := Conv(x, w, [b], group=1, auto_pad='NOTSET'))",
        where=f"{PLAIN} and w.shape[2] in {windows}"
        f" and winograd_share({results}, w.shape, y.shape, {READ}) <= {SHARE}",
        after=f"""
m, r = {results}, w.shape[2]
filters, channels, size = *w.shape[:2], (m + r - 1) ** 2
count, down, along = y.shape[0], -(-y.shape[2] // m), -(-y.shape[3] // m)
tiles = count * down * along
height, width = down * m + r - 1, along * m + r - 1
top, left = tuple(c.get('pads', ()))[:2] or (0, 0)
last = Transpose(x, perm=(0, 2, 3, 1))
beyond = (0, top, left, 0, 0, height - x.shape[2] - top, width - x.shape[3] - left, 0)
padded = Pad(last, whole(*beyond)) if any(beyond) else last
pixels = Reshape(padded, whole(count * height * width, channels))
places = winograd_tiles(whole(0), count, down, along, m, r)
taken = Reshape(Gather(pixels, places, axis=0), whole(size, tiles * channels))
spread = Reshape(MatMul(winograd_inputs(w, m, r), taken), whole(size, tiles, channels))
products = MatMul(spread, winograd_weights(w, m))
summed = MatMul(winograd_outputs(w, m, r), Reshape(products, whole(size, tiles * filters)))
parts = Transpose(Reshape(summed, whole(m, m, count, down, along, filters)), perm=(2, 3, 0, 4, 1, 5))
joined = Reshape(parts, whole(count, down * m, along * m, filters))
cut = joined.shape[1:3] != y.shape[2:]
made = Slice(joined, whole(0, 0), whole(*y.shape[2:]), whole(1, 2)) if cut else joined
y = Transpose(Add(made, b) if b else made, perm=(0, 3, 1, 2))
""",
        sample=sample,
        source="Lavin and Gray, arXiv 1509.09308",
    )


RULES = (_rule(2, (3, 5)), _rule(4, (3,)))
"""Rules of Winograd's convolutions."""
