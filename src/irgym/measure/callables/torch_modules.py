"""Torch modules of users: how they are called, and the callable that replaces them. Imported on use only."""

# Some of torch's types are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import copy
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from irgym.base.errors import IrgymError
from irgym.measure.callables.misfit import MisfitError
from irgym.measure.callables.nesting import flatten
from irgym.measure.callables.torch_calls import Called, Convention, name_of

Function = Callable[[Sequence[NDArray[Any]]], Sequence[NDArray[Any]]]
"""Computes arrays from arrays."""


@contextmanager
def without_caches(module: nn.Module) -> Generator[None]:
    """Keep a language model of transformers from returning its cache, which is not a tensor."""
    config = getattr(module.module if isinstance(module, Called) else module, "config", None)
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
    leaves, _ = flatten(results)
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


@dataclass(frozen=True)
class Kind:
    """Element type and sizes of an input.

    Attributes:
        dtype: The type.
        sizes: The sizes; those that are open by their names, equal ones by the same.
    """

    dtype: torch.dtype
    sizes: tuple[int | str, ...]

    def __str__(self) -> str:
        return f"{'x'.join(map(str, self.sizes)) or 'one'} {_words(self.dtype)}"

    def takes(self, tensor: Tensor, known: dict[str, int]) -> bool:
        """Say whether a tensor is of this kind, and note its open sizes among those known."""
        shape = tensor.shape
        if tensor.dtype != self.dtype or len(shape) != len(self.sizes):
            return False
        return all(
            size == wanted or (isinstance(wanted, str) and known.setdefault(wanted, size) == size)
            for size, wanted in zip(shape, self.sizes, strict=True)
        )


class InPlace(nn.Module):
    """Replacement for a module, with the weights that it had, for inputs as those that it was tuned for.

    It takes and returns tensors in the module's structure, except for caches of language models. Results are
    new tensors, which share no memory with inputs or weights. It records no gradients. It copies, pickles and
    is saved by `torch.save` where its function and the module do.
    """

    def __init__(
        self,
        module: nn.Module,
        inputs: Sequence[Any],
        function: Function,
        sizes: Sequence[Sequence[int | str]] | None = None,
    ) -> None:
        """Call the module once to find the structure of its results.

        Args:
            module: A module in evaluation mode.
            inputs: The inputs that it was tuned for.
            function: Computes its results, in torch's order. Complex numbers may be pairs of real numbers in
                a last dimension.
            sizes: The sizes of each input, those that are open by their names; by default those of `inputs`.
        """
        super().__init__()
        self.name = name_of(module)
        self.function = function
        self.convention = Convention.of(module, inputs, {})
        tensors = self.convention.tensors(inputs, {})
        shapes = [tensor.shape for tensor in tensors] if sizes is None else sizes
        self.kinds = tuple(
            Kind(tensor.dtype, tuple(shape)[: tensor.dim()])
            for tensor, shape in zip(tensors, shapes, strict=True)
        )
        with torch.no_grad(), without_caches(module):
            results = module(*inputs)
        _, self.structure = flatten(results)
        self.leaves = [leaf.dtype if isinstance(leaf, Tensor) else leaf for leaf in leaves_of(results)]
        self.instead: tuple[nn.Module, ...] = ()  # within a tuple, since its weights are none of ours
        self.warned = False
        self.eval()

    def standing(self, module: nn.Module) -> "InPlace":
        """Return a copy that is called as its user calls the module, and calls it where nothing was tuned.

        It warns when it calls the module for the first time.
        """
        found = copy.copy(self)
        if isinstance(module, Called):
            found.convention = module.convention
            module = module.module
        found.instead = (module,)
        return found

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """Return the results for other inputs, given by position or by name.

        Raises:
            IrgymError: Their number, nesting, shapes or types differ from those that it was tuned for, and
                there is no module to call instead.
        """
        try:
            return self.tuned(inputs, named)
        except MisfitError as error:
            if not self.instead:
                raise
            if not self.warned:
                self.warned = True
                warnings.warn(f"{error}; until then the module itself runs on such inputs", stacklevel=4)
            return self.instead[0](*inputs, **named)

    def tuned(self, inputs: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Return the results of the tuned program.

        Raises:
            MisfitError: Number, nesting, shapes or types of inputs differ from those in the example, or
                the program cannot run on them.
        """
        given = self.convention.tensors(inputs, named)
        self._check(given)
        return self.structure.filled(self.computed(given))

    def computed(self, tensors: Sequence[Tensor]) -> list[Any]:
        """Return the leaves of the results for tensors of the kinds that the module was tuned for.

        Raises:
            MisfitError: The program cannot run on them.
            IrgymError: It returns another number of tensors.
        """
        results = self.function([_passed(tensor) for tensor in tensors])
        wanted = sum(isinstance(leaf, torch.dtype) for leaf in self.leaves)
        if len(results) != wanted:
            raise IrgymError(
                f"{self.name} returns {wanted} tensors and its program {len(results)}: return tensors, not "
                "numbers that depend on values"
            )
        computed = iter(results)
        return [
            _tensor(next(computed), leaf) if isinstance(leaf, torch.dtype) else leaf for leaf in self.leaves
        ]

    def _check(self, given: Sequence[Tensor]) -> None:
        """Refuse tensors of other kinds than those that the module was tuned for."""
        known: dict[str, int] = {}
        if len(given) != len(self.kinds) or not all(
            kind.takes(tensor, known) for kind, tensor in zip(self.kinds, given, strict=True)
        ):
            raise MisfitError(
                f"{self.name} was tuned for ({', '.join(map(str, self.kinds))}), not for "
                f"({', '.join(map(kind_of, given))}): tune it for these"
            )
        if any(tensor.device.type != "cpu" for tensor in given):
            raise MisfitError(f"{self.name} was tuned for inputs on the CPU: call .cpu() on them")
        if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in given):
            raise MisfitError(
                f"{self.name} was tuned for inference, and an input requires gradients: call it under "
                "torch.no_grad()"
            )


def _passed(leaf: Any) -> NDArray[Any]:
    """Return a tensor as an argument of a program: complex numbers as pairs of real ones."""
    return array_of(torch.view_as_real(leaf.detach().resolve_conj()) if leaf.is_complex() else leaf)


def _tensor(array: NDArray[Any], dtype: torch.dtype) -> Tensor:
    """Return a program's result as a tensor of the module's type."""
    found = torch.from_numpy(array)
    if dtype.is_complex and not found.is_complex() and found.dim() and found.shape[-1] == 2:
        found = torch.view_as_complex(found.contiguous())
    return found if found.dtype == dtype else found.to(dtype)
