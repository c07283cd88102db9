"""Rules for pools over the whole input, and equivalent reductions."""

import numpy as np

from irgym.envs.graph.rewriting.rule import Rule, Sample
from irgym.envs.graph.rewriting.samples.convolutions import integers
from irgym.envs.graph.rewriting.samples.operands import Rng

FULL = (
    "not any(p.get('pads', ())) and p.get('auto_pad', 'NOTSET') == 'NOTSET'"
    " and tuple(p['kernel_shape']) == x.shape[2:] and all(step == 1 for step in p.get('dilations', ()))"
    " and y.shape[2:] == (1,) * (x.rank - 2)"
)
"""Condition that a single window covers the whole input."""


def _array(rng: Rng) -> np.ndarray:
    return rng.standard_normal(integers(rng, 1, 6, int(rng.integers(3, 6))))


def _full(rng: Rng) -> Sample:
    x = _array(rng)
    return Sample({"x": x}, nodes={"p": {"kernel_shape": x.shape[2:]}})


def _mean(rng: Rng) -> Sample:
    x = _array(rng)
    axes = rng.permutation(np.arange(2, x.ndim)) - x.ndim * int(rng.integers(2))
    return Sample({"x": x, "axes": axes}, frozenset({"axes"}), nodes={"m": {"keepdims": 1}})


def _flat_mean(rng: Rng) -> Sample:
    x = _array(rng)
    axes = rng.permutation(x.ndim)[: int(rng.integers(1, x.ndim + 1))]
    shape = np.array([size for axis, size in enumerate(x.shape) if axis not in axes], np.int64)
    return Sample({"x": x, "axes": axes, "shape": shape}, frozenset({"axes", "shape"}))


def _full_pool(operator: str, name: str) -> Rule:
    return Rule(
        name,
        before=f"y = (p := {operator}(x))",
        where=FULL,
        after=f"y = Global{operator}(x)",
        sample=_full,
        source="a pool whose window is its whole input",
    )


RULES = (
    Rule(
        "mean-pool",
        before="y = ReduceMean(x, axes, keepdims=1)",
        where="x.rank > 2 and {axis % x.rank for axis in axes.elements} == set(range(2, x.rank))",
        after="y = GlobalAveragePool(x)",
        sample=_mean,
        source="torch's exporter writes global pools as means",
    ),
    Rule(
        "pool-mean",
        before="y = GlobalAveragePool(x)",
        where="opset >= 18 and x.rank > 2",
        after="y = ReduceMean(x, whole(*range(2, x.rank)), keepdims=1)",
        sample=lambda rng: Sample({"x": _array(rng)}),
        source="the reverse of mean-pool",
    ),
    _full_pool("AveragePool", "whole-average-pool"),
    _full_pool("MaxPool", "whole-max-pool"),
    Rule(
        "mean-reshape",
        before="y = Reshape(m := ReduceMean(x, axes, keepdims=1), shape)",
        where="axes.elements and y.shape == tuple(size for axis, size in enumerate(x.shape)"
        " if axis not in {element % x.rank for element in axes.elements})",
        after="y = ReduceMean(x, axes, **{**m, 'keepdims': 0})",
        sample=_flat_mean,
        source="a mean need not keep the axes that a Reshape removes",
    ),
)
"""Rules for pools."""
