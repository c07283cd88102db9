"""Random graphs with open sizes, and their inputs at some sizes."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Attribute, Node, node
from irgym.envs.graph.ir.sizes import Open, Undecided, symbol
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Weight, literal, sizes_of
from irgym.envs.graph.reference.calls import OperatorError
from irgym.envs.graph.reference.operators import types_of

PROFILE = {"n": 2, "h": 8, "w": 5, "l": 4}
SIZES = (
    {"n": 1, "h": 1, "w": 1, "l": 1},
    {"n": 3, "h": 7, "w": 9, "l": 5},
    {"n": 2, "h": 8, "w": 4, "l": 6},
    {"n": 1, "h": 2, "w": 3, "l": 1},
    {"n": 4, "h": 1, "w": 6, "l": 2},
)
"""Sizes of the open dimensions: those at which graphs count as measured, and others."""


class OpenMaker:
    """Grows a random graph with the inputs x (n, 4, h, w) and s (n, l, 6).

    Args:
        random: The source of all choices.
        dtype: The type of the inputs and of most weights.
    """

    def __init__(self, random: np.random.Generator, dtype: str = "float64") -> None:
        self.random = random
        self.dtype = dtype
        n, h, w, length = (symbol(name) for name in "nhwl")
        self.types = {"x": TensorType(dtype, (n, 4, h, w)), "s": TensorType(dtype, (n, length, 6))}
        self.weights: dict[str, Weight] = {}
        self.nodes: list[Node] = []
        self.values = ["x", "s"]

    def grown(self, steps: int) -> Graph:
        """Return a graph of at most some operators, with the values that nothing uses as results."""
        for _ in range(steps):
            value = self.choice(self.values[-4:])
            makers = [*MAKERS, *OF_IMAGES] if len(self.shape(value)) == 4 else MAKERS
            with suppress(OperatorError, Undecided, ValueError, IndexError):  # it does not fit here
                self.choice(makers)(self, value)
        used = {value for made in self.nodes for value in made.operands}
        outputs = [value for value in self.values if value not in used and value not in ("x", "s")] or ["x"]
        return Graph.of(self.nodes, self.types, self.weights, ["x", "s"], outputs, [("", 20)], PROFILE)

    def choice(self, options: Sequence[Any]) -> Any:
        """Return one of some options."""
        return options[int(self.random.integers(len(options)))]

    def weight(self, *shape: int) -> str:
        """Return the name of a new weight of numbers that are not small."""
        numbers = self.random.choice([-1, 1], shape) * self.random.uniform(0.5, 1.5, shape)
        return self.held(literal(numbers, self.dtype))

    def whole(self, *numbers: int) -> str:
        """Return the name of a new weight of whole numbers, perhaps open."""
        return self.held(sizes_of(np.array(numbers, object)))

    def held(self, weight: Weight) -> str:
        """Return the name of a new weight."""
        name = f"c{len(self.weights)}"
        self.weights[name], self.types[name] = weight, weight.type
        return name

    def add(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Attribute) -> list[str]:
        """Add an operator and return its results."""
        known = [getattr(self.weights.get(value), "array", None) for value in inputs]
        kinds = types_of(operator, [self.types[value] for value in inputs], attributes, known, outputs)
        names = [f"v{len(self.nodes)}.{place}" for place in range(outputs)]
        self.nodes.append(node(operator, inputs, names, **attributes))
        self.types.update(zip(names, kinds, strict=True))
        self.values += names
        return names

    def shape(self, value: str) -> tuple[int, ...]:
        """Return a value's shape."""
        return self.types[value].shape


def _unary(maker: OpenMaker, x: str) -> None:
    maker.add(maker.choice(["Relu", "Sigmoid", "Tanh", "Neg", "Abs", "Identity", "Exp", "Softplus"]), x)


def _with_constant(maker: OpenMaker, x: str) -> None:
    fitting = tuple(1 if isinstance(size, Open) else size for size in maker.shape(x))
    shape = maker.choice([(), (1,), fitting])
    maker.add(maker.choice(["Add", "Mul", "Sub", "Div"]), x, maker.weight(*shape))


def _with_other(maker: OpenMaker, x: str) -> None:
    maker.add(maker.choice(["Add", "Mul", "Sub", "Max"]), x, maker.choice(maker.values))


