"""Rules that turn signed quantised numbers into unsigned ones: 128 more, from a zero point 128 higher.

All are exact: integers stay the same but for 128. ONNX Runtime's kernels keep to that too, except that of
QLinearAdd, which may round a sum that lies near the middle of two integers to the other one.

On x86, ONNX Runtime has its fast kernels for unsigned numbers, and its optimiser fuses operators between
DequantizeLinear and QuantizeLinear only where they are unsigned. It turns a signed QuantizeLinear itself if
one DequantizeLinear uses it; where several do, all stays as it is. By default, quantize_static makes signed
numbers.

An operator turns together with its operands and its result, between a DequantizeLinear and a QuantizeLinear
on each side that change the type. Those of neighbours that have turned too cancel: see `quantised`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from irgym.envs.graph.rewriting.rule import Rule, Sample
from irgym.envs.graph.rewriting.samples.convolutions import convolution
from irgym.envs.graph.rewriting.samples.operands import (
    Rng,
    array,
    broadcastable,
    either,
    parts_of,
    pick,
    random_sizes,
    resized,
    sample,
    shape_of,
)
from irgym.envs.graph.rewriting.samples.quantised import integers, scale_of

_SOURCE = "ONNX Runtime's QDQS8ToU8Transformer"


def _turned(value: str, scale: str, zero: str) -> str:
    """Return the code of an operand's unsigned form."""
    moved = f"QuantizeLinear(DequantizeLinear({value}, {scale}, {zero}), {scale}, unsigned({zero}))"
    return f"(raised(unsigned({zero}), {value}) if {value}.constant else {moved})"


def _back(value: str, scale: str, zero: str) -> str:
    """Return the code that turns an unsigned result into a signed one."""
    return f"QuantizeLinear(DequantizeLinear({value}, {scale}, unsigned({zero})), {scale}, {zero})"


def _pair(rng: Rng) -> Sample:
    values = {"x": 5 * array(rng, *shape_of(rng)), "s": scale_of(rng), "z": integers(rng, "int8")}
    return sample({**values, "r": values["s"], "t": values["z"]}, "s z r t")


def _operand(rng: Rng, *names: str) -> dict[str, Any]:
    scale, zero = names
    return {scale: scale_of(rng), zero: integers(rng, "int8")}


def _products(rng: Rng) -> Sample:
    m, k, n = random_sizes(rng, 3)
    values = {"x": integers(rng, "int8", m, k), "w": integers(rng, "int8", k, n)}
    values |= {
        "rest": [scale_of(rng), integers(rng, "int8")],
        **_operand(rng, "s", "z"),
        **_operand(rng, "r", "t"),
    }
    values["r"] = 40 * values["r"]
    return sample(values, "w rest s z r t")


def _convolutions(rng: Rng) -> Sample:
    operands, attributes = convolution(rng, bias=False)
    filters = operands["w"].shape[0]
    values: dict[str, Any] = {name: integers(rng, "int8", *operands[name].shape) for name in "xw"}
    values |= {
        "f": scale_of(rng),
        "p": np.zeros((), "int8"),
        **_operand(rng, "s", "z"),
        **_operand(rng, "r", "t"),
    }
    values["rest"] = [] if rng.integers(2) else [integers(rng, "int16", filters).astype(np.int32)]
    values["r"] = 40 * values["r"]
    return sample(values, "f p rest s z r t", nodes={"c": attributes})


def _two(rng: Rng) -> Sample:
    shape = shape_of(rng)
    values = {"x": integers(rng, "int8", *shape), "w": integers(rng, "int8", *broadcastable(rng, shape))}
    values |= {**_operand(rng, "s", "z"), **_operand(rng, "f", "p"), **_operand(rng, "r", "t")}
    kind, known = pick(rng, "Add", "Mul"), pick(rng, "", "", "w")
    return sample(values, f"s z f p r t {known}", operators={"c": f"com.microsoft.QLinear{kind}"})


def _several(rng: Rng) -> Sample:
    shape = shape_of(rng)
    axis = int(rng.integers(len(shape)))
    rest: list[Any] = []
    for size in parts_of(rng):
        part = integers(rng, "int8", *resized(shape, axis, size))
        rest += [part, scale_of(rng), integers(rng, "int8")]
    values = {"rest": rest, **_operand(rng, "r", "t")}
    return sample(values, "r t rest", nodes={"c": {"axis": either(rng, axis, len(shape))}})


