"""Clean-up of imported modules: assertions, dead code, unused results, large constants. Within `mlir`."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.base.errors import ProgramError
from irgym.envs.linalg.compiling.bindings import ir
from irgym.envs.linalg.compiling.captures import within
from irgym.envs.linalg.compiling.contexts import run_passes
from irgym.envs.linalg.scheduling.operations import ELEMENTS, FLOATS

MAX_CONSTANT = 16
"""Greatest number of elements of a float constant that stays in the text, unless all are equal."""

MAX_TABLE = 65_536
"""Greatest number of elements of an integer constant: an index table cannot become an argument."""


def clean(module: Any) -> None:
    """Drop assertions, unused results, dead code, and uncalled functions, in place."""
    for assertion in [operation for operation in operations(module) if operation.name == "cf.assert"]:
        assertion.erase()
    _narrow_constants(module)
    run_passes(module, _PASSES)
    for generic in [operation for operation in operations(module) if operation.name == "linalg.generic"]:
        _drop_unused_results(generic)
    run_passes(module, _PASSES)


_PASSES = "canonicalize,symbol-dce"


def operations(parent: Any) -> Iterator[Any]:
    """Yield all operations nested in an operation, outer ones first."""
    return islice(within(parent.operation), 1, None)


def _drop_unused_results(generic: Any) -> None:
    """Drop the unused results of a generic operation, such as indices of maxima from torch-mlir."""
    kept = [place for place, result in enumerate(generic.results) if list(result.uses)]
    body, count = generic.regions[0].blocks[0], len(generic.results)
    inputs = len(generic.operands) - count
    dropped = [place for place in range(count) if place not in kept]
    ends = body.operations[len(body.operations) - 1]
    needed = _needed(ends.operands[place] for place in kept)
    if not kept or not dropped or any(body.arguments[inputs + place] in needed for place in dropped):
        return
    maps = list(generic.attributes["indexing_maps"])
    attributes = {
        "indexing_maps": ir.ArrayAttr.get([*maps[:inputs], *(maps[inputs + place] for place in kept)]),
        "iterator_types": generic.attributes["iterator_types"],
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([inputs, len(kept)]),
    }
    operands = [*list(generic.operands)[:inputs], *(generic.operands[inputs + place] for place in kept)]
    types = [generic.results[place].type for place in kept]
    with ir.InsertionPoint(generic):
        new = ir.Operation.create("linalg.generic", types, operands, attributes, regions=1)
    with ir.InsertionPoint(ends):
        ir.Operation.create("linalg.yield", operands=[ends.operands[place] for place in kept])
    ends.operation.erase()
    for operation in reversed(list(body.operations)[:-1]):
        if not any(list(result.uses) for result in operation.operation.results):
            operation.operation.erase()
    for place in reversed(dropped):
        body.erase_argument(inputs + place)
    body.append_to(new.regions[0])
    for place, result in zip(kept, new.results, strict=True):
        generic.results[place].replace_all_uses_with(result)
    generic.erase()


def _needed(values: Iterable[Any]) -> list[Any]:
    """Return some values of a body and all values that they are computed from."""
    needed: list[Any] = []
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if value not in needed:
            needed.append(value)
            if not isinstance(value.owner, ir.Block):
                waiting += value.owner.operands
    return needed


def _narrow_constants(module: Any) -> None:
    """Turn constants that are truncated to float32, as torch-mlir writes them, into float32 constants."""
    for cut in [operation for operation in operations(module) if operation.name == "arith.truncf"]:
        constant, narrow = cut.operands[0].owner, cut.results[0].type
        if isinstance(narrow, ir.F32Type) and getattr(constant, "name", "") == "arith.constant":
            value = ir.FloatAttr.get(narrow, constant.attributes["value"].value)
            with ir.InsertionPoint(cut):
                new = ir.Operation.create("arith.constant", results=[narrow], attributes={"value": value})
            cut.results[0].replace_all_uses_with(new.results[0])
            cut.erase()


def lift_constants(function: Any, name: str) -> dict[int, NDArray[Any]]:
    """Turn large constants into arguments, in place; return their values by place."""
    block = function.regions[0].blocks[0]
    values: dict[int, NDArray[Any]] = {}
    for operation in list(block.operations):
        if operation.operation.name != "arith.constant":
            continue
        shape, value = operation.result.type, operation.attributes["value"]
        if not isinstance(shape, ir.RankedTensorType) or getattr(value, "is_splat", False):
            continue
        count = prod(shape.shape)
        if str(shape.element_type) not in FLOATS:
            if count > MAX_TABLE:
                raise ProgramError(f"{name} has a table of {count} whole numbers: make it an argument")
        elif count > MAX_CONSTANT:
            values[len(block.arguments)] = _array(value, shape)
            operation.result.replace_all_uses_with(block.add_argument(shape, operation.location))
            operation.operation.erase()
    if values:
        update_signature(function)
    return values


def fill_arguments(function: Any, tables: Mapping[int, NDArray[Any]]) -> None:
    """Turn arguments into constants, in place.

    Args:
        function: A function on tensors.
        tables: Values of the arguments, by place.
    """
    block = function.regions[0].blocks[0]
    for place, values in sorted(tables.items(), reverse=True):
        argument = block.arguments[place]
        attribute = ir.DenseElementsAttr.get(np.ascontiguousarray(values), type=argument.type)
        with ir.InsertionPoint.at_block_begin(block):
            constant = ir.Operation.create("arith.constant", [argument.type], attributes={"value": attribute})
        argument.replace_all_uses_with(constant.results[0])
        block.erase_argument(place)
    update_signature(function)


def update_signature(function: Any) -> None:
    """Update a function's type to its arguments and returned values, in place.

    Attributes of arguments and results are dropped.
    """
    block = function.regions[0].blocks[0]
    returned = block.operations[len(block.operations) - 1].operands
    signature = ir.FunctionType.get(
        [value.type for value in block.arguments], [value.type for value in returned]
    )
    function.attributes["function_type"] = ir.TypeAttr.get(signature)
    for told in ("arg_attrs", "res_attrs"):
        if told in function.attributes:
            del function.attributes[told]


def _array(value: Any, kind: Any) -> NDArray[Any]:
    """Return the values of a dense constant; zeros where the text does not contain the values."""
    shape, element = tuple(kind.shape), ELEMENTS[str(kind.element_type)]
    if isinstance(value, ir.DenseElementsAttr):
        return np.array(value, element).reshape(shape)
    return np.zeros(shape, element)
