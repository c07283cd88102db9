"""Random tensor graphs of few small operators, with broadcasting, odd ranks and shared values."""

from collections.abc import Callable
from typing import Any

import numpy as np

from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Attribute, Node
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Literal, Weight, literal
from irgym.envs.graph.reference.calls import OperatorError
from irgym.envs.graph.reference.operators import evaluate, types_of

Rng = np.random.Generator
SIZES = (1, 2, 2, 3)


class Maker:
    """Makes a graph, operator by operator. What does not fit is tried again with other operands."""

    def __init__(self, rng: Rng) -> None:
        self.rng = rng
        self.types: dict[str, TensorType] = {}
        self.weights: dict[str, Weight] = {}
        self.inputs: list[str] = []
        self.nodes: list[Node] = []
        for _ in range(4):
            self.leaf(self._shape())

    def _shape(self) -> tuple[int, ...]:
        return tuple(int(self.rng.choice(SIZES)) for _ in range(int(self.rng.integers(0, 5))))

    def leaf(self, shape: tuple[int, ...], *, whole: bool = True) -> str:
        """Return a new input or weight; of whole numbers at times, if they may be."""
        name = f"v{len(self.types)}"
        kind = "int64" if whole and self.rng.random() < 0.1 else "float64"
        self.types[name] = TensorType(kind, shape)
        if self.rng.random() < 0.5:
            array = np.asarray(
                self.rng.integers(-1, 2, shape) if self.rng.random() < 0.4 else self.rng.normal(size=shape)
            )
            self.weights[name] = literal(array, kind)
        else:
            self.inputs.append(name)
        return name

    def constant(self, *numbers: int) -> str:
        """Return a new weight of whole numbers."""
        name = f"v{len(self.types)}"
        self.weights[name] = literal(numbers, "int64")
        self.types[name] = self.weights[name].type
        return name

    def weight(self, *shape: int) -> str:
        """Return a new weight."""
        return self.literal(self.rng.normal(size=shape))

    def number(self, value: float) -> str:
        """Return a weight of one number."""
        return self.literal(np.asarray(value))

    def literal(self, array: Any) -> str:
        """Return a new weight of some elements."""
        name = f"v{len(self.types)}"
        self.weights[name] = literal(array, "float64")
        self.types[name] = self.weights[name].type
        return name

    def any(self, rank: int = 0) -> str:
        """Return a value of at least some rank; late ones are likelier."""
        fit = [name for name, kind in self.types.items() if len(kind.shape) >= rank and not self._whole(name)]
        if not fit or self.rng.random() < 0.15:
            return self.leaf((*self._shape(), *(2 for _ in range(rank))))
        place = len(fit) - 1 - int(len(fit) * self.rng.random() ** 2)
        return fit[place]

    def _whole(self, name: str) -> bool:
        return self.types[name].dtype == "int64" and name in self.weights

    def axis(self, name: str) -> int:
        """Return an axis of a value, counted from the front or from the end."""
        rank = len(self.types[name].shape)
        return int(self.rng.integers(-rank, rank))

    def add(
        self, operator: str, inputs: list[str], outputs: int = 1, **attributes: Attribute
    ) -> list[str] | None:
        """Add a node and return its results; None where its operands do not fit."""
        if not self._in_range(operator, inputs, attributes):
            return None
        known = [one.array if isinstance(one := self.weights.get(name), Literal) else None for name in inputs]
        given = [self.types[name] for name in inputs]
        if len({kind.dtype for kind in given[: 1 if operator in MOVES else None]}) > 1:
            return None
        try:
            kinds = types_of(operator, given, attributes, known, outputs)
            arrays = [
                np.ones(kind.shape, kind.dtype) if array is None else array
                for array, kind in zip(known, given, strict=True)
            ]
            evaluate(operator, arrays, attributes, outputs)
        except (OperatorError, ValueError, IndexError):
            return None
        if not all(0 < kind.size <= 200 for kind in kinds):
            return None
        names = [f"v{len(self.types) + place}" for place in range(outputs)]
        self.types.update(zip(names, kinds, strict=True))
        self.nodes.append(Node(operator, tuple(inputs), tuple(names), tuple(sorted(attributes.items()))))
        return names

    def _in_range(self, operator: str, inputs: list[str], attributes: dict[str, Attribute]) -> bool:
        """Say whether axes are; the reference takes more than ONNX allows."""
        rank = len(self.types[inputs[0]].shape)
        axes = [attributes["axis"]] if "axis" in attributes else []
        place = 3 if operator == "Slice" else 1 if operator.startswith("Reduce") else len(inputs)
        if place < len(inputs):
            weight = self.weights.get(inputs[place])
            axes += weight.array.ravel().tolist() if isinstance(weight, Literal) else [99]
        return all(isinstance(axis, int) and -rank <= axis < rank for axis in axes)

    def same_type(self, name: str) -> str:
        """Return a value of the same type, if need be a new one."""
        others = [one for one, kind in self.types.items() if kind == self.types[name] and one != name]
        if others and self.rng.random() < 0.6:
            return others[int(self.rng.integers(len(others)))]
        return self.leaf(self.types[name].shape)

    def graph(self, count: int) -> Graph:
        """Return a graph of so many nodes."""
        while len(self.nodes) < count:
            STEPS[int(self.rng.integers(len(STEPS)))](self)
        used = {value for one in self.nodes for value in one.inputs}
        made = [value for one in self.nodes for value in one.outputs]
        outputs = [name for name in made if name not in used or self.rng.random() < 0.1]
        return Graph.of(self.nodes, self.types, self.weights, self.inputs, outputs, [("", 20)])

    def feeds(self) -> dict[str, Any]:
        """Return random inputs of the graph."""
        kinds = {name: self.types[name] for name in self.inputs}
        return {
            name: np.asarray(
                self.rng.normal(size=kind.shape)
                if kind.dtype == "float64"
                else self.rng.integers(-2, 3, kind.shape)
            )
            for name, kind in kinds.items()
        }


