"""Numerical programs: every option changes the module, and the results are those of the algorithm."""

import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from irgym.envs.hlo.checking.inputs import random_arguments
from irgym.envs.hlo.programs.families import FAMILIES
from irgym.envs.hlo.programs.lowering import lower
from irgym.envs.hlo.programs.models.catalogue import BUILDERS
from irgym.envs.hlo.programs.models.training import inference
from irgym.envs.hlo.programs.numeric_families import NUMERIC
from irgym.envs.hlo.programs.uris import parse_program

from .quick import quick_jit

Tree = Any


def _random(shapes: Tree) -> Tree:
    """Return the arguments on which a module is checked, by name."""
    rng = np.random.default_rng(0)

    def drawn(leaf: jax.ShapeDtypeStruct) -> jax.Array:
        if leaf.dtype == jnp.float32:
            return jnp.asarray(rng.standard_normal(leaf.shape, np.float32))
        return jnp.asarray(rng.integers(0, 8, leaf.shape), leaf.dtype)

    return jax.tree.map(drawn, shapes)


@cache
def _called(uri: str) -> tuple[Tree, Tree]:
    """Return random inputs of a program, and its results."""
    return _with(uri, {})


def _with(uri: str, given: dict[str, Any], jit: Callable[..., Any] = quick_jit) -> tuple[Tree, Tree]:
    program = parse_program(f"hlo://{uri}")
    forward, (_, _, shapes) = inference(BUILDERS[program.family](program.options), program.options)
    inputs = _random(shapes) | given
    return inputs, jit(forward)((), (), inputs)


@pytest.mark.parametrize("family", NUMERIC)
def test_each_option_changes_the_module(family: str):
    for option in FAMILIES[family].options:
        if len(option.choices) > 1 and option.name != "shape":
            last = lower(f"hlo://{family}?{option.name}={option.choices[-1]}")
            assert last != _lowered(family), option.name


@cache
def _lowered(family: str) -> bytes:
    return lower(f"hlo://{family}")


@pytest.mark.parametrize(
    "query",
    ["method=sort", "method=bitonic", "method=radix", "method=transposition", "method=bitonic&count=24"],
)
def test_sorting_sorts(query: str):
    inputs, results = _called(f"sorting?rows=2&{query}")
    found = results[0] if query == "method=sort" else results
    assert np.array_equal(found, np.sort(inputs["keys"], axis=-1))


@pytest.mark.parametrize("bits", [1, 3, 8])
def test_any_number_of_bits_sorts_by_radix(bits: int):
    inputs, found = _called(f"sorting?rows=1&method=radix&bits={bits}")
    assert np.array_equal(found, np.sort(inputs["keys"], axis=-1))


def test_iterations_solve_the_system():
    ways = ("preconditioned", "cg", "bicgstab", "gmres")
    for method in ways:
        inputs, found = _called(f"krylov?size=3&method={method}")
        weights = np.asarray(inputs["weights"], np.float64)
        exact = np.linalg.solve(weights @ weights.T + np.eye(9), inputs["right"])
        solution = found[0] if method == "preconditioned" else found
        error = np.linalg.norm(solution - exact) / np.linalg.norm(exact)
        assert error < (0.5 if method == "gmres" else 1e-2), method


def test_factorisations_agree():
    losses = [_called(f"regression?method={method}")[1] for method in ("qr", "lstsq")]
    assert np.allclose(*losses, rtol=1e-3)
    losses = [_called(f"regression?method={method}")[1] for method in ("cholesky", "solve", "svd")]
    assert np.allclose(losses[0], losses[1], rtol=1e-3) and np.allclose(losses[0], losses[2], rtol=1e-3)


def test_kalman_filters_agree():
    plain, joseph, information = (
        _called(f"kalman?method={method}")[1] for method in ("plain", "joseph", "information")
    )
    for mine, others in zip(plain, zip(joseph, information, strict=True), strict=True):
        assert all(np.allclose(mine, other, rtol=1e-2, atol=1e-3) for other in others)


@pytest.mark.parametrize("basis", ["haar", "daubechies", "symlet"])
def test_wavelets_give_an_impulse_back(basis: str):
    # Most details are zero, hence so is the threshold.
    impulse = jnp.zeros((1, 64)).at[0, 20].set(1.0)
    _, found = _with(f"wavelet?basis={basis}&threshold=soft&channels=1", {"signals": impulse})
    assert np.allclose(found, impulse, atol=1e-3)


def test_both_algorithms_find_the_shortest_paths():
    inputs, (far, _) = _called("paths?method=shortest")
    same, every = _called("paths?method=all")
    assert np.array_equal(inputs["sources"], same["sources"])
    assert np.allclose(far, every[0], rtol=1e-4)


def test_checksums_are_those_of_zlib():
    inputs, found = _called("hashing?method=checksum")
    rows = np.asarray(inputs["words"]).astype("<u4")
    assert [int(checksum) for checksum in found] == [zlib.crc32(row.tobytes()) for row in rows]


def test_loops_of_every_kind_count_the_same():
    counts = [_called(f"fractal?loop={loop}")[1][0] for loop in ("counted", "while", "unrolled")]
    assert np.array_equal(counts[0], counts[1]) and np.array_equal(counts[0], counts[2])


def test_steppers_end_near_each_other():
    given = {"p": jnp.zeros(4), "state": jnp.full((4, 4), 0.3), "dt": jnp.float32(0.5)}
    methods = ("rk4", "heun", "implicit")
    ends = [_with(f"integrate?system=predators&method={method}", given)[1] for method in methods]
    assert np.allclose(ends[0], ends[1], atol=1e-3) and np.allclose(ends[0], ends[2], atol=0.05)


def test_forces_by_hand_are_the_derivatives():
    for force in ("gravity", "lennard", "periodic"):
        # Forces between bodies that nearly touch depend on rounding: compiled as for users.
        by_hand, derived = (
            _with(f"nbody?force={force}&steps=1&derivative={way}", {}, jax.jit)[1][1]
            for way in ("manual", "automatic")
        )
        assert np.allclose(by_hand, derived, rtol=1e-2, atol=1e-3), force


@pytest.mark.parametrize("family", ["gp", "hashing", "paths"])
def test_modules_take_random_arguments(family: str):
    assert random_arguments(lower(f"hlo://{family}"), 0)
