"""Rules for numbers that are quantised and dequantised: pairs that cancel, constants, and movement.

All are exact: integers stay the same, bit for bit, and numbers too. Rules that move QuantizeLinear and
DequantizeLinear past other operators come in pairs: down, towards the results, and up.

ONNX Runtime's optimiser knows patterns of operators between DequantizeLinear and QuantizeLinear. Rules that
move them may destroy such a pattern, or complete one.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from irgym.envs.graph.rewriting.rule import Rule, Sample
from irgym.envs.graph.rewriting.samples.operands import (
    Rng,
    array,
    either,
    index_array,
    order_of,
    parts_of,
    pick,
    resized,
    sample,
    shape_of,
)
from irgym.envs.graph.rewriting.samples.quantised import integers, kind_of, least, scale_of

_SOURCE = "ONNX Runtime's QDQPropagationTransformer"
_FINAL = "ONNX Runtime's QDQFinalCleanup"

Made = Callable[[Rng, str, tuple[int, ...]], Any]


def _steps(rng: Rng, kind: str, shape: tuple[int, ...]) -> Any:
    return integers(rng, kind, *shape)


def _numbers(rng: Rng, _: str, shape: tuple[int, ...]) -> Any:
    return 5 * array(rng, *shape)


def _along(rng: Rng) -> Sample:
    """Return an array, its scale and zero point, for all elements or along an axis."""
    shape, kind = shape_of(rng), kind_of(rng)
    axis = int(rng.integers(len(shape)))
    size = () if rng.integers(2) else (shape[axis],)
    nodes = {name: {"axis": either(rng, axis, len(shape))} for name in "qde"}
    values = {"x": integers(rng, kind, *shape), "s": scale_of(rng, *size), "z": integers(rng, kind, *size)}
    return sample({**values, "r": values["s"], "t": values["z"]}, "s z r t", nodes=nodes)


def _constant(rng: Rng) -> Sample:
    found = _along(rng)
    zero = {} if rng.integers(2) else {"z": None}
    return sample({**found.values, **zero}, "x s z", nodes=found.nodes)


def _turned(rng: Rng) -> Sample:
    """Return a signed or unsigned array with the zero points of both types for the same numbers."""
    zero = int(rng.integers(-128, 128))
    points = {"int8": np.asarray(zero, "int8"), "uint8": np.asarray(zero + 128, "uint8")}
    kind, other = kind_of(rng), kind_of(rng)
    scale = scale_of(rng)
    values = {"x": integers(rng, kind, *shape_of(rng)), "z": points[kind], "t": points[other]}
    return sample({**values, "v": values["t"], "s": scale, "r": scale, "u": scale}, "s z t r u v")


def _turned_back(rng: Rng) -> Sample:
    found = _turned(rng)
    values = {**found.values, "f": found.values["s"], "g": found.values["z"]}
    return sample(values, "s z t r u v f g")


def _moved(made: Made) -> Callable[[Rng], Sample]:
    """Return samples of an operator of class `Moving` on x, with a scale and a zero point."""

    def drawn(rng: Rng) -> Sample:
        kind, shape = kind_of(rng), shape_of(rng, 2)
        rest, attributes = [], {}
        operator = pick(rng, "Transpose", "Reshape", "Gather", "MaxPool", "Expand", "Slice", "Flatten")
        if operator == "Transpose":
            attributes = {"perm": order_of(rng, len(shape))}
        elif operator == "Reshape":
            rest = [np.asarray([-1])]
        elif operator == "Gather":
            rest = [index_array(rng, 0, shape[0], (3,))]
        elif operator == "Expand":
            rest = [np.asarray((2, *shape))]
        elif operator == "Slice":
            rest = [np.asarray([0]), np.asarray([1]), np.asarray([1])]
        elif operator == "MaxPool":
            shape = (1, 2, 5, 4)
            attributes = {"kernel_shape": (3, 2), "strides": (2, 1), "pads": (1, 0, 1, 1)}
        values = {"x": made(rng, kind, shape), "rest": rest, "s": scale_of(rng), "z": integers(rng, kind)}
        return sample(values, "rest s z", nodes={"m": attributes}, operators={"m": operator})

    return drawn


def _joined(made: Made) -> Callable[[Rng], Sample]:
    def drawn(rng: Rng) -> Sample:
        kind, shape = kind_of(rng), shape_of(rng)
        axis = int(rng.integers(len(shape)))
        xs = [made(rng, kind, resized(shape, axis, size)) for size in parts_of(rng)]
        values = {"xs": xs, "s": scale_of(rng), "z": integers(rng, kind)}
        return sample(values, "s z", attributes={"k": either(rng, axis, len(shape))})

    return drawn


def _cut(made: Made) -> Callable[[Rng], Sample]:
    def drawn(rng: Rng) -> Sample:
        kind, shape, sizes = kind_of(rng), shape_of(rng), parts_of(rng)
        axis = int(rng.integers(len(shape)))
        number = bool(rng.integers(2))
        sizes = sizes[:1] * len(sizes) if number else sizes
        x = made(rng, kind, resized(shape, axis, sum(sizes)))
        values = {"x": x, "w": [] if number else [sizes], "s": scale_of(rng), "z": integers(rng, kind)}
        return sample(
            values,
            "w s z",
            attributes={"k": either(rng, axis, len(shape))},
            nodes={"c": {"num_outputs": len(sizes)} if number else {}},
            counts={"xs": len(sizes), "ys": len(sizes)},
        )

    return drawn


def _above(made: Made) -> Callable[[Rng], Sample]:
    """Return samples with a zero point below which nothing is, and bounds beyond the range."""

    def drawn(rng: Rng) -> Sample:
        kind, scale = kind_of(rng), scale_of(rng)
        low = np.asarray(-rng.uniform(0, 3)) if rng.integers(2) else None
        high = np.asarray(256 * scale + rng.uniform(0, 3)) if rng.integers(2) else None
        values = {"x": made(rng, kind, shape_of(rng)), "s": scale, "z": least(kind), "low": low, "high": high}
        return sample(values, "s z low high")

    return drawn


ONE = "positive(s) and single(z)"
"""Condition that there is one scale, and one zero point, for all elements."""

_SPLIT = "Split({}, whole(*[part.shape[k] for part in ys]), outputs=len(ys), axis=k)"
"""Replacement: a split in parts as large as before; exporters may give their number alone."""

QUANTISE, DEQUANTISE = "QuantizeLinear", "DequantizeLinear"


def _past(name: str, operator: str, made: Made) -> tuple[Rule, ...]:
    """Return the rules that move QuantizeLinear or DequantizeLinear past operators that move elements.

    Args:
        name: Beginning of their names.
        operator: The operator.
        made: Makes its first operand.
    """
    short = "" if operator == QUANTISE else " and short(x)"
    shorts = "" if operator == QUANTISE else " and all([short(x) for x in xs])"
    plain = f"{ONE} and plain(q)"
    # What moved integers cost is little: where others use them too, they are moved twice.
    between = () if operator == QUANTISE else ("m",)
    return (
        Rule(
            f"{name}-down-move",
            before=f"y = (m := Moving(q := {operator}(x, s, z), *rest))",
            where=plain + short,
            after=f"y = {operator}(Same(m, x, *rest), s, z)",
            sample=_moved(made),
            shared=("q",),
            source=_SOURCE,
        ),
        Rule(
            f"{name}-up-move",
            before=f"y = (q := {operator}(m := Moving(x, *rest), s, z))",
            where=plain + short,
            after=f"y = Same(m, {operator}(x, s, z), *rest)",
            sample=_moved(made),
            shared=between,
            source=_SOURCE,
        ),
        Rule(
            f"{name}-down-concat",
            before=f"y = Concat(*qs, axis=k); *qs = [(q := {operator}(x, s, z)) for x in xs]",
            where=plain + shorts,
            after=f"y = {operator}(Concat(*xs, axis=k), s, z)",
            sample=_joined(made),
            source=_SOURCE,
        ),
        Rule(
            f"{name}-up-concat",
            before=f"y = (q := {operator}(Concat(*xs, axis=k), s, z))",
            where=plain + shorts,
            after=f"y = Concat(*[{operator}(x, s, z) for x in xs], axis=k)",
            sample=_joined(made),
            source=_SOURCE,
        ),
        Rule(
            f"{name}-down-split",
            before=f"*ys = (c := Split(q := {operator}(x, s, z), *w, axis=k))",
            where=f"{plain}{short} and all(ys)",
            after=f"ys = [{operator}(part, s, z) for part in {_SPLIT.format('x')}]",
            sample=_cut(made),
            source=_SOURCE,
        ),
        Rule(
            f"{name}-up-split",
            before=f"*xs = (c := Split(x, *w, axis=k)); *ys = [(q := {operator}(x_, s, z)) for x_ in xs]",
            where=plain + short,
            after=f"ys = {_SPLIT.format(f'{operator}(x, s, z)')}",
            sample=_cut(made),
            source=_SOURCE,
        ),
    )


RULES = (
    Rule(
        "cancel-quantize-dequantize",
        before="y = (q := QuantizeLinear(d := DequantizeLinear(x, s, z), r, t))",
        where="exact(s) and alike(s, r) and alike(z, t) and short(x) and plain(q, d)"
        " and along(s, x.rank, q, d)",
        after="y = x",
        sample=_along,
        shared=("d",),
        source=_FINAL,
    ),
    Rule(
        "skip-requantize",
        before="y = (e := DequantizeLinear(q := QuantizeLinear(d := DequantizeLinear(x, s, z), r, t), u, v))",
        where="exact(s) and alike(s, r) and alike(s, u) and alike(t, v) and short(x) and fits(z, t)"
        " and plain(q, d, e) and along(s, x.rank, q, d, e)",
        after="y = DequantizeLinear(x, s, z, **d)",
        sample=_turned,
        shared=("q", "d"),
        source=_FINAL,
    ),
    Rule(
        "cancel-requantize",
        before="""
