"""Captured values: those that an operation uses and that are defined outside of it. In a child only."""

from collections.abc import Iterator, Mapping
from typing import Any


def within(operation: Any) -> Iterator[Any]:
    """Yield an operation and all operations nested in it."""
    yield operation
    for region in operation.regions:
        for block in region.blocks:
            for view in block.operations:
                yield from within(view.operation)


def captured(operation: Any) -> list[Any]:
    """Return the values that an operation and its body use but do not define, in order of first use."""
    inside = list(within(operation))
    made = {result for inner in inside[1:] for result in inner.results}
    made |= {
        argument
        for inner in inside
        for region in inner.regions
        for block in region.blocks
        for argument in block.arguments
    }
    return list(dict.fromkeys(value for inner in inside for value in inner.operands if value not in made))


def copied(operation: Any, values: Mapping[Any, Any]) -> Any:
    """Copy an operation to the insertion point, replacing some of its captured values."""
    copy = operation.clone()
    for before, after in zip(within(operation), within(copy), strict=True):
        for place, operand in enumerate(before.operands):
            if operand in values:
                after.operands[place] = values[operand]
    return copy
