"""Export of torch modules to ONNX by torch's exporter. Imports torch."""

# The types of torch are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import logging
import re
import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from typing import Any

import onnx
import torch
from torch import Tensor, nn

from irgym.base.errors import ProgramError
from irgym.envs.graph.programs.inputs import FREE
from irgym.envs.graph.programs.metadata import write_ranges
from irgym.envs.graph.programs.models.catalogue import BUILDERS
from irgym.envs.graph.programs.models.model import Model, enliven
from irgym.envs.graph.programs.ranges import derived_range, wraps
from irgym.envs.graph.programs.uris import parse_program
from irgym.envs.graph.programs.weights import INSIDE, too_large
from irgym.measure.callables.torch_calls import Called
from irgym.measure.callables.torch_modules import Flat, without_caches

SEED = 20210
"""Seed of the weights."""

# Operators with random results; modules in evaluation mode have none.
_RANDOM = {
    "Bernoulli",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
}

# Types whose range the values of an example tell; those of 8 bits may hold all numbers.
_WHOLE = frozenset({torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64})

# Exceptions of the exporter; any other is an error in the module's code.
_REFUSALS = (RuntimeError, TypeError, ValueError, AttributeError, AssertionError, LookupError)


def build(uri: str) -> Model:
    """Return the model of a URI; the same URI has the same weights.

    Raises:
        ProgramError: The URI is malformed, or memory is too short for the model.
    """
    program = parse_program(uri)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        try:
            model = BUILDERS[program.family](program.numbers)
            model.module.eval()
            enliven(model)
        except RuntimeError as error:
            if "allocate memory" not in str(error):
                raise
            raise ProgramError(f"{uri!r} needs more memory than there is: choose smaller options") from error
    return model


def export(uri: str) -> bytes:
    """Return the model of a URI as the content of an ONNX file.

    Raises:
        ProgramError: The URI is malformed, or the model cannot be exported.
    """
    return exported(build(uri), uri)


def exported(model: Model, uri: str) -> bytes:
    """Return a model as the content of an ONNX file, with the ranges of its inputs in the metadata.

    Raises:
        ProgramError: It cannot be exported.
    """
    found = to_onnx(model.module, tuple(model.inputs.values()), uri, tuple(model.inputs))
    write_ranges(found, model.ranges)
    return found.SerializeToString(deterministic=True)


def to_onnx(
    module: nn.Module, inputs: Sequence[Any], name: str, names: Sequence[str] | None = None
) -> onnx.ModelProto:
    """Export a module with all its weights, by the defaults of `torch.onnx.export`.

    Shapes are fixed, except for the open sizes of a `Called`.

    Args:
        module: A module in evaluation mode.
        inputs: Tensors to call it with; only their shapes and element types matter.
        name: The module's name in messages.
        names: Names of the inputs; by default those of the module's parameters.

    Raises:
        ProgramError: torch cannot export the module, or it has too many weights, draws random numbers, or
            changes its buffers or inputs.
    """
    refuse_other_than_tensors(inputs, name)
    if isinstance(module, Called):
        names = module.convention.names
    with _quiet(), _without_fused_attention(), torch.no_grad(), without_caches(module):
        try:
            program = _program(module, tuple(inputs), names)
        except _REFUSALS as error:
            raise ProgramError(f"torch.onnx cannot export {name}: {_words(_reason(error))}") from error
        assert program is not None and program.exported_program is not None
        signature = program.exported_program.graph_signature
        if signature.buffers_to_mutate or signature.user_inputs_to_mutate:
            raise ProgramError(f"{name} changes its buffers or inputs: change nothing in place")
        weights = program.model.graph.initializers.values()
        size = sum(weight.const_value.nbytes for weight in weights if weight.const_value is not None)
        if size > INSIDE:
            remedy = "export it by torch.onnx.export with external_data=True, and give the file"
            raise too_large(name, size, INSIDE, remedy)
        model = program.model_proto
    for node in model.graph.node:
        if node.op_type in _RANDOM or (node.op_type == "Dropout" and len(node.input) > 2):
            remedy = "call .eval() on it" if module.training else "compute from inputs and weights only"
            raise ProgramError(f"{name} draws random numbers ({node.op_type}): {remedy}")
    _strip(model)
    return model


