"""Modules with coarser rounding, and the exactness of results. Imports jaxlib: for child processes only.

The module itself shows how far rounding may move a result: it runs again, keeping fewer bits after each
operation that rounds. Exact operations (data movement, small whole numbers, comparisons) stay exact.
"""

# jaxlib's MLIR bindings leave most types open.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Iterator, Mapping
from enum import IntEnum
from math import ceil, log2, prod
from typing import Any

from jax.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from irgym.measure.checking.numbers import FORMATS

_WIDE = ("f64", "f32")

_ARITHMETIC = frozenset({"add", "convert", "multiply", "reduce_precision", "subtract"})
"""Operations that IEEE 754 rounds: equal everywhere, up to the order of terms."""

_SUMS = frozenset({"convolution", "dot", "dot_general"})
"""Operations that add many products in an unspecified order."""

_OPAQUE = frozenset({"cholesky", "custom_call", "fft", "triangular_solve"})
"""Compound operations: their operands are rounded too, as rounding their results shows no cancellation."""

_MOVES = frozenset(
    {
        "abs",
        "and",
        "bitcast_convert",
        "broadcast_in_dim",
        "case",
        "compare",
        "complex",
        "concatenate",
        "constant",
        "dynamic_slice",
        "dynamic_update_slice",
        "gather",
        "get_tuple_element",
        "if",
        "imag",
        "iota",
        "is_finite",
        "negate",
        "not",
        "optimization_barrier",
        "or",
        "pad",
        "real",
        "reshape",
        "return",
        "reverse",
        "select",
        "shift_left",
        "shift_right_arithmetic",
        "shift_right_logical",
        "slice",
        "sort",
        "transpose",
        "tuple",
        "while",
        "xor",
    }
)
"""Operations that move numbers with their signs, or reinterpret bits."""

_CHOICES = frozenset(
    {
        "ceil",
        "clamp",
        "floor",
        "map",
        "maximum",
        "minimum",
        "reduce",
        "reduce_window",
        "round_nearest_afz",
        "round_nearest_even",
        "scatter",
        "select_and_scatter",
        "sign",
        "top_k",
        "topk",
    }
)
"""Operations that do not round, but leave the sign of a zero open."""


class Exactness(IntEnum):
    """Permitted difference of a result between two correct programs."""

    MOVED = 0
    """None: numbers are only moved."""
    CHOSEN = 1
    """The signs of zeros."""
    ROUNDED = 2
    """Rounding errors."""


def coarser(text: str) -> str:
    """Return a module that keeps fewer bits after each operation that rounds.

    Arithmetic keeps one bit less of the mantissa. Functions in f32 and f64 keep three bits less, as
    implementations differ in their last bits. A sum of n products may be added in any order, with an error of
    about sqrt(n) roundings: in f32 and f64, its operands and its result lose that many more bits.

    Args:
        text: StableHLO.
    """
    with make_ir_context():
        module = ir.Module.parse(text)
        for operation in list(_within(module.operation)):
            _coarsen(operation)
        return str(module)


def exactness(text: str) -> list[Exactness]:
    """Return the exactness of each result of a module, with an entry for each element of a tuple.

    A forward walk from the arguments: a result is as exact as the least exact operation on any path to it.

    Args:
        text: StableHLO.
    """
    with make_ir_context():
        module = ir.Module.parse(text)
        functions = {_symbol(function, "sym_name"): function.operation for function in module.body}
        main = functions["main"]
        levels: dict[Any, Exactness] = {}
        found: list[Exactness] = []
        for operation in main.regions[0].blocks[0]:
            if operation.name == "func.return":
                for operand in operation.operands:
                    found += [levels.get(operand, Exactness.MOVED)] * _leaves(operand.type)
            else:
                level = _level(operation.operation, levels, functions)
                levels.update((result, level) for result in operation.results)
        return found


def _level(operation: Any, levels: Mapping[Any, Exactness], functions: Mapping[str, Any]) -> Exactness:
    """Return the exactness of an operation's results, given those of its operands."""
    known = (levels.get(operand, Exactness.MOVED) for operand in operation.operands)
    level = max(known, default=Exactness.MOVED)
    if operation.name == "func.call":
        callee = functions[_symbol(operation, "callee")]
        inner = [_level(nested, levels, functions) for nested in _within(callee)]
    else:
        inner = [_level(nested, levels, functions) for nested in _within(operation) if not nested.regions]
    return max([level, _exactness_of(operation), *inner])


