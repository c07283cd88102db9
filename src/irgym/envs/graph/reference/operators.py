"""All operators, and what is asked of them."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from irgym.envs.graph.ir.types import TensorType
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
"""By ONNX's name, with the domain in front if it is not ONNX's own."""

_One = TypeVar("_One")


def evaluate(
    operator: str,
    inputs: Sequence[Array | None],
    attributes: Mapping[str, Any],
    outputs: int = 1,
    *,
    block: int = 16,
) -> list[Array]:
    """Return what an operator computes, as ONNX (operator sets 18 to 23) or ONNX Runtime documents it.

    Floating-point operators compute in the precision of their inputs, whatever `stash_type` and
    `softmax_precision` say. What is undefined or out of range gives what numpy gives, without warnings.

    Args:
        operator: A key of `OPERATORS`.
        inputs: None for an optional one that is left out.
        attributes: Plain values: numbers, texts and tuples of them; arrays for tensors.
        outputs: Number of outputs wanted.
        block: Channels of a block, for the operators of `com.microsoft.nchwc`: 16 with AVX-512, else 8.

    Returns:
        The first `outputs` outputs. They may share memory with the inputs.

    Raises:
        OperatorError: The operator is not known here, or has attributes or outputs that are not.
    """
    call = Call(operator, attributes, outputs, block)
    with np.errstate(all="ignore"):
        result = _operator(operator).meaning(call, *inputs)
    # A ufunc returns a scalar where the shape is ().
    if isinstance(result, np.ndarray | np.generic):
        result = [result]
    return [np.asarray(one) for one in _first(call, list(result))]


def types_of(
    operator: str,
    inputs: Sequence[TensorType | None],
    attributes: Mapping[str, Any],
    constants: Sequence[Array | None] = (),
    outputs: int = 1,
    *,
    block: int = 16,
) -> list[TensorType]:
    """Return the types of what an operator computes.

    Args:
        operator: A key of `OPERATORS`.
        inputs: Types; None for an optional one that is left out.
        attributes: As in `evaluate`.
        constants: Values of the inputs that are known, such as Reshape's target; None for others.
        outputs: Number of outputs wanted.
        block: As in `evaluate`.

    Raises:
        OperatorError: The operator is not known here, has attributes or outputs that are not, or its types
            depend on an input whose value is not among the constants.
    """
    call = Call(operator, attributes, outputs, block, constants)
    result = _operator(operator).types(call, *inputs)
    return _first(call, [result] if isinstance(result, TensorType) else list(result))


def _operator(name: str) -> Operator:
    if name not in OPERATORS:
        raise OperatorError(f"the operator {name} is not known here; add it to irgym.envs.graph.reference")
    return OPERATORS[name]


def _first(call: Call, results: list[_One]) -> list[_One]:
    if len(results) < call.outputs:
        raise call.refusal(f"{call.outputs} outputs")
    return results[: call.outputs]
