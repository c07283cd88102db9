"""The patches of img2col, gathered by vectors where they are packed. Imported in a child only.

MLIR gathers all patches first, element by element, into a tensor that is larger than the image by the size of
the window. Here each packed part is gathered directly from the image, so that this tensor need not exist:
cuDNN's implicit matrix multiplication (arXiv 1410.0759). It is done on tensors, where nothing can modify the
image in between.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from irgym.envs.linalg.compiling.bindings import arith, ir, scf
from irgym.envs.linalg.compiling.rows import index, pieces, read, read_every_second, write
from irgym.envs.linalg.compiling.slices import erase_unused, packed_slices, total
from irgym.envs.linalg.compiling.strides import factored
from irgym.envs.linalg.scheduling.script import PATCHES

WIDEST = 16
"""Greatest number of elements of a row that are moved at once."""

Body = Callable[[Any, Any], Any]
"""Writer of a loop's body: takes the index and the tensor so far, and returns the new tensor."""


def gather_patches(gather: Any) -> None:
    """Replace an operation that has the attribute `PATCHES`, and the copies of slices of its result."""
    patches, geometry = gather.results[0], _Geometry.of(gather)
    for copy, offsets in packed_slices(patches):
        source, target = copy.operands
        with ir.InsertionPoint(copy):
            packed = geometry.part(target, offsets)
        copy.results[0].replace_all_uses_with(packed)
        copy.erase()
        erase_unused(source)
    if list(patches.uses):
        with ir.InsertionPoint(gather):
            patches.replace_all_uses_with(geometry.all(gather.operands[1]))
    gather.erase()


@dataclass(frozen=True)
class _Geometry:
    """An image, NCHW, and the geometry of its patches.

    Attributes:
        image: The tensor.
        window: Height and width of the window.
        strides: Distances between windows, down and to the right.
        width: Columns of the convolution's result.
    """

    image: Any
    window: tuple[int, int]
    strides: tuple[int, int]
    width: int

    @property
    def widest(self) -> int:
        """Greatest number of elements that are moved at once."""
        return WIDEST if self.strides[1] <= 2 else 1

    @classmethod
    def of(cls, gather: Any) -> "_Geometry":
        height, width, down, right, _, columns = gather.attributes[PATCHES]
        return cls(gather.operands[0], (height, width), (down, right), columns)

    def part(self, into: Any, offsets: Sequence[Sequence[Any]]) -> Any:
        """Gather a slice of the patches by position: a panel of few positions is close in memory.

        Args:
            into: The tensor that the slice goes to, with dimensions images, terms, positions.
            offsets: Start of the slice in each dimension, as the terms of a sum.
        """
        images, terms, positions = into.type.shape
        # Chunks of `lanes` positions start at multiples of it, and do not cross rows of the result.
        lanes = math.gcd(positions, self.width, self.widest, _divisor(offsets[2]))
        image_0, term_0, position_0 = (total(summands) for summands in offsets)

        def chunk(image: Any, begin: Any, held: Any) -> Any:
            row, column = _divided(_add(position_0, begin), self.width)

            def move(term: Any, window: Sequence[Any], held: Any) -> Any:
                pixels = self._pixels(_add(image_0, image), window, row, column, lanes)
                return write(pixels, held, (image, term, begin))

            return self._over_terms(terms, term_0, move, held)

        def positions_of(image: Any, held: Any) -> Any:
            return _loop(positions, lanes, lambda begin, held: chunk(image, begin, held), held)

        return _loop(images, 1, positions_of, into)

    def all(self, into: Any) -> Any:
        """Gather all patches, by rows of each term."""
        images, terms, positions = into.type.shape

        def rows(image: Any, term: Any, window: Sequence[Any], held: Any) -> Any:
            def row_of(row: Any, held: Any) -> Any:
                for column, lanes in pieces(0, self.width, self.widest):
                    pixels = self._pixels(image, window, row, index(column), lanes)
                    place = _add(_times(row, self.width), index(column))
                    held = write(pixels, held, (image, term, place))
                return held

            return _loop(positions // self.width, 1, row_of, held)

        def terms_of(image: Any, held: Any) -> Any:
            def move(term: Any, window: Sequence[Any], held: Any) -> Any:
                return rows(image, term, window, held)

            return self._over_terms(terms, index(0), move, held)

        return _loop(images, 1, terms_of, into)

    def _over_terms(
        self, terms: int, first: Any, move: Callable[[Any, Sequence[Any], Any], Any], held: Any
    ) -> Any:
        """Write loops over terms; `move` gets each term's place, and its channel, row and column."""
        height, width = self.window
        channels = self.image.type.shape[1]
        if terms < channels * height * width:

            def at_term(place: Any, held: Any) -> Any:
                rest, column = _divided(_add(first, place), width)
                return move(place, (*_divided(rest, height), column), held)

            return _loop(terms, 1, at_term, held)

        def in_row(channel: Any, row: Any, column: Any, held: Any) -> Any:
            place = _add(_times(_add(_times(channel, height), row), width), column)
            return move(place, (channel, row, column), held)

        def in_channel(channel: Any, row: Any, held: Any) -> Any:
            return _loop(width, 1, lambda column, held: in_row(channel, row, column, held), held)

        def in_image(channel: Any, held: Any) -> Any:
            return _loop(height, 1, lambda row, held: in_channel(channel, row, held), held)

        return _loop(channels, 1, in_image, held)

    def _pixels(self, image: Any, window: Sequence[Any], row: Any, column: Any, lanes: int) -> Any:
        """Read the pixels of one term for `lanes` positions of a row of the result."""
        channel, down, right = window
        at = (image, channel, _add(_times(row, self.strides[0]), down))
        begin = _add(_times(column, self.strides[1]), right)
        gathered = read if self.strides[1] == 1 else read_every_second
        return gathered(self.image, (*at, begin), lanes)


def _divisor(terms: Sequence[Any]) -> int:
    """Return a number that is known to divide a sum of numbers and values; 0 for a sum of 0."""
    return math.gcd(*(term if isinstance(term, int) else _divisor_of(term) for term in terms))


def _divisor_of(value: Any) -> int:
    owner = value.owner
    if isinstance(owner, ir.Block):
        bounds = owner.owner.operands
        return math.gcd(_divisor_of(bounds[0]), _divisor_of(bounds[2])) if _counts(owner, value) else 1
    if owner.name == "affine.apply":
        # A parallel loop counts its tiles.
        [result] = owner.attributes["map"].value.results
        counted, size = factored(result)
        return size if isinstance(counted, ir.AffineDimExpr) else 1
    return int(owner.attributes["value"]) if owner.name == "arith.constant" else 1


def _counts(block: Any, value: Any) -> bool:
    """Say whether a value is the induction variable of a loop."""
    return block.owner.name == "scf.for" and value == block.arguments[0]


def _add(left: Any, right: Any) -> Any:
    return arith.addi(left, right)


def _times(value: Any, factor: int) -> Any:
    return arith.muli(value, index(factor))


def _divided(value: Any, divisor: int) -> tuple[Any, Any]:
    """Return quotient and remainder of a nonnegative value."""
    by = index(divisor)
    return arith.divui(value, by), arith.remui(value, by)


def _loop(iterations: int, step: int, body: Body, held: Any) -> Any:
    """Write a loop that carries a tensor, and return the tensor after the loop."""
    loop = scf.ForOp(index(0), index(iterations), index(step), [held])
    with ir.InsertionPoint(loop.body):
        scf.yield_([body(loop.induction_variable, loop.inner_iter_args[0])])
    return loop.results[0]
