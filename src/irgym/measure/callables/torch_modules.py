"""Torch modules of users: how they are called, and the callable that replaces them. Imported on use only."""

# Some of torch's types are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import inspect
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from irgym.base.errors import IrgymError

Function = Callable[[Sequence[NDArray[Any]]], Sequence[NDArray[Any]]]
"""Computes arrays from arrays."""


@contextmanager
def without_caches(module: nn.Module) -> Generator[None]:
    """Keep a language model of transformers from returning its cache, which is not a tensor."""
    config = getattr(module, "config", None)
    if config is None or getattr(config, "use_cache", None) is not True:
        yield
        return
    config.use_cache = False
    try:
        yield
    finally:
        config.use_cache = True


class Flat(nn.Module):
    """A module that returns the tensors among another module's results, in torch's order."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *inputs: Any) -> tuple[Tensor, ...]:
        """Return the tensors."""
        return tuple(leaf for leaf in leaves_of(self.module(*inputs)) if isinstance(leaf, Tensor))


def leaves_of(results: Any) -> list[Any]:
    """Return the leaves of nested results, in torch's order.

    Raises:
        TypeError: A leaf is neither a tensor nor a plain value.
    """
    leaves = pytree.tree_leaves(results)
    for leaf in leaves:
        if not isinstance(leaf, Tensor | bool | int | float | str | None):
            raise TypeError(f"a {type(leaf).__name__} is no tensor")
    return leaves


def array_of(tensor: Tensor) -> NDArray[Any]:
    """Return a tensor as an array, which may share its memory.

    Raises:
        TypeError: numpy lacks the element type, such as bfloat16, or the tensor is sparse.
    """
    if tensor.layout is not torch.strided:
        raise TypeError(f"a tensor of layout {str(tensor.layout).removeprefix('torch.')} is not dense")
    if tensor.is_quantized or tensor.dtype in _NOT_IN_NUMPY:
        raise TypeError(f"numpy has no {_words(tensor.dtype)} numbers")
    return tensor.numpy(force=True)


_NOT_IN_NUMPY = frozenset(
    getattr(torch, name)
    for name in (
        "bfloat16",
        "complex32",
        "float8_e4m3fn",
        "float8_e5m2",
        "float8_e4m3fnuz",
        "float8_e5m2fnuz",
    )
)


def kind_of(value: Any) -> str:
    """Return a tensor's shape and element type, in words."""
    if not isinstance(value, Tensor):
        return type(value).__name__
    return f"{'x'.join(map(str, value.shape)) or 'one'} {_words(value.dtype)}"


def _words(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


class InPlace:
    """Replacement for a module, with the weights that it had, for inputs of the same shapes.

    It takes and returns tensors in the module's structure, except for caches of language models. Results are
    new tensors, which share no memory with inputs or weights. It records no gradients.
    """

    def __init__(self, module: nn.Module, inputs: Sequence[Any], function: Function) -> None:
        """Call the module once to find the structure of its results.

        Args:
            module: A module in evaluation mode.
            inputs: The inputs that it was tuned for.
            function: Computes its results, in torch's order. Complex numbers may be pairs of real numbers in
                a last dimension.
        """
        self._name = type(module).__name__
        self._function = function
        self._forward = module.forward
        self._structure_of_inputs = pytree.tree_structure(tuple(inputs))
        self._kinds = [kind_of(leaf) for leaf in pytree.tree_leaves(tuple(inputs))]
        with torch.no_grad(), without_caches(module):
            results = module(*inputs)
        self._structure = pytree.tree_structure(results)
        self._leaves = [leaf.dtype if isinstance(leaf, Tensor) else leaf for leaf in leaves_of(results)]

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Return the results for other inputs, given by position or by name.

        Raises:
            IrgymError: Their number, nesting, shapes or types differ from those that it was tuned for.
        """
        given, structure = pytree.tree_flatten(self._in_order(inputs, named))
        kinds = [kind_of(leaf) for leaf in given]
        if kinds != self._kinds:
            raise IrgymError(
                f"{self._name} was tuned for ({', '.join(self._kinds)}), not for ({', '.join(kinds)}): "
                "tune it for these"
            )
        if structure != self._structure_of_inputs:
            raise IrgymError(
                f"{self._name} was tuned for inputs that are nested in another way: give them as they were"
            )
        results = self._function([_passed(leaf) for leaf in given])
        wanted = sum(isinstance(leaf, torch.dtype) for leaf in self._leaves)
        if len(results) != wanted:
            raise IrgymError(
                f"{self._name} returns {wanted} tensors and its program {len(results)}: return tensors, not "
                "numbers that depend on values"
            )
        computed = iter(results)
        leaves = [
            _tensor(next(computed), leaf) if isinstance(leaf, torch.dtype) else leaf for leaf in self._leaves
        ]
        return pytree.tree_unflatten(leaves, self._structure)

    def _in_order(self, inputs: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return inputs by position, as the module was called when it was tuned."""
        if not named:
            return inputs
        try:
            bound = inspect.signature(self._forward).bind(*inputs, **named)
        except TypeError as error:
            raise IrgymError(
                f"{self._name} does not take these inputs ({error}): call it as the module"
            ) from error
        if bound.kwargs:
            raise IrgymError(
                f"{self._name} was tuned without {', '.join(bound.kwargs)}, which it takes by name only: "
                "leave it out"
            )
        return bound.args


def _passed(leaf: Any) -> NDArray[Any]:
    """Return a tensor as an argument of a program: complex numbers as pairs of real ones."""
    return array_of(torch.view_as_real(leaf.detach().resolve_conj()) if leaf.is_complex() else leaf)


def _tensor(array: NDArray[Any], dtype: torch.dtype) -> Tensor:
    """Return a program's result as a tensor of the module's type."""
    found = torch.from_numpy(array)
    if dtype.is_complex and not found.is_complex() and found.dim() and found.shape[-1] == 2:
        found = torch.view_as_complex(found.contiguous())
    return found if found.dtype == dtype else found.to(dtype)
