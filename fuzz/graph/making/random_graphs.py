"""Random tensor graphs of few small operators, with broadcasting, odd ranks and shared values."""

from collections.abc import Callable

import numpy as np

from fuzz.graph.making.maker import Maker
from fuzz.graph.making.random_layers import activation, conv, masked_softmax, normalisation
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.weights import literal


def grown(maker: Maker, count: int) -> Graph:
    """Return a random graph with at least a number of nodes; steps that do not fit are repeated."""
    while len(maker.nodes) < count:
        STEPS[int(maker.rng.integers(len(STEPS)))](maker)
    return maker.graph()


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
        size = int(maker.rng.choice([factor for factor in (1, 2, 3, left) if left % factor == 0]))
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
    """Apply an operator of the graph to another operand."""
    if maker.nodes:
        node = maker.nodes[int(maker.rng.integers(len(maker.nodes)))]
        inputs = list(node.inputs)
        if maker.rng.random() < 0.8:
            inputs[0] = maker.any()
        maker.add(node.operator, inputs, len(node.outputs), **dict(node.attributes))


def _siblings(maker: Maker) -> None:
    """Apply an operator to all parts of a Split, and often join them by a Concat."""
    splits = [node for node in maker.nodes if node.operator == "Split"]
    if not splits:
        return
    parts = splits[int(maker.rng.integers(len(splits)))].outputs
    other = maker.any()
    kind = int(maker.rng.integers(4))
    made: list[str] = []
    for part in parts:
        if kind == 0:
            results = maker.add("Tanh", [part]) if maker.types[part].dtype == "float64" else None
        elif kind == 1:
            results = maker.add("MatMul", [part, other])
        elif kind == 2:
            results = maker.add("Mul", [part, maker.any()])
        else:
            results = maker.add("Add", [part, other])
        made += results or []
    if made and len(maker.types[made[0]].shape) and maker.rng.random() < 0.7:
        maker.add("Concat", made, axis=maker.axis(made[0]))


def _twins(maker: Maker) -> None:
    """Add a node that differs from another in one operand, and often combine both."""
    pairs = [
        node for node in maker.nodes if node.operator in ("MatMul", "Mul", "Add", "Transpose", "Relu", "Tanh")
    ]
    if not pairs:
        return
    original = pairs[int(maker.rng.integers(len(pairs)))]
    inputs = list(original.inputs)
    place = int(maker.rng.integers(len(inputs)))
    inputs[place] = maker.same_type(inputs[place])
    twin = maker.add(original.operator, inputs, **dict(original.attributes))
    if not twin:
        return
    kind = str(maker.rng.choice(["Add", "Sub", "Mul", "MatMul", "Concat", "none"]))
    if kind == "Concat" and maker.types[original.name].shape:
        maker.add("Concat", [original.name, twin[0]], axis=maker.axis(original.name))
    elif kind in ("Add", "Sub", "Mul", "MatMul"):
        maker.add(kind, [original.name, twin[0]])


def _constant(maker: Maker) -> None:
    """Add, multiply or divide by a small weight."""
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
    """Add a product with a weight, sometimes transposed."""
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


STEPS: tuple[Callable[[Maker], None], ...] = (
    _unary, _binary, _binary, _matmul, _matmul, _transpose, _transpose, _reshape, _reshape, _squeeze,
    _split, _split, _concat, _concat, _slice, _gather, _reduce, _softmax, _twice, _siblings, _siblings,
    _twins, _twins, _twins, _twins, _constant, _constant, _constant, _layer, _layer,
    activation, normalisation, masked_softmax, masked_softmax, conv, conv,
)  # fmt: skip
"""Steps of a random graph; frequent steps are repeated."""