def _convolution(maker: OpenMaker, x: str) -> None:
    channels, kernel, stride = _fixed(maker.shape(x)[1]), maker.choice([1, 3]), maker.choice([1, 2])
    filters = maker.choice([4, 6])
    operands = [maker.weight(filters, channels, kernel, kernel), maker.weight(filters)]
    maker.add("Conv", x, *operands[: maker.choice([1, 2])], strides=(stride, stride), pads=(kernel // 2,) * 4)


def _pool(maker: OpenMaker, x: str) -> None:
    stride = maker.choice([1, 2])
    maker.add(
        maker.choice(["AveragePool", "MaxPool"]),
        x,
        kernel_shape=(3, 3),
        strides=(stride, stride),
        pads=(1,) * 4,
    )


def _normalisation(maker: OpenMaker, x: str) -> None:
    channels = _fixed(maker.shape(x)[1])
    held = [maker.weight(channels) for _ in range(3)]
    maker.add("BatchNormalization", x, *held, maker.held(literal(np.full(channels, 1.5), maker.dtype)))


def _layer_normalisation(maker: OpenMaker, x: str) -> None:
    last = _fixed(maker.shape(x)[-1])
    maker.add("LayerNormalization", x, maker.weight(last), maker.weight(last), axis=-1)


def _product(maker: OpenMaker, x: str) -> None:
    maker.add("MatMul", x, maker.weight(_fixed(maker.shape(x)[-1]), maker.choice([4, 6])))


def _two_products(maker: OpenMaker, x: str) -> None:
    for _ in range(2):
        maker.add("MatMul", x, maker.weight(_fixed(maker.shape(x)[-1]), 4))
    maker.add("Add", *maker.values[-2:])


def _transposition(maker: OpenMaker, x: str) -> None:
    order = tuple(int(axis) for axis in maker.random.permutation(len(maker.shape(x))))
    maker.add("Transpose", x, perm=order)


def _flattening(maker: OpenMaker, x: str) -> None:
    """Join two neighbouring dimensions, and perhaps part them again."""
    shape = maker.shape(x)
    axis = int(maker.random.integers(len(shape) - 1))
    joined = (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :])
    told = maker.choice([joined, (*joined[:-1], -1)])
    [flat] = maker.add("Reshape", x, maker.whole(*told))
    if maker.choice([True, False]):
        maker.add("Reshape", maker.add("Relu", flat)[0], maker.whole(*shape))


def _unsqueezing(maker: OpenMaker, x: str) -> None:
    axis = int(maker.random.integers(len(maker.shape(x)) + 1))
    [longer] = maker.add("Unsqueeze", x, maker.whole(axis))
    maker.add("Squeeze", maker.add("Sigmoid", longer)[0], maker.whole(axis))


def _joining(maker: OpenMaker, x: str) -> None:
    axis = int(maker.random.integers(len(maker.shape(x))))
    maker.add("Concat", x, maker.choice([x, *maker.values]), axis=axis)


def _cutting(maker: OpenMaker, x: str) -> None:
    fixed = [place for place, size in enumerate(maker.shape(x)) if not isinstance(size, Open) and size > 3]
    if not fixed:
        return
    axis = fixed[-1]
    if maker.choice([True, False]):
        maker.add("Split", x, maker.whole(2, maker.shape(x)[axis] - 2), outputs=2, axis=axis)
        return
    low = int(maker.random.integers(2))
    maker.add(
        "Slice", x, maker.whole(low), maker.whole(maker.choice([3, 2**40])), maker.whole(axis), maker.whole(1)
    )


def _open_cutting(maker: OpenMaker, x: str) -> None:
    axis = int(maker.random.integers(len(maker.shape(x))))
    maker.add(
        "Slice", x, maker.whole(0), maker.whole(maker.choice([1, 2**40])), maker.whole(axis), maker.whole(1)
    )


def _reduction(maker: OpenMaker, x: str) -> None:
    axis = int(maker.random.integers(len(maker.shape(x))))
    operator = maker.choice(["ReduceMean", "ReduceSum", "ReduceMax"])
    maker.add(operator, x, maker.whole(axis), keepdims=maker.choice([0, 1, 1]))


def _softmax(maker: OpenMaker, x: str) -> None:
    maker.add("Softmax", x, axis=int(maker.random.integers(len(maker.shape(x)))))


def _resizing(maker: OpenMaker, x: str) -> None:
    scales = maker.held(literal([1, 1, 2, 2], "float32"))
    empty = maker.held(literal([], "float32"))
    maker.add("Resize", x, empty, scales, mode="nearest", coordinate_transformation_mode="asymmetric",
              nearest_mode="floor")  # fmt: skip


def _expansion(maker: OpenMaker, x: str) -> None:
    maker.add("Expand", maker.weight(*(1,) * len(maker.shape(x))), maker.whole(*maker.shape(x)))
    maker.add("Add", x, maker.values[-1])


def _fixed(size: int) -> int:
    """Return a size that is a number.

    Raises:
        Undecided: It is open.
    """
    return int(size)


MAKERS: tuple[Callable[[OpenMaker, str], None], ...] = (
    _unary,
    _with_constant,
    _with_other,
    _layer_normalisation,
    _product,
    _two_products,
    _transposition,
    _flattening,
    _flattening,
    _unsqueezing,
    _joining,
    _cutting,
    _open_cutting,
    _reduction,
    _softmax,
    _expansion,
)
"""Functions that add operators to values of any rank."""

OF_IMAGES = (_convolution, _convolution, _convolution, _pool, _normalisation, _resizing)
"""Functions that add operators to values of rank 4."""


def feeds_at(sizes: Mapping[str, int], seed: int, dtype: str = "float64") -> dict[str, Any]:
    """Return inputs of `OpenMaker`'s graphs at some sizes."""
    random = np.random.default_rng(seed)
    n, h, w, length = (sizes[name] for name in "nhwl")
    shapes = {"x": (n, 4, h, w), "s": (n, length, 6)}
    return {name: random.normal(size=shape).astype(dtype) for name, shape in shapes.items()}
