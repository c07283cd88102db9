"""Single operations of a program as separate programs. Imported in a child only."""

from collections.abc import Iterator, Sequence
from typing import Any

from irgym.envs.linalg.compiling.bindings import func, ir
from irgym.envs.linalg.compiling.captures import captured, copied
from irgym.envs.linalg.compiling.compiler import ENTRY, function_of
from irgym.envs.linalg.compiling.contexts import mlir, parse
from irgym.envs.linalg.scheduling.script import MARK

COPIED = frozenset({"arith.constant", "tensor.empty"})
"""Unnumbered operations that are copied into each part that uses them, like those on scalars."""


def parts_of(text: str, turns: Sequence[int]) -> list[str]:
    """Return some operations of a program, each as a separate program.

    Equal operations on tensors of equal shapes get the same text. Operations without a turn, such as fills,
    are copied into each part that uses them. Other values that a part reads become its arguments.

    Args:
        text: The program, its operations numbered.
        turns: Numbers of the operations; see `Program.turns`.
    """
    with mlir():
        module = parse(text)
        block = function_of(module).regions[0].blocks[0]
        numbered = {_number(view.operation): view.operation for view in block.operations}
        return [_alone(numbered[place], turns) for place in turns]


def _number(operation: Any) -> int | None:
    """Return the number of an operation; None if it has none."""
    return ir.IntegerAttr(operation.attributes[MARK]).value if MARK in operation.attributes else None


def _alone(operation: Any, turns: Sequence[int]) -> str:
    """Return the module of an operation, with the operations that are copied with it."""
    taken = list(dict.fromkeys(_taken(operation, turns)))
    made = {result for member in taken for result in member.results}
    used = dict.fromkeys(value for member in taken for value in captured(member))
    arguments = [value for value in used if value not in made]
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        types = [value.type for value in arguments], [result.type for result in operation.results]
        block = func.FuncOp(ENTRY, types).add_entry_block()
    values = dict(zip(arguments, block.arguments, strict=True))
    with ir.InsertionPoint(block):
        for member in taken:
            copy = copied(member, values)
            if MARK in copy.attributes:
                del copy.attributes[MARK]
            values |= zip(member.results, copy.results, strict=True)
        func.ReturnOp([values[result] for result in operation.results])
    return str(module)


def _is_scalar(value: Any) -> bool:
    return not isinstance(value.type, ir.ShapedType)


def _taken(operation: Any, turns: Sequence[int]) -> Iterator[Any]:
    """Yield the operations that are copied with an operation, then the operation."""
    for value in captured(operation):
        if isinstance(value.owner, ir.Block):
            continue
        owner = value.owner.operation
        number = _number(owner)
        if (owner.name in COPIED or _is_scalar(value)) if number is None else number not in turns:
            yield from _taken(owner, turns)
    yield operation
