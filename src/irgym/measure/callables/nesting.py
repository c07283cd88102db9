"""Nested inputs and results of torch modules: containers that torch knows, and dataclasses. Imports torch."""

# Some of torch's types are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from torch.utils import _pytree as pytree


class _Fields:
    """A dataclass that torch does not know as a container, opened."""

    def __init__(self, value: Any) -> None:
        names = [field.name for field in dataclasses.fields(value)]
        self.kind = (type(value), tuple(name for name in names if hasattr(value, name)))
        self.values = [_opened(getattr(value, name)) for name in self.kind[1]]


def _flattened(fields: _Fields) -> tuple[list[Any], Any]:
    return fields.values, fields.kind


def _flattened_with_keys(fields: _Fields) -> tuple[list[tuple[Any, Any]], Any]:
    _, names = fields.kind
    keys = [pytree.GetAttrKey(name) for name in names]
    return list(zip(keys, fields.values, strict=True)), fields.kind


def _rebuilt(values: Iterable[Any], kind: Any) -> Any:
    """Return a dataclass of the kind, without running its constructor."""
    cls, names = kind
    made = object.__new__(cls)
    for name, value in zip(names, values, strict=True):
        object.__setattr__(made, name, value)
    return made


pytree.register_pytree_node(
    _Fields, _flattened, _rebuilt, flatten_with_keys_fn=_flattened_with_keys
)  # of this module's own class only: what users see of torch's registry stays as it is


class Structure:
    """Nesting of values: equal ones are equal. It pickles, which torch's own description does with a warning.

    Attributes:
        leaves: Number of leaves.
    """

    def __init__(self, spec: Any) -> None:
        self._spec = spec
        self.leaves: int = spec.num_leaves

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Structure) and self._spec == other._spec

    def __hash__(self) -> int:
        return hash(self.leaves)

    def __str__(self) -> str:
        return str(self._spec)

    def __reduce__(self) -> tuple[Any, ...]:
        return _structure_of, (self.filled(range(self.leaves)),)

    def filled(self, leaves: Iterable[Any]) -> Any:
        """Return values of this structure with these leaves."""
        return pytree.tree_unflatten(leaves, self._spec)


def flatten(value: Any) -> tuple[list[Any], Structure]:
    """Return the leaves of nested values in torch's order, and their structure."""
    leaves, spec = pytree.tree_flatten(_opened(value))
    return leaves, Structure(spec)


def flatten_with_paths(value: Any) -> list[tuple[Sequence[Any], Any]]:
    """Return the leaves of nested values with the keys that lead to each."""
    leaves, _ = pytree.tree_flatten_with_path(_opened(value))
    return list(leaves)


def _structure_of(value: Any) -> Structure:
    return flatten(value)[1]


def _opened(value: Any) -> Any:
    """Return a value in which the dataclasses that torch takes for leaves are containers."""
    return pytree.tree_map(_opened_leaf, value)


def _opened_leaf(leaf: Any) -> Any:
    return _Fields(leaf) if dataclasses.is_dataclass(leaf) and not isinstance(leaf, type) else leaf