y = (p := QuantizeLinear(
    e := DequantizeLinear(q := QuantizeLinear(d := DequantizeLinear(x, s, z), r, t), u, v), f, g
))
""",
        where="exact(s) and alike(s, r) and alike(s, u) and alike(s, f) and alike(t, v) and alike(z, g)"
        " and short(x) and fits(z, t) and plain(p, q, d, e) and along(s, x.rank, p, q, d, e)",
        after="y = x",
        sample=_turned_back,
        shared=("q", "d", "e"),
        source=_FINAL,
    ),
    Rule(
        "fold-dequantize",
        before="y = (d := DequantizeLinear(x, s, [z]))",
        where="x.constant and exact(s) and (not z or z.constant) and plain(d)"
        " and x.type.dtype in ('int8', 'uint8', 'int32')",
        after="y = dequantised(s, x, front(d.get('axis', 1), x.rank), *([z] if z else []))",
        sample=_constant,
        source="constant folding; ONNX Runtime leaves DequantizeLinear alone",
    ),
    Rule(
        "quantize-relu",
        before="y = (q := QuantizeLinear(Relu(x), s, z))",
        where=f"{ONE} and plain(q) and saturates(s, z, 0, None)",
        after="y = QuantizeLinear(x, s, z)",
        sample=_above(_numbers),
        source="ONNX Runtime's ReluQuantFusion",
    ),
    Rule(
        "quantize-clip",
        before="y = (q := QuantizeLinear(Clip(x, [low], [high]), s, z))",
        where=f"{ONE} and plain(q) and saturates(s, z, low, high)",
        after="y = QuantizeLinear(x, s, z)",
        sample=_above(_numbers),
        source="ONNX Runtime's ClipQuantFusion",
    ),
    Rule(
        "relu-dequantize",
        before="y = Relu(q := DequantizeLinear(x, s, z))",
        where=f"{ONE} and plain(q) and short(x) and saturates(s, z, 0, None)",
        after="y = DequantizeLinear(x, s, z)",
        sample=_above(_steps),
        shared=("q",),
        source="ONNX Runtime's ReluQuantFusion, after the fact",
    ),
    *_past("quantize", QUANTISE, _numbers),
    *_past("dequantize", DEQUANTISE, _steps),
)
"""Rules for quantised numbers."""
