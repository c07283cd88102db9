"""Text of an MLIR function on float32 tensors, built operation by operation."""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Tensor:
    """A value of a function under construction.

    Attributes:
        name: Its name in the text: `%3`.
        shape: Its sizes, each at least 1.
    """

    name: str
    shape: tuple[int, ...]

    @property
    def type(self) -> str:
        """Its type: `tensor<4x8xf32>`."""
        return f"tensor<{'x'.join(map(str, self.shape))}xf32>"


@dataclass(frozen=True)
class Scalar:
    """One float32 operation in the body of a `linalg.generic`.

    Attributes:
        operation: Its name: `arith.mulf`.
        operands: Names: `%in0` for an element of the first input, `%out` for one of the output, `%v0` for the
            result of the body's first operation, or a constant of the function.
    """

    operation: str
    operands: tuple[str, ...]


def scalar(operation: str, *operands: str) -> Scalar:
    """Return one operation of a body."""
    return Scalar(operation, operands)


class FunctionText:
    """Builder of a function `main`: operations are appended, and `text` returns the module.

    Attributes:
        largest: Elements of its largest tensor.
    """

    def __init__(self) -> None:
        self.largest = 0
        self._arguments: list[Tensor] = []
        self._constants: dict[float, str] = {}
        self._lines: list[str] = []
        self._values = 0

    def argument(self, *shape: int) -> Tensor:
        """Append an argument."""
        tensor = self._tensor(f"%arg{len(self._arguments)}", shape)
        self._arguments.append(tensor)
        return tensor

    def constant(self, value: float) -> str:
        """Return the name of a scalar constant."""
        return self._constants.setdefault(value, f"%cst{len(self._constants)}")

    def empty(self, *shape: int) -> Tensor:
        """Append a tensor without content, for an operation to write to."""
        tensor = self._fresh(shape)
        self._lines.append(f"{tensor.name} = tensor.empty() : {tensor.type}")
        return tensor

    def filled(self, value: float, *shape: int) -> Tensor:
        """Append a tensor that holds one value, for an operation to accumulate into."""
        constant, empty = self.constant(value), self.empty(*shape)
        tensor = self._fresh(shape)
        self._lines.append(
            f"{tensor.name} = linalg.fill ins({constant} : f32) outs({empty.name} : {empty.type})"
            f" -> {tensor.type}"
        )
        return tensor

    def named(self, operation: str, inputs: Sequence[Tensor], into: Tensor, attributes: str = "") -> Tensor:
        """Append a named operation of linalg.

        Args:
            operation: Its name: `linalg.matmul`.
            inputs: Tensors that it reads.
            into: Tensor that it writes to or accumulates into.
            attributes: Its attributes as text, in braces.
        """
        tensor = self._fresh(into.shape)
        between = f" {attributes}" if attributes else ""
        self._lines.append(f"{tensor.name} = {operation}{between} {_operands(inputs, into)} -> {tensor.type}")
        return tensor

    def generic(self, subscripts: str, inputs: Sequence[Tensor], into: Tensor, *body: Scalar) -> Tensor:
        """Append a `linalg.generic`.

        Args:
            subscripts: The accesses as einsum writes them: `mk,kn->mn`. The loops of the output come first,
                then the reductions, in the order in which the inputs name them.
            inputs: Tensors that it reads.
            into: Tensor that it writes to or accumulates into.
            body: Operations of its body; the result of the last one is the new element.
        """
        reads, _, writes = subscripts.partition("->")
        loops = list(dict.fromkeys(writes + reads.replace(",", "")))
        maps = ", ".join(_map(loops, access) for access in (*reads.split(","), writes))
        iterators = ", ".join(f'"{"parallel" if loop in writes else "reduction"}"' for loop in loops)
        elements = ", ".join(f"{name}: f32" for name in (*(f"%in{n}" for n in range(len(inputs))), "%out"))
        tensor = self._fresh(into.shape)
        self._lines += [
            f"{tensor.name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}}",
            f"    {_operands(inputs, into)} {{",
            f"^bb0({elements}):",
            *(f"  %v{n} = {step.operation} {', '.join(step.operands)} : f32" for n, step in enumerate(body)),
            f"  linalg.yield %v{len(body) - 1} : f32",
            f"}} -> {tensor.type}",
        ]
        return tensor

    def text(self, result: Tensor) -> str:
        """Return the module that holds the function, which returns one tensor."""
        arguments = ", ".join(f"{tensor.name}: {tensor.type}" for tensor in self._arguments)
        constants = [
            f"{name} = arith.constant {_literal(value)} : f32" for value, name in self._constants.items()
        ]
        body = "\n".join(f"    {line}" for line in (*constants, *self._lines))
        return (
            f"module {{\n  func.func @main({arguments}) -> {result.type} {{\n{body}\n"
            f"    return {result.name} : {result.type}\n  }}\n}}\n"
        )

    def _fresh(self, shape: tuple[int, ...]) -> Tensor:
        self._values += 1
        return self._tensor(f"%{self._values - 1}", shape)

    def _tensor(self, name: str, shape: tuple[int, ...]) -> Tensor:
        self.largest = max(self.largest, math.prod(shape))
        return Tensor(name, shape)


def _operands(inputs: Sequence[Tensor], into: Tensor) -> str:
    names = ", ".join(tensor.name for tensor in inputs)
    types = ", ".join(tensor.type for tensor in inputs)
    return f"ins({names} : {types}) outs({into.name} : {into.type})"


def _map(loops: Sequence[str], access: str) -> str:
    dims = ", ".join(f"d{n}" for n in range(len(loops)))
    return f"affine_map<({dims}) -> ({', '.join(f'd{loops.index(letter)}' for letter in access)})>"


def _literal(value: float) -> str:
    """Return a float32 literal: decimal, or the bits of an infinity."""
    if math.isinf(value):
        return "0x7F800000" if value > 0 else "0xFF800000"
    return f"{value:.9e}"