MOVES = frozenset(
    {
        "Reshape",
        "Split",
        "Slice",
        "Gather",
        "Squeeze",
        "Unsqueeze",
        "Expand",
        "ReduceSum",
        "ReduceMax",
        "ReduceMean",
    }
)


def _unary(maker: Maker) -> None:
    name = maker.any()
    if maker.types[name].dtype == "float64":
        maker.add(str(maker.rng.choice(["Relu", "Relu", "Tanh", "Neg"])), [name])


def _binary(maker: Maker) -> None:
    operator = str(maker.rng.choice(["Add", "Add", "Mul", "Mul", "Sub", "Max"]))
    maker.add(operator, [maker.any(), maker.any()])


def _matmul(maker: Maker) -> None:
    left = maker.any(1)
    inner = maker.types[left].shape[-1]
    for _ in range(4):
        right = maker.any(1)
        if maker.add("MatMul", [left, right]):
            return
    maker.add("MatMul", [left, maker.leaf((inner, 2))])


def _transpose(maker: Maker) -> None:
    name = maker.any()
    rank = len(maker.types[name].shape)
    maker.add("Transpose", [name], perm=tuple(maker.rng.permutation(rank).tolist()))


def _reshape(maker: Maker) -> None:
    name = maker.any()
    left, sizes = maker.types[name].size, list[int]()
    while left > 1 or maker.rng.random() < 0.4:
        size = int(maker.rng.choice([one for one in (1, 2, 3, left) if left % one == 0]))
        sizes.append(size)
        left //= size
    if len(sizes) < 6:
        maker.add("Reshape", [name, maker.constant(*sizes)])


def _squeeze(maker: Maker) -> None:
    name = maker.any()
    ones = [axis for axis, size in enumerate(maker.types[name].shape) if size == 1]
    if ones and maker.rng.random() < 0.5:
        maker.add("Squeeze", [name, maker.constant(ones[0])])
    else:
        maker.add("Unsqueeze", [name, maker.constant(0)])


