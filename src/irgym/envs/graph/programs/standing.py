"""ONNX models called in place of torch modules, and compared with them. Imports torch."""

# The types of torch and onnxruntime are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import nn

from irgym.base.errors import IrgymError, ProgramError
from irgym.measure.callables.torch_calls import name_of
from irgym.measure.callables.torch_comparison import compare
from irgym.measure.callables.torch_modules import InPlace

SEED = 20261128
"""Seed of the inputs on which an exported model is compared with its module."""


class Runs(Protocol):
    """A model as a function of arrays; see `irgym.envs.graph.running.calls`."""

    @property
    def sizes(self) -> Sequence[Sequence[int | str]]:
        """The sizes of each input; open ones by their names."""
        ...

    def __call__(self, arrays: Sequence[Any]) -> Sequence[Any]:
        """Return the results for some inputs, in order."""
        ...


def in_place_of(module: nn.Module, inputs: Sequence[Any], run: Runs) -> InPlace:
    """Return a callable that runs a module's model and is called like the module.

    Args:
        module: The module.
        inputs: The inputs that it was exported with.
        run: Runs the model.
    """
    return InPlace(module, inputs, run, run.sizes)


def refuse_other_results(module: nn.Module, inputs: Sequence[Any], content: bytes) -> None:
    """Refuse a model whose results in ONNX Runtime, unoptimised, differ from its module's.

    Args:
        module: The module.
        inputs: The inputs that it was exported with.
        content: The model, as ONNX.

    Raises:
        ProgramError: ONNX Runtime refuses the model, or returns something else than the module.
    """
    from irgym.envs.graph.running.calls import Run
    from irgym.envs.graph.running.sessions import opened, options_of

    name = name_of(module)
    try:
        function = in_place_of(module, inputs, Run(opened(content, options_of("off", 1)), name))
        found = compare(module, inputs, function, SEED)
    except IrgymError as error:
        weights = (*module.parameters(), *module.buffers())
        short = any(weight.dtype is torch.bfloat16 for weight in weights)
        remedy = ": call .float() on it, since ONNX Runtime lacks bfloat16 on CPUs" if short else ""
        raise ProgramError(f"{name} cannot be run as ONNX ({error}){remedy}") from error
    if not found.ok:
        raise ProgramError(
            f"the model that torch.onnx exports of {name} computes something else than the module "
            f"({found.detail}): write that part with other operations"
        )
