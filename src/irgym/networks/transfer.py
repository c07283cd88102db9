"""Moving batches of tensors between devices."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

import torch

T = TypeVar("T")


def moved(value: T, device: torch.device) -> T:
    """Return a value with its tensors on a device; those that are there already are not copied.

    Copies from the CPU to CUDA go through pinned memory and do not wait, so that the CPU can prepare the next
    minibatch meanwhile.

    Args:
        value: A tensor, or tuples, lists, dictionaries and dataclasses of them; all else stays as it is.
        device: The device.
    """
    return cast(T, _moved(value, device))


def _moved(value: Any, device: torch.device) -> Any:
    if isinstance(value, torch.Tensor):
        if device.type == "cuda" and value.device.type == "cpu":
            return value.pin_memory().to(device, non_blocking=True)
        return value.to(device)
    if isinstance(value, Mapping):
        return {name: _moved(part, device) for name, part in cast(Mapping[Any, Any], value).items()}
    if isinstance(value, list | tuple):
        kind, parts = type(cast(object, value)), [_moved(part, device) for part in cast(list[Any], value)]
        make: Any = getattr(kind, "_make", kind)  # a named tuple takes its parts as arguments
        return make(parts)
    if is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in fields(value)]
        return replace(value, **{name: _moved(getattr(value, name), device) for name in names})
    return value
