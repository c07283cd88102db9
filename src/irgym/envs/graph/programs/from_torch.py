"""Conversion of torch modules to programs of graph."""

from pathlib import Path
from typing import Any

from irgym.base.errors import BackendError, ProgramError
from irgym.base.files import write_files
from irgym.envs.graph.programs.sources import INSTALL_MODELS, STORE
from irgym.envs.graph.programs.uris import SUFFIX
from irgym.measure.store import digest, stem_of


def from_torch(module: Any, *inputs: Any, path: str | Path | None = None) -> str:
    """Write a torch module as ONNX, weights inside and shapes fixed, and return the URI of the program.

    The exporter of torch runs in this process.

    Args:
        module: A `torch.nn.Module` in evaluation mode.
        inputs: Tensors to call it with. The model is compared with the module on these and similar inputs.
        path: File to write, *.onnx; by default a file in the user's cache folder, named by its content.

    Raises:
        BackendError: torch, onnx or onnxscript is not installed.
        ProgramError: The module cannot be exported; the message names the reason.
        StorageError: The file cannot be written.
    """
    try:
        import onnx  # noqa: F401  # pyright: ignore[reportUnusedImport]
        import onnxscript  # noqa: F401  # pyright: ignore[reportUnusedImport]
        from torch import nn
    except ImportError as error:
        raise BackendError(
            f"from_torch needs {error.name}, which is not installed: run {INSTALL_MODELS}"
        ) from error
    if not isinstance(module, nn.Module):
        raise ProgramError(f"from_torch takes a torch.nn.Module, not {type(module).__name__}: wrap it in one")
    if path is not None and Path(path).suffix.lower() != SUFFIX:
        raise ProgramError(f"{path}: graph reads ONNX; name such a file *{SUFFIX}")
    from irgym.envs.graph.programs.exporting import note_example, refuse_other_than_tensors, to_onnx
    from irgym.envs.graph.programs.standing import refuse_other_results
    from irgym.measure.callables.torch_calls import Called, called, name_of
    from irgym.measure.callables.torch_comparison import copied, refuse_unsteady, returns_tensors

    name = name_of(module)
    refuse_other_than_tensors(inputs, name)
    if not isinstance(module, Called) and inputs and not returns_tensors(module, inputs):
        module = called(module, [(inputs, {})])
    for example in (inputs, *(module.more if isinstance(module, Called) else ())):
        refuse_unsteady(module, example)
    model = to_onnx(module, copied(inputs), name)
    sizes = note_example(model, inputs)
    content = model.SerializeToString(deterministic=True)
    refuse_other_results(module, inputs, content)
    if path is None:
        target = STORE.put(f"{stem_of(name)}-{digest(content)}", content)
    else:
        target = Path(path)
        write_files({target: content})
    query = "&".join(f"{symbol}={size}" for symbol, size in sizes.items())
    return f"graph:{target}?{query}" if query else f"graph:{target}"
