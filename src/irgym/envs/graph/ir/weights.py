"""Weights: arrays that a model brings, and what rules compute of them, once it is needed.

A weight is a small description, so that the states of a search share the arrays. `shape` and element type are
known at once; `Weights` computes the array, once, where the model is made to run.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from irgym.envs.graph.ir.types import TensorType

Array: TypeAlias = NDArray[Any]


Plain: TypeAlias = int | float | tuple[int, ...]


@dataclass(frozen=True)
class Stored:
    """An array of the model's file.

    Attributes:
        name: Its name there.
        digest: Digest of type and content.
        type: Its type.
    """

    name: str
    digest: str
    type: TensorType


@dataclass(frozen=True)
class Literal:
    """A small array that a rule made, such as the sizes of a split.

    Attributes:
        type: Its type.
        content: Its elements, row by row.
    """

    type: TensorType
    content: bytes

    @cached_property
    def digest(self) -> str:
        """Digest of type and content."""
        return digest_of(self.type, self.content)

    @property
    def array(self) -> Array:
        """The array; it cannot be written to."""
        return np.frombuffer(self.content, self.type.dtype).reshape(self.type.shape)


@dataclass(frozen=True)
class Computed:
    """What a function makes of other weights.

    Attributes:
        function: Name in `FUNCTIONS`.
        arguments: Weights, and plain values.
        type: Its type.
    """

    function: str
    arguments: tuple["Weight | Plain", ...]
    type: TensorType

    @cached_property
    def digest(self) -> str:
        """Digest of the function and its arguments."""
        parts = [
            one.digest if isinstance(one, Stored | Literal | Computed) else repr(one)
            for one in self.arguments
        ]
        return hashlib.blake2b("\0".join([self.function, *parts]).encode(), digest_size=16).hexdigest()


Weight: TypeAlias = Stored | Literal | Computed


def digest_of(kind: TensorType, content: bytes | memoryview) -> str:
    """Return what stands for an array of a type and content."""
    digest = hashlib.blake2b(f"{kind.dtype}{kind.shape}".encode(), digest_size=16)
    digest.update(content)
    return digest.hexdigest()


def literal(array: Any, dtype: str) -> Literal:
    """Return a small array as a weight."""
    values = np.asarray(array, dtype)
    return Literal(TensorType(dtype, values.shape), values.tobytes())


@dataclass(frozen=True)
class Function:
    """A function that weights are computed by.

    Attributes:
        shape: From shapes and plain values to the result's shape.
        array: From arrays and plain values to the result.
    """

    shape: Callable[..., tuple[int, ...]]
    array: Callable[..., Array]


def _elementwise(array: Callable[..., Array]) -> Function:
    return Function(
        lambda *shapes: np.broadcast_shapes(*[one for one in shapes if isinstance(one, tuple)]), array
    )


def _same(shape: tuple[int, ...], *_: Any) -> tuple[int, ...]:
    return shape


def _joined(axis: int, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    first = shapes[0]
    return (*first[:axis], sum(shape[axis] for shape in shapes), *first[axis + 1 :])


def _padded(shape: tuple[int, ...], before: tuple[int, ...], after: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size + low + high for size, low, high in zip(shape, before, after, strict=True))


def _part(shape: tuple[int, ...], axis: int, start: int, stop: int) -> tuple[int, ...]:
    return (*shape[:axis], stop - start, *shape[axis + 1 :])


def _blocked(weights: Array, block: int, inputs_too: bool) -> Array:
    """Return a convolution's weights in the order of ONNX Runtime's nchwc kernels; the shape stays.

    Output channels in blocks, and input channels too where `inputs_too` (OIHWBiBo, else OIHWBo).
    """
    out, into, *window = weights.shape
    inner = block if inputs_too else 1
    cut = weights.reshape(out // block, block, into // inner, inner, *window)
    rank = len(window)
    order = (0, 2, *range(4, 4 + rank), 3, 1)
    return np.ascontiguousarray(cut.transpose(order)).reshape(weights.shape)


def _without_padding(weights: Array, block: int, channels: int, inputs_too: bool) -> Array:
    """Return such weights with zeros for the channels that fill up blocks.

    Of the input channels where `inputs_too`, else of the output channels, the first `channels` keep theirs.
    """
    out, into, *window = weights.shape
    inner = block if inputs_too else 1
    cut = weights.reshape(out // block, into // inner, *window, inner, block)
    places: Array = np.arange(into if inputs_too else out) < channels
    ones = (1,) * len(window)
    shape = (1, into // inner, *ones, inner, 1) if inputs_too else (out // block, 1, *ones, 1, block)
    kept = places.reshape(shape)
    return np.where(kept, cut, 0).reshape(weights.shape)


def _joined_groups(weights: Array, groups: int) -> Array:
    """Return the weights of a convolution in which every two neighbouring groups are one, with zeros between.

    Args:
        weights: Shape (filters, channels of a group, *window).
        groups: Number of groups; even.

    Returns:
        Shape (filters, 2 * channels of a group, *window).
    """
    filters, channels, *window = weights.shape
    pairs = weights.reshape(groups // 2, 2, filters // groups, channels, *window)
    joined = np.zeros((groups // 2, 2, filters // groups, 2, channels, *window), weights.dtype)
    joined[:, 0, :, 0], joined[:, 1, :, 1] = pairs[:, 0], pairs[:, 1]
    return joined.reshape(filters, 2 * channels, *window)


FUNCTIONS: Mapping[str, Function] = {
    "add": _elementwise(np.add),
    "subtract": _elementwise(np.subtract),
    "multiply": _elementwise(np.multiply),
    "divide": _elementwise(np.divide),
    # The deviation that a batch normalisation divides by.
    "deviation": Function(_same, lambda variance, epsilon: np.sqrt(variance + epsilon)),
    "concat": Function(_joined, lambda axis, *arrays: np.concatenate(arrays, axis)),
    "transpose": Function(
        lambda shape, order: tuple(shape[axis] for axis in order),
        lambda array, order: array.transpose(order).copy(),  # keeps 0 dimensions
    ),
    "reshape": Function(lambda _, shape: shape, lambda array, shape: array.reshape(shape)),
    "matmul": Function(lambda left, right: (*left[:-1], right[-1]), np.matmul),
    "pad": Function(
        _padded,
        lambda array, before, after: np.pad(array, list(zip(before, after, strict=True))),
    ),
    "zeros": Function(lambda _, shape: shape, lambda like, shape: np.zeros(shape, like.dtype)),
    "part": Function(
        _part,
        lambda array, axis, start, stop: array[(slice(None),) * axis + (slice(start, stop),)],
    ),
    "blocked": Function(_same, _blocked),
    "without_padding": Function(_same, _without_padding),
    "joined_groups": Function(lambda shape, _: (shape[0], 2 * shape[1], *shape[2:]), _joined_groups),
}
"""Functions of weights, by name."""


def computed(function: str, *arguments: Weight | Plain) -> Computed:
    """Return what a function makes of some weights; the elements are those of the first of them."""
    if function == "concat":  # joined in whatever order, the same is the same
        arguments = (arguments[0], *(part for one in arguments[1:] for part in _parts(one, arguments[0])))
    given = [one.type.shape if isinstance(one, Stored | Literal | Computed) else one for one in arguments]
    weights = [one for one in arguments if isinstance(one, Stored | Literal | Computed)]
    shape = FUNCTIONS[function].shape(*given)
    return Computed(function, arguments, TensorType(weights[0].type.dtype, shape))


def _parts(one: Weight | Plain, axis: Weight | Plain) -> tuple[Weight | Plain, ...]:
    """Return what a weight was joined of along an axis."""
    joined = isinstance(one, Computed) and one.function == "concat" and one.arguments[0] == axis
    return one.arguments[1:] if joined and isinstance(one, Computed) else (one,)


class Weights:
    """The arrays of weights, each computed once.

    Args:
        stored: The arrays of the model's file, by name.
    """

    def __init__(self, stored: Mapping[str, Array]) -> None:
        self._stored = stored
        self._computed: dict[str, Array] = {}

    def array(self, weight: Weight) -> Array:
        """Return a weight's array."""
        if isinstance(weight, Stored):
            return self._stored[weight.name]
        if isinstance(weight, Literal):
            return weight.array
        if weight.digest not in self._computed:
            arguments = [
                self.array(one) if isinstance(one, Stored | Literal | Computed) else one
                for one in weight.arguments
            ]
            array = FUNCTIONS[weight.function].array(*arguments)
            self._computed[weight.digest] = np.asarray(array, weight.type.dtype, order="C")
        return self._computed[weight.digest]
