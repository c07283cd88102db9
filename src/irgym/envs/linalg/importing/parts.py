"""The operations of a program as programs of their own; imports MLIR, so it runs in child processes."""

from collections.abc import Iterator
from typing import Any

from irgym.envs.linalg.compiling.bindings import func, ir
from irgym.envs.linalg.compiling.captures import captured, copied
from irgym.envs.linalg.compiling.compiler import ENTRY, function_of, mlir, parse
from irgym.envs.linalg.scheduling.script import MARK

COPIED = frozenset({"arith.constant", "tensor.empty", "linalg.fill", "linalg.broadcast"})
"""Operations that an operation takes along, beside transpositions; what else it reads become arguments."""


def parts_of(text: str) -> list[tuple[int, str]]:
    """Return the operations of a program, each as a program of its own.

    Operations of one sort, on tensors of equal shapes, come to one and the same text.

    Args:
        text: The program, its operations numbered.

    Returns:
        Numbers and texts, in the program's order; fills and transpositions that others read
        have none, and come with these.
    """
    with mlir():
        module = parse(text)
        block = function_of(module).regions[0].blocks[0]
        top = [view.operation for view in block.operations]
        return [
            (ir.IntegerAttr(operation.attributes[MARK]).value, _alone(operation))
            for operation in top
            if MARK in operation.attributes and not _is_taken(operation)
        ]


def _is_taken(operation: Any) -> bool:
    """Say whether an operation goes along with those that read it; see `Operation.has_turn`."""
    if operation.name == "linalg.transpose":
        return all(MARK in use.owner.attributes for use in operation.results[0].uses)
    return str(operation.name) in COPIED


def _alone(operation: Any) -> str:
    """Return the module of an operation of the function, and what it takes along."""
    taken = list(dict.fromkeys(_taken(operation)))
    made = {result for one in taken for result in one.results}
    used = dict.fromkeys(value for one in taken for value in captured(one))
    arguments = [value for value in used if value not in made]
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        types = [value.type for value in arguments], [result.type for result in operation.results]
        block = func.FuncOp(ENTRY, types).add_entry_block()
    values = dict(zip(arguments, block.arguments, strict=True))
    with ir.InsertionPoint(block):
        for one in taken:
            copy = copied(one, values)
            if MARK in copy.attributes:
                del copy.attributes[MARK]
            values |= zip(one.results, copy.results, strict=True)
        func.ReturnOp([values[result] for result in operation.results])
    return str(module)


def _taken(operation: Any) -> Iterator[Any]:
    """Yield an operation after all that it takes along."""
    for value in captured(operation):
        owner = value.owner
        if not isinstance(owner, ir.Block) and _is_taken(owner.operation):
            yield from _taken(owner.operation)
    yield operation
