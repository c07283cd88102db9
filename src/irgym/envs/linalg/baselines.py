"""Baselines that compute the same program: numpy and torch, eager and compiled. Imported in a child only."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.base.errors import BaselineError, ProgramError
from irgym.core.baseline import INSTALL_TORCH
from irgym.envs.linalg.programs.lattice import lattice
from irgym.envs.linalg.programs.operators import EPSILON, Operator
from irgym.envs.linalg.programs.uris import TORCH, WEIGHTS, File, Network, Source
from irgym.measure.baselines import PreparedBaseline, numpy_kernels, repeat
from irgym.measure.machine import threads_text
from irgym.measure.pt2.loading import load

Arrays = Sequence[NDArray[Any]]


def numpy_baseline(source: Source, inputs: Arrays, threads: int) -> PreparedBaseline:
    """Return numpy's function for an operator; products use the process's threads.

    Raises:
        IrgymError: numpy has no function for it.
    """
    del threads  # OpenBLAS read its number when numpy was loaded
    functions: dict[str, Callable[..., NDArray[Any]]] = {
        "matmul": np.matmul,
        "batch_matmul": np.matmul,
        "add": np.add,
        "relu": partial(np.maximum, np.float32(0.0)),
    }
    origin = source.origin
    if isinstance(origin, Operator) and origin.name in functions:
        function = functions[origin.name]
        out = np.empty_like(function(*inputs))
        detail = numpy_kernels() if function is np.matmul else f"numpy {np.__version__}, 1 thread"
        return PreparedBaseline(repeat(lambda: function(*inputs, out=out)), lambda: out, detail)
    raise BaselineError(f"numpy has no function that computes {source.uri}: compare with torch")


def torch_baseline(source: Source, inputs: Arrays, threads: int) -> PreparedBaseline:
    """Return torch's operator or module on `threads` threads, without gradients."""
    return _torch_baseline(source, inputs, threads, compiled=False)


def compiled_baseline(source: Source, inputs: Arrays, threads: int) -> PreparedBaseline:
    """Return torch's operator or module through `torch.compile`."""
    return _torch_baseline(source, inputs, threads, compiled=True)


BASELINES: dict[str, Callable[[Source, Arrays, int], PreparedBaseline]] = {
    "numpy": numpy_baseline,
    "torch": torch_baseline,
    "torch-compile": compiled_baseline,
}
"""The baselines by name."""


def _torch_baseline(source: Source, inputs: Arrays, threads: int, *, compiled: bool) -> PreparedBaseline:
    try:
        torch: Any = import_module("torch")
    except ImportError:
        raise BaselineError(f"torch is not installed: run {INSTALL_TORCH}") from None
    torch.set_num_threads(threads)
    function = _torch_function(torch, source)
    tensors = [torch.from_numpy(array) for array in inputs]
    if compiled:
        function = torch.compile(function)
        try:
            function(*tensors)
        except RuntimeError as error:
            said = next(iter(str(error).splitlines()), "")
            raise BaselineError(
                f"torch.compile fails on {source.uri} ({said}): install a C++ compiler, or leave it out"
            ) from error
    results: list[Any] = [None]

    def run(repetitions: int) -> None:
        with torch.inference_mode():
            for _ in range(repetitions):
                results[0] = function(*tensors)

    def result() -> NDArray[Any]:
        return results[0].numpy()

    words = f"torch {torch.__version__}{', torch.compile' if compiled else ''}, {threads_text(threads)}"
    return PreparedBaseline(run, result, words)


def _torch_function(torch: Any, source: Source) -> Callable[..., Any]:
    """Return the torch function that computes a program from its arguments.

    Raises:
        IrgymError: torch has no single function for it.
    """
    origin = source.origin
    if isinstance(origin, Operator):
        functional = torch.nn.functional
        options = dict(origin.options)

        def conv2d(image: Any, filters: Any) -> Any:
            return functional.conv2d(image, filters, stride=options["stride"])

        def depthwise_conv2d(image: Any, filters: Any) -> Any:
            channels = origin.sizes[1]
            return functional.conv2d(image, filters[:, None], stride=options["stride"], groups=channels)

        def maxpool(image: Any) -> Any:
            return functional.max_pool2d(image, origin.sizes[-1], options["stride"])

        def softmax(rows: Any) -> Any:
            return torch.softmax(rows, dim=-1)

        def layernorm(rows: Any, gain: Any, bias: Any) -> Any:
            return functional.layer_norm(rows, (rows.shape[-1],), gain, bias, EPSILON)

        functions: dict[str, Callable[..., Any]] = {
            "matmul": torch.mm,
            "batch_matmul": torch.bmm,
            "conv2d": conv2d,
            "depthwise_conv2d": depthwise_conv2d,
            "maxpool": maxpool,
            "add": torch.add,
            "relu": torch.relu,
            "softmax": softmax,
            "layernorm": layernorm,
        }
        if origin.name == "lattice":
            return partial(torch.einsum, lattice(*origin.sizes).subscripts)
        if origin.name in functions:
            return functions[origin.name]
    if isinstance(origin, Network):
        from irgym.envs.linalg.programs.networks import as_function

        return as_function(origin.name, dict(origin.options))
    if isinstance(origin, File) and not origin.function and origin.path.with_suffix(TORCH).exists():
        return _exported(origin.path.with_suffix(TORCH))
    raise BaselineError(f"torch has no function that computes {source.uri}: leave it out of comparisons")


def _exported(path: Path) -> Callable[..., Any]:
    """Return a function of weights and inputs for the first result of a module that `from_torch` imported.

    It calls the module's operators one after the other, without the checks that torch puts around them.
    """
    if not path.stat().st_size:
        raise BaselineError("torch could not save the module, so that it cannot be timed: leave it out")
    files = {WEIGHTS: ""}
    try:
        program = load(path, files)
    except ProgramError as error:
        raise BaselineError(str(error)) from error
    if not files[WEIGHTS]:
        raise BaselineError(f"{path} was not written by irgym: import the module again")
    order: dict[str, int] = {name: place for place, name in enumerate(json.loads(files[WEIGHTS]))}
    state = {**program.state_dict, **program.constants}
    specs = program.graph_signature.input_specs
    inputs = iter(range(len(order), len(order) + len(specs)))
    # For each place the argument passed there, or the value where the program holds or does not need it.
    passed: list[tuple[int | None, Any]] = []
    for spec in specs:
        if spec.target in order:
            passed.append((order[spec.target], None))
        else:
            passed.append((None, state[spec.target]) if spec.target in state else (next(inputs), None))
    run = program.graph_module

    def compute(*arguments: Any) -> Any:
        return run(*(value if place is None else arguments[place] for place, value in passed))[0]

    return compute
