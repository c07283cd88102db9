"""Torch modules of users: how they are called, and what computes the same in their place.

Imported on use only.
"""

# torch leaves parts of its own types open.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from irgym.core.errors import IrgymError

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
        return tuple(one for one in _leaves(self.module(*inputs)) if isinstance(one, Tensor))


def _leaves(results: Any) -> list[Any]:
    """Return what is in a structure of results, in torch's order.

    Raises:
        TypeError: There is something that is neither a tensor nor a plain value.
    """
    leaves = pytree.tree_leaves(results)
    for one in leaves:
        if not isinstance(one, Tensor | bool | int | float | str | None):
            raise TypeError(f"it returns a {type(one).__name__}, which is no tensor")
    return leaves


class InPlace:
    """Computes what a module computes, with its weights as they were, for inputs of the same shapes.

    Takes and returns tensors in the structure in which the module does, but for caches of language models.
    It records no gradients.
    """

    def __init__(self, module: nn.Module, inputs: Sequence[Any], function: Function) -> None:
        """Call the module once, to see what it returns.

        Args:
            module: In evaluation mode.
            inputs: What it was tuned for.
            function: Computes its results, in the order in which torch flattens them.
        """
        self._name = type(module).__name__
        self._function = function
        self._kinds = [_kind(one) for one in pytree.tree_leaves(inputs)]
        with torch.no_grad(), without_caches(module):
            results = module(*inputs)
        self._structure = pytree.tree_structure(results)
        self._leaves = [one.dtype if isinstance(one, Tensor) else one for one in _leaves(results)]

    def __call__(self, *inputs: Any) -> Any:
        """Return the results for other inputs.

        Raises:
            IrgymError: Their number, shapes or types differ from what was tuned for.
        """
        given = pytree.tree_leaves(inputs)
        kinds = [_kind(one) for one in given]
        if kinds != self._kinds:
            raise IrgymError(
                f"{self._name} was tuned for ({', '.join(self._kinds)}), not for ({', '.join(kinds)}): "
                "tune it for these"
            )
        results = self._function([one.numpy(force=True) for one in given])
        assert len(results) == sum(isinstance(one, torch.dtype) for one in self._leaves)
        computed = iter(results)
        leaves = [
            torch.from_numpy(next(computed)).to(one) if isinstance(one, torch.dtype) else one
            for one in self._leaves
        ]
        return pytree.tree_unflatten(leaves, self._structure)


def _kind(value: Any) -> str:
    """Return a tensor's shape and type of elements, in words."""
    if not isinstance(value, Tensor):
        return type(value).__name__
    return f"{'x'.join(map(str, value.shape)) or 'one'} {str(value.dtype).removeprefix('torch.')}"
