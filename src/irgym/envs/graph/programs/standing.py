"""ONNX models that stand for torch modules: called in their place, and compared with them. Imports torch."""

# torch and onnxruntime leave parts of their own types open.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from collections.abc import Sequence
from typing import Any

from torch import nn

from irgym.base.errors import IrgymError, ProgramError
from irgym.measure.callables.torch_comparison import compare
from irgym.measure.callables.torch_modules import InPlace

SEED = 20261128
"""Seed of the inputs on which a model is compared with its module when it is made."""


def in_place_of(module: nn.Module, inputs: Sequence[Any], session: Any) -> InPlace:
    """Return what runs a module's model and is called as the module.

    Args:
        module: The module.
        inputs: What it was exported with.
        session: An `onnxruntime.InferenceSession` of the model.
    """
    names = [one.name for one in session.get_inputs()]

    def run(arrays: Sequence[Any]) -> Sequence[Any]:
        try:
            return session.run(None, dict(zip(names, arrays, strict=True)))
        except Exception as error:  # ONNX Runtime's errors, which have no common class but this
            said = next(iter(str(error).splitlines()), "")
            raise IrgymError(
                f"ONNX Runtime cannot run {type(module).__name__} on these inputs ({said}): give inputs like "
                "those that it was tuned for"
            ) from error

    return InPlace(module, inputs, run)


def refuse_other_results(module: nn.Module, inputs: Sequence[Any], content: bytes) -> None:
    """Refuse a model that computes something else than its module, as ONNX Runtime runs it as it is.

    Args:
        module: The module.
        inputs: What it was exported with.
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
            f"what torch.onnx exports of {name} is not what the module computes ({found.detail}): write that "
            "part with other operations"
        )
