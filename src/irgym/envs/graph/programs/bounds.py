"""Bounds on what a model of a file may expand to, checked before anything is done with it."""

# onnx leaves parts of its own types open.
# pyright: reportUnknownMemberType=false

from collections.abc import Iterable
from math import prod

import onnx
from onnx import NodeProto, TensorProto, helper

from irgym.base.errors import ProgramError

NODES = 50_000
"""Most operators that a model may have, once its functions are written out: reading them takes 15 s."""

DEPTH = 100
"""Most functions that may call each other in a row."""

RANK = 64
"""Most dimensions of a tensor: numpy has no more."""

INPUTS = 4 << 30
"""Most bytes that a model's inputs may have together."""

Key = tuple[str, str, str]
"""What a function is called by: domain, name, overload."""


def check_expansion(model: onnx.ModelProto, name: str) -> None:
    """Make sure that a model does not grow beyond measure when its functions are written out.

    Args:
        model: The model.
        name: What messages call it.

    Raises:
        ProgramError: It has more than `NODES` operators then, or a function calls itself.
    """
    functions = {(one.domain, one.name, one.overload): one for one in model.functions}
    counts: dict[Key, int] = {}

    def count(nodes: Iterable[NodeProto], calling: tuple[Key, ...]) -> int:
        found = 0
        for node in nodes:
            key = (node.domain, node.op_type, node.overload)
            found += called(key, calling) if key in functions else 1
            for attribute in node.attribute:
                inner = [attribute.g] if attribute.HasField("g") else attribute.graphs
                found += sum(count(graph.node, calling) for graph in inner)
        return found

    def called(key: Key, calling: tuple[Key, ...]) -> int:
        if key in calling:
            raise ProgramError(f"{name}: the function {key[1]} calls itself: export the model without it")
        if len(calling) >= DEPTH:
            raise ProgramError(
                f"{name} has functions that call each other {DEPTH} deep: export the model without functions"
            )
        if key not in counts:
            counts[key] = count(functions[key].node, (*calling, key))
        return counts[key]

    total = count(model.graph.node, ())
    if total > NODES:
        shown = f"{total:,}" if total < 10**12 else "more than 10**12"
        raise ProgramError(
            f"{name} has {shown} operators with its functions written out, and at most {NODES:,} are "
            "handled: choose a smaller model or split it"
        )


def check_inputs(model: onnx.ModelProto, name: str) -> None:
    """Make sure that a model's inputs, whose sizes are fixed, can be made.

    Args:
        model: The model.
        name: What messages call it.

    Raises:
        ProgramError: They are too large, or have too many dimensions.
    """
    total = 0
    for value in model.graph.input:
        tensor = value.type.tensor_type
        sizes = [dimension.dim_value for dimension in tensor.shape.dim]
        if len(sizes) > RANK:
            raise ProgramError(
                f"{name}: the input {value.name} has {len(sizes)} dimensions, and at most {RANK} are "
                "handled: export the model with fewer"
            )
        total += prod(sizes) * _width(tensor.elem_type)
    if total > INPUTS:
        raise ProgramError(
            f"{name} takes inputs of {_shown(total)}, and at most {_shown(INPUTS)} are handled: choose "
            "smaller sizes"
        )


def check_dims(tensor: TensorProto, name: str) -> None:
    """Make sure that a weight has sizes that a weight can have.

    Raises:
        ProgramError: One is negative, or there are too many.
    """
    if min(tensor.dims, default=0) < 0 or len(tensor.dims) > RANK:
        raise ProgramError(f"{name}: the weight {tensor.name} has sizes that no tensor has: export it again")


def _width(kind: int) -> int:
    """Return the bytes of an element of a type of ONNX, 1 where it has no fixed number."""
    if kind in (TensorProto.UNDEFINED, TensorProto.STRING) or kind not in _KINDS:
        return 1
    return helper.tensor_dtype_to_np_dtype(kind).itemsize


_KINDS: frozenset[int] = frozenset(TensorProto.DataType.values())


def _shown(size: int) -> str:
    return f"{size / (1 << 30):,.0f} GiB" if size < 1 << 60 else "more than 2**60 bytes"
