"""A pretended GPU: tensors of the CPU that behave as if they were on another device.

Within `PretendedCuda`, moving a tensor to CUDA copies it and marks its storage. Marked tensors say that they
are on cuda:0, results of marked tensors are marked, and an operation on marked and other tensors fails, as
does `numpy()` of marked ones, in the way in which they fail with a GPU. All results are the CPU's own.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

CUDA, CPU = torch.device("cuda", 0), torch.device("cpu")
_ANYWHERE = {Tensor.copy_, Tensor.data.__set__, torch._has_compatible_shallow_copy_type}


def _tensors(values: Iterable[Any]) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)
        elif isinstance(value, dict):
            yield from _tensors(value.values())


class PretendedCuda(TorchFunctionMode):
    """The mode in which there is a GPU; of one thread.

    Attributes:
        pinned: Number of tensors that were copied to pinned memory.
    """

    def __init__(self) -> None:
        super().__init__()
        self.pinned = 0
        self._marked: dict[int, Any] = {}  # with the storages, lest others get their addresses

    def has(self, tensor: Tensor) -> bool:
        """Say whether a tensor is on the pretended GPU."""
        with torch._C.DisableTorchFunction():
            return tensor.untyped_storage()._cdata in self._marked

    def _mark(self, found: Any) -> Any:
        with torch._C.DisableTorchFunction():
            for tensor in _tensors([found]):
                storage = tensor.untyped_storage()
                self._marked[storage._cdata] = storage
        return found

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func == Tensor.device.__get__:
            return CUDA if self.has(args[0]) else CPU
        if func == Tensor.pin_memory:
            self.pinned += 1
            return args[0].clone()
        if func == Tensor.to and (place := self._place(args[1:], kwargs)) is not None:
            return self._to(args[0], place)
        if func == Tensor.cpu:
            return self._to(args[0], CPU)
        if func == Tensor.numpy:
            if self.has(args[0]) and not kwargs.get("force"):
                raise TypeError("can't convert cuda:0 device type tensor to numpy")
            return func(*args, **kwargs)
        asked = kwargs.get("device")
        if asked is not None and torch.device(asked).type == "cuda":
            return self._mark(func(*args, **(kwargs | {"device": CPU})))
        return self._apply(func, args, kwargs)

    def _apply(self, func: Any, args: Any, kwargs: Any) -> Any:
        given = list(_tensors([args, kwargs]))
        marked = [tensor for tensor in given if self.has(tensor)]
        if not marked or func in _ANYWHERE:
            return func(*args, **kwargs)
        with torch._C.DisableTorchFunction():  # a number may be mixed with tensors of a GPU
            others = [tensor for tensor in given if tensor.dim() > 0 and not self.has(tensor)]
        if others:
            raise RuntimeError(f"Expected all tensors to be on the same device, in {func}")
        return self._mark(func(*args, **kwargs))

    @staticmethod
    def _place(args: Any, kwargs: Any) -> torch.device | None:
        given = [value for value in (*args, kwargs.get("device")) if isinstance(value, torch.device | str)]
        return torch.device(given[0]) if given else None

    def _to(self, tensor: Tensor, place: torch.device) -> Tensor:
        if self.has(tensor) == (place.type == "cuda"):
            return tensor
        with torch._C.DisableTorchFunction():
            copy = tensor.clone()
        return self._mark(copy) if place.type == "cuda" else copy


def pretend(patch: pytest.MonkeyPatch) -> PretendedCuda:
    """Return the mode, and let torch see one GPU."""
    patch.setattr(torch.cuda, "is_available", lambda: True)
    patch.setattr(torch.cuda, "device_count", lambda: 1)
    patch.setattr(torch.cuda, "current_device", lambda: 0)
    patch.setattr(torch.cuda, "get_device_name", lambda device: "pretended")
    return PretendedCuda()
