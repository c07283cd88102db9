"""Import of torch modules as programs of linalg."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from irgym.base.errors import BackendError, ProgramError
from irgym.base.files import write_files
from irgym.core.baseline import INSTALL_TORCH
from irgym.core.cost import Call
from irgym.envs.linalg.compiling.toolchain import compiler_version
from irgym.envs.linalg.programs.sources import LIMITS, STORE, answer
from irgym.envs.linalg.programs.uris import SUFFIX, TORCH
from irgym.envs.linalg.programs.weights import ARCHIVE, archived
from irgym.measure.isolation.child import Child
from irgym.measure.store import digest, stem_of

SEED = 20261128
"""Seed of the inputs on which a program is compared with its module when it is imported."""


def from_torch(module: Any, *inputs: Any, path: str | Path | None = None) -> str:
    """Write a torch module as MLIR, linalg on tensors, and return the URI of the program.

    The program takes the weights that it uses, then the inputs. Two files are written next to it: a numpy
    archive with the values of the weights (`arg0`, `arg1` and so on, by their places among the arguments) and
    their names in the module (`names`); and the exported torch program, *.torch.pt2, as a baseline.

    torch traces the module in this process. torch-mlir lowers it in a child process, where the program also
    runs, to be compared with the module.

    Args:
        module: A `torch.nn.Module` in evaluation mode.
        inputs: Example inputs: the module is called with them, and compared with the program on these and
            similar ones.
        path: File to write, *.mlir; by default one in the user's cache folder, named by its content.

    Raises:
        BackendError: torch or torch-mlir is not installed, or TensorFlow is loaded in this process.
        ProgramError: The module cannot be exported or lowered; the message names what is in the way.
        StorageError: The files cannot be written.
    """
    compiler_version()
    try:
        from torch import nn
    except ImportError as error:
        raise BackendError(f"from_torch needs torch, which is not installed: run {INSTALL_TORCH}") from error
    if not isinstance(module, nn.Module):
        raise ProgramError(f"from_torch takes a torch.nn.Module, not {type(module).__name__}: wrap it in one")
    if path is not None and Path(path).suffix.lower() != SUFFIX:
        raise ProgramError(f"{path}: linalg reads MLIR as text; name such a file *{SUFFIX}")
    if "tensorflow" in sys.modules:
        # Both contain an LLVM, and the second one that is loaded aborts the process.
        raise BackendError(
            "torch-mlir cannot be loaded beside TensorFlow, which this process has loaded: call from_torch "
            "in a process that does not import tensorflow"
        )
    from irgym.envs.linalg.importing.torch_import import trace
    from irgym.measure.callables.torch_comparison import copied, refuse_unsteady

    name = type(module).__name__
    refuse_unsteady(module, inputs)
    imported = trace(module, copied(inputs))
    call = Call(
        "irgym.envs.linalg.importing.modules:program_of_torch", (imported.text, name, imported.tables)
    )
    with Child(LIMITS) as child:
        text, constants = answer(child, call, name)
        weights = {place: weight.numpy(force=True) for place, weight in enumerate(imported.weights)}
        arguments = weights | constants
        _refuse_other_results(module, inputs, text, arguments, child)
    names = [weight.removeprefix("module.") for weight in imported.names]  # the traced module is a wrapper
    archive, program = archived(arguments, names), imported.saved()
    if path is None:
        target = STORE.put(
            f"{stem_of(name)}-{digest(archive)}", text.encode(), {ARCHIVE: archive, TORCH: program}
        )
    else:
        target = Path(path)
        beside = {target.with_suffix(ARCHIVE): archive, target.with_suffix(TORCH): program}
        write_files({**beside, target: text.encode()})
    return f"linalg:{target}"


def _refuse_other_results(
    module: Any, inputs: Sequence[Any], text: str, weights: Mapping[int, NDArray[Any]], child: Child
) -> None:
    """Refuse a program whose results, when lowered by MLIR's passes alone, differ from the module's.

    Args:
        module: The module.
        inputs: Example inputs of the module.
        text: The program.
        weights: Values of arguments, by place.
        child: Process to run the program in.

    Raises:
        ProgramError: The results differ, or the program cannot be run.
    """
    from irgym.measure.callables.torch_comparison import compare
    from irgym.measure.callables.torch_modules import InPlace

    name = type(module).__name__

    def run(arrays: Sequence[NDArray[Any]]) -> Sequence[NDArray[Any]]:
        given = iter(arrays)
        every = [
            weights[place] if place in weights else next(given) for place in range(len(weights) + len(arrays))
        ]
        return answer(child, Call("irgym.envs.linalg.compiling.plain:computed", (text, every)), name)

    found = compare(module, inputs, InPlace(module, inputs, run), SEED)
    if not found.ok:
        raise ProgramError(
            f"what torch-mlir imports of {name} is not what the module computes ({found.detail}): write that "
            "part with other operations"
        )
