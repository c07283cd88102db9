"""Optimised functions of JAX, callable in place of the original. Imports jax, as the caller did already."""

# The type declarations of jax are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np

from irgym.base.errors import ProgramError
from irgym.core.cost import Validation
from irgym.envs.hlo.programs.lowering import jitted, portable, to_stablehlo
from irgym.measure.callables.comparison import Results, reference
from irgym.measure.checking.numbers import Array, same_bits

SEED = 20261128
"""Seed of the values of inputs given as shapes only."""


def in_place_of(function: Callable[..., Any], inputs: Sequence[Any], proto: bytes) -> Callable[..., Any]:
    """Return a function that computes a module and has the signature of the function it was lowered from.

    It is a function of jax: it can be jitted with others, and takes and returns the same pytrees. XLA
    compiles it on its first call.

    Args:
        function: The function that was lowered.
        inputs: Arrays or `jax.ShapeDtypeStruct`s that it was lowered with.
        proto: Its HloModuleProto after passes.

    Raises:
        ProgramError: jax cannot export the function, or the module has operations that StableHLO lacks.
    """
    try:
        frame = jax.export.export(jitted(function), platforms=("cpu",))(*inputs)
    except (TypeError, ValueError, NotImplementedError) as error:
        raise ProgramError(
            f"jax cannot export {_name(function)}, so it cannot be called ({error})"
        ) from error
    code = portable(to_stablehlo(proto))
    return jax.jit(replace(frame, mlir_module_serialized=code).call)


def refuse_unsteady(function: Callable[..., Any], inputs: Sequence[Any]) -> None:
    """Reject a function that no module can represent; errors of jax itself are left to the lowering.

    A function that is not jitted is traced twice. jit would freeze what changes between traces, such as a
    random number of numpy, and the module would then differ from the function.

    Raises:
        ProgramError: It has static arguments, draws random numbers outside jax or keeps state.
    """
    try:
        traced = jitted(function).trace(*inputs)
        again = traced if hasattr(function, "trace") else jax.jit(_afresh(function)).trace(*inputs)
    except (TypeError, ValueError):
        return
    name = _name(function)
    if len(jax.tree.leaves(traced.args_info)) != len(jax.tree.leaves(tuple(inputs))):
        raise ProgramError(
            f"{name} has static arguments, which a module does not take: bind them first, as in "
            "jax.jit(functools.partial(f, n=3))"
        )
    first, second = traced.jaxpr, again.jaxpr
    if str(first.jaxpr) != str(second.jaxpr) or not all(map(_alike, first.consts, second.consts)):
        raise ProgramError(
            f"{name} is another function when it is traced again, so it keeps state or draws random numbers "
            "outside jax: make it a function of its arguments, or give jax.jit of it"
        )


def _afresh(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a copy of a function, of which jax has no trace yet."""

    @wraps(function)
    def again(*arguments: Any) -> Any:
        return function(*arguments)

    return again


def _alike(left: Any, right: Any) -> bool:
    return left is right or (jnp.shape(left) == jnp.shape(right) and same_bits(_array(left), _array(right)))


def compare(
    function: Callable[..., Any], inputs: Sequence[Any], other: Callable[..., Any], seed: int
) -> Validation:
    """Compare a function with the JAX function that it replaces, jitted.

    Args:
        function: The JAX function.
        inputs: Example inputs, arrays or shapes; values of shapes are drawn.
        other: The replacement, with the same signature.
        seed: Seed of further inputs.

    Raises:
        ProgramError: The function fails on its example inputs.
    """
    example, structure = jax.tree.flatten(tuple(inputs))
    random = np.random.default_rng(SEED)
    arrays = [_values(leaf, random) for leaf in example]

    def run(called: Callable[..., Any], given: Sequence[Array]) -> Results:
        # Copies, as a function may take over the memory of its arguments.
        leaves = [_like(old, new) for old, new in zip(example, given, strict=True)]
        return results_of(called(*jax.tree.unflatten(structure, leaves)))

    return reference(_name(function), arrays, run, [jitted(function)], seed).judge(other)


def results_of(value: Any) -> Results:
    """Return the results of a function as plain data."""
    leaves, structure = jax.tree.flatten(value)
    arrays = tuple(_array(leaf) for leaf in leaves)
    return Results(structure, tuple(map(_kind, leaves)), arrays)


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", "the function")


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _array(leaf: Any) -> Array:
    if isinstance(leaf, jax.Array) and _is_key(leaf):
        leaf = jax.random.key_data(leaf)
    return np.array(leaf)


def _kind(leaf: Any) -> str:
    shape, weak = "x".join(map(str, jnp.shape(leaf))) or "one", getattr(leaf, "weak_type", False)
    return f"{shape} {jnp.result_type(leaf) if not _is_key(leaf) else leaf.dtype}{' (weak)' if weak else ''}"


def _values(leaf: Any, random: np.random.Generator) -> Array:
    """Return the numbers of an example input; random ones for a shape."""
    if not isinstance(leaf, jax.ShapeDtypeStruct):
        return _array(leaf)
    if jnp.issubdtype(leaf.dtype, np.floating) or jnp.issubdtype(leaf.dtype, np.complexfloating):
        return random.standard_normal(leaf.shape).astype(leaf.dtype)
    return np.zeros(leaf.shape, leaf.dtype)


def _like(example: Any, array: Array) -> Any:
    """Return an array in the type of an example: random key, Python number, or array of numpy or jax."""
    if isinstance(example, bool | int | float | complex):
        return type(example)(array[()])
    if not isinstance(example, jax.Array | jax.ShapeDtypeStruct):
        return np.array(array)
    if _is_key(example):
        return jax.random.wrap_key_data(jnp.asarray(array))
    return jnp.array(array)
