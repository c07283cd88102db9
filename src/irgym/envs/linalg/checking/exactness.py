"""Analysis of whether a program is exact, in any order of computation, for arguments in given ranges.

It is a forward interval analysis of the program's operations in generic form. In any order of their terms,
sums must stay in the range where their type represents all integers; maxima, selections and moves keep every
number. Indices computed from arguments must lie within the tensors that they index. Call it from a child.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irgym.envs.linalg.checking.intervals import (
    CHOSEN,
    COMPUTED,
    CONVERTED,
    DIFFERENCES,
    DIVISIONS,
    GREATEST,
    SUMS,
    TRUTH,
    UNKNOWN,
    UNSIGNED,
    Interval,
    opposite,
    plus,
)
from irgym.envs.linalg.compiling.bindings import ir
from irgym.envs.linalg.importing.cleaning import operations
from irgym.envs.linalg.scheduling.operations import Program

INDEXED = frozenset({"tensor.extract", "tensor.extract_slice", "tensor.insert", "tensor.insert_slice"})
"""Operations that read or write at computed indices."""

_DYNAMIC = -(2**63)
"""Value among the static offsets of a slice that marks a computed offset."""


@dataclass(frozen=True)
class Findings:
    """Result of the analysis.

    Attributes:
        exact: Whether no operation rounds.
        safe: Whether all indices are within their tensors, and no integer is divided by 0.
    """

    exact: bool
    safe: bool


def findings(function: Any, program: Program, arguments: Sequence[Interval]) -> Findings:
    """Analyse a program for arguments in given ranges, within `mlir`.

    Args:
        function: The program's function, its operations in generic form.
        program: Description of the program.
        arguments: Range of each argument.
    """
    return _Walk(program).findings(function, arguments)


@dataclass(frozen=True)
class _Carried:
    """A value that an iteration computes from an accumulator.

    Attributes:
        place: Number of the accumulator.
        way: How it is computed: `add`, an operation such as `arith.maximumf`, `keep` for a selection between
            the accumulator and other values, or empty for the accumulator itself.
        other: Range of the terms added, or of the other values.
        size: Greatest absolute value of all terms added in an iteration.
    """

    place: int
    way: str = ""
    other: Interval = TRUTH
    size: float = 0.0


_Value = Interval | _Carried


class _Walk:
    """A pass over a function that computes the interval of every value."""

    def __init__(self, program: Program) -> None:
        self._bounds = [operation.bounds for operation in program.operations]
        self._reductions = [
            math.prod(
                b for b, parallel in zip(operation.bounds, operation.parallel, strict=True) if not parallel
            )
            for operation in program.operations
        ]
        self._projects = [operation.store.is_projection for operation in program.operations]
        self._values: dict[Any, _Value] = {}
        self._loops: Sequence[int] = ()
        self._exact = True
        self._safe = True
        self._others: dict[str, Callable[[Any, Sequence[Any]], _Value]] = {
            "arith.constant": self._constant,
            "arith.select": self._selected,
            "arith.cmpi": self._compared,
            "arith.cmpf": self._logical,
            "arith.andi": self._logical,
            "arith.ori": self._logical,
            "arith.xori": self._logical,
            "linalg.index": self._index,
            "tensor.empty": self._empty,
            "tensor.extract": self._extracted,
            "tensor.pad": self._padded,
            "tensor.collapse_shape": self._moved,
            "tensor.expand_shape": self._moved,
            "tensor.extract_slice": self._sliced,
            "tensor.cast": self._moved,
            "tensor.concat": self._joined,
            "tensor.from_elements": self._joined,
            "tensor.insert_slice": self._inserted,
        }

    def findings(self, function: Any, arguments: Sequence[Interval]) -> Findings:
        """Return the findings for arguments in the given ranges."""
        block = function.regions[0].blocks[0]
        self._values.update(zip(block.arguments, arguments, strict=True))
        place = 0
        for view in block.operations:
            operation = view.operation
            if str(operation.name).startswith("linalg."):
                self._nest(operation, place)
                place += 1
            elif operation.name != "func.return":
                self._step(operation)
        return Findings(self._exact, self._safe)

    def _nest(self, generic: Any, place: int) -> None:
        """Analyse a linalg operation, a loop nest."""
        if generic.name != "linalg.generic":
            return self._lost(generic)
        block = generic.regions[0].blocks[0]
        outputs = len(generic.results)
        inputs = len(generic.operands) - outputs
        for number, (argument, operand) in enumerate(zip(block.arguments, generic.operands, strict=True)):
            carried = number >= inputs
            self._values[argument] = _Carried(number - inputs) if carried else self._plain(operand)
        *steps, ends = [view.operation for view in block.operations]
        self._loops = self._bounds[place]
        for operation in steps:
            self._step(operation)
        for number, (result, value) in enumerate(zip(generic.results, ends.operands, strict=True)):
            before = self._plain(generic.operands[inputs + number])
            after = self._after(before, self._values[value], number, self._reductions[place], _type(value))
            self._values[result] = after if self._projects[place] else after.hull(before)
        return None

    def _after(self, before: Interval, value: _Value, number: int, count: int, kind: str) -> Interval:
        """Return the interval of an accumulator after all iterations.

        Args:
            before: Its interval before the first iteration.
            value: The value that an iteration yields.
            number: Number of the accumulator.
            count: Iterations for each element.
            kind: Type of its elements.
        """
        if isinstance(value, Interval):
            return value
        if value.place != number:
            return self._unknown(kind)
        if not value.way:
            return before
        if value.way == "add":
            # In any order, no partial sum exceeds the sum of all absolute values.
            self._fits(Interval(0.0, before.size + count * value.size), kind)
            return self._fits(plus(before, value.other.times(count)), kind)
        if value.way == "keep":
            return before.hull(value.other)
        return CHOSEN[value.way](before, value.other)

    def _step(self, operation: Any) -> None:
        """Analyse a scalar operation, or an operation that moves tensors."""
        name, operands = str(operation.name), list(operation.operands)
        if name in DIVISIONS:
            divisor = self._plain(operands[1])
            self._safe &= divisor.low > 0.0 or divisor.high < 0.0
        if name in COMPUTED:
            value = self._computed(operation, operands)
        elif name in CHOSEN:
            value = self._chosen(operation, operands)
        elif name in CONVERTED | UNSIGNED:
            value = self._converted(operation, operands)
        elif name in self._others:
            value = self._others[name](operation, operands)
        else:
            return self._lost(operation)
        for result in operation.results:
            self._values[result] = value
        return None

    def _computed(self, operation: Any, operands: Sequence[Any]) -> _Value:
        name, kind = str(operation.name), _type(operation.results[0])
        values = [self._values[operand] for operand in operands]
        carried = [value for value in values if isinstance(value, _Carried)]
        if not carried:
            plain = [self._fits(self._plain(operand), kind) for operand in operands]
            return self._fits(COMPUTED[name](*plain), kind)
        terms = [value for value in values if isinstance(value, Interval)]
        first = carried[0]
        if name not in SUMS or len(carried) > 1 or first.way not in ("", "add"):
            return self._unknown(kind)
        if name in DIFFERENCES:
            if isinstance(values[0], Interval):
                return self._unknown(kind)
            terms = [opposite(terms[0])]
        term = self._fits(terms[0], kind)
        if not first.way:
            return _Carried(first.place, "add", term, term.size)
        return _Carried(first.place, "add", plus(term, first.other), term.size + first.size)

    def _chosen(self, operation: Any, operands: Sequence[Any]) -> _Value:
        name = str(operation.name)
        values = [self._values[operand] for operand in operands]
        carried = [value for value in values if isinstance(value, _Carried)]
        if not carried:
            return CHOSEN[name](*(self._plain(operand) for operand in operands))
        terms = [value for value in values if isinstance(value, Interval)]
        if len(carried) > 1 or carried[0].way not in ("", name):
            return self._unknown(_type(operation.results[0]))
        term = CHOSEN[name](terms[0], carried[0].other) if carried[0].way else terms[0]
        return _Carried(carried[0].place, name, term)

    def _selected(self, operation: Any, operands: Sequence[Any]) -> _Value:
        condition = self._values.get(operands[0], TRUTH)
        for known, kept in ((1.0, operands[1]), (0.0, operands[2])):
            if condition == Interval(known, known):
                return self._values[kept]
        kind = _type(operation.results[0])
        carried: list[_Carried] = []
        plain: list[Interval] = []
        for operand in operands[1:]:
            value = self._values[operand]
            if isinstance(value, Interval):
                plain.append(value)
                continue
            if value.way not in ("", "keep"):
                return self._unknown(kind)
            carried.append(value)
            plain += [value.other] if value.way else []
        if len({value.place for value in carried}) > 1:
            return self._unknown(kind)
        if not plain:
            return carried[0]
        other = plain[0].hull(plain[-1])
        return _Carried(carried[0].place, "keep", other) if carried else other

    def _compared(self, operation: Any, operands: Sequence[Any]) -> _Value:
        """Return the result of comparing integers, where their ranges decide it."""
        if any(isinstance(self._values[operand], _Carried) for operand in operands):
            return TRUTH
        left, right = (self._plain(operand) for operand in operands)
        predicate = operation.attributes["predicate"].value
        if predicate in (4, 5):  # sgt, sge
            left, right, predicate = right, left, predicate - 2
        if predicate not in (2, 3):  # slt, sle
            return TRUTH
        strict = predicate == 2
        if left.high < right.low or (not strict and left.high == right.low):
            return Interval(1.0, 1.0)
        if left.low > right.high or (strict and left.low == right.high):
            return Interval(0.0, 0.0)
        return TRUTH

    def _index(self, operation: Any, operands: Sequence[Any]) -> _Value:
        loop = int(operation.attributes["dim"].value)
        return Interval(0.0, float(self._loops[loop] - 1))

    def _empty(self, operation: Any, operands: Sequence[Any]) -> _Value:
        return Interval(0.0, 0.0)

    def _sliced(self, operation: Any, operands: Sequence[Any]) -> _Value:
        self._within(operation, operands[1:], operands[0].type)
        return self._moved(operation, operands)

    def _within(self, operation: Any, indices: Sequence[Any], whole: Any) -> None:
        """Check that a slice at computed offsets stays within its tensor."""
        offsets, sizes, strides = (
            list(ir.DenseI64ArrayAttr(operation.attributes[f"static_{name}"]))
            for name in ("offsets", "sizes", "strides")
        )
        computed = [axis for axis, offset in enumerate(offsets) if offset == _DYNAMIC]
        if len(computed) < len(indices):
            self._safe = False  # sizes or strides are computed too
            return
        for axis, index in zip(computed, indices, strict=True):
            last = whole.shape[axis] - 1 - (sizes[axis] - 1) * strides[axis]
            self._safe &= self._plain(index).within(0.0, float(last))

    def _inserted(self, operation: Any, operands: Sequence[Any]) -> _Value:
        self._within(operation, operands[2:], operands[1].type)
        return self._joined(operation, operands[:2])

    def _logical(self, operation: Any, operands: Sequence[Any]) -> _Value:
        kind = _type(operation.results[0])
        return TRUTH if kind == "i1" else self._unknown(kind)

    def _converted(self, operation: Any, operands: Sequence[Any]) -> _Value:
        value, kind = self._plain(operands[0]), _type(operation.results[0])
        if str(operation.name) in UNSIGNED:
            return self._fits(value, kind) if value.low >= 0.0 else self._unknown(kind)
        if _type(operands[0]) == "i1":
            value = value.hull(opposite(value))  # true is -1 as a signed number
        return self._fits(value, kind)

    def _constant(self, operation: Any, operands: Sequence[Any]) -> _Value:
        value, kind = operation.attributes["value"], _type(operation.results[0])
        dense = isinstance(value, ir.DenseElementsAttr)
        numbers = _numbers(value, kind) if dense else [float(value.value)]
        if not numbers or any(
            math.isnan(number) or (math.isfinite(number) and number % 1) for number in numbers
        ):
            return self._unknown(kind)
        return Interval(min(numbers), max(numbers))

    def _extracted(self, operation: Any, operands: Sequence[Any]) -> _Value:
        tensor, *indices = operands
        for index, size in zip(indices, tensor.type.shape, strict=True):
            self._safe &= self._plain(index).within(0.0, float(size - 1))
        return self._plain(tensor)

    def _padded(self, operation: Any, operands: Sequence[Any]) -> _Value:
        *steps, ends = [view.operation for view in operation.regions[0].blocks[0].operations]
        for step in steps:
            self._step(step)
        return self._plain(operands[0]).hull(self._plain(ends.operands[0]))

    def _moved(self, operation: Any, operands: Sequence[Any]) -> _Value:
        return self._plain(operands[0])

    def _joined(self, operation: Any, operands: Sequence[Any]) -> _Value:
        first, *others = (self._plain(operand) for operand in operands)
        for interval in others:
            first = first.hull(interval)
        return first

    def _plain(self, value: Any) -> Interval:
        """Return the interval of a value; `UNKNOWN` where it depends on an accumulator."""
        known = self._values.get(value)
        return known if isinstance(known, Interval) else self._unknown(_type(value))

    def _fits(self, interval: Interval, kind: str) -> Interval:
        """Return an interval, or `UNKNOWN` where its type does not represent all of its integers."""
        return interval if interval.size <= GREATEST.get(kind, -1.0) else self._unknown(kind)

    def _unknown(self, kind: str) -> Interval:
        """Return the interval of an unknown value, which may be rounded unless it is an integer."""
        if kind == "i1":
            return TRUTH
        self._exact &= kind in GREATEST and not kind.endswith(("f16", "f32", "f64"))
        return UNKNOWN

    def _lost(self, operation: Any) -> None:
        """Skip an unknown operation; its results are unknown."""
        inside = [str(inner.name) for inner in operations(operation)]
        self._safe &= not (DIVISIONS | INDEXED) & set(inside)
        for result in operation.results:
            self._values[result] = self._unknown(_type(result))


def _type(value: Any) -> str:
    """Return the type of a value, or of a tensor's elements."""
    kind = value.type
    return str(kind.element_type if isinstance(kind, ir.ShapedType) else kind)


def _numbers(value: Any, kind: str) -> list[float]:
    """Return the numbers of a dense constant."""
    if value.is_splat:
        return [float(value.get_splat_value().value)]
    if kind == "i1":
        return [0.0, 1.0]
    return [float(number) for number in np.array(value).reshape(-1)]
