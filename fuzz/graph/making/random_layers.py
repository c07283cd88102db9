"""Random layers of several operators, as exporters write them, for random graphs."""

from fuzz.graph.making.maker import Maker
from irgym.envs.graph.ir.node import Attribute


def _float(maker: Maker, rank: int = 0) -> str:
    """Return a floating-point value."""
    for _ in range(4):
        name = maker.any(rank)
        if maker.types[name].dtype == "float64":
            return name
    return maker.leaf((*(2 for _ in range(rank)),), whole=False)


def _add(maker: Maker, operator: str, inputs: list[str], **attributes: Attribute) -> str:
    """Add an operator and return its result, or its first operand if it does not fit."""
    made = maker.add(operator, inputs, **attributes)
    return made[0] if made else inputs[0]


def activation(maker: Maker) -> None:
    """Add an activation, composed or as an operator."""
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


def normalisation(maker: Maker) -> None:
    """Add a normalisation, composed or as an operator, sometimes of a sum."""
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


def masked_softmax(maker: Maker) -> None:
    """Add a softmax of scores that are scaled and masked."""
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


def conv(maker: Maker) -> None:
    """Add a convolution, and often an operator that can be folded or fused into it."""
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