def _split(maker: Maker) -> None:
    name = maker.any(1)
    axis = maker.axis(name)
    size = maker.types[name].shape[axis]
    if size > 1:
        maker.add("Split", [name, maker.constant(1, size - 1)], 2, axis=axis)


def _concat(maker: Maker) -> None:
    name = maker.any(1)
    axis = maker.axis(name)
    for _ in range(3):
        names = [name, *(maker.any(1) for _ in range(int(maker.rng.integers(1, 3))))]
        if maker.add("Concat", names, axis=axis):
            return
    maker.add("Concat", [name, name], axis=axis)


def _slice(maker: Maker) -> None:
    name = maker.any(1)
    axis = maker.axis(name)
    size = maker.types[name].shape[axis]
    start = int(maker.rng.integers(-size, size))
    ends = [maker.constant(start), maker.constant(int(maker.rng.choice([size, 99, -1])))]
    names = [name, *ends, maker.constant(axis), maker.constant(int(maker.rng.choice([1, 1, 2, -1])))]
    maker.add("Slice", names)


def _gather(maker: Maker) -> None:
    name = maker.any(1)
    axis = maker.axis(name)
    size = maker.types[name].shape[axis]
    index = literal(maker.rng.integers(-size, size, ((), (), (2,))[int(maker.rng.integers(3))]), "int64")
    place = f"v{len(maker.types)}"
    maker.weights[place], maker.types[place] = index, index.type
    maker.add("Gather", [name, place], axis=axis)


def _reduce(maker: Maker) -> None:
    name = maker.any(1)
    operator = str(maker.rng.choice(["ReduceSum", "ReduceMax"]))
    maker.add(operator, [name, maker.constant(maker.axis(name))], keepdims=int(maker.rng.integers(2)))


def _softmax(maker: Maker) -> None:
    name = maker.any(1)
    if maker.types[name].dtype == "float64":
        maker.add("Softmax", [name], axis=maker.axis(name))


def _twice(maker: Maker) -> None:
    """Apply an operator that is there to another operand."""
    if maker.nodes:
        one = maker.nodes[int(maker.rng.integers(len(maker.nodes)))]
        inputs = list(one.inputs)
        if maker.rng.random() < 0.8:
            inputs[0] = maker.any()
        maker.add(one.operator, inputs, len(one.outputs), **dict(one.attributes))


def _siblings(maker: Maker) -> None:
    """Apply one operator to all parts of a Split, or to all that a Concat joins next."""
    splits = [one for one in maker.nodes if one.operator == "Split"]
    if not splits:
        return
    parts = splits[int(maker.rng.integers(len(splits)))].outputs
    other = maker.any()
    kind = int(maker.rng.integers(4))
    made: list[str] = []
    for part in parts:
        if kind == 0:
            one = maker.add("Tanh", [part]) if maker.types[part].dtype == "float64" else None
        elif kind == 1:
            one = maker.add("MatMul", [part, other])
        elif kind == 2:
            one = maker.add("Mul", [part, maker.any()])
        else:
            one = maker.add("Add", [part, other])
        made += one or []
    if made and len(maker.types[made[0]].shape) and maker.rng.random() < 0.7:
        maker.add("Concat", made, axis=maker.axis(made[0]))


def _twins(maker: Maker) -> None:
    """Make a node that differs in one operand from another, and join both in one way or another."""
    pairs = [
        one for one in maker.nodes if one.operator in ("MatMul", "Mul", "Add", "Transpose", "Relu", "Tanh")
    ]
    if not pairs:
        return
    one = pairs[int(maker.rng.integers(len(pairs)))]
    inputs = list(one.inputs)
    place = int(maker.rng.integers(len(inputs)))
    inputs[place] = maker.same_type(inputs[place])
    twin = maker.add(one.operator, inputs, **dict(one.attributes))
    if not twin:
        return
    kind = str(maker.rng.choice(["Add", "Sub", "Mul", "MatMul", "Concat", "none"]))
    if kind == "Concat" and maker.types[one.name].shape:
        maker.add("Concat", [one.name, twin[0]], axis=maker.axis(one.name))
    elif kind in ("Add", "Sub", "Mul", "MatMul"):
        maker.add(kind, [one.name, twin[0]])


