"""Winograd convolutions: accurate, and applied only where they save time."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from small_graphs import BLOCK, graph_of, run_in_ort, sites_of

from irgym.envs.graph.ir import winograd
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import node
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Weights
from irgym.envs.graph.rewriting.building import RuleError
from irgym.envs.graph.rewriting.rule import Rule
from irgym.envs.graph.rewriting.verification import verify
from irgym.envs.graph.rules.winograd import RULES
from irgym.envs.graph.running.blocks import block_of
from irgym.measure.target import host_target

SMALL, LARGE = RULES
IMAGE, FILTERS = (1, 96, 32, 32), (96, 96, 3, 3)


@pytest.mark.parametrize(("results", "window"), [(2, 3), (3, 2), (2, 5), (4, 3), (5, 2), (3, 4)])
def test_maps_make_a_convolution_of_one_dimension(results: int, window: int):
    rng = np.random.default_rng(0)
    inputs, weights = rng.standard_normal(results + window - 1), rng.standard_normal(window)
    found = winograd.maps(results, window)
    made = found.results @ ((found.window @ weights) * (found.inputs @ inputs))
    np.testing.assert_allclose(made, np.correlate(inputs, weights), rtol=1e-12, atol=1e-12)


def _graph(
    shape: tuple[int, ...] = IMAGE,
    weights: tuple[int, ...] = FILTERS,
    dtype: str = "float32",
    **attributes: Any,
) -> Graph:
    convolution = node("Conv", ["x", "w"], ["y"], **attributes)
    return graph_of([convolution], {"x": TensorType(dtype, shape)}, {"w": np.ones(weights)}, ("y",))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_plain_convolution_has_a_site(rule: Rule):
    assert sites_of(rule, _graph())
    assert sites_of(rule, _graph(pads=(0, 2, 1, 0), dilations=(1, 1), strides=(1, 1), group=1))


@pytest.mark.parametrize(
    "graph",
    [
        _graph(strides=(2, 2)),
        _graph(strides=(1, 2)),
        _graph(dilations=(1, 2)),
        _graph(weights=(96, 48, 3, 3), group=2),
        _graph(auto_pad="SAME_UPPER"),
        _graph(weights=(96, 96, 1, 1)),
        _graph(weights=(96, 96, 3, 1)),
        _graph(weights=(96, 96, 7, 7)),
        _graph((1, 96, 32), (96, 96, 3)),
        _graph((1, 8, 32, 32), (8, 8, 3, 3)),  # the maps take more than the products save
        _graph((1, 96, 4, 4)),  # so few tiles that all weights are read for nothing
        _graph(dtype="float16"),
        _graph(dtype="float64"),
        _graph((1, 98, 32, 32), (96, 98, 3, 3)),  # ONNX Runtime does not put these channels into blocks
    ],
    ids=str,
)
def test_other_convolutions_have_no_site(graph: Graph):
    assert not any(sites_of(rule, graph) for rule in RULES)


def test_windows_of_five_have_small_tiles():
    graph = _graph(weights=(96, 96, 5, 5))
    assert sites_of(SMALL, graph)
    assert not sites_of(LARGE, graph)


@pytest.mark.parametrize(("rule", "factor"), [(SMALL, 2), (LARGE, 5)], ids=["2", "4"])
def test_few_digits_are_lost(rule: Rule, factor: float):
    """The error in float32, against float64, is at most a small multiple of the plain convolution's."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal(IMAGE).astype(np.float32)
    w = rng.standard_normal(FILTERS).astype(np.float32)
    convolution = node("Conv", ["x", "w"], ["y"])
    graph = graph_of([convolution], {"x": TensorType("float32", IMAGE)}, {"w": w}, ("y",))
    [site] = sites_of(rule, graph)
    rewritten = graph.rewritten(rule.rewrite(graph, site, block_of(host_target())))
    windows = sliding_window_view(x.astype(np.float64), (3, 3), axis=(2, 3))
    exact = np.einsum("nchwij,ocij->nohw", windows, w.astype(np.float64), optimize=True)
    errors = [
        np.sqrt(np.mean((run_in_ort(each, Weights({"w": w}), {"x": x})[0] - exact) ** 2))
        for each in (graph, rewritten)
    ]
    assert errors[1] < factor * errors[0]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("perm=(3, 2, 4, 0, 5, 1, 6)", "perm=(3, 2, 4, 1, 5, 0, 6)"),
        ("(0, top, left, 0, 0,", "(0, left, top, 0, 0,"),
        ("Reshape(based,", "Reshape(made,"),
    ],
)
def test_a_mistake_is_caught(right: str, wrong: str):
    assert right in LARGE.after
    rule = replace(LARGE, after=LARGE.after.replace(right, wrong))
    with pytest.raises((RuleError, ValueError)):
        for seed in range(20):
            verify(rule, np.random.default_rng(seed), BLOCK)
