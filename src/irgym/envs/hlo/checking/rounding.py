"""Modules with coarser rounding, and which results no rounding touches; imports jaxlib, so only in children.

Whoever asks how far rounding may take a result gets the answer from the module itself: it runs once more,
and after each operation that rounds fewer bits are kept. What is exact (data movement, small whole numbers,
comparisons) stays exact.
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
"""Operations that IEEE 754 rounds, the same everywhere but for the order of terms."""

_SUMS = frozenset({"convolution", "dot", "dot_general"})
"""Operations that add many products in an order of their own."""

_OPAQUE = frozenset({"cholesky", "custom_call", "fft", "triangular_solve"})
"""Operations that do much at once: their operands are changed too, as results alone show no cancellation."""

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
"""Operations that move numbers, their signs with them, or give bits as they are."""

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
"""Operations that round nothing by themselves, but leave open which zero comes out."""


class Exactness(IntEnum):
    """How a result may differ between two right programs."""

    MOVED = 0
    """Not at all: its numbers are only moved."""
    CHOSEN = 1
    """By the sign of zeros."""
    ROUNDED = 2
    """By rounding."""


def coarser(text: str) -> str:
    """Return a module that keeps fewer bits after each operation that rounds.

    Arithmetic keeps one bit less of the mantissa; functions in f32 and f64 three less, as implementations
    differ in their last bits. A sum of n products may be added in any order, which errs by the root of n
    times what one rounding does: in f32 and f64 its operands and its result lose that many bits more.

    Args:
        text: StableHLO.
    """
    with make_ir_context():
        module = ir.Module.parse(text)
        for operation in list(_within(module.operation)):
            _coarsen(operation)
        return str(module)


def exactness(text: str) -> list[Exactness]:
    """Return for each result of a module what rounding can do to it; elements of tuples one by one.

    A walk forward from the arguments: a result is as exact as the least exact operation on any path to it.

    Args:
        text: StableHLO.
    """
    with make_ir_context():
        module = ir.Module.parse(text)
        functions = {_symbol(one, "sym_name"): one.operation for one in module.body}
        main = functions["main"]
        levels: dict[Any, Exactness] = {}
        found: list[Exactness] = []
        for operation in main.regions[0].blocks[0]:
            if operation.name == "func.return":
                for one in operation.operands:
                    found += [levels.get(one, Exactness.MOVED)] * _leaves(one.type)
            else:
                level = _level(operation.operation, levels, functions)
                levels.update((result, level) for result in operation.results)
        return found


def _level(operation: Any, levels: Mapping[Any, Exactness], functions: Mapping[str, Any]) -> Exactness:
    """Return how exact an operation's results are, given its operands'."""
    level = max((levels.get(one, Exactness.MOVED) for one in operation.operands), default=Exactness.MOVED)
    if operation.name == "func.call":
        callee = functions[_symbol(operation, "callee")]
        inner = [_level(one, levels, functions) for one in _within(callee)]
    else:
        inner = [_level(one, levels, functions) for one in _within(operation) if not one.regions]
    return max([level, _own(operation), *inner])


def _own(operation: Any) -> Exactness:
    """Return what an operation by itself does to exactness."""
    name = _short(operation)
    if operation.name.startswith("func.") or name in _MOVES:
        return Exactness.MOVED
    if not any(_rounds(operation, result.type) for result in operation.results):
        return Exactness.MOVED
    return Exactness.CHOSEN if name in _CHOICES else Exactness.ROUNDED


def _rounds(operation: Any, kind: Any) -> bool:
    """Say whether results of this type are floating-point numbers that have lost bits."""
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
    """Take bits off an operation's results, and off the operands of sums of products."""
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
                    result.replace_all_uses_except(last, [one.operation for one in made])


def _fewer_bits(value: Any, lost: int, made: list[Any] | None = None) -> Any:
    """Return a value with fewer bits; what would become infinite stays as it is.

    Args:
        value: A tensor.
        lost: Bits that f32 and f64 lose; other types lose one, if they have one to lose.
        made: The operations that use the value, to be added to.
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
    """Return how many products each number of a dot or a convolution adds."""
    left, right = (ir.ShapedType(one.type).shape for one in list(operation.operands)[:2])
    if _short(operation) == "dot":
        return left[-1]
    attributes = operation.attributes
    if _short(operation) == "dot_general":
        numbers = stablehlo.DotDimensionNumbers(attributes["dot_dimension_numbers"])
        return prod(left[dim] for dim in numbers.lhs_contracting_dimensions)
    numbers = stablehlo.ConvDimensionNumbers(attributes["dimension_numbers"])
    return prod(right) // max(right[numbers.kernel_output_feature_dimension], 1)


def _within(operation: Any) -> Iterator[Any]:
    """Return all operations within one, the innermost first."""
    for region in operation.regions:
        for block in region:
            for one in block:
                yield from _within(one.operation)
                yield one.operation


def _symbol(operation: Any, attribute: str) -> str:
    """Return the name of a function that an attribute holds."""
    return operation.attributes[attribute].value


def _short(operation: Any) -> str:
    """Return the name of an operation without its dialect."""
    return operation.name.partition(".")[2]


def _element(kind: Any) -> str:
    """Return the name of a tensor's element type; empty for tuples and tokens."""
    return str(kind.element_type) if isinstance(kind, ir.RankedTensorType) else ""


def _leaves(kind: Any) -> int:
    """Return how many arrays there are in a type."""
    if not isinstance(kind, ir.TupleType):
        return 1
    return sum(_leaves(kind.get_type(place)) for place in range(kind.num_types))
