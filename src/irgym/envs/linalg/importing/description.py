"""Description of a program's operations, read from its MLIR. Call it from a child.

Named operations have no access functions in their text, so that everything is read from a copy in which MLIR
has generalised them.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from irgym.base.errors import ProgramError
from irgym.envs.linalg.compiling.bindings import ir
from irgym.envs.linalg.compiling.compiler import function_of
from irgym.envs.linalg.compiling.contexts import CompileError, mlir, parse, run_passes
from irgym.envs.linalg.scheduling.operations import (
    Access,
    Form,
    Operation,
    OperationKind,
    Program,
    loop_of,
)
from irgym.envs.linalg.scheduling.script import MARK

ARITHMETIC = (
    frozenset(
        {"arith.addf", "arith.addi", "arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf"}
    ),
    frozenset({"arith.subf", "arith.subi", "arith.negf"}),
    frozenset({"arith.mulf", "arith.muli"}),
    frozenset({"arith.divf", "arith.divsi", "arith.divui", "math.rsqrt", "math.sqrt"}),
)
"""Operations that are counted by kind; other operations of the `math` dialect count as calls of functions."""

UNCOUNTED = frozenset({"linalg.yield", "arith.constant"})

SCALAR_ONLY = frozenset({"linalg.index", "tensor.extract", "scf.if", "scf.for", "cf.assert"})
"""Operations in a body that have no vector form."""


def describe(text: str) -> tuple[str, Program]:
    """Return a program's text with its operations numbered, and its description.

    Raises:
        ProgramError: It is not valid MLIR, or has nothing to schedule.
    """
    try:
        with mlir():
            module, general = parse(text), parse(text)
            run_passes(general, "func.func(linalg-generalize-named-ops)")
            named = _operations(module)
            general_operations = _operations(general)
            if not named:
                raise ProgramError(
                    "the program has no linalg operation outside of loops: there is nothing to schedule"
                )
            reader = _Reader(general_operations)
            described = tuple(
                reader.described(place, _name(operation).removeprefix("linalg."), operation)
                for place, operation in enumerate(named)
            )
            number = ir.IntegerType.get_signless(64)
            for place, operation in enumerate(named):
                operation.attributes[MARK] = ir.IntegerAttr.get(number, place)
            function = function_of(module)
            kind = function.function_type.value
            program = Program(described, _tensors(kind.inputs), _tensors(kind.results))
            if not program.turns:
                raise ProgramError(
                    "outside of loops the program has only operations that begin others: there is nothing to "
                    "schedule"
                )
            return str(module), program
    except CompileError as error:
        raise ProgramError(f"MLIR cannot read the program: {error}") from error


def _operations(module: Any) -> list[Any]:
    """Return the linalg operations of the program's function, in order."""
    body = function_of(module).regions[0].blocks[0].operations
    return [view.operation for view in body if _name(view.operation).startswith("linalg.")]


def _name(operation: Any) -> str:
    return str(operation.name)


def _tensors(types: Any) -> tuple[tuple[tuple[int, ...], str], ...]:
    return tuple((tuple(kind.shape), str(kind.element_type)) for kind in types)


class _Reader:
    """Describes operations, given all operations in generic form."""

    def __init__(self, generics: Sequence[Any]) -> None:
        self._generics = generics
        self._places = {generic: place for place, generic in enumerate(generics)}

    def described(self, place: int, name: str, original: Any) -> Operation:
        """Return the description of one operation.

        Args:
            place: Place of the operation.
            name: Its name before it was generalised.
            original: The operation before it was generalised.

        Raises:
            ProgramError: It has no loops, or a loop without a bound.
        """
        generic = self._generics[place]
        if "indexing_maps" not in generic.attributes:
            raise ProgramError(
                f"linalg.{name} has no loops that can be scheduled: write it in simpler operations"
            )
        maps = [attribute.value for attribute in generic.attributes["indexing_maps"]]
        parallel = tuple("parallel" in str(kind) for kind in generic.attributes["iterator_types"])
        operands = list(generic.operands)
        accesses = tuple(
            self._access(indexing, operand, len(parallel))
            for indexing, operand in zip(maps, operands, strict=True)
        )
        body = [_name(inner.operation) for inner in generic.regions[0].blocks[0].operations]
        outputs = len(generic.results)
        return Operation(
            place=place,
            name=name,
            kind=_kind(name, parallel, accesses, body),
            bounds=_bounds(accesses, operands, len(parallel)),
            parallel=parallel,
            loads=accesses[: len(accesses) - outputs],
            store=accesses[-1],
            arithmetic=_arithmetic(body),
            users=tuple(self._users(generic)),
            vectorisable=outputs == 1 and not SCALAR_ONLY & set(body) and not _has_truths(operands),
            strides=_window(original, "strides"),
            dilations=_window(original, "dilations"),
            element_bytes=_element_bytes(generic.results[-1].type),
        )

    def _access(self, indexing: Any, operand: Any, loops: int) -> Access:
        forms = tuple(_form(result, loops) for result in indexing.results)
        owner = operand.owner
        producer = None if isinstance(owner, ir.Block) else self._places.get(owner.operation)
        known = tuple(form or (0,) * loops for form in forms)
        return Access(known, producer, linear=all(form is not None for form in forms))

    def _users(self, generic: Any) -> Iterator[int]:
        for result in generic.results:
            for use in result.uses:
                yield self._places.get(use.owner.operation, -1)


