"""Description of a program: linalg operations, their loops and their accesses. Plain data, without MLIR."""

from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from math import prod

import numpy as np

ELEMENTS = {
    "f32": np.float32,
    "f64": np.float64,
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "index": np.int64,
}
"""Element types of arguments and results, with their types in numpy."""


FLOATS = frozenset({"f32", "f64"})
"""The element types among them that are rounded."""

NARROW = {"bf16": 2, "f16": 2}
"""Bytes of further element types of tensors inside a program; arguments and results have float32 instead."""


def element_bytes(element: str) -> int:
    """Return the bytes of an element of a type; 0 for an unsupported type."""
    return np.dtype(ELEMENTS[element]).itemsize if element in ELEMENTS else NARROW.get(element, 0)


class OperationKind(Enum):
    """Kinds of operations that a policy distinguishes (MLIR RL, section 4).

    Fills initialise the tensors that other operations accumulate into: with a constant, or with biases.
    """

    MATMUL = "matmul"
    CONVOLUTION = "convolution"
    POOLING = "pooling"
    ELEMENTWISE = "elementwise"
    FILL = "fill"
    GENERIC = "generic"


Form = tuple[int, ...]
"""A linear form of the loops: a coefficient for each of them."""


def loop_of(form: Form) -> int | None:
    """Return the loop that alone indexes a dimension, with coefficient 1; None if there is no such loop."""
    used = [loop for loop, coefficient in enumerate(form) if coefficient]
    return used[0] if len(used) == 1 and form[used[0]] == 1 else None


@dataclass(frozen=True)
class Access:
    """How an operation indexes a tensor.

    Attributes:
        forms: For each dimension of the tensor, the linear form of the loops that indexes it.
        producer: Place of the operation that produces the tensor; None if no operation does.
        linear: Whether all indices are linear; the forms of nonlinear ones are zero.
    """

    forms: tuple[Form, ...]
    producer: int | None = None
    linear: bool = True

    @property
    def is_projection(self) -> bool:
        """Whether each dimension is indexed by one loop, and each loop indexes one dimension at most."""
        loops = [loop_of(form) for form in self.forms]
        return self.linear and None not in loops and len(loops) == len(set(loops))

    def reindexed(self, order: tuple[int, ...]) -> "Access":
        """Return the access with its loops in another order."""
        return replace(self, forms=tuple(tuple(form[loop] for loop in order) for form in self.forms))

    def extents(self, bounds: tuple[int, ...]) -> tuple[int, ...]:
        """Return the extent of the tensor, by dimension, that loops with these bounds touch."""
        return tuple(
            1
            + sum(
                abs(coefficient) * (bound - 1)
                for coefficient, bound in zip(form, bounds, strict=True)
                if coefficient
            )
            for form in self.forms
        )


@dataclass(frozen=True)
class Operation:
    """A linalg operation.

    Attributes:
        place: Its place among the program's operations.
        name: Its MLIR name without the dialect, such as `matmul`.
        kind: Its kind, as policies see it.
        bounds: Iterations of each loop, the outermost first.
        parallel: Whether each loop is parallel; the others are reductions.
        loads: Accesses of the tensors that it reads.
        store: Access of the tensor that it writes.
        arithmetic: Numbers of additions, subtractions, multiplications, divisions, and calls of functions
            such as exp in each iteration.
        users: Places of the operations that use its result; the program's return counts as -1.
        vectorisable: Whether all operations of the body have a vector form.
        strides: Strides of a convolution's or pooling's window; empty for other operations.
        dilations: Dilations of the window, likewise.
        element_bytes: Bytes of an element of its result.
    """

    place: int
    name: str
    kind: OperationKind
    bounds: tuple[int, ...]
    parallel: tuple[bool, ...]
    loads: tuple[Access, ...]
    store: Access
    arithmetic: tuple[int, int, int, int, int]
    users: tuple[int, ...] = ()
    vectorisable: bool = True
    strides: tuple[int, ...] = ()
    dilations: tuple[int, ...] = ()
    element_bytes: int = 4

    @property
    def loops(self) -> int:
        """Number of loops."""
        return len(self.bounds)

    @cached_property
    def points(self) -> int:
        """Iterations of all loops together."""
        return prod(self.bounds)

    @property
    def flops(self) -> int:
        """Arithmetic operations of all iterations."""
        return self.points * sum(self.arithmetic)

    @property
    def accesses(self) -> tuple[Access, ...]:
        """All accesses, the store last."""
        return (*self.loads, self.store)

    def tiled(self, sizes: tuple[int, ...]) -> "Operation":
        """Return the operation within a tile; a size of 0, or beyond the bound, leaves a loop untiled."""
        bounds = tuple(min(size or bound, bound) for size, bound in zip(sizes, self.bounds, strict=True))
        return replace(self, bounds=bounds)

    def split(self, loop: int, iterations: int) -> tuple["Operation", "Operation"]:
        """Return the operation restricted to the first iterations of a loop, and to the rest."""
        rest = self.bounds[loop] - iterations
        first, second = (
            replace(self, bounds=(*self.bounds[:loop], bound, *self.bounds[loop + 1 :]))
            for bound in (iterations, rest)
        )
        return first, second

    def interchanged(self, order: tuple[int, ...]) -> "Operation":
        """Return the operation with its loops in another order.

        Args:
            order: For each new loop, the outermost first, the place of the old loop.
        """
        return replace(
            self,
            bounds=tuple(self.bounds[loop] for loop in order),
            parallel=tuple(self.parallel[loop] for loop in order),
            loads=tuple(load.reindexed(order) for load in self.loads),
            store=self.store.reindexed(order),
        )

    def produced_for(self, extents: tuple[int, ...]) -> "Operation":
        """Return the operation restricted to a part of its result.

        Args:
            extents: Extent of the part, by dimension of the result.
        """
        bounds = list(self.bounds)
        for form, extent in zip(self.store.forms, extents, strict=True):
            bounds[form.index(1)] = extent
        return replace(self, bounds=tuple(bounds))


@dataclass(frozen=True)
class Program:
    """A program's operations, in the order of its text.

    Attributes:
        operations: The operations; `place` of each is its index here.
        arguments: Shape and element type of each argument.
        results: Shape and element type of each result.
    """

    operations: tuple[Operation, ...]
    arguments: tuple[tuple[tuple[int, ...], str], ...]
    results: tuple[tuple[tuple[int, ...], str], ...]

    @cached_property
    def turns(self) -> tuple[int, ...]:
        """Places of the operations that a schedule transforms.

        Fills follow the operations that they initialise. A transposition of rows to columns that only
        products use is fused into their packing.
        """
        return tuple(
            operation.place
            for operation in self.operations
            if not (operation.kind is OperationKind.FILL or self._feeds(operation))
        )

    def _feeds(self, operation: Operation) -> bool:
        if operation.name != "transpose" or operation.loads[0].forms[-1] == operation.store.forms[-1]:
            return False
        products = (OperationKind.MATMUL, OperationKind.CONVOLUTION)
        users = operation.users
        return bool(users) and all(user >= 0 and self.operations[user].kind in products for user in users)

    @property
    def flops(self) -> int:
        """Arithmetic operations of the whole program."""
        return sum(operation.flops for operation in self.operations)