def note_example(model: onnx.ModelProto, inputs: Sequence[Tensor]) -> dict[str, int]:
    """Return the sizes of an export's open dimensions in its example, and note ranges of whole numbers.

    A range that does not follow from the model is that of the example's numbers.

    Args:
        model: The model. Its metadata may get ranges.
        inputs: The example.

    Raises:
        ProgramError: An input has elements that ONNX Runtime does not take.
    """
    sizes: dict[str, int] = {}
    for value, tensor in zip(model.graph.input, inputs, strict=True):
        for dimension, size in zip(value.type.tensor_type.shape.dim, tensor.shape, strict=False):
            if dimension.dim_param:
                sizes[dimension.dim_param] = size
    for value, tensor in zip(model.graph.input, inputs, strict=True):
        if tensor.dtype not in _WHOLE or not tensor.numel():
            continue
        low, high = int(tensor.min()), int(tensor.max()) + 1
        free = min(low, FREE[0]), max(high, FREE[1])
        found = derived_range(model, value.name, free)
        if found == free or (found and (low >= found[0] or wraps(model, value.name)) and high <= found[1]):
            continue
        write_ranges(model, {value.name: (low, high)})
    return sizes


@contextmanager
def _quiet() -> Generator[None]:
    """Keep torch from logging, printing and warning: of what it refuses, an error tells the reason."""
    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "torch"]
    loggers = [log for log in map(logging.getLogger, names) if not log.disabled]
    with warnings.catch_warnings(), redirect_stderr(StringIO()):  # torch.export prints graphs there
        warnings.simplefilter("ignore")
        for log in loggers:
            log.disabled = True
        try:
            yield
        finally:
            for log in loggers:
                log.disabled = False


@contextmanager
def _without_fused_attention() -> Generator[None]:
    """Keep attention of `torch.nn` from the fused operators of its inference, which ONNX lacks."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def _words(reason: str) -> str:
    """Return a reason in words that tell its user what to do, where it is one of the common ones."""
    if "data-dependent" in reason:
        return (
            "it branches on numbers of tensors, or takes sizes from them: compute both branches and choose "
            "by torch.where"
        )
    found = re.search(r"No ONNX function found for <OpOverload\(op='([\w.]+)'", reason)
    if found:
        return f"ONNX has no operator for {found[1]}: write that part with other operations"
    if "ScriptModule" in reason:
        return "it is a module of torch.jit: give the module that it was made of"
    return reason


def _program(module: nn.Module, inputs: tuple[Any, ...], names: Sequence[str] | None) -> Any:
    """Return torch's program of ONNX."""
    listed = list(names) if names else None
    if not isinstance(module, Called):
        return torch.onnx.export(module, inputs, dynamo=True, verbose=False, input_names=listed)
    # Strict exports are not tried: they wait for a `torch.compile` that waits for them, and reset it.
    axes = tuple(dict.fromkeys(axes, torch.export.Dim.AUTO) for axes in module.open_axes)
    sizes = (axes,) if any(axes) else None
    exported = torch.export.export(Flat(module), inputs, dynamic_shapes=sizes, strict=False)
    return torch.onnx.export(exported, (), dynamo=True, verbose=False, input_names=listed)


def refuse_other_than_tensors(inputs: Sequence[Any], name: str) -> None:
    """Refuse inputs that are no tensors.

    Raises:
        ProgramError: An input is no tensor.
    """
    if any(not isinstance(value, Tensor) for value in inputs):
        raise ProgramError(
            f"the inputs of {name} must be tensors: wrap it in a module that takes tensors only"
        )


def _strip(model: onnx.ModelProto) -> None:
    """Remove the exporter's notes about source files from nodes and values."""
    graph = model.graph
    for part in (graph, *graph.node, *graph.value_info, *graph.input, *graph.output, *graph.initializer):
        del part.metadata_props[:]
        part.doc_string = ""


def _reason(error: BaseException) -> str:
    """Return the first line about the cause of an error, rather than about the step that failed."""
    for cause in _causes(error):
        for line in str(cause).splitlines():
            if line.strip() and not line.startswith("Failed to"):
                return line.strip()
    return type(error).__name__


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the causes of an error, the innermost first, and then the error."""
    if error.__cause__ is not None:
        yield from _causes(error.__cause__)
    yield error