def _has_truths(operands: Sequence[Any]) -> bool:
    """Say whether any operand holds `i1`: vectors of `i1` would be loaded as bits instead of bytes."""
    return any(str(getattr(operand.type, "element_type", operand.type)) == "i1" for operand in operands)


def _form(expression: Any, loops: int) -> Form | None:
    """Return the linear form of an affine expression; None where it is not linear, or has an offset."""
    if isinstance(expression, ir.AffineDimExpr):
        return tuple(int(loop == expression.position) for loop in range(loops))
    if isinstance(expression, ir.AffineConstantExpr):
        return (0,) * loops
    if isinstance(expression, ir.AffineAddExpr):
        if any(isinstance(side, ir.AffineConstantExpr) for side in (expression.lhs, expression.rhs)):
            return None
        left, right = _form(expression.lhs, loops), _form(expression.rhs, loops)
        return None if left is None or right is None else tuple(map(sum, zip(left, right, strict=True)))
    if isinstance(expression, ir.AffineMulExpr) and isinstance(expression.rhs, ir.AffineConstantExpr):
        left = _form(expression.lhs, loops)
        return None if left is None else tuple(expression.rhs.value * coefficient for coefficient in left)
    return None


def _bounds(accesses: Sequence[Access], operands: Sequence[Any], loops: int) -> tuple[int, ...]:
    """Return the iterations of each loop: the size of a dimension that the loop alone indexes.

    Raises:
        ProgramError: A loop indexes no dimension alone, so that MLIR has no bound for it.
    """
    bounds: dict[int, int] = {}
    for access, operand in zip(accesses, operands, strict=True):
        shape = tuple(operand.type.shape) if isinstance(operand.type, ir.ShapedType) else ()
        for form, size in zip(access.forms, shape, strict=False):
            loop = loop_of(form)
            if loop is not None:
                bounds.setdefault(loop, int(size))
    if len(bounds) < loops:
        raise ProgramError("an operation has a loop whose bound no tensor shows: make it a generic with one")
    return tuple(bounds[loop] for loop in range(loops))


def _arithmetic(body: Sequence[str]) -> tuple[int, int, int, int, int]:
    """Return the numbers of additions, subtractions, multiplications, divisions and calls of functions."""
    counts = [0] * 5
    for name in body:
        if name in UNCOUNTED:
            continue
        for kind, names in enumerate(ARITHMETIC):
            if name in names:
                counts[kind] += 1
                break
        else:
            counts[4] += name.startswith("math.")
    return counts[0], counts[1], counts[2], counts[3], counts[4]


def _kind(
    name: str, parallel: Sequence[bool], accesses: Sequence[Access], body: Sequence[str]
) -> OperationKind:
    """Return the kind of an operation, by its name or else by its loops and body."""
    if "matmul" in name:
        return OperationKind.MATMUL
    if name in ("fill", "broadcast"):
        return OperationKind.FILL
    if name.startswith(("conv", "depthwise")):
        return OperationKind.CONVOLUTION
    if name.startswith("pooling"):
        return OperationKind.POOLING
    if all(parallel):
        return OperationKind.ELEMENTWISE
    if len(accesses) == 3 and body[:2] == ["arith.mulf", "arith.addf"]:
        return (
            OperationKind.MATMUL
            if all(access.is_projection for access in accesses)
            else OperationKind.CONVOLUTION
        )
    return OperationKind.GENERIC


def _element_bytes(kind: Any) -> int:
    width: int = getattr(kind.element_type, "width", 64)  # the type `index` has none
    return max(1, width // 8)


def _window(original: Any, name: str) -> tuple[int, ...]:
    """Return the strides or dilations of a convolution or pooling; empty for other operations."""
    if name not in original.attributes:
        return ()
    return tuple(
        int(number) for number in re.findall(r"-?\d+", str(original.attributes[name]).partition(":")[0])
    )