def _layers(rng: Rng) -> Sample:
    found = _products(rng)
    columns = found.values["w"].shape[1]
    values = {**found.values, "b": integers(rng, "int16", columns).astype(np.int32)}
    return sample(values, "w rest b s z r t")


def _one(rng: Rng) -> Sample:
    x = integers(rng, "int8", *shape_of(rng, 3))
    values = {"x": x, **_operand(rng, "s", "z"), **_operand(rng, "r", "t")}
    kind = pick(rng, "GlobalAveragePool", "LeakyRelu", "Sigmoid")
    return sample(values, "s z r t", operators={"c": f"com.microsoft.QLinear{kind}"})


ENDS = "signed(z) and signed(t) and positive(s) and positive(r)"
"""Condition that an operand and the result are signed."""


def _linear(
    name: str, operator: str, operands: str, turned: str, drawn: Callable[[Rng], Sample], where: str = ENDS
) -> Rule:
    """Return the rule for an operator with a result of scale r and zero point t.

    Args:
        name: The rule's name.
        operator: The operator, or a class of them.
        operands: Pattern of its operands.
        turned: Code of the operands of the unsigned operator.
        drawn: Samples, in which the node is named c.
        where: Condition.
    """
    return Rule(
        name,
        before=f"y = (c := {operator}({operands}))",
        where=where,
        after=f"turned = Same(c, {turned})\ny = {_back('turned', 'r', 't')}",
        sample=drawn,
        source=_SOURCE,
    )


_FIRST = f"{_turned('x', 's', 'z')}, s, unsigned(z)"
_SECOND = f"{_turned('w', 'f', 'p')}, f, unsigned(p)"

RULES = (
    Rule(
        "unsigned-pair",
        before="y = (d := DequantizeLinear(q := QuantizeLinear(x, s, z), r, t))",
        where="signed(z) and positive(s) and alike(s, r) and alike(z, t) and plain(q, d)",
        after="y = DequantizeLinear(QuantizeLinear(x, s, unsigned(z)), s, unsigned(z))",
        sample=_pair,
        shared=("q",),
        source=_SOURCE,
    ),
    _linear(
        "unsigned-qlinear-conv",
        "QLinearConv",
        "x, s, z, w, f, p, r, t, *rest",
        f"{_FIRST}, w, f, p, r, unsigned(t), *rest",
        _convolutions,
    ),
    _linear(
        "unsigned-qlinear-matmul",
        "QLinearMatMul",
        "x, s, z, w, *rest, r, t",
        f"{_FIRST}, w, *rest, r, unsigned(t)",
        _products,
        f"{ENDS} and len(rest) == 2",
    ),
    _linear(
        "unsigned-qgemm",
        "QGemm",
        "x, s, z, w, *rest, b, r, t",
        f"{_FIRST}, w, *rest, b, r, unsigned(t)",
        _layers,
        f"{ENDS} and len(rest) == 2",
    ),
    _linear(
        "unsigned-qlinear-binary",
        "LinearBinary",
        "x, s, z, w, f, p, r, t",
        f"{_FIRST}, {_SECOND}, r, unsigned(t)",
        _two,
        f"{ENDS} and signed(p) and positive(f)",
    ),
    _linear("unsigned-qlinear-unary", "LinearUnary", "x, s, z, r, t", f"{_FIRST}, r, unsigned(t)", _one),
    Rule(
        "unsigned-qlinear-concat",
        before="y = (c := QLinearConcat(r, t, *rest))",
        where="signed(t) and positive(r) and all([signed(zero) for zero in rest[2::3]])"
        " and all([positive(scale) for scale in rest[1::3]])",
        after=f"""
triples = [rest[place : place + 3] for place in range(0, len(rest), 3)]
changed = [({_turned("x", "scale", "zero")}, scale, unsigned(zero)) for x, scale, zero in triples]
turned = Same(c, r, unsigned(t), *[operand for triple in changed for operand in triple])
y = {_back("turned", "r", "t")}
""",
        sample=_several,
        source=_SOURCE,
    ),
)
"""Rules that turn signed numbers into unsigned ones."""
