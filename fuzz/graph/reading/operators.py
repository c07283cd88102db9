"""All samples of the operators of opsets 7 to 12."""

from collections.abc import Iterator

from fuzz.graph.reading import local, plain
from fuzz.graph.reading.samples import Draw, Sample


def samples(seed: int) -> Iterator[Sample]:
    """Yield all samples, with random inputs from a seed."""
    draw = Draw(seed)
    yield from plain.elementwise(draw)
    yield from plain.along_axes(draw)
    yield from plain.movement(draw)
    yield from local.windows(draw)
    yield from local.interpolation(draw)
    yield from local.lookups(draw)
    yield from local.quantised(draw)
    yield from local.recurrent(draw)
    yield from local.bodies(draw)
