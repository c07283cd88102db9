"""ONNX models called in place of torch modules, and compared with them. Imports torch."""

# The types of torch and onnxruntime are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from collections.abc import Sequence
from typing import Any

from torch import nn

from irgym.base.errors import IrgymError, ProgramError
from irgym.measure.callables.torch_comparison import compare
from irgym.measure.callables.torch_modules import InPlace

SEED = 20261128
"""Seed of the inputs on which an exported model is compared with its module."""


def in_place_of(module: nn.Module, inputs: Sequence[Any], session: Any) -> InPlace:
    """Return a callable that runs a module's model and is called like the module.

    Args:
        module: The module.
        inputs: The inputs that it was exported with.
        session: An `onnxruntime.InferenceSession` of the model.
    """
    names = [given.name for given in session.get_inputs()]

    def run(arrays: Sequence[Any]) -> Sequence[Any]:
        try:
            return session.run(None, dict(zip(names, arrays, strict=True)))
        except Exception as error:  # ONNX Runtime's errors have no common class
            said = next(iter(str(error).splitlines()), "")
            raise IrgymError(
                f"ONNX Runtime cannot run {type(module).__name__} on these inputs ({said}): give inputs like "
                "those that it was tuned for"
            ) from error

    return InPlace(module, inputs, run)


def refuse_other_results(module: nn.Module, inputs: Sequence[Any], content: bytes) -> None:
    """Refuse a model whose results in ONNX Runtime, unoptimised, differ from its module's.

    Args:
        module: The module.
        inputs: The inputs that it was exported with.
        content: The model, as ONNX.

    Raises:
        ProgramError: ONNX Runtime refuses the model, or returns something else than the module.
    """
    from irgym.envs.graph.running.sessions import opened, options_of

    name = type(module).__name__
    try:
        function = in_place_of(module, inputs, opened(content, options_of("off", 1)))
        found = compare(module, inputs, function, SEED)
    except IrgymError as error:
        raise ProgramError(f"{name} cannot be run as ONNX ({error})") from error
    if not found.ok:
        raise ProgramError(
            f"the model that torch.onnx exports of {name} computes something else than the module "
            f"({found.detail}): write that part with other operations"
        )
