"""Torch modules of users: how they are called, and what computes the same in their place.

Imported on use only.
"""

# torch leaves parts of its own types open.
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
"""Computes arrays of arrays."""


@contextmanager
def without_caches(module: nn.Module) -> Generator[None]:
    """Have a language model of transformers return no cache of keys and values, which is no tensor."""
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
    """A module that returns the tensors among the results of another one, in torch's order."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *inputs: Any) -> tuple[Tensor, ...]:
        """Return the tensors."""
        return tuple(leaf for leaf in leaves_of(self.module(*inputs)) if isinstance(leaf, Tensor))


def leaves_of(results: Any) -> list[Any]:
    """Return what is in a structure of results, in torch's order.

    Raises:
        TypeError: There is something that is neither a tensor nor a plain value.
    """
    leaves = pytree.tree_leaves(results)
    for leaf in leaves:
        if not isinstance(leaf, Tensor | bool | int | float | str | None):
            raise TypeError(f"a {type(leaf).__name__} is no tensor")
    return leaves


def array_of(tensor: Tensor) -> NDArray[Any]:
    """Return a tensor as an array, which may share its memory.

    Raises:
        TypeError: numpy has no such numbers, as bfloat16, or the tensor is sparse.
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
    """Return a tensor's shape and type of elements, in words."""
    if not isinstance(value, Tensor):
        return type(value).__name__
    return f"{'x'.join(map(str, value.shape)) or 'one'} {_words(value.dtype)}"


def _words(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


class InPlace:
    """Computes what a module computes, with its weights as they were, for inputs of the same shapes.

    Takes and returns tensors in the structure in which the module does, but for caches of language models.
    Results are new tensors, which share no memory with inputs or weights. It records no gradients.
    """

    def __init__(self, module: nn.Module, inputs: Sequence[Any], function: Function) -> None:
        """Call the module once, to see what it returns.

        Args:
            module: In evaluation mode.
            inputs: What it was tuned for.
            function: Computes its results, in the order in which torch flattens them. Complex numbers may be
                pairs of real ones in a last dimension.
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
        """Return the results for other inputs, given in order or by their names in `forward`.

        Raises:
            IrgymError: Their number, nesting, shapes or types differ from what was tuned for.
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
        """Return inputs as the module was called with them when it was tuned: one after the other."""
        if not named:
            return inputs
        try:
            bound = inspect.signature(self._forward).bind(*inputs, **named)
        except TypeError as error:
            raise IrgymError(f"{self._name} does not take these inputs ({error}): give its own") from error
        if bound.kwargs:
            raise IrgymError(
                f"{self._name} was tuned without {', '.join(bound.kwargs)}, which it takes by name only: "
                "leave it out"
            )
        return bound.args


def _passed(leaf: Any) -> NDArray[Any]:
    """Return a tensor as programs take it: complex numbers as pairs of real ones."""
    return array_of(torch.view_as_real(leaf.detach().resolve_conj()) if leaf.is_complex() else leaf)


def _tensor(array: NDArray[Any], dtype: torch.dtype) -> Tensor:
    """Return a result of a program as a tensor of the module's type."""
    found = torch.from_numpy(array)
    if dtype.is_complex and not found.is_complex() and found.dim() and found.shape[-1] == 2:
        found = torch.view_as_complex(found.contiguous())
    return found if found.dtype == dtype else found.to(dtype)
