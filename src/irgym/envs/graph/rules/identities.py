"""Rules for operators that only pass an operand on: Add of 0, Mul by 1, trivial moves, Dropout.

All are exact.
"""

from typing import Any

import numpy as np

from irgym.envs.graph.ir.node import Attribute
from irgym.envs.graph.rewriting.rule import Rule, Sample
from irgym.envs.graph.rewriting.samples.operands import (
    Rng,
    array,
    pick,
    sample,
    shape_of,
)


def _idle(rng: Rng) -> Sample:
    x = array(rng, *shape_of(rng, 2))
    kinds: dict[str, tuple[list[Any], dict[str, Attribute]]] = {
        "Add": ([np.asarray(0.0)], {}),
        "Sub": ([np.zeros((1, 1))], {}),
        "Mul": ([np.ones(1)], {}),
        "Div": ([np.asarray(1.0)], {}),
        "Pow": ([np.asarray(1.0)], {}),
        "Cast": ([], {"to": 11}),
        "Concat": ([], {"axis": 1}),
        "Dropout": ([], {}),
        "Expand": ([list(x.shape[1:])], {}),
        "Reshape": ([list(x.shape)], {}),
        "Slice": ([[0, -9], [x.shape[1], 1 << 40], [1, 0]], {}),
        "Tile": ([[1] * x.ndim], {}),
        "Transpose": ([], {"perm": tuple(range(x.ndim))}),
    }
    kind = pick(rng, *kinds)
    rest, attributes = kinds[kind]
    return sample({"x": x, "rest": rest}, "rest", nodes={"c": attributes}, operators={"c": kind})


def _idle_left(rng: Rng) -> Sample:
    kind, number = pick(rng, ("Add", 0.0), ("Mul", 1.0))
    values = {"zero": np.full((1,), number), "x": array(rng, *shape_of(rng))}
    return sample(values, "zero", operators={"c": kind})


RULES = (
    Rule(
        "remove-idle",
        before="y = (c := Idle(x, *rest))",
        where="idle(c, x, rest, y)",
        after="y = x",
        sample=_idle,
        source="ONNX Runtime's EliminateIdentity, EliminateDropout, NoopElimination and others",
    ),
    Rule(
        "remove-idle-left",
        before="y = (c := Idle(zero, x))",
        where="y.type == x.type and (c.operator, zero.number) in (('Add', 0), ('Mul', 1))",
        after="y = x",
        sample=_idle_left,
        source="ONNX Runtime's NoopElimination",
    ),
)
"""Rules for operators without effect."""
