"""Rules for Winograd convolutions (`irgym.envs.graph.ir.winograd`): fewer products, plus linear maps.

On a CPU, ONNX Runtime computes all products of a convolution. With tiles of 4 x 4 results and a window of
3 x 3, Winograd's algorithm needs 36 products instead of 144. A blocked convolution with windows of 1 computes
them, with a group for each of the 36. A linear map turns the inputs of a tile into the factors, and another
turns the products into the results; both are MatMuls. All of this is in ONNX Runtime's blocked layout, so
that data moves in blocks of channels. The relative cost of the maps falls with the number of channels and
filters.
"""

from irgym.envs.graph.rewriting.rule import Rule, Sample
from irgym.envs.graph.rewriting.samples.blocks import CHANNEL_MULTIPLE
from irgym.envs.graph.rewriting.samples.convolutions import integers
from irgym.envs.graph.rewriting.samples.operands import Rng

SHARE = 0.9
"""Greatest estimated time relative to the plain convolution; see `winograd_share`."""

PLAIN = (
    "w.constant and (not b or b.constant) and w.rank == 4 and w.shape[2] == w.shape[3]"
    f" and x.shape[1] % {CHANNEL_MULTIPLE} == 0 and y.solid"
    " and not any(step != 1 for name in ('strides', 'dilations') for step in c.get(name, ()))"
)
"""Condition that a convolution has square windows and no strides or dilations, and can be blocked."""


def _sample(rng: Rng, results: int, window: int) -> Sample:
    """Return a sample that is just large enough for the condition."""
    channels, least = (48, 10) if results == 2 else (72, 14)
    filters, channels = int(rng.integers(144, 152)), channels + CHANNEL_MULTIPLE * int(rng.integers(4))
    pads = integers(rng, 0, 3, 4) if rng.integers(4) else None
    top, left, bottom, right = pads or (0, 0, 0, 0)
    high, wide = (made + window - 1 for made in integers(rng, least, least + 4, 2))
    values = {
        "x": rng.standard_normal(
            (int(rng.integers(1, 3)), channels, high - top - bottom, wide - left - right)
        ),
        "w": rng.standard_normal((filters, channels, window, window)),
        "b": rng.standard_normal(filters) if rng.integers(2) else None,
    }
    return Sample(values, frozenset("wb"), nodes={"c": {"pads": pads}} if pads else {})


def _rule(results: int, windows: tuple[int, ...]) -> Rule:
    """Return the rule for tiles of a size.

    Args:
        results: Results of a tile in one dimension.
        windows: Supported sizes of windows.
    """

    def sample(rng: Rng) -> Sample:
        return _sample(rng, results, int(rng.choice(windows)))

    return Rule(
        f"winograd-{results}",
        before="y = (c := Conv(x, w, [b], group=1, auto_pad='NOTSET'))",
        where=f"{PLAIN} and w.shape[2] in {windows}"
        f" and winograd_share({results}, w.shape, y.shape) <= {SHARE}",
        after=f"""
m, r = {results}, w.shape[2]
images, filters, high, wide = y.shape
down, along = -(-high // m), -(-wide // m)
height, width = down * m + r - 1, along * m + r - 1
ins, outs = -(-w.shape[1] // block), -(-filters // block)
size, tiles = (m + r - 1) ** 2, images * down * along

top, left = tuple(c.get('pads', ()))[:2] or (0, 0)
beyond = (0, top, left, 0, 0, height - x.shape[2] - top, width - x.shape[3] - left, 0)
planes = Reshape(ReorderInput(x), whole(images * ins, *x.shape[2:], block))
padded = Pad(planes, whole(*beyond)) if any(beyond) else planes
pixels = Reshape(padded, whole(images * ins * height * width, block))
taken = Gather(pixels, winograd_tiles(whole(0), images, ins, down, along, m, r), axis=0)
spread = MatMul(winograd_inputs(w, m, r), Reshape(taken, whole(size, ins * tiles * block)))

groups = Reshape(spread, whole(1, size * ins * block, images * down, along))
products = BlockedConv(groups, blocked(winograd_weights(w, m, block), block, 1), group=size)
summed = MatMul(winograd_outputs(w, m, r), Reshape(products, whole(size, outs * tiles * block)))

parts = Reshape(summed, whole(m, m, outs, images, down, along, block))
joined = Reshape(
    Transpose(parts, perm=(3, 2, 4, 0, 5, 1, 6)), whole(images, outs, down * m, along * m, block)
)
cut = (down * m, along * m) != (high, wide)
made = Slice(joined, whole(0, 0), whole(high, wide), whole(2, 3)) if cut else joined
rest = -filters % block
based = Add(made, reshape(pad(b, (0,), (rest,)) if rest else b, (outs, 1, 1, block))) if b else made
y = ReorderOutput(Reshape(based, whole(images, outs * block, high, wide)), channels=filters)
""",
        sample=sample,
        source="Lavin and Gray, arXiv 1509.09308",
    )


RULES = (_rule(2, (3, 5)), _rule(4, (3,)))
"""Rules for Winograd convolutions."""
