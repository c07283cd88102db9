"""Programs with coarser rounding, where each operation's result keeps fewer bits. Call it from a child.

The distance by which results move shows the effect of rounding on them (see
`irgym.measure.checking.expected`). Sums are rounded at every step.
"""

from collections.abc import Sequence
from typing import Any

from irgym.envs.linalg.compiling.bindings import ir
from irgym.envs.linalg.compiling.contexts import apply, parse, run_passes
from irgym.envs.linalg.importing.cleaning import operations
from irgym.envs.linalg.scheduling.operations import Operation, OperationKind, Program
from irgym.envs.linalg.scheduling.script import script
from irgym.envs.linalg.scheduling.transformations import Scheduled, Transformation
from irgym.measure.checking.numbers import FORMATS

ROUNDED = frozenset(
    {"arith.addf", "arith.subf", "arith.mulf", "arith.truncf", "arith.sitofp", "arith.uitofp", "math.fma"}
)
"""Operations with correctly rounded results, which lose one bit."""

APPROXIMATE = 3
"""Bits that results of divisions and functions lose, since libraries compute them in different ways."""

EXACT = frozenset(
    {"math.absf", "math.ceil", "math.copysign", "math.floor", "math.round", "math.roundeven", "math.trunc"}
)
"""Operations of the `math` dialect that round nothing."""


def coarse(text: str, program: Program) -> Any:
    """Return a program with coarser rounding, to be lowered, within `mlir`.

    Sums of products get their columns innermost, which keeps the order of the terms of each sum. They then
    become vectors, without which a network would take minutes.
    """
    module = parse(text)
    states = [Scheduled(operation, _columns_innermost(operation)) for operation in program.operations]
    turned = script(program, states)
    if turned:
        apply(module, turned)
    run_passes(module, "func.func(linalg-generalize-named-ops)")
    for generic in [operation for operation in operations(module) if operation.name == "linalg.generic"]:
        _coarsen(generic)
    return module


def _columns_innermost(operation: Operation) -> tuple[Transformation, ...]:
    """Return the interchange that makes the last parallel loop innermost, for sums of products."""
    if (
        operation.kind not in (OperationKind.MATMUL, OperationKind.CONVOLUTION)
        or True not in operation.parallel
    ):
        return ()
    columns = max(loop for loop, parallel in enumerate(operation.parallel) if parallel)
    order = (*(loop for loop in range(operation.loops) if loop != columns), columns)
    return () if order[-1] == operation.loops else (Transformation("interchange", order),)


def _coarsen(generic: Any) -> None:
    """Round the results in an operation's body, except those that indices are computed from."""
    inside = list(operations(generic))
    kept = _behind_indices(inside)
    for operation in inside:
        if operation in kept or len(operation.results) != 1:
            continue
        name, form = str(operation.name), FORMATS.get(str(operation.results[0].type))
        if form is None:
            continue
        if name in ROUNDED:
            _round(operation, form, 1)
        elif name == "arith.divf" or (name.startswith("math.") and name not in EXACT):
            _round(operation, form, APPROXIMATE)


def _behind_indices(inside: Sequence[Any]) -> set[Any]:
    """Return the operations that indices of tensors depend on: the indices must stay in bounds."""
    waiting = [
        value
        for operation in inside
        if operation.name == "tensor.extract"
        for value in list(operation.operands)[1:]
    ]
    found: set[Any] = set()
    while waiting:
        owner = waiting.pop().owner
        if not isinstance(owner, ir.Block) and owner not in found:
            found.add(owner)
            waiting += owner.operands
    return found


def _round(operation: Any, form: tuple[int, int], lost: int) -> None:
    """Round the result of an operation to fewer bits, ties to even.

    Infinities and NaN stay. Rounding up the greatest number yields infinity.
    """
    exponent_bits, mantissa = form
    width = 1 + exponent_bits + mantissa
    result = operation.results[0]
    uses = [(use.owner, use.operand_number) for use in result.uses]
    number = ir.IntegerType.get_signless(width)
    truth = ir.IntegerType.get_signless(1)

    def constant(value: int) -> Any:
        attribute = ir.IntegerAttr.get(number, value - (value >> (width - 1) << width))
        return made("arith.constant", number, value=attribute)

    def made(name: str, kind: Any, *operands: Any, **attributes: Any) -> Any:
        return ir.Operation.create(
            name, results=[kind], operands=list(operands), attributes=attributes
        ).results[0]

    exponent = ((1 << exponent_bits) - 1) << mantissa
    equal = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)
    with ir.InsertionPoint.after(operation):
        bits = made("arith.bitcast", number, result)
        odd = made("arith.andi", number, made("arith.shrui", number, bits, constant(lost)), constant(1))
        half = constant((1 << (lost - 1)) - 1)
        up = made("arith.addi", number, made("arith.addi", number, bits, half), odd)
        cut = made("arith.andi", number, up, constant((1 << width) - (1 << lost)))
        special = made(
            "arith.cmpi",
            truth,
            made("arith.andi", number, bits, constant(exponent)),
            constant(exponent),
            predicate=equal,
        )
        rounded = made("arith.bitcast", result.type, cut)
        chosen = made("arith.select", result.type, special, result, rounded)
    for owner, place in uses:
        owner.operands[place] = chosen
