"""Comparison of functions with the torch modules that they replace; imports torch."""

# Some of torch's types are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from irgym.base.errors import ProgramError
from irgym.core.cost import Validation
from irgym.measure.callables.comparison import Reference, Results, nudged, reference
from irgym.measure.callables.nesting import flatten
from irgym.measure.callables.torch_calls import Called, name_of
from irgym.measure.callables.torch_modules import array_of, kind_of, leaves_of, without_caches
from irgym.measure.checking.numbers import Array, same_bits

HEAVY = 1 << 30
"""Bytes of weights from which on no copy of the module with perturbed weights is made."""

HASHED = 1 << 20
"""Number of elements up to which a tensor is compared by value; larger ones by address and version."""

OTHER_SIZES: tuple[Callable[[int], int], ...] = (
    lambda _: 1,
    lambda size: size + 1,
    lambda size: 2 * size + 1,
)
"""Other sizes of open dimensions, from an example's."""

_DEEP = 4
"""Depth to which attributes of a module are compared."""

_COMMON = frozenset(vars(nn.Module()))
"""Attributes that every module has."""


def refuse_unsteady(module: nn.Module, inputs: Sequence[Any]) -> None:
    """Refuse a module that no program can replace.

    It is called twice with the same inputs, without gradients.

    Args:
        module: The module.
        inputs: Example inputs; they are not modified.

    Raises:
        ProgramError: It fails; its results are not tensors, or differ the second time; it draws random
            numbers, keeps state, or changes its inputs.
    """
    name = name_of(module)
    _refuse_devices(module, inputs, name)
    _refuse_unreadable(inputs, name, "takes")
    given = copied(inputs)
    with torch.random.fork_rng(devices=[]):
        first = _called(module, given, name)
        _refuse_changed(inputs, given, name)
        before = _state(module)
        second = _called(module, given, name)
    changed = next((name for name, token in _state(module).items() if before.get(name) != token), None)
    if changed in dict(module.named_buffers()):
        raise ProgramError(
            f"{name} changes its buffers or inputs: {_eval_or(module)}change nothing in place "
            f"({changed} is another after each call)"
        )
    if changed is not None:
        raise ProgramError(
            f"{name} changes its attribute {changed} whenever it is called, which a program would keep as it "
            "is: keep no state in forward"
        )
    if first.structure != second.structure or first.kinds != second.kinds or not _alike(first, second):
        raise ProgramError(
            f"{name} draws random numbers or keeps state, since it returns something else when it is called "
            f"again with the same inputs: {_eval_or(module)}compute from inputs and weights only"
        )


def returns_tensors(module: nn.Module, inputs: Sequence[Any]) -> bool:
    """Say whether a module returns only tensors, in containers of torch; True if it fails on its inputs."""
    with torch.random.fork_rng(devices=[]), torch.no_grad(), without_caches(module):
        try:
            results = module(*copied(inputs))
        except Exception:  # noqa: BLE001  # which `refuse_unsteady` reports
            return True
    return all(isinstance(leaf, Tensor) for leaf in pytree.tree_leaves(results))


