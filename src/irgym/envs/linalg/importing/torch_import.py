"""Conversion of torch modules to torch-mlir's dialect, in the process that has the module; imports torch.

Weights become leading arguments, which keeps the text small; torch-mlir's entry point would write them into
the text.
"""

# Some of torch's types are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from io import BytesIO
from math import prod
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.export import ExportedProgram

from irgym.base.errors import ProgramError
from irgym.envs.linalg.compiling.bindings import ir
from irgym.envs.linalg.importing.cleaning import MAX_TABLE
from irgym.envs.linalg.importing.modules import program_of_torch
from irgym.envs.linalg.importing.reading import torch_dialect
from irgym.envs.linalg.programs.networks import build
from irgym.envs.linalg.programs.uris import WEIGHTS, Network, parse_uri
from irgym.measure.callables.torch_modules import Flat, without_caches

FxImporter: Any = import_module("torch_mlir.extras.fx_importer").FxImporter
get_decomposition_table: Any = import_module("torch_mlir.extras.fx_decomp_util").get_decomposition_table

ELEMENTS = (torch.float32, torch.float64, torch.bool, torch.int8, torch.int32, torch.int64)
"""Types of elements that a program may have."""

# Errors of tracing and importing; any other error comes from the module's code.
_REFUSALS = (RuntimeError, TypeError, ValueError, AttributeError, AssertionError, LookupError)


@dataclass(frozen=True)
class Imported:
    """A module in torch-mlir's dialect.

    Attributes:
        text: A module with one function, `main`.
        weights: Values of its leading arguments, apart from those in `tables`.
        tables: Values of the integers among the leading arguments, by place; they must stay constant.
        exported: The program exported by torch.export.
        names: Names of the weights in the exported program.
    """

    text: str
    weights: tuple[Tensor, ...]
    tables: Mapping[int, NDArray[Any]]
    exported: ExportedProgram
    names: tuple[str, ...]

    def saved(self) -> bytes:
        """Return the exported program as a file of torch.export, with the names of the weights.

        It is empty where torch cannot save it; then the module has no torch baseline.
        """
        file = BytesIO()
        try:
            torch.export.save(self.exported, file, extra_files={WEIGHTS: json.dumps(self.names)})
        except (*_REFUSALS, NotImplementedError):
            return b""
        return file.getvalue()


def trace(module: nn.Module, arguments: tuple[Any, ...]) -> Imported:
    """Trace a module with torch.export and import it into torch-mlir's dialect.

    Args:
        module: A module in evaluation mode.
        arguments: Example inputs, tensors; only shapes and element types matter.

    Raises:
        ProgramError: torch cannot export it, or it has dynamic shapes, unsupported element types, random
            numbers, or results other than tensors.
    """
    name = type(module).__name__
    with warnings.catch_warnings(), torch.no_grad(), without_caches(module):
        # torch and torch-mlir warn of deprecated calls in their code.
        warnings.simplefilter("ignore")
        try:
            exported = torch.export.export(Flat(module), arguments, strict=False)
        except _REFUSALS as error:
            raise ProgramError(f"torch.export refuses {name}: {_first_line(error)}") from error
        _check_values(exported, name)
        try:
            lowered = exported.run_decompositions({**get_decomposition_table(), **_DECOMPOSITIONS})
        except _REFUSALS as error:
            raise ProgramError(f"torch.export refuses {name}: {_first_line(error)}") from error
        _check_random(lowered, name)
        _check_results(lowered, name)
        weights, names, tables = _state(lowered, name)
        try:
            return Imported(_written(lowered), weights, tables, exported, names)
        except _REFUSALS as error:
            raise ProgramError(f"torch-mlir cannot import {name}: {_first_line(error)}") from error


def network_program(uri: str) -> str:
    """Return the MLIR of a network's program, with weights as arguments.

    Raises:
        ProgramError: The URI is malformed, or the network cannot be imported.
    """
    origin = parse_uri(uri).origin
    assert isinstance(origin, Network)
    with torch.device("meta"):  # weights without memory: only their shapes matter
        module, example = build(origin.name, dict(origin.options))
        imported = trace(module, (example,))
    return program_of_torch(imported.text, uri, imported.tables)[0]


def _check_values(exported: ExportedProgram, name: str) -> None:
    """Refuse values that programs cannot have."""
    for node in exported.graph.nodes:
        value = node.meta.get("val")
        for leaf in value if isinstance(value, tuple | list) else (value,):
            if isinstance(leaf, Tensor):
                _check_tensor(leaf, name, node.name)
            elif node.op == "placeholder":
                raise ProgramError(f"{name}: the argument {node.name} is no tensor: pass tensors only")


def _check_tensor(value: Tensor, name: str, place: str) -> None:
    sizes: tuple[Any, ...] = tuple(value.shape)
    if any(not isinstance(size, int) for size in sizes):
        words = "x".join(map(str, sizes))
        raise ProgramError(f"{name} has a dynamic shape ({words} in {place}): let no shape depend on values")
    if value.dtype not in ELEMENTS:
        kind = str(value.dtype).removeprefix("torch.")
        raise ProgramError(
            f"{name} has {kind} elements (in {place}): convert it and its inputs to float32 or float64"
        )


