"""All operators: their evaluation and their types."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from irgym.envs.graph.ir.types import Key, TensorType
from irgym.envs.graph.reference import (
    activations,
    attention,
    convolution,
    elementwise,
    generation,
    layout,
    movement,
    normalisation,
    pooling,
    products,
    quantisation,
    recurrence,
    reductions,
    resizing,
    selection,
)
from irgym.envs.graph.reference.calls import Array, Call, Operator, OperatorError

OPERATORS: Mapping[str, Operator] = {
    **elementwise.OPERATORS,
    **activations.OPERATORS,
    **reductions.OPERATORS,
    **normalisation.OPERATORS,
    **products.OPERATORS,
    **quantisation.OPERATORS,
    **recurrence.OPERATORS,
    **attention.OPERATORS,
    **convolution.OPERATORS,
    **pooling.OPERATORS,
    **movement.OPERATORS,
    **selection.OPERATORS,
    **resizing.OPERATORS,
    **generation.OPERATORS,
    **layout.OPERATORS,
}
"""Operators by ONNX's name, with the domain in front if it is not ONNX's."""

_Result = TypeVar("_Result")


def evaluate(
    operator: str,
    inputs: Sequence[Array | None],
    attributes: Mapping[str, Any],
    outputs: int = 1,
    *,
    block: int = 16,
) -> list[Array]:
    """Return the outputs of an operator, as ONNX (operator sets 18 to 23) or ONNX Runtime documents it.

    Floating-point operators compute in the precision of their inputs; `stash_type` and `softmax_precision`
    are ignored. Undefined or out-of-range results are those of numpy, without warnings.

    Args:
        operator: A key of `OPERATORS`.
        inputs: Arrays; None for a missing optional input.
        attributes: Plain values: numbers, strings and tuples of them; arrays for tensors.
        outputs: Number of requested outputs.
        block: Channels of a block, for the operators of `com.microsoft.nchwc`: 16 with AVX-512, else 8.

    Returns:
        The first `outputs` outputs. They may share memory with the inputs.

    Raises:
        OperatorError: The operator, an attribute or an output is not supported.
    """
    call = Call(operator, attributes, outputs, block)
    with np.errstate(all="ignore"):
        result = _operator(operator).meaning(call, *inputs)
    # A ufunc returns a scalar where the shape is ().
    if isinstance(result, np.ndarray | np.generic):
        result = [result]
    return [np.asarray(array) for array in _first(call, list(result))]


def types_of(
    operator: str,
    inputs: Sequence[TensorType | None],
    attributes: Mapping[str, Any],
    constants: Sequence[Array | None] = (),
    outputs: int = 1,
    *,
    block: int = 16,
    trusted: bool = False,
) -> list[TensorType]:
    """Return the types of the outputs of an operator.

    Args:
        operator: A key of `OPERATORS`.
        inputs: Types; None for a missing optional input.
        attributes: As in `evaluate`.
        constants: Known values of inputs, such as the shape for Reshape; None for others.
        outputs: Number of requested outputs.
        block: As in `evaluate`.
        trusted: Whether open sizes meet what the operator needs; see `Call`.

    Raises:
        OperatorError: The operator, an attribute or an output is not supported, or the types depend on an
            input whose value is not among the constants.
    """
    call = Call(operator, attributes, outputs, block, constants, trusted)
    result = _operator(operator).types(call, *inputs)
    return _first(call, [result] if isinstance(result, TensorType) else list(result))


@lru_cache(1 << 14)
def types_by_key(
    operator: str,
    inputs: tuple[Key | None, ...],
    attributes: tuple[tuple[str, Any], ...],
    outputs: int,
    block: int,
) -> tuple[TensorType, ...]:
    """Return the types of the outputs of an operator, remembered, where no input's value is known.

    Rules ask the same again and again: of every place where they may apply, in every graph of a search.

    Args:
        operator: A key of `OPERATORS`.
        inputs: Keys of the types; None for a missing optional input.
        attributes: Pairs of a name and a value.
        outputs: As in `types_of`; so is `block`.
        block: See `outputs`.

    Raises:
        OperatorError: As in `types_of`.
    """
    kinds = [None if key is None else TensorType.of(key) for key in inputs]
    return tuple(types_of(operator, kinds, dict(attributes), outputs=outputs, block=block))


def _operator(name: str) -> Operator:
    if name not in OPERATORS:
        raise OperatorError(f"the operator {name} is not known here; add it to irgym.envs.graph.reference")
    return OPERATORS[name]


def _first(call: Call, results: list[_Result]) -> list[_Result]:
    if len(results) < call.outputs:
        raise call.refusal(f"{call.outputs} outputs")
    return results[: call.outputs]