def copied(inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Return copies of inputs that share no memory: exporters merge inputs that are the same tensor."""
    leaves, structure = flatten(tuple(inputs))
    return structure.filled(map(_copy, leaves))


def compare(module: nn.Module, inputs: Sequence[Any], function: Callable[..., Any], seed: int) -> Validation:
    """Compare a function with the module that it replaces, on the example inputs and on random ones.

    Args:
        module: The module.
        inputs: Example inputs.
        function: The function, with the signature of the module.
        seed: Seed of the random inputs.

    Raises:
        IrgymError: The function refuses inputs that the module takes.
    """
    with torch.random.fork_rng(devices=[]):
        return reference_of(module, inputs, seed).judge(function)


def reference_of(module: nn.Module, inputs: Sequence[Any], seed: int) -> Reference:
    """Return a module's results for its example inputs and for random ones."""
    example, structure = flatten(tuple(inputs))

    def run(function: Callable[..., Any], arrays: Sequence[Array]) -> Results:
        leaves = [_like(old, new) for old, new in zip(example, arrays, strict=True)]
        with torch.no_grad(), without_caches(module):
            return results_of(function(*structure.filled(leaves)))

    arrays = [array_of(leaf) for leaf in example]
    more = [[array_of(tensor) for tensor in given] for given in _others(module)]
    weights = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    near: list[Callable[..., Any]] = [module]
    if sum(weight.nbytes for weight in weights.values()) < HEAVY:
        random = np.random.default_rng(seed)
        moved = {name: _nudged(weight, random) for name, weight in weights.items()}

        def other(*given: Any) -> Any:
            return torch.func.functional_call(module, moved, given)

        try:
            run(other, arrays)
        except Exception:  # noqa: BLE001  # the weights of some modules, such as torch.jit's, are fixed
            other = module
        near.append(other)
    return reference(name_of(module), arrays, run, near, seed, more)


def _others(module: nn.Module) -> list[Sequence[Tensor]]:
    """Return further inputs of a module: its other examples, and the first in other open sizes."""
    if not isinstance(module, Called):
        return []
    found = list(module.more)
    for count in OTHER_SIZES if any(module.open_axes) else ():
        given = [
            _resized(tensor, axes, count)
            for tensor, axes in zip(module.examples[0], module.open_axes, strict=True)
        ]
        try:
            with torch.no_grad(), without_caches(module):
                module(*copied(given))
        except Exception:  # noqa: BLE001  # a module need not take all sizes
            continue
        found.append(given)
    return found


def _resized(tensor: Tensor, axes: frozenset[int], count: Callable[[int], int]) -> Tensor:
    """Return a tensor with other sizes along some axes, whose elements repeat."""
    for axis in axes:
        size = tensor.shape[axis]
        tensor = tensor.index_select(axis, torch.arange(count(size)) % size)
    return tensor


def results_of(value: Any) -> Results:
    """Return a module's results as plain data, copied.

    Raises:
        TypeError: The results contain something other than tensors and plain values.
    """
    leaves = leaves_of(value)
    arrays = tuple(array_of(leaf).copy() for leaf in leaves if isinstance(leaf, Tensor))
    kinds = tuple(kind_of(leaf) if isinstance(leaf, Tensor) else repr(leaf) for leaf in leaves)
    return Results(flatten(value)[1], kinds, arrays)


def _called(module: nn.Module, inputs: Sequence[Any], name: str) -> Results:
    with torch.no_grad(), without_caches(module):
        try:
            results = module(*inputs)
        except Exception as error:
            said = next(iter(str(error).splitlines()), "")
            raise ProgramError(
                f"{name} raises {type(error).__name__} on its example inputs ({said}): give inputs that it "
                "takes"
            ) from error
    _refuse_unreadable(results, name, "returns")
    return results_of(results)


def _eval_or(module: nn.Module) -> str:
    """Return the advice to put a module into evaluation mode, if a part of it is not."""
    return "call .eval() on it, or " if any(part.training for part in module.modules()) else ""


def _refuse_unreadable(values: Any, name: str, verb: str) -> None:
    """Refuse inputs or results that programs cannot have."""
    try:
        for leaf in leaves_of(values):
            if isinstance(leaf, Tensor):
                array_of(leaf)
    except TypeError as error:
        leaves, _ = flatten(values)
        if any(isinstance(leaf, Tensor) and leaf.dtype is torch.bfloat16 for leaf in leaves):
            raise ProgramError(
                f"{name} {verb} bfloat16, and numpy has no bfloat16 numbers: call .float() on the module and "
                "its inputs"
            ) from error
        raise ProgramError(
            f"{name} {verb} something that no program does ({error}): let it take and return dense tensors, "
            "of float32 for example, in tuples, lists, dicts or dataclasses"
        ) from error


def _refuse_devices(module: nn.Module, inputs: Sequence[Any], name: str) -> None:
    tensors = [*module.parameters(), *module.buffers(), *flatten(tuple(inputs))[0]]
    devices = {tensor.device.type for tensor in tensors if isinstance(tensor, Tensor)} - {"cpu"}
    if "meta" in devices:
        raise ProgramError(
            f"{name} or its inputs are on the device meta, which holds no numbers: give them on the CPU"
        )
    if devices:
        raise ProgramError(f"{name} or its inputs are on {devices.pop()}: call .cpu() on them")


def _refuse_changed(inputs: Sequence[Any], given: Sequence[Any], name: str) -> None:
    pairs = zip(flatten(tuple(inputs))[0], flatten(tuple(given))[0], strict=True)
    if any(isinstance(old, Tensor) and not same_bits(array_of(old), array_of(new)) for old, new in pairs):
        raise ProgramError(f"{name} changes its buffers or inputs: change nothing in place")


def _copy(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, Tensor) else value


def _like(example: Any, array: Array) -> Any:
    """Return an array as a tensor with an example's memory layout; examples that are not tensors stay."""
    if not isinstance(example, Tensor):
        return example
    tensor = torch.from_numpy(np.array(array))
    if tensor.shape != example.shape:
        return tensor.to(example.dtype)
    return torch.empty_like(example, requires_grad=False).copy_(tensor)


def _nudged(weight: Tensor, random: np.random.Generator) -> Tensor:
    if not weight.is_floating_point() or weight.layout is not torch.strided:
        return weight
    # Types that numpy lacks stay unperturbed.
    try:
        array = array_of(weight)
    except TypeError:
        return weight
    return torch.from_numpy(np.array(nudged(array, random))).to(weight.dtype)


def _alike(first: Results, second: Results) -> bool:
    return all(same_bits(left, right) for left, right in zip(first.arrays, second.arrays, strict=True))


def _state(module: nn.Module) -> dict[str, object]:
    """Return a token of each attribute and buffer of a module, by name, which shows whether it changed."""
    found: dict[str, object] = {}
    for prefix, part in module.named_modules():
        attributes = {name: value for name, value in vars(part).items() if name not in _COMMON}
        for name, value in (*attributes.items(), *part.named_buffers(recurse=False)):
            found[f"{prefix}.{name}".lstrip(".")] = _token(value, _DEEP)
    return found


def _token(value: Any, deep: int) -> object:
    """Return a token that is equal for equal values, as far as possible."""
    if isinstance(value, Tensor):
        if isinstance(value, nn.Parameter) or value.numel() > HASHED or value.layout is not torch.strided:
            return id(value), value._version
        return tuple(value.shape), value.dtype, _bytes(value)
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype, value.tobytes() if value.size <= HASHED else id(value)
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return repr(value)
    if not deep:
        return type(value)
    inside = partial(_token, deep=deep - 1)
    if isinstance(value, Mapping):
        return tuple((repr(key), inside(inner)) for key, inner in value.items())
    if isinstance(value, list | tuple | set | frozenset):
        return len(value), tuple(inside(inner) for inner in value)
    if isinstance(value, nn.Module | type) or callable(value):
        return type(value)
    return type(value), inside(getattr(value, "__dict__", None))


def _bytes(value: Tensor) -> bytes:
    try:
        return array_of(value).tobytes()
    except TypeError:
        return bytes(value.detach().reshape(-1).contiguous().view(torch.uint8).numpy())