def _exactness_of(operation: Any) -> Exactness:
    """Return the exactness of an operation on exact operands."""
    name = _short(operation)
    if operation.name.startswith("func.") or name in _MOVES:
        return Exactness.MOVED
    if not any(_rounds(operation, result.type) for result in operation.results):
        return Exactness.MOVED
    return Exactness.CHOSEN if name in _CHOICES else Exactness.ROUNDED


def _rounds(operation: Any, kind: Any) -> bool:
    """Say whether results of this type are floating-point numbers that the operation may round."""
    element = _element(kind)
    if element.removeprefix("complex<").removesuffix(">") not in FORMATS:
        return False
    if operation.name != "stablehlo.convert":
        return True
    source = _element(operation.operands[0].type)
    if source not in FORMATS or element not in FORMATS:
        return True
    return any(ours < theirs for ours, theirs in zip(FORMATS[element], FORMATS[source], strict=True))


def _coarsen(operation: Any) -> None:
    """Drop bits of an operation's results, and of the operands of sums and compound operations."""
    name = _short(operation)
    if operation.name.startswith("func.") or name in _MOVES or name in _CHOICES:
        return
    lost = 1 if name in _ARITHMETIC else 3
    if name in _SUMS:
        lost = 1 + ceil(log2(max(_terms(operation), 1)) / 2)
    if name in _SUMS or name in _OPAQUE:
        with ir.InsertionPoint(operation), operation.location:
            for place, operand in enumerate(operation.operands):
                if _element(operand.type) in _WIDE:
                    operation.operands[place] = _fewer_bits(operand, lost)
    with ir.InsertionPoint.after(operation), operation.location:
        for result in operation.results:
            if _rounds(operation, result.type):
                made: list[Any] = []
                last = _fewer_bits(result, lost, made)
                if made:
                    result.replace_all_uses_except(last, [added.operation for added in made])


def _fewer_bits(value: Any, lost: int, made: list[Any] | None = None) -> Any:
    """Return a value with fewer bits; numbers that would become infinite are unchanged.

    Args:
        value: A tensor.
        lost: Bits that f32 and f64 lose; other types lose one if they have more than one.
        made: Operations that use the value; new ones are appended.
    """
    made = [] if made is None else made
    element = _element(value.type)
    if element.startswith("complex"):
        parts = [stablehlo.RealOp(value), stablehlo.ImagOp(value)]
        made += parts
        return stablehlo.ComplexOp(*(_fewer_bits(part.result, lost) for part in parts)).result
    exponent, mantissa = FORMATS[element]
    kept = mantissa - lost if element in _WIDE else mantissa - 1
    if kept < 1:
        return value
    reduced = stablehlo.ReducePrecisionOp(value, exponent, kept)
    finite = stablehlo.IsFiniteOp(reduced.result)
    chosen = stablehlo.SelectOp(finite.result, reduced.result, value)
    made += [reduced, chosen]
    return chosen.result


def _terms(operation: Any) -> int:
    """Return the number of products in each sum of a dot or a convolution."""
    left, right = (ir.ShapedType(operand.type).shape for operand in list(operation.operands)[:2])
    if _short(operation) == "dot":
        return left[-1]
    attributes = operation.attributes
    if _short(operation) == "dot_general":
        numbers = stablehlo.DotDimensionNumbers(attributes["dot_dimension_numbers"])
        return prod(left[dim] for dim in numbers.lhs_contracting_dimensions)
    numbers = stablehlo.ConvDimensionNumbers(attributes["dimension_numbers"])
    return prod(right) // max(right[numbers.kernel_output_feature_dimension], 1)


def _within(operation: Any) -> Iterator[Any]:
    """Yield the operations nested in `operation`, the innermost first."""
    for region in operation.regions:
        for block in region:
            for nested in block:
                yield from _within(nested.operation)
                yield nested.operation


def _symbol(operation: Any, attribute: str) -> str:
    """Return the name of the function in an attribute."""
    return operation.attributes[attribute].value


def _short(operation: Any) -> str:
    """Return the name of an operation without its dialect."""
    return operation.name.partition(".")[2]


def _element(kind: Any) -> str:
    """Return the name of a tensor's element type; empty for tuples and tokens."""
    return str(kind.element_type) if isinstance(kind, ir.RankedTensorType) else ""


def _leaves(kind: Any) -> int:
    """Return the number of arrays in a type."""
    if not isinstance(kind, ir.TupleType):
        return 1
    return sum(_leaves(kind.get_type(place)) for place in range(kind.num_types))
