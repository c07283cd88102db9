"""Optimised functions, called in place of the original."""

import numpy as np
import pytest

import irgym
from irgym.base.errors import ProgramError
from irgym.envs.hlo.programs.from_jax import program_of_function

pytestmark = pytest.mark.usefixtures("engine")


def agree(found, wanted):
    jax = pytest.importorskip("jax")
    assert jax.tree.structure(found) == jax.tree.structure(wanted)
    for result, expected in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert result.dtype == expected.dtype
        np.testing.assert_allclose(result, expected, rtol=1e-5)


def test_a_step_of_training_keeps_its_pytrees_and_arguments_that_it_does_not_use():
    jax = pytest.importorskip("jax")
    jnp = jax.numpy

    def step(weights, x, unused):
        def loss(weights):
            return jnp.mean(jnp.tanh(x @ weights["a"] + 0.0) @ weights["b"]) ** 2

        value, slopes = jax.value_and_grad(loss)(weights)
        return {"weights": jax.tree.map(lambda w, s: w - 0.1 * s, weights, slopes)}, value

    arguments = {"a": jnp.ones((4, 8)), "b": jnp.ones((8, 2))}, jnp.arange(12.0).reshape(3, 4), jnp.zeros(3)
    fast = irgym.tune(step, *arguments, searching=irgym.Searching(evaluations=12))
    assert fast.schedule and fast.cost < fast.cost_as_written
    agree(fast(*arguments), step(*arguments))
    # It is a function of jax, from which others can be derived.
    again = jax.jit(lambda *arguments: fast(*fast(*arguments)[0].values(), *arguments[1:]))
    agree(again(*arguments), step(step(*arguments)[0]["weights"], *arguments[1:]))


def test_random_keys_are_arguments_too():
    jax = pytest.importorskip("jax")
    key = jax.random.key(3)
    fast = irgym.replay(jax.jit(lambda key: jax.random.normal(key, (5,))), "call-inliner", key)
    agree(fast(key), jax.random.normal(key, (5,)))


def test_a_search_that_a_policy_leads_begins_with_the_default_order():
    jax = pytest.importorskip("jax")

    def sort(x):
        return jax.numpy.sort(x * 1.0)[::-1] + 0.0

    found = irgym.tune(sort, jax.numpy.ones(16), searching=irgym.Searching(evaluations=2))
    assert found.search.evaluations == 2 and found.cost <= found.reference.cost


def test_a_function_that_calls_back_is_refused_before_anything_is_searched():
    jax = pytest.importorskip("jax")

    def told(x):
        jax.debug.print("x is {}", x)
        return x + 1

    with pytest.raises(ProgramError, match=r"told calls back into Python .* remove prints, callbacks"):
        irgym.tune(told, jax.numpy.ones(3), searching=irgym.Searching(evaluations=3))


def test_a_function_that_a_module_cannot_stand_for_is_refused():
    jax = pytest.importorskip("jax")
    x, calls = jax.numpy.ones(3), []

    def counts(x):
        calls.append(x)
        return x * len(calls)

    for function in (counts, lambda x: x * np.random.default_rng().random()):
        with pytest.raises(ProgramError, match="another function when it is traced again"):
            program_of_function(function, (x,))
    with pytest.raises(ProgramError, match="has static arguments"):
        program_of_function(jax.jit(lambda x, n: x * n, static_argnums=1), (x, 3))


def test_structure_types_and_values_of_calls_are_compared():
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    x = jnp.linspace(-1.0, 2.0, 6).reshape(2, 3)

    def function(x, key, factor):
        return {"a": jnp.fft.rfft(x), "b": (x > 0, None, jax.random.normal(key, (2,)) * factor)}

    from irgym.envs.hlo.compiling.calling import compare

    def agrees(other):
        return compare(function, (x, jax.random.key(0), 2.0), other, 0)

    assert agrees(jax.jit(function)).checked and agrees(jax.jit(function)).inputs > 1
    wrong = {
        "structure": lambda *given: {**function(*given), "c": x},
        "type": lambda *given: jax.tree.map(lambda leaf: leaf.astype(jnp.float32), function(*given)),
        "kept": lambda _, *more: function(x, *more),
        "sign": lambda x, *more: function(jnp.abs(x), *more),
    }
    for other in wrong.values():
        assert not agrees(other).ok


def test_a_donated_argument_is_left_to_the_user():
    jax = pytest.importorskip("jax")
    x = jax.numpy.ones(4)
    from irgym.envs.hlo.compiling.calling import compare

    step = jax.jit(lambda x: x + 1, donate_argnums=0)
    assert compare(step, (x,), lambda x: x + 1, 0).ok
    assert not x.is_deleted()
