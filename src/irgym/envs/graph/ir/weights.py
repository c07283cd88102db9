"""Weights: arrays that a model brings, and what rules compute of them. Nothing is computed before it is needed.

A weight is a small description, so that the states of a search share the arrays. `shape` and element type are
known at once; `Weights` computes the array, once, where the model is made to run.
"""

import hashlib
import math
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
        greatest: The greatest magnitude of its elements; infinite where one is no number, or nobody looked.
        causal: Whether its last two dimensions are a causal mask: 0 up to the diagonal, beyond it less than
            any score (-1e30 at most). Of truths: true up to the diagonal.
        open: Whether as a mask it leaves something in each row of its last dimension: a number that is not as
            low, or a truth.
    """

    name: str
    digest: str
    type: TensorType
    greatest: float = math.inf
    causal: bool = False
    open: bool = False


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

    @cached_property
    def greatest(self) -> float:
        """As `Stored.greatest`."""
        return greatest_of(self.array)

    @cached_property
    def causal(self) -> bool:
        """As `Stored.causal`."""
        return is_causal(self.array)

    @cached_property
    def open(self) -> bool:
        """As `Stored.open`."""
        return is_open(self.array)


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


SMALL = 64
"""Elements of the largest weight whose values rules may look at."""

MASKED = -1e30
"""What is added to a score that a softmax shall not see, or less."""


def weight_of(name: str, array: Array) -> Stored | Literal:
    """Return an array of a model's file as a weight: a literal where it is small."""
    kind = TensorType(str(array.dtype), array.shape)
    if array.size <= SMALL and array.dtype.kind in "biuf":
        return Literal(kind, array.tobytes())
    digest = digest_of(kind, array.tobytes())
    return Stored(name, digest, kind, greatest_of(array), is_causal(array), is_open(array))


def greatest_of(array: Array) -> float:
    """Return the greatest magnitude of an array's elements; infinite where one is no number."""
    if array.dtype.kind not in "biuf":
        return math.inf
    greatest = max(abs(float(array.max(initial=0))), abs(float(array.min(initial=0))))
    return math.inf if math.isnan(greatest) else greatest


def is_causal(array: Array) -> bool:
    """Say whether the last two dimensions of an array are a causal mask, the same one for all others."""
    if array.dtype.kind not in "bf" or array.ndim < 2 or array.shape[-1] != array.shape[-2] or not array.size:
        return False
    seen = np.tri(array.shape[-1], dtype=bool)
    if array.dtype.kind == "b":
        return bool((array == seen).all())
    return not array[..., seen].any() and bool((array[..., ~seen] <= MASKED).all())


def is_open(array: Array) -> bool:
    """Say whether an array, as a mask, leaves something in each row of its last dimension."""
    if array.dtype.kind not in "bf" or not array.ndim or not array.size:
        return False
    highest = array.max(-1)
    return bool(highest.all() if array.dtype.kind == "b" else ((highest > MASKED) & (highest < np.inf)).all())


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


def _blocks(weights: Array, block: int, inputs_too: bool) -> Array:
    """Return a convolution's weights in the order of ONNX Runtime's nchwc kernels; the shape stays.

    Output channels in blocks, and input channels too where `inputs_too` (OIHWBiBo, else OIHWBo).
    """
    out, into, *window = weights.shape
    inner = block if inputs_too else 1
    cut = weights.reshape(out // block, block, into // inner, inner, *window)
    rank = len(window)
    order = (0, 2, *range(4, 4 + rank), 3, 1)
    return np.ascontiguousarray(cut.transpose(order)).reshape(weights.shape)


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
        lambda array, order: np.ascontiguousarray(array.transpose(order)),
    ),
    "reshape": Function(lambda _, shape: shape, lambda array, shape: array.reshape(shape)),
    "matmul": Function(lambda left, right: (*left[:-1], right[-1]), np.matmul),
    "pad": Function(
        _padded,
        lambda array, before, after: np.pad(array, list(zip(before, after, strict=True))),
    ),
    # What is added to scores for a mask of truths; the elements are of the type of the first argument.
    "mask": Function(
        lambda _, shape: shape, lambda like, seen: np.where(seen, np.zeros((), like.dtype), -np.inf)
    ),
    "zeros": Function(lambda _, shape: shape, lambda like, shape: np.zeros(shape, like.dtype)),
    "block": Function(_same, _blocks),
}
"""Functions of weights, by name."""


def computed(function: str, *arguments: Weight | Plain) -> Computed:
    """Return what a function makes of some weights; the elements are those of the first of them."""
    given = [one.type.shape if isinstance(one, Stored | Literal | Computed) else one for one in arguments]
    weights = [one for one in arguments if isinstance(one, Stored | Literal | Computed)]
    shape = FUNCTIONS[function].shape(*given)
    return Computed(function, arguments, TensorType(weights[0].type.dtype, shape))


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
            self._computed[weight.digest] = np.asarray(array, weight.type.dtype)
        return self._computed[weight.digest]
