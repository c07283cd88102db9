"""Rewrites of a user's program to simpler operations and signatures, in place. Within `mlir`."""

from collections.abc import Iterator, Sequence
from typing import Any

from irgym.envs.linalg.compiling.bindings import ir
from irgym.envs.linalg.compiling.contexts import apply, run_passes
from irgym.envs.linalg.importing.cleaning import operations, update_signature
from irgym.envs.linalg.scheduling.operations import NARROW
from irgym.envs.linalg.scheduling.script import ANY, transform_module

_MATCH = 'transform.structured.match ops{{["linalg.{0}"]}} in %module : ({1}) -> {2}'


def _packs() -> str:
    """Return the script that lowers packing to padding, a reshape and a transposition; and unpacking."""
    pack, unpack = ('!transform.op<"linalg.pack">', '!transform.op<"linalg.unpack">')
    made = {
        "pack": ("tensor.pad", "tensor.expand_shape", "linalg.transpose"),
        "unpack": (
            "tensor.empty",
            "linalg.transpose",
            "tensor.collapse_shape",
            "tensor.extract_slice",
            "linalg.copy",
        ),
    }
    lines: list[str] = []
    for name, kind in (("pack", pack), ("unpack", unpack)):
        results = ", ".join(f'!transform.op<"{operation}">' for operation in made[name])
        lines.append(f"    %{name} = {_MATCH.format(name, ANY, kind)}\n")
        lines.append(
            f"    %{name}ed:{len(made[name])} = transform.structured.lower_{name} %{name}"
            f" : ({kind}) -> ({results})\n"
        )
    return transform_module("".join(lines))


_SOFTMAX = transform_module(
    f"    %softmax = {_MATCH.format('softmax', ANY, ANY)}\n"
    f"    %parts = transform.structured.decompose_interface %softmax : ({ANY}) -> {ANY}\n"
)


def lower(module: Any) -> None:
    """Lower packing, softmax, affine expressions and arithmetic on whole tensors to simpler operations."""
    names = {str(operation.name) for operation in operations(module)}
    if names & {"linalg.pack", "linalg.unpack"}:
        apply(module, _packs())
    if "linalg.softmax" in names:
        apply(module, _SOFTMAX)
    passes = "lower-affine,convert-elementwise-to-linalg,scf-forall-to-for"
    run_passes(module, f"func.func({passes}),canonicalize,cse")


def pass_undefined(function: Any) -> None:
    """Turn uninitialised tensors that are read into arguments.

    Programs that time themselves often do not initialise their inputs.
    """
    block = function.regions[0].blocks[0]
    undefined = [
        view.operation
        for view in block.operations
        if view.operation.name == "tensor.empty"
        and view.operation.results[0].type.has_static_shape
        and any(_reads(use) for use in view.operation.results[0].uses)
    ]
    for operation in undefined:
        value = operation.results[0]
        value.replace_all_uses_with(block.add_argument(value.type, operation.location))
        operation.erase()
    if undefined:
        update_signature(function)


def _reads(use: Any) -> bool:
    """Say whether an operation reads the operand of a use."""
    owner, place = use.owner.operation, use.operand_number
    name = str(owner.name)
    if name.startswith("linalg.") and len(owner.regions) == 1 and len(owner.regions[0].blocks):
        arguments = owner.regions[0].blocks[0].arguments
        return place >= len(arguments) or bool(list(arguments[place].uses))
    if name in ("tensor.insert_slice", "tensor.insert"):
        return place == 0
    if name in ("tensor.extract", "tensor.pad", "tensor.concat", "func.return"):
        return True
    if name in ("tensor.collapse_shape", "tensor.expand_shape", "tensor.cast", "tensor.extract_slice"):
        return any(_reads(inner) for inner in owner.results[0].uses)
    return False


def widen_signature(function: Any) -> None:
    """Pass tensors of short floats as float32, in place: numpy has no bfloat16."""
    block = function.regions[0].blocks[0]
    ends = block.operations[len(block.operations) - 1].operation
    with ir.InsertionPoint.at_block_begin(block):
        for argument in block.arguments:
            narrow = argument.type
            if is_narrow(narrow):
                argument.set_type(_wide(narrow))
                uses = _uses(argument)
                converted = ir.Operation.create("arith.truncf", [narrow], [argument]).results[0]
                for owner, place in uses:
                    owner.operands[place] = converted
    with ir.InsertionPoint(ends):
        for place, value in enumerate(ends.operands):
            if is_narrow(value.type):
                ends.operands[place] = ir.Operation.create(
                    "arith.extf", [_wide(value.type)], [value]
                ).results[0]
    update_signature(function)


def is_narrow(kind: Any) -> bool:
    """Say whether a type is a tensor of short floats."""
    return isinstance(kind, ir.RankedTensorType) and str(kind.element_type) in NARROW


def _wide(kind: Any) -> Any:
    return ir.RankedTensorType.get(kind.shape, ir.F32Type.get())


def _uses(value: Any) -> Sequence[tuple[Any, int]]:
    return [(use.owner, use.operand_number) for use in value.uses]


def printed(function: Any, observers: frozenset[str]) -> list[Any]:
    """Return the distinct tensors that a function prints."""
    found: list[Any] = []
    for view in function.regions[0].blocks[0].operations:
        operation = view.operation
        if operation.name == "func.call" and operation.attributes["callee"].value in observers:
            found += map(_uncast, operation.operands)
        elif operation.name == "vector.print":
            found += (tensor for operand in operation.operands for tensor in _behind(operand))
    return list(dict.fromkeys(value for value in found if isinstance(value.type, ir.RankedTensorType)))


def _uncast(value: Any) -> Any:
    owner = value.owner
    return _uncast(owner.operands[0]) if not _is_block(owner) and owner.name == "tensor.cast" else value


def _behind(value: Any) -> Iterator[Any]:
    """Yield the tensors that a vector was read from."""
    if _is_block(value.owner):
        return
    operation = value.owner.operation
    if operation.name == "vector.transfer_read":
        yield _uncast(operation.operands[0])
    else:
        for operand in operation.operands:
            yield from _behind(operand)


def _is_block(owner: Any) -> bool:
    return isinstance(owner, ir.Block)


def return_values(function: Any, values: Sequence[Any]) -> None:
    """Change a function to return the given values, in place."""
    block = function.regions[0].blocks[0]
    ends = block.operations[len(block.operations) - 1].operation
    with ir.InsertionPoint(ends):
        ir.Operation.create("func.return", operands=list(values))
    ends.erase()
    update_signature(function)
