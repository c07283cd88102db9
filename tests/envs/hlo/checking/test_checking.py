"""Arguments on which modules are checked."""

import jax
import jax.numpy as jnp
import numpy as np

from irgym.envs.hlo.checking import checks as checking
from irgym.measure.checking.problem import SCALES


def tried(monkeypatch, function):
    """Return the seeds and scales of the arguments drawn for a function of 64 numbers."""
    given = jax.ShapeDtypeStruct((64,), np.float32)
    proto = jax.jit(function).lower(given).compiler_ir("hlo").as_serialized_hlo_module_proto()
    draws = []
    draw = checking.random_arguments

    def recorded(proto, seed, positive=False, scale=1.0):
        draws.append((seed, scale))
        return draw(proto, seed, positive, scale)

    monkeypatch.setattr(checking, "random_arguments", recorded)
    found = checking.Original(proto).problem(5)
    return draws, found


def test_arguments_on_which_wrong_answers_show_are_the_first(monkeypatch):
    draws, found = tried(monkeypatch, jnp.tanh)
    assert draws == [(5, 1.0)]
    assert not found.blind


def test_other_scales_are_tried_and_then_other_numbers(monkeypatch):
    draws, found = tried(monkeypatch, lambda x: jnp.sin(1e7 * x))
    assert [scale for _, scale in draws] == list(SCALES[: len(draws)])
    assert 1 < len(draws) < len(SCALES)
    assert not found.blind

    draws, found = tried(monkeypatch, lambda x: jnp.sin(1e30 * x) + jnp.sin(1e36 * x))
    assert [scale for _, scale in draws] == list(SCALES) * checking.DRAWS
    assert len({seed for seed, _ in draws}) == checking.DRAWS
    assert found.blind