def _constant(maker: Maker) -> None:
    """Add or multiply a small weight."""
    name = maker.any()
    shape = maker.types[name].shape
    if maker.types[name].dtype != "float64":
        return
    small = shape[int(maker.rng.integers(len(shape) + 1)) :]
    array = maker.rng.normal(size=tuple(1 if maker.rng.random() < 0.3 else size for size in small))
    weight = f"v{len(maker.types)}"
    maker.weights[weight] = literal(np.asarray(array), "float64")
    maker.types[weight] = maker.weights[weight].type
    operator = str(maker.rng.choice(["Add", "Mul", "Mul", "Div"]))
    maker.add(operator, [name, weight] if maker.rng.random() < 0.7 else [weight, name])


def _layer(maker: Maker) -> None:
    """Multiply by a weight."""
    name = maker.any(1)
    if maker.types[name].dtype == "float64":
        weight = f"v{len(maker.types)}"
        maker.weights[weight] = literal(maker.rng.normal(size=(maker.types[name].shape[-1], 2)), "float64")
        maker.types[weight] = maker.weights[weight].type
        made = maker.add("MatMul", [name, weight])
        if made and maker.rng.random() < 0.3:
            rank = len(maker.types[made[0]].shape)
            order = (*range(rank - 2), rank - 1, rank - 2) if rank > 1 else (0,)
            maker.add("Transpose", made, perm=order)


def _float(maker: Maker, rank: int = 0) -> str:
    """Return a value of floating-point numbers."""
    for _ in range(4):
        name = maker.any(rank)
        if maker.types[name].dtype == "float64":
            return name
    return maker.leaf((*(2 for _ in range(rank)),), whole=False)


def _add(maker: Maker, operator: str, inputs: list[str], **attributes: Attribute) -> str:
    """Add an operator; returns what it makes, or its first operand where it does not fit."""
    made = maker.add(operator, inputs, **attributes)
    return made[0] if made else inputs[0]


def _activation(maker: Maker) -> None:
    """Write an activation in pieces, or whole."""
    x = _float(maker)
    kind = int(maker.rng.integers(5))
    if kind == 0:
        _add(maker, "Mul", [x, _add(maker, "Sigmoid", [_add(maker, "Mul", [x, maker.number(1.7)])])])
    elif kind == 1:
        _add(maker, "Mul", [x, _add(maker, "Sigmoid", [x])])
    elif kind == 2:
        e = _add(maker, "Erf", [_add(maker, "Div", [x, maker.number(2**0.5)])])
        half = _add(maker, "Mul", [x, maker.number(0.5)])
        _add(maker, "Mul", [half, _add(maker, "Add", [e, maker.number(1.0)])])
    elif kind == 3:
        _add(maker, "Gelu", [_add(maker, "Add", [x, maker.any()])], approximate="none")
    else:
        shifted = _add(
            maker, "Clip", [_add(maker, "Add", [x, maker.number(3.0)]), *map(maker.number, (0.0, 6.0))]
        )
        _add(maker, "Div", [_add(maker, "Mul", [x, shifted]), maker.number(6.0)])


