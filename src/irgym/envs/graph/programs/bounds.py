"""Bounds on the size of a file's model, checked before any other step."""

# The types of onnx are incomplete.
# pyright: reportUnknownMemberType=false

from collections.abc import Iterable, Mapping
from math import prod

import onnx
from onnx import NodeProto, TensorProto, helper

from irgym.base.errors import ProgramError
from irgym.envs.graph.programs.metadata import read_profiles, read_sizes

NODES = 50_000
"""Limit of a model's operators after inlining its functions; reading that many takes 15 s."""

DEPTH = 100
"""Limit of the depth of nested function calls."""

RANK = 64
"""Limit of the dimensions of a tensor, as in numpy."""

INPUTS = 4 << 30
"""Limit of the bytes of all inputs of a model."""

Key = tuple[str, str, str]
"""Identity of a function: domain, name, overload."""


def check_expansion(model: onnx.ModelProto, name: str) -> None:
    """Refuse a model that grows too large when its functions are inlined.

    Args:
        model: The model.
        name: The model's name in messages.

    Raises:
        ProgramError: It would have more than `NODES` operators, or a function calls itself.
    """
    functions = {
        (function.domain, function.name, function.overload): function for function in model.functions
    }
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
            f"{name} has {shown} operators after inlining its functions, and at most {NODES:,} are "
            "supported: choose a smaller model or split it"
        )


def check_inputs(model: onnx.ModelProto, name: str) -> None:
    """Refuse a model with inputs that are too large at a size that it is measured at.

    Args:
        model: The model, whose metadata tell the sizes of open dimensions.
        name: The model's name in messages.

    Raises:
        ProgramError: The inputs are too large, or have too many dimensions.
    """
    for value in model.graph.input:
        rank = len(value.type.tensor_type.shape.dim)
        if rank > RANK:
            raise ProgramError(
                f"{name}: the input {value.name} has {rank} dimensions, and at most {RANK} are "
                "supported: export the model with fewer"
            )
    profiles = [dict(profile.sizes) for profile in read_profiles(model)] or [read_sizes(model)]
    total = max(_bytes_at(sizes, model) for sizes in profiles)
    if total > INPUTS:
        raise ProgramError(
            f"{name} takes inputs of {_shown(total)}, and at most {_shown(INPUTS)} are supported: choose "
            "smaller sizes"
        )


def _bytes_at(sizes: Mapping[str, int], model: onnx.ModelProto) -> int:
    """Return the bytes of a model's inputs at some sizes of its open dimensions."""
    kinds = [value.type.tensor_type for value in model.graph.input]
    return sum(
        prod(sizes.get(size.dim_param, size.dim_value) for size in kind.shape.dim) * _width(kind.elem_type)
        for kind in kinds
    )


def check_dims(tensor: TensorProto, name: str) -> None:
    """Refuse a weight with an impossible shape.

    Raises:
        ProgramError: A size is negative, or there are too many dimensions.
    """
    if min(tensor.dims, default=0) < 0 or len(tensor.dims) > RANK:
        raise ProgramError(f"{name}: the weight {tensor.name} has an impossible shape: export it again")


def _width(kind: int) -> int:
    """Return the bytes of an element of an ONNX type; 1 if they are not fixed."""
    if kind in (TensorProto.UNDEFINED, TensorProto.STRING) or kind not in _KINDS:
        return 1
    return helper.tensor_dtype_to_np_dtype(kind).itemsize


_KINDS: frozenset[int] = frozenset(TensorProto.DataType.values())


def _shown(size: int) -> str:
    return f"{size / (1 << 30):,.0f} GiB" if size < 1 << 60 else "more than 2**60 bytes"