def _check_random(lowered: ExportedProgram, name: str) -> None:
    """Refuse random numbers.

    It is called after decomposition: before, attention, recurrent layers and dropout carry the tag even where
    they draw no random numbers.
    """
    for node in lowered.graph.nodes:
        if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            raise ProgramError(f"{name} draws random numbers ({node.target}): call .eval() on it")


def _check_results(lowered: ExportedProgram, name: str) -> None:
    signature = lowered.graph_signature
    if signature.buffers_to_mutate or signature.user_inputs_to_mutate:
        raise ProgramError(
            f"{name} changes its buffers or inputs: call .eval() on it, or change nothing in place"
        )
    results = lowered.graph.output_node().args[0]
    assert isinstance(results, tuple | list)
    if not results or any(not isinstance(result, torch.fx.Node) for result in results):
        raise ProgramError(f"{name} returns something other than tensors: wrap it in a module that does not")


def _state(
    exported: ExportedProgram, name: str
) -> tuple[tuple[Tensor, ...], tuple[str, ...], dict[int, NDArray[Any]]]:
    """Return weights, their names, and tables; drop the arguments of unused ones."""
    values = {**exported.state_dict, **exported.constants}
    targets = {spec.arg.name: spec.target for spec in exported.graph_signature.input_specs}
    weights: list[Tensor] = []
    names: list[str] = []
    tables: dict[int, NDArray[Any]] = {}
    for node in exported.graph.find_nodes(op="placeholder"):
        value = values.get(targets[node.name] or "")
        if not isinstance(value, Tensor):
            continue  # an input
        if not node.users:
            exported.graph.erase_node(node)
        elif value.is_floating_point():
            weights.append(value)
            names.append(targets[node.name] or "")
        elif value.numel() <= MAX_TABLE:
            tables[len(weights) + len(tables)] = value.numpy(force=True)
        else:
            raise ProgramError(f"{name} has a table of {value.numel()} whole numbers: make it an input")
    return tuple(weights), tuple(names), tables


def _var_mean(
    x: Tensor, dim: Sequence[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    dims = [place % x.dim() for place in dim] if dim else list(range(x.dim()))
    mean = x.mean(dims, keepdim=True)
    centred = x - mean
    degrees = prod(x.shape[place] for place in dims) - (1 if correction is None else correction)
    variance = (centred * centred).sum(dims, keepdim=keepdim) / max(degrees, 0)
    return variance, mean if keepdim else x.mean(dims)


def _var(x: Tensor, dim: Sequence[int] | None = None, **options: Any) -> Tensor:
    return _var_mean(x, dim, **options)[0]


def _std(x: Tensor, dim: Sequence[int] | None = None, **options: Any) -> Tensor:
    return _var_mean(x, dim, **options)[0].sqrt()


def _batch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    _momentum: float,
    epsilon: float,
) -> tuple[Tensor, Tensor, Tensor]:
    scale = (variance + epsilon).rsqrt() * (1.0 if weight is None else weight)
    shift = (0.0 if bias is None else bias) - mean * scale
    shape = (1, -1, *(1,) * (x.dim() - 2))
    return x * scale.reshape(shape) + shift.reshape(shape), x.new_empty(0), x.new_empty(0)


def _cumsum(x: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """Return running sums in log2(length) steps, each of which adds the sums so far at a doubled distance."""
    if x.dtype == torch.bool or (dtype is None and not x.dtype.is_floating_point):
        x = x.to(torch.int64)
    x = x if dtype is None else x.to(dtype)
    if not x.dim():
        return x
    length, step = x.shape[dim], 1
    while step < length:
        before = x.narrow(dim, 0, length - step)
        zeros = torch.zeros_like(x.narrow(dim, 0, step))
        x = x + torch.cat([zeros, before], dim)
        step *= 2
    return x


def _roll(x: Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> Tensor:
    """Return elements shifted cyclically, by slices of static sizes."""
    if not dims:
        return _roll(x.reshape(-1), shifts, (0,)).reshape(x.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        length = x.shape[dim]
        step = shift % length if length else 0
        if step:
            x = torch.cat([x.narrow(dim, length - step, step), x.narrow(dim, 0, length - step)], dim)
    return x


# torch-mlir lowers running sums to a special dialect, and rolls to slices of dynamic sizes. Unlike torch, it
# computes variances in float64, and batch norms in four passes over the data.
_DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    torch.ops.aten._native_batch_norm_legit_no_training.default: _batch_norm,
    torch.ops.aten.var_mean.correction: _var_mean,
    torch.ops.aten.var.correction: _var,
    torch.ops.aten.std.correction: _std,
    torch.ops.aten.cumsum.default: _cumsum,
    torch.ops.aten.roll.default: _roll,
}


def _written(exported: ExportedProgram) -> str:
    """Return the graph as text, with every placeholder as an argument."""
    context = ir.Context()
    torch_dialect.register_dialect(context)
    importer = FxImporter(context=context)
    importer.import_stateless_graph(exported.graph)
    return str(importer.module)


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