def _normalisation(maker: Maker) -> None:
    """Write a normalisation in pieces, or whole; a sum may be before it."""
    x = _float(maker, 2)
    if maker.rng.random() < 0.5:
        x = _add(maker, "Add", [x, maker.same_type(x)])
    scale = maker.weight(*maker.types[x].shape[-1:])
    kind = int(maker.rng.integers(3))
    if kind == 0:
        _add(maker, "LayerNormalization", [x, scale, maker.weight(*maker.types[x].shape[-1:])], axis=-1)
        return
    axes = maker.constant(-1)
    centred = _add(maker, "Sub", [x, _add(maker, "ReduceMean", [x, axes], keepdims=1)]) if kind == 1 else x
    squares = _add(maker, "ReduceMean", [_add(maker, "Mul", [centred, centred]), axes], keepdims=1)
    root = _add(maker, "Sqrt", [_add(maker, "Add", [squares, maker.number(0.1)])])
    result = _add(maker, "Mul", [_add(maker, "Div", [centred, root]), scale])
    if maker.rng.random() < 0.5:
        _add(maker, "Add", [result, maker.weight(*maker.types[x].shape[-1:])])


def _masked_softmax(maker: Maker) -> None:
    """Write a softmax of scores that are scaled, masked and cleaned."""
    left, right = _float(maker, 2), _float(maker, 2)
    rank = len(maker.types[right].shape)
    turned = _add(maker, "Transpose", [right], perm=(*range(rank - 2), rank - 1, rank - 2))
    scores = _add(maker, "MatMul", [_add(maker, "Mul", [left, maker.number(0.5)]), turned])
    kind = int(maker.rng.integers(3))
    if kind == 0:
        scores = _add(maker, "Add", [scores, maker.any()])
    elif kind == 1:
        seen = _add(maker, "Greater", [scores, maker.number(0.0)])
        if seen != scores:
            made = maker.add("Where", [seen, scores, maker.number(-3.4e38)])
            scores = made[0] if made else scores
    shares = _add(maker, "Softmax", [scores], axis=-1)
    if maker.rng.random() < 0.5:
        maker.add("MatMul", [shares, maker.same_type(right)])


def _conv(maker: Maker) -> None:
    """Convolve, and maybe do what is folded or fused."""
    images = [name for name, kind in maker.types.items() if len(kind.shape) == 4 and kind.dtype == "float64"]
    if images and maker.rng.random() < 0.8:
        x = images[int(maker.rng.integers(len(images)))]
    else:
        x = maker.leaf((int(maker.rng.integers(1, 3)), int(maker.rng.choice([2, 4])), 3, 3), whole=False)
    channels = maker.types[x].shape[1]
    group = 2 if channels % 2 == 0 and maker.rng.random() < 0.3 else 1
    out, window = 2 * int(maker.rng.integers(1, 3)), int(maker.rng.choice([1, 1, 3]))
    inputs = [x, maker.weight(out, channels // group, window, window)]
    if maker.rng.random() < 0.5:
        inputs.append(maker.weight(out))
    result = _add(maker, "Conv", inputs, group=group, pads=(window // 2,) * 4)
    kind = int(maker.rng.integers(6))
    if kind == 0:
        maker.add(str(maker.rng.choice(["Add", "Mul", "Sub", "Div"])), [result, maker.weight(out, 1, 1)])
    elif kind == 1:
        maker.add("Relu", [result])
    elif kind == 2:
        constants = [maker.weight(out) for _ in range(3)]
        maker.add("BatchNormalization", [result, *constants, maker.literal(maker.rng.uniform(0.5, 2, out))])
    elif kind == 3:
        maker.add("MaxPool", [result], kernel_shape=(2, 2), strides=(1, 1))
    elif kind == 4:
        maker.add("GlobalAveragePool", [result])


STEPS: tuple[Callable[[Maker], None], ...] = (
    _unary, _binary, _binary, _matmul, _matmul, _transpose, _transpose, _reshape, _reshape, _squeeze,
    _split, _split, _concat, _concat, _slice, _gather, _reduce, _softmax, _twice, _siblings, _siblings,
    _twins, _twins, _twins, _twins, _constant, _constant, _constant, _layer, _layer,
    _activation, _normalisation, _masked_softmax, _masked_softmax, _conv, _conv,
)  # fmt: skip
