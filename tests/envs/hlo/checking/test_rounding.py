"""Coarser rounding: which results it changes, by how much, and which it does not."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jaxlib import _hlo

from irgym.envs.hlo.checking.inputs import random_arguments
from irgym.envs.hlo.checking.rounding import Exactness, coarser, exactness
from irgym.envs.hlo.compiling.executable import compile_coarser, compile_module
from irgym.envs.hlo.compiling.stablehlo import stablehlo

MOVED, CHOSEN, ROUNDED = Exactness


def lowered(function, *shapes, dtype=np.float32):
    given = [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes]
    return jax.jit(function).lower(*given).compiler_ir("hlo").as_serialized_hlo_module_proto()


def from_text(text):
    return _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()


def moved(function, *arguments):
    """Return the results of a function, with ordinary and with coarser rounding."""
    given = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in arguments]
    with jax.enable_x64(True):
        lowering = jax.jit(function).lower(*given)
    proto = lowering.compiler_ir("hlo").as_serialized_hlo_module_proto()
    return compile_module(proto).run(arguments), compile_coarser(proto)[0].run(arguments)


def relative(ours, theirs):
    return np.abs(theirs.astype(np.float64) / ours.astype(np.float64) - 1)


@pytest.mark.parametrize(
    ("dtype", "eps"),
    [(np.float64, 2**-52), (np.float32, 2**-23), (np.float16, 2**-10), (ml_dtypes.bfloat16, 2**-7)],
    ids=str,
)
def test_arithmetic_moves_by_the_last_bit_of_each_type(dtype, eps):
    x = np.linspace(1, 2, 999).astype(dtype)
    (ours,), (theirs,) = moved(lambda x: x + x * x, x)
    off = relative(ours, theirs)
    assert 0 < off.max() <= 3 * eps
    assert np.count_nonzero(off) > 100


def test_functions_move_by_three_bits():
    x = np.linspace(1, 2, 999).astype(np.float32)
    (ours,), (theirs,) = moved(jnp.exp, x)
    assert 3 * 2**-23 < relative(ours, theirs).max() <= 9 * 2**-23


@pytest.mark.parametrize("terms", [16, 4096])
def test_sums_of_products_move_as_any_order_of_them_would(terms):
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 32, terms), np.float32)
    (ours,), (theirs,) = moved(lambda x, w: x @ w.T, x, w)
    exact = x.astype(np.float64) @ w.T.astype(np.float64)
    off = np.sqrt(np.mean((ours - theirs.astype(np.float64)) ** 2))
    sequential = np.cumsum(x[:, None] * w[None], axis=-1, dtype=np.float32)[..., -1]
    order = np.sqrt(np.mean((sequential - exact) ** 2))
    assert order < 2 * off < 2000 * order


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jnp.sum(x, axis=0),
        lambda x: jnp.cumsum(x, axis=0)[-1],
        lambda x: jax.lax.scan(lambda total, row: (total + row, row), x[0], x)[0],
        lambda x: jnp.zeros((3, 32), np.float32).at[jnp.zeros(999, np.int32)].add(x)[0],
    ],
    ids=["sum", "window", "loop", "scatter"],
)
def test_long_sums_feel_it_at_each_step(function):
    x = np.random.default_rng(0).uniform(1, 2, (999, 32)).astype(np.float32)
    (ours,), (theirs,) = moved(function, x)
    assert 2**-23 < relative(ours, theirs).max() < 2**-12


def test_exact_operations_stay_exact():
    def exact(x):
        number = jnp.float32(3) * jnp.arange(100, dtype=np.float32) + 1
        return number, x[::-1], jnp.sort(x), jnp.max(x), jnp.abs(x) > 0.5, jnp.argmax(x), number @ number

    ours, theirs = moved(exact, np.random.default_rng(0).standard_normal(99).astype(np.float32))
    for result, coarse in zip(ours[:-1], theirs[:-1], strict=True):
        np.testing.assert_array_equal(result, coarse)


def test_infinities_nan_and_the_largest_numbers_stay():
    x = np.array([np.finfo(np.float32).max, -np.finfo(np.float32).max, np.inf, -np.inf, np.nan], np.float32)
    (ours,), (theirs,) = moved(lambda x: x * 1.0 + 0.0 * jnp.float32(3), x)
    np.testing.assert_array_equal(ours, theirs)


def test_complex_numbers_move_in_both_parts():
    x = np.linspace(1, 2, 99).astype(np.complex64) * (1 + 2j)
    (ours,), (theirs,) = moved(lambda x: x * x + x, x)
    for part in (np.real, np.imag):
        assert 0 < relative(part(ours), part(theirs)).max() < 64 * 2**-23


def test_decompositions_and_transforms_move():
    x = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)
    for function in (jnp.fft.rfft, lambda x: jnp.linalg.cholesky(x @ x.T + 9 * jnp.eye(8, dtype=np.float32))):
        (ours,), (theirs,) = moved(function, x)
        off = np.abs(ours - theirs).max()
        assert 0 < off < 1e-3


@pytest.mark.parametrize("kind", ["f8e4m3fn", "f8e5m2", "f4e2m1fn"])
def test_the_narrowest_types_compile(kind):
    proto = from_text(
        f"HloModule m\nENTRY e {{ p = {kind}[8] parameter(0)\n ROOT r = {kind}[8] multiply(p, p) }}"
    )
    arguments = random_arguments(proto, 0)
    ours, theirs = compile_module(proto).run(arguments), compile_coarser(proto)[0].run(arguments)
    assert ours[0].dtype == theirs[0].dtype


def test_exactness_is_that_of_the_least_exact_operation_on_the_way():
    def results(x):
        noisy = x * 1.1
        branch = jax.lax.cond(x[0] > 0, lambda y: y[::-1], lambda y: y, x)
        summed = jax.lax.cond(x[0] > 0, lambda y: y + 1, lambda y: y, x)
        return (
            x[::-1],
            jnp.maximum(x, 0),
            noisy,
            noisy[::-1],
            noisy > 0,
            x > 0,
            branch,
            summed,
            x.astype(int),
        )

    wanted = [MOVED, CHOSEN, ROUNDED, ROUNDED, ROUNDED, MOVED, MOVED, ROUNDED, MOVED]
    assert exactness(stablehlo(lowered(results, (8,)))) == wanted


def test_exactness_goes_through_calls_loops_and_conversions():
    @jax.jit
    def called(x):
        return x + 1

    def results(x):
        looped = jax.lax.fori_loop(0, 3, lambda _, y: y * 2, x)
        still = jax.lax.fori_loop(0, 3, lambda _, y: y[::-1], x)
        wide = x.astype(np.float16).astype(np.float32)
        return called(x), looped, still, wide

    assert exactness(stablehlo(lowered(results, (8,)))) == [ROUNDED, ROUNDED, MOVED, ROUNDED]
    widened = lowered(lambda x: x.astype(np.float32), (8,), dtype=np.float16)
    assert exactness(stablehlo(widened)) == [MOVED]


def test_elements_of_tuples_count_one_by_one():
    proto = from_text(
        "HloModule m\nENTRY e {\n p = (f32[3], s32[2]) parameter(0)\n"
        " a = f32[3] get-tuple-element(p), index=0\n b = s32[2] get-tuple-element(p), index=1\n"
        " t = (s32[2], f32[3]) tuple(b, a)\n ROOT r = (f32[3], (s32[2], f32[3])) tuple(a, t)\n}"
    )
    assert exactness(stablehlo(proto)) == [MOVED] * 3


def test_data_movement_alone_is_left_as_it_is():
    text = stablehlo(lowered(lambda x: jnp.sort(x.T)[::-1], (3, 4)))
    assert "reduce_precision" not in coarser(text)
