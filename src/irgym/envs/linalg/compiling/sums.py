"""What a sum starts from is added last: accumulators begin at zero. Imported in a child only.

A tile of the result that is in no near cache would be waited for before the first multiply-add. Added at the
end, it arrives while the sum is computed.
"""

from typing import Any

from irgym.envs.linalg.compiling.bindings import arith, ir

LOOP = "scf.for"
CARRIED = 3
"""Operands of a loop before those that it carries: its bounds and its step."""

ADD = "#vector.kind<add>"


def add_last(loop: Any) -> None:
    """Let a loop's accumulators that start from what a tensor holds start from zero, on tensors."""
    for place, start in enumerate(list(loop.operands)[CARRIED:]):
        reads = _reads(start)
        # Read later, a tensor that the loop itself goes on to write would have to be copied first.
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
    """Return the read of a tensor that a vector of floats comes from, then its transpositions; else none."""
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
    """Say whether all that happens to what a loop carries is that something is added to it."""
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
