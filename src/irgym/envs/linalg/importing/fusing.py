"""Fusion of chains of elementwise operations. Within `mlir`.

torch-mlir makes several operations of one torch operation, such as two of a ReLU6 and five of a GELU. Each
would be a pass over memory. MLIR's fusion pass is not used: it also fuses into sums, which then repeat the
computation for each column, and it changes the loops of products to remove reshapes.
"""

from typing import Any

from irgym.envs.linalg.compiling.bindings import ir
from irgym.envs.linalg.compiling.captures import copied
from irgym.envs.linalg.importing.description import SCALAR_ONLY


def fuse_elementwise(function: Any) -> None:
    """Fuse each elementwise operation with the producers of operands that it alone reads, in place.

    Producer and consumer have the same loops, and each iteration reads the element of that iteration.
    """
    for view in list(function.regions[0].blocks[0].operations):
        consumer = view.operation
        while _is_elementwise(consumer):
            place = next((place for place in range(_inputs(consumer)) if _is_chained(consumer, place)), None)
            if place is None:
                break
            consumer = _fused(consumer, place)


def _is_elementwise(operation: Any) -> bool:
    """Say whether an operation has one result, and each iteration computes one element of it."""
    return (
        operation.name == "linalg.generic"
        and len(operation.results) == 1
        and all("parallel" in str(kind) for kind in operation.attributes["iterator_types"])
        and _is_identity(operation, len(operation.operands) - 1)
    )


def _is_identity(operation: Any, place: int) -> bool:
    indexing = operation.attributes["indexing_maps"][place].value
    return indexing == ir.AffineMap.get_identity(indexing.n_dims)


def _inputs(operation: Any) -> int:
    return len(operation.operands) - len(operation.results)


def _is_chained(consumer: Any, place: int) -> bool:
    """Say whether an operand of a consumer is produced by an elementwise operation without other users."""
    value = consumer.operands[place]
    if isinstance(value.owner, ir.Block) or not _is_identity(consumer, place):
        return False
    producer = value.owner.operation
    if not _is_elementwise(producer) or len(list(value.uses)) > 1:
        return False
    if _is_scalar(producer) != _is_scalar(consumer):
        return False  # a scalar operation would prevent vectorisation of the other
    return not list(_body(producer).arguments[_inputs(producer)].uses)


def _is_scalar(operation: Any) -> bool:
    return any(view.operation.name in SCALAR_ONLY for view in _body(operation).operations)


def _body(operation: Any) -> Any:
    return operation.regions[0].blocks[0]


def _fused(consumer: Any, place: int) -> Any:
    """Replace a consumer and the producer of an operand by one operation, and return it."""
    producer = consumer.operands[place].owner.operation
    read = [(producer, number) for number in range(_inputs(producer))]
    read += [(consumer, number) for number in range(len(consumer.operands)) if number != place]
    maps = [operation.attributes["indexing_maps"][number] for operation, number in read]
    operands = [operation.operands[number] for operation, number in read]
    attributes = {
        "indexing_maps": ir.ArrayAttr.get(maps),
        "iterator_types": consumer.attributes["iterator_types"],
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands) - 1, 1]),
    }
    kind = consumer.results[0].type
    with ir.InsertionPoint(consumer):
        fused = ir.Operation.create("linalg.generic", [kind], operands, attributes, regions=1)
    arguments = [_body(operation).arguments[number] for operation, number in read]
    block = fused.regions[0].blocks.append(*(argument.type for argument in arguments))
    values = dict(zip(arguments, block.arguments, strict=True))
    with ir.InsertionPoint(block):
        for operation in (producer, consumer):
            *inner, ends = [view.operation for view in _body(operation).operations]
            for step in inner:
                values |= zip(step.results, copied(step, values).results, strict=True)
            if operation is producer:
                element = ends.operands[0]  # of the body, or a constant outside
                values[_body(consumer).arguments[place]] = values.get(element, element)
            else:
                copied(ends, values)
    consumer.results[0].replace_all_uses_with(fused.results[0])
    consumer.erase()
    producer.erase()
    return fused
