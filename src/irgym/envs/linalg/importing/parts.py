"""The operations of a program as programs of their own; imports MLIR, so it runs in child processes."""

from collections.abc import Iterator, Set
from importlib import import_module
from typing import Any

from irgym.envs.linalg.compiling.bindings import ir
from irgym.envs.linalg.compiling.compiler import ENTRY, function_of, mlir, parse
from irgym.envs.linalg.scheduling.script import MARK

func: Any = import_module("torch_mlir.dialects.func")

COPIED = frozenset({"arith.constant", "tensor.empty", "linalg.fill", "linalg.broadcast"})
"""Operations that an operation takes along; what else it reads become arguments."""


def parts_of(text: str) -> list[tuple[int, str]]:
    """Return the operations of a program, each as a program of its own.

    Operations of one sort, on tensors of equal shapes, come to one and the same text.

    Args:
        text: The program, its operations numbered.

    Returns:
        Numbers and texts, in the program's order; fills have none, and come with what adds to them.
    """
    with mlir():
        module = parse(text)
        block = function_of(module).regions[0].blocks[0]
        top = [view.operation for view in block.operations]
        outside = {*block.arguments, *(result for operation in top for result in operation.results)}
        return [
            (ir.IntegerAttr(operation.attributes[MARK]).value, _alone(operation, outside))
            for operation in top
            if MARK in operation.attributes and str(operation.name) not in COPIED
        ]


def _alone(operation: Any, outside: Set[Any]) -> str:
    """Return the module of an operation and what it takes along.

    Args:
        operation: One of the function's operations.
        outside: The values that are defined in the function, and not in the body of an operation.
    """
    taken = list(dict.fromkeys(_taken(operation, outside)))
    made = {result for one in taken for result in one.results}
    used = dict.fromkeys(value for one in taken for value in _used(one, outside))
    arguments = [value for value in used if value not in made]
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        types = [value.type for value in arguments], [result.type for result in operation.results]
        block = func.FuncOp(ENTRY, types).add_entry_block()
    values = dict(zip(arguments, block.arguments, strict=True))
    with ir.InsertionPoint(block):
        for one in taken:
            copied = one.clone()
            if MARK in copied.attributes:
                del copied.attributes[MARK]
            for before, after in zip(_within(one), _within(copied), strict=True):
                for place, operand in enumerate(before.operands):
                    if operand in outside:
                        after.operands[place] = values[operand]
            values |= zip(one.results, copied.results, strict=True)
        func.ReturnOp([values[result] for result in operation.results])
    return str(module)


def _taken(operation: Any, outside: Set[Any]) -> Iterator[Any]:
    """Yield an operation after all that it takes along."""
    for value in _used(operation, outside):
        owner = value.owner
        if not isinstance(owner, ir.Block) and str(owner.name) in COPIED:
            yield from _taken(owner.operation, outside)
    yield operation


def _used(operation: Any, outside: Set[Any]) -> Iterator[Any]:
    """Yield the function's values that an operation and its body use."""
    for one in _within(operation):
        yield from (operand for operand in one.operands if operand in outside)


def _within(operation: Any) -> Iterator[Any]:
    """Yield an operation and those of its body, however deep."""
    yield operation
    for region in operation.regions:
        for block in region.blocks:
            for view in block.operations:
                yield from _within(view.operation)
