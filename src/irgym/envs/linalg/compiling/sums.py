"""Sums that start from zero, with the initial value added last. Imported in a child only.

If a tile of the result is in no near cache, the first multiply-add would wait for it. Added at the end, it
arrives while the sum is computed.
"""

from typing import Any

from irgym.envs.linalg.compiling.bindings import arith, ir

LOOP = "scf.for"
CARRIED = 3
"""Number of a loop's operands before the carried values: its bounds and its step."""

ADD = "#vector.kind<add>"


def add_last(loop: Any) -> None:
    """Start a loop's accumulators from zero, and add the values of the tensor that they started from last."""
    for place, start in enumerate(list(loop.operands)[CARRIED:]):
        reads = _reads(start)
        # A tensor that the loop also writes would have to be copied for a later read.
        if reads and reads[0].operands[0] not in list(loop.operands) and _sums(loop, place):
            with ir.InsertionPoint(loop):
                kind = ir.VectorType(start.type)
                zeros = ir.DenseElementsAttr.get_splat(kind, ir.FloatAttr.get(kind.element_type, 0.0))
                loop.operands[CARRIED + place] = arith.constant(kind, zeros)
            after = loop
            for operation in reads:
                operation.move_after(after)
                after = operation
            with ir.InsertionPoint.after(after):
                total = arith.addf(loop.results[place], start)
            loop.results[place].replace_all_uses_except(total, total.owner.operation)


def _reads(start: Any) -> list[Any]:
    """Return the read of a tensor that yields a vector of floats, and its transpositions; else nothing."""
    if not isinstance(start.type, ir.VectorType) or not isinstance(start.type.element_type, ir.FloatType):
        return []
    found: list[Any] = []
    value = start
    while isinstance(value.owner, ir.Operation | ir.OpView) and len(list(value.uses)) == 1:
        found.insert(0, value.owner.operation)
        if value.owner.name == "vector.transfer_read":
            return found
        if value.owner.name != "vector.transpose":
            return []
        value = value.owner.operands[0]
    return []


def _sums(loop: Any, place: int) -> bool:
    """Say whether a loop only adds to one of its carried values."""
    body = loop.regions[0].blocks[0]
    value, end = body.arguments[1 + place], body.operations[len(body.operations) - 1]
    while True:
        uses = list(value.uses)
        if len(uses) != 1:
            return False
        user, operand = uses[0].owner, uses[0].operand_number
        if user.operation == end.operation:
            return operand == place
        contracts = user.name == "vector.contract" and operand == 2 and str(user.attributes["kind"]) == ADD
        if contracts or user.name == "arith.addf":
            value = user.results[0]
        elif user.name == LOOP and operand >= CARRIED and _sums(user, operand - CARRIED):
            value = user.results[operand - CARRIED]
        else:
            return False
