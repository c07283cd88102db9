"""Modules on XLA:CPU against numpy, with planted differences."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jaxlib import _hlo

from irgym.base.errors import ProgramError
from irgym.core.cost import Call, Outcome
from irgym.envs.hlo.checking.inputs import random_arguments
from irgym.envs.hlo.compiling.executable import CompileFailure, compile_module
from irgym.envs.hlo.compiling.execution import compare, time_in_turn, time_module
from irgym.measure.isolation.child import Child, Raised, Returned
from irgym.measure.timing import Timing

BRIEF = Timing(budget_ns=1, sample_ns=1, fewest=2, most=2)
SHAPE = (6, 6)


def lowered(function, *shapes, dtype=np.float32, **options):
    given = [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes or [SHAPE]]
    return (
        jax.jit(function, keep_unused=True, **options)
        .lower(*given)
        .compiler_ir("hlo")
        .as_serialized_hlo_module_proto()
    )


def from_text(text):
    return _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()


def entry(*lines, header="HloModule m"):
    return from_text(f"{header}\nENTRY e {{\n" + "\n".join(lines) + "\n}")


def layer(x, w):
    return jnp.tanh(x @ w) + x


FUNCTIONS = {
    "layer": lambda x: layer(x, x),
    "gradient": jax.grad(lambda x: jnp.sum(jax.nn.softmax(layer(x, x)) ** 2)),
    "sort": lambda x: (jnp.sort(x), jnp.argsort(x)),
    "scatter": lambda x: x.at[jnp.array([1, 2])].add(x[jnp.array([0, 3])]),
    "batched gather": lambda x: jax.vmap(lambda row, place: row[place])(x, jnp.arange(6)),
    "scan": lambda x: jax.lax.scan(lambda c, row: (c + row, c * row), x[0], x),
    "while": lambda x: jax.lax.while_loop(lambda c: c.sum() < 100, lambda c: c * 2 + 1, x),
    "branch": lambda x: jax.lax.cond(x.sum() > 0, lambda y: y * 2, lambda y: y - 1, x),
    "convolution": lambda x: jax.lax.conv_general_dilated(
        x[None, None], x[None, None, :3, :3], (2, 2), "SAME"
    ),
    "random": lambda x: x + jax.random.normal(jax.random.key(0), x.shape),
    "fourier": lambda x: jnp.fft.rfft(x),
    "cholesky": lambda x: jnp.linalg.cholesky(x @ x.T + 9 * jnp.eye(6)),
}


@pytest.mark.parametrize("passes", [True, False])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_those_of_jax(name, passes):
    proto = lowered(FUNCTIONS[name])
    arguments = random_arguments(proto, seed=3)
    wanted = jax.tree.leaves(jax.jit(FUNCTIONS[name])(*arguments))
    found = compile_module(proto, passes).run(arguments)
    assert len(found) == len(wanted)
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def test_results_are_those_of_numpy():
    x, w = np.random.default_rng(0).standard_normal((2, 6, 6), np.float32)
    (found,) = compile_module(lowered(layer, SHAPE, SHAPE)).run([x, w])
    np.testing.assert_allclose(found, np.tanh(x @ w) + x, rtol=1e-5, atol=1e-5)


def test_tuples_go_in_and_come_out_flat():
    proto = entry(
        "p = (f32[3], s32[2]) parameter(0)",
        "a = f32[3] get-tuple-element(p), index=0",
        "b = s32[2] get-tuple-element(p), index=1",
        "t = (s32[2], f32[3]) tuple(b, a)",
        "ROOT r = (f32[3], (s32[2], f32[3])) tuple(a, t)",
    )
    a, b = np.arange(3, dtype=np.float32), np.arange(2, dtype=np.int32)
    found = compile_module(proto).run([a, b])
    for ours, given in zip(found, [a, b, a], strict=True):
        np.testing.assert_array_equal(ours, given)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("f64", np.float64), ("s64", np.int64), ("bf16", ml_dtypes.bfloat16), ("s4", ml_dtypes.int4)],
)
def test_types_are_kept(name, dtype):
    proto = entry(f"p = {name}[3] parameter(0)", f"ROOT r = {name}[3] add(p, p)")
    (found,) = compile_module(proto).run([np.ones(3).astype(dtype)])
    assert found.dtype == np.dtype(dtype)
    assert np.all(found == np.array(2).astype(dtype))


def test_donated_arguments_survive():
    proto = lowered(lambda x: x + 1, donate_argnums=0)
    assert time_module(proto, BRIEF).ok
    executable = compile_module(proto)
    x = np.zeros(SHAPE, np.float32)
    repeat = executable.bind([x])
    repeat(3)
    assert np.all(executable.run([x])[0] == 1)


@pytest.mark.parametrize("passes", [True, False])
def test_a_planted_difference_is_found(passes):
    original = lowered(layer, SHAPE, SHAPE)
    same = lowered(lambda x, w: x + jnp.tanh(jnp.dot(w.T, x.T).T), SHAPE, SHAPE)
    wrong = lowered(lambda x, w: jnp.tanh(x @ w) - x, SHAPE, SHAPE)
    slightly = lowered(lambda x, w: jnp.tanh(x @ w) + 1.001 * x, SHAPE, SHAPE)
    found = compare(original, same, inputs=2, passes=passes)
    assert found.ok
    assert found.error < 1
    assert found.inputs == 2
    for planted in (wrong, slightly):
        assert not compare(original, planted, inputs=2, passes=passes).ok
    other = lowered(lambda x: x, (2, 2))
    assert compare(original, other).error == float("inf")
    assert time_module(wrong, BRIEF, original, passes).outcome is Outcome.WRONG_RESULT
    assert time_module(other, BRIEF, original, passes).outcome is Outcome.WRONG_RESULT
    assert time_module(same, BRIEF, original, passes).ok


def test_samples_that_rounding_flips_are_no_difference():
    def draw(x, scale):
        return jnp.argmax(jnp.round(x @ x.T * scale) / scale, axis=-1)

    original = lowered(lambda x: draw(x, 4.0), (64, 64))
    assert compare(original, original).ok
    assert not compare(original, lowered(lambda x: draw(-x @ x, 4.0), (64, 64))).ok


def test_a_domain_without_negative_numbers():
    def through_call(x):
        return jax.lax.cond(x.size > 0, jnp.sqrt, jnp.sqrt, x), jax.lax.map(jnp.log, x)

    original = lowered(through_call)
    shifted = lowered(lambda x: (jnp.sqrt(x), jnp.log(x * 1.01)))
    assert compare(original, original).ok
    assert not compare(original, shifted).ok


def masked(mask):
    def logits(x, w, factor):
        y = x @ w
        keep = jax.lax.broadcasted_iota(jnp.int32, y.shape, 1) < 40
        return jnp.where(keep, factor * y, mask)

    return logits


def dropped(x):
    return jnp.concatenate([jnp.full(1, 1e7, np.float32), x[1:]])


def marked(kind):
    """Return functions that compute in float32 and take a number of another type."""
    return lambda factor: lambda x: (factor * (jnp.tanh(x) + x), x[:1, 0].astype(kind))


PASSED_BEFORE = {
    "mask of -1e9": (
        lambda x, w: masked(-1e9)(x, w, 1.0),
        [lambda x, w: masked(-1e9)(x, w, -0.5)],
        [(16, 16), (16, 64)],
    ),
    "mask of -3.4e38": (
        lambda x, w: masked(np.finfo(np.float32).min)(x, w, 1.0),
        [lambda x, w: masked(np.finfo(np.float32).min)(x, w, -0.5)],
        [(16, 16), (16, 64)],
    ),
    "added mask of -3.4e38": (
        lambda x: x * 1.1 + jnp.where(jnp.arange(64) < 40, 0, np.finfo(np.float32).min),
        [lambda x: x * -0.5 + jnp.where(jnp.arange(64) < 40, 0, np.finfo(np.float32).min)],
        [(64,)],
    ),
    "one element of 1e7": (
        lambda x: dropped(x) * 1.1,
        [lambda x: dropped(jnp.zeros_like(x)) * 1.1],
        [(64,)],
    ),
    "truncated": (
        lambda p: jnp.trunc(1e7 * p).astype(np.int32),
        [lambda p: jnp.zeros(p.shape, np.int32), lambda p: jnp.trunc(1e7 * p).astype(np.int32) + 9],
        [(64,)],
    ),
    "a sine of great numbers": (
        lambda x: jnp.sin(1e7 * x),
        [lambda x: jnp.zeros_like(x), lambda x: jnp.cos(1e7 * x)],
        [(64,)],
    ),
    "bf16 beside": (marked(jnp.bfloat16)(1.0), [marked(jnp.bfloat16)(1.03)], [(8, 8)]),
    "f8 beside": (marked(jnp.float8_e4m3fn)(1.0), [marked(jnp.float8_e4m3fn)(1.4)], [(8, 8)]),
}
"""Programs, wrong versions that once passed the check, and the shapes of their arguments."""


@pytest.mark.parametrize("name", PASSED_BEFORE)
def test_programs_that_once_passed_are_refused(name):
    function, wrongs, shapes = PASSED_BEFORE[name]
    original = lowered(function, *shapes)
    for inputs in (1, 3):
        found = compare(original, original, inputs=inputs)
        assert found.checked, found
    for wrong in wrongs:
        found = compare(original, lowered(wrong, *shapes), inputs=3)
        assert not found.ok
        assert found.error > 1
        assert found.detail
    timed = time_module(lowered(wrongs[0], *shapes), BRIEF, original)
    assert timed.outcome is Outcome.WRONG_RESULT
    assert timed.detail


def test_signs_of_zeros_count_where_numbers_are_only_moved():
    original = lowered(lambda x: jnp.where(x > 0, x, -0.0)[::-1], (64,))
    assert compare(original, original).checked
    assert not compare(original, lowered(lambda x: jnp.where(x > 0, x, 0.0)[::-1], (64,))).ok
    free = lowered(lambda x: jnp.where(x > 0, x, -0.0) * 1.1, (64,))
    assert compare(free, lowered(lambda x: jnp.where(x > 0, x, 0.0) * 1.1, (64,))).ok


def test_one_term_of_a_sum_counts():
    original = lowered(lambda x, w: x @ w, (8, 256), (256, 8))
    short = lowered(lambda x, w: x[:, 1:] @ w[1:], (8, 256), (256, 8))
    other_order = lowered(lambda x, w: x[:, ::2] @ w[::2] + x[:, 1::2] @ w[1::2], (8, 256), (256, 8))
    assert compare(original, other_order).checked
    assert not compare(original, short).ok


def test_results_of_nan_alone_are_not_checkable():
    original = lowered(lambda x: (x * 2, jnp.sqrt(-jnp.abs(x) - 1)))
    found = compare(original, original, inputs=2)
    assert found.ok
    assert not found.checked
    assert found.blind == "anything that is no number would pass for result 1 of 2"


def test_results_that_rounding_decides_are_not_checkable():
    original = lowered(lambda x: jnp.sin(1e30 * x) + jnp.sin(1e36 * x), (64,))
    found = compare(original, original)
    assert found.ok
    assert not found.checked


def test_logarithms_of_what_cancels_are_judged_by_what_cancels():
    def spread(x):
        return jnp.var(x + 100.0, axis=1), jnp.mean((x + 100.0) ** 2, axis=1) - jnp.mean(
            x + 100.0, axis=1
        ) ** 2

    original = lowered(lambda x: spread(x)[1], (8, 64))
    assert compare(original, lowered(lambda x: spread(x)[0], (8, 64))).ok


def test_time_has_samples_and_a_compile_time():
    found = time_module(lowered(layer, SHAPE, SHAPE), BRIEF)
    assert found.outcome is Outcome.OK
    assert len(found.samples) >= 2
    assert all(sample > 0 for sample in found.samples)
    assert found.compile_s > 0


@pytest.mark.timed
def test_more_work_takes_longer():
    def deep(x, w):
        return jax.lax.fori_loop(0, 200, lambda _, y: layer(y, w), x)

    shapes = [(64, 64)] * 2
    found = time_in_turn(lowered(layer, *shapes), lowered(deep, *shapes), rounds=3)
    assert len(found.ratios) == 3
    assert min(found.ratios) > 5
    assert found.ours_ns < found.baseline_ns


def test_a_module_that_does_not_compile_is_a_compile_error():
    missing = entry("p = f32[3] parameter(0)", 'ROOT r = f32[3] custom-call(p), custom_call_target="nope"')
    with pytest.raises(CompileFailure, match="nope") as caught:
        compile_module(missing)
    assert "\n" not in str(caught.value)
    assert time_module(missing).outcome is Outcome.COMPILE_ERROR


def test_modules_that_cannot_run_are_refused():
    dynamic = entry("p = f32[<=3] parameter(0)", "ROOT r = f32[<=3] add(p, p)")
    with pytest.raises(ProgramError, match="dynamic"):
        compile_module(dynamic)

    def talks(x):
        jax.debug.print("{}", x)
        return x + 1

    with pytest.raises(ProgramError, match="Python"):
        compile_module(lowered(talks))
    with pytest.raises(ProgramError, match="takes 2 arrays"):
        compile_module(lowered(layer, SHAPE, SHAPE)).run([np.zeros(SHAPE, np.float32)])


def test_a_child_runs_what_it_has_not_lowered():
    # jax registers the addresses of LAPACK while lowering; a child that only runs modules must do it.
    proto = lowered(FUNCTIONS["cholesky"])
    with Child() as child:
        reply = child.call(Call("irgym.envs.hlo.compiling.execution:compare", (proto, proto, 1)))
        assert isinstance(reply, Returned), reply
        assert reply.value.ok
        missing = entry(
            "p = f32[3] parameter(0)", 'ROOT r = f32[3] custom-call(p), custom_call_target="nope"'
        )
        refused = child.call(Call("irgym.envs.hlo.compiling.execution:compare", (missing, missing, 1)))
    assert isinstance(refused, Raised)
    assert isinstance(refused.user_error, CompileFailure)
