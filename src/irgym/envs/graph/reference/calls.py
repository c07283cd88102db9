"""Types shared by all operators: a call with its attributes, and an operator with results and types."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from numpy.typing import NDArray

from irgym.base.errors import IrgymError
from irgym.envs.graph.ir.sizes import Undecided, broadcast_shapes, numbers
from irgym.envs.graph.ir.types import TensorType

Array: TypeAlias = NDArray[Any]
Meaning: TypeAlias = Callable[..., "Array | Sequence[Array]"]
"""A function from a call and the inputs, one argument each (None if missing), to the outputs."""
TypeRule: TypeAlias = Callable[..., "TensorType | Sequence[TensorType]"]
"""A function from a call and the types of the inputs, one argument each, to the types of the outputs."""


class OperatorError(IrgymError):
    """The reference does not support an operator, an attribute or an input."""


@dataclass(frozen=True)
class Operator:
    """An operator.

    Attributes:
        meaning: Computes the outputs.
        types: Computes the types of the outputs.
    """

    meaning: Meaning
    types: TypeRule


@dataclass(frozen=True)
class Call:
    """A call of an operator, without its inputs.

    Attributes:
        operator: Name of the operator.
        attributes: Attributes by name, as plain values; tensors are arrays.
        outputs: Number of requested outputs.
        block: Channels of a block, for the operators of `com.microsoft.nchwc`.
        constants: For type rules, the known values of inputs; those with open sizes are arrays of objects.
        trusted: Whether open sizes meet what the operator needs, as in a model that its user wrote. Where
            they do not, it does not run.
    """

    operator: str
    attributes: Mapping[str, Any]
    outputs: int = 1
    block: int = 16
    constants: Sequence[Array | None] = ()
    trusted: bool = False

    def agree(self, first: int, second: int) -> bool:
        """Say whether two sizes are equal that have to be.

        Raises:
            Undecided: That depends on symbols, and the call is not to be trusted.
        """
        try:
            return first == second
        except Undecided:
            if not self.trusted:
                raise
            return True

    def missing(self, size: int) -> bool:
        """Say whether a size that has to be positive is not.

        Raises:
            Undecided: As in `agree`.
        """
        try:
            return size <= 0
        except Undecided:
            if not self.trusted:
                raise
            return False

    def integer(self, name: str, default: int | None = None) -> int:
        """Return an integer attribute.

        Raises:
            OperatorError: The attribute is missing and has no default; so for the other kinds of attributes.
        """
        return int(self._get(name, default))

    def number(self, name: str, default: float | None = None) -> float:
        """Return a floating-point attribute."""
        return float(self._get(name, default))

    def text(self, name: str, default: str | None = None) -> str:
        """Return a string attribute."""
        return str(self._get(name, default))

    def integers(self, name: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
        """Return an attribute with a list of integers."""
        return tuple(int(value) for value in self._get(name, default))

    def numbers(self, name: str, default: Sequence[float] | None = None) -> tuple[float, ...]:
        """Return an attribute with a list of floating-point numbers."""
        return tuple(float(value) for value in self._get(name, default))

    def known(self, index: int) -> Array:
        """Return the value of an input on which the types of the outputs depend.

        Raises:
            OperatorError: The value is unknown.
        """
        value = self.constants[index] if index < len(self.constants) else None
        if value is None:
            raise OperatorError(
                f"the type of {self.operator} depends on its input {index}: give its value as a constant"
            )
        return value

    def sizes(self, index: int) -> tuple[int, ...]:
        """Return the elements of an input on which the types of the outputs depend; some may be open sizes.

        Raises:
            OperatorError: The value is unknown.
        """
        return numbers(self.known(index).reshape(-1))

    def refusal(self, what: str) -> OperatorError:
        """Return the error for an unsupported part of a call."""
        return OperatorError(f"{self.operator} is not known here with {what}; leave such operators alone")

    def _get(self, name: str, default: Any) -> Any:
        value = self.attributes.get(name, default)
        if value is None:
            raise OperatorError(f"{self.operator} needs the attribute {name!r}")
        return value


def same(call: Call, first: TensorType, *others: TensorType | None) -> TensorType:
    """Return the type of the first input."""
    return first


def broadcast(call: Call, first: TensorType, *others: TensorType) -> TensorType:
    """Return the type of all inputs broadcast together, with the element type of the first."""
    shapes = [first.shape, *(other.shape for other in others)]
    return TensorType(first.dtype, broadcast_shapes(*shapes, trusted=call.trusted))


def type_of(array: Array) -> TensorType:
    """Return the type of an array."""
    return TensorType("str" if array.dtype.kind in "UO" else array.dtype.name, array.shape)


def positive_axis(axis: int, rank: int) -> int:
    """Return an axis, counted from the front."""
    return axis + rank if axis < 0 else axis
