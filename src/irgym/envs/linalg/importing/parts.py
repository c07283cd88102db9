"""The operations of a program as programs of their own; imports MLIR, so it runs in child processes."""

from collections.abc import Iterator, Sequence
from typing import Any

from irgym.envs.linalg.compiling.bindings import func, ir
from irgym.envs.linalg.compiling.captures import captured, copied
from irgym.envs.linalg.compiling.compiler import ENTRY, function_of, mlir, parse
from irgym.envs.linalg.scheduling.script import MARK

COPIED = frozenset({"arith.constant", "tensor.empty"})
"""Operations without a number that are copied into each part that uses them, and so are those on scalars."""


def parts_of(text: str, turns: Sequence[int]) -> list[str]:
    """Return operations of a program, each as a program of its own.

    Operations of one sort, on tensors of equal shapes, come to one and the same text. Those without a turn,
    as fills, are copied into each part that uses them. What else a part reads becomes its argument.

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
    """Return the number of an operation; None where it has none."""
    return ir.IntegerAttr(operation.attributes[MARK]).value if MARK in operation.attributes else None


def _alone(operation: Any, turns: Sequence[int]) -> str:
    """Return the module of an operation of the function, and what it takes along."""
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
    """Yield an operation after all that is copied with it."""
    for value in captured(operation):
        if isinstance(value.owner, ir.Block):
            continue
        owner = value.owner.operation
        number = _number(owner)
        if (owner.name in COPIED or _is_scalar(value)) if number is None else number not in turns:
            yield from _taken(owner, turns)
    yield operation
