"""Baselines that optimise or run a model: ONNX Runtime's optimiser, onnxslim, onnxsim, torch.

The model that a tool writes runs at the level of ONNX Runtime's optimiser at which it is fastest. This module
is imported only in a child process.
"""

# The types of onnx and of these tools are incomplete.
# pyright: reportUnknownMemberType=false

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from irgym.base.errors import BaselineError
from irgym.envs.graph.ir.writing import model_of
from irgym.envs.graph.programs.sources import INSTALL_MODELS, INSTALL_PEERS
from irgym.envs.graph.programs.uris import parse_program
from irgym.envs.graph.programs.weights import INSIDE
from irgym.envs.graph.running.artefacts import model_at
from irgym.envs.graph.running.session_options import LEVELS
from irgym.envs.graph.running.sessions import Bound, CompileError, Program, opened, timed_options
from irgym.envs.graph.running.timing import timing_of
from irgym.measure.timing import sample

Array = NDArray[Any]

TYPES = {
    "clip_text": "clip",
    "clip_vision": "clip",
    "gpt2": "gpt2",
    "t5_encoder": "t5",
    "vit_b_16": "vit",
    "whisper_encoder": "bart",
}
"""Names that `onnxruntime.transformers` has for some families' models; all others count as `bert`."""


@dataclass(frozen=True)
class Original:
    """The original program, and the inputs for timing it.

    Attributes:
        uri: The program.
        path: The cached model.
        feeds: Its inputs.
        threads: Threads of an operator.
    """

    uri: str
    path: str
    feeds: Mapping[str, Array]
    threads: int

    def model(self) -> onnx.ModelProto:
        """Return the model with all its weights.

        Raises:
            BaselineError: The weights do not fit into a model.
        """
        loaded = model_at(self.path)
        size = sum(weight.type.bytes for weight in loaded.graph.weights.values())
        if size > INSIDE:
            raise BaselineError(
                f"{self.uri} has {size / (1 << 30):.1f} GiB of weights, and tools that take models with "
                "their weights inside take less than 2: leave them out"
            )
        return model_of(loaded.graph, loaded.weights, whole=True)


@dataclass(frozen=True)
class Prepared:
    """A baseline that is ready to run.

    Attributes:
        run: Computes the results a number of times.
        results: Returns the results of the last run.
        detail: The versions of the tools, and other settings except threads.
        lingers: Whether its threads may keep spinning after a run.
    """

    run: Callable[[int], None]
    results: Callable[[], Sequence[Array]]
    detail: str
    lingers: bool = False


def prepared(baseline: str, original: Original) -> Prepared:
    """Return a baseline, ready to run a program.

    Raises:
        BaselineError: It is not installed, or cannot optimise or run the program.
    """
    level = baseline.removeprefix("ort-")
    return optimised(original, level) if level in LEVELS else PEERS[baseline](original)


def optimised(original: Original, level: str) -> Prepared:
    """Return the program optimised by ONNX Runtime at a level, a key of `LEVELS`.

    Raises:
        BaselineError: At that level ONNX Runtime refuses the program, or its result does not run.
    """
    loaded = model_at(original.path)
    try:
        program = Program(loaded.graph, loaded.weights, original.threads, level).bound(original.feeds)
        program.run(1)
    except CompileError as error:
        raise BaselineError(
            f"at level {level}, {error}, though it runs with its optimiser off: leave ort-{level} out"
        ) from error
    return Prepared(program.run, program.results, f"{_version('onnxruntime')}, level {level}")


def onnxslim(original: Original) -> Prepared:
    """Return the model optimised by onnxslim (github.com/inisis/OnnxSlim)."""
    tool = _imported("onnxslim", INSTALL_PEERS)
    return _fastest("onnxslim", original, lambda: tool.slim(original.model()))


def onnxsim(original: Original) -> Prepared:
    """Return the model optimised by onnxsim (github.com/onnxsim/onnxsim)."""
    tool = _imported("onnxsim", INSTALL_PEERS)
    return _fastest("onnxsim", original, lambda: tool.simplify(original.model())[0])


def transformers(original: Original) -> Prepared:
    """Return the model optimised by `onnxruntime.transformers`, which knows some models of transformers."""
    tool = _imported("onnxruntime.transformers.optimizer", INSTALL_MODELS)

    def made() -> onnx.ModelProto:
        model = original.model()
        model.producer_name = "pytorch"  # models of other producers are ignored
        program = parse_program(original.uri)
        kind = TYPES.get(program.family, "bert")
        heads = program.numbers.get("heads", 0)  # 0: the tool detects them
        hidden = program.numbers["hidden"] if heads else 0
        with TemporaryDirectory() as folder:  # given a model in memory, the tool loses its small weights
            file = Path(folder) / "model.onnx"
            file.write_bytes(model.SerializeToString())
            found: onnx.ModelProto = tool.optimize_model(str(file), kind, heads, hidden).model
        if not any(node.domain == "com.microsoft" for node in found.graph.node):
            raise BaselineError(
                f"onnxruntime.transformers recognises nothing in {original.uri}: leave it out"
            )
        return found

    return _fastest("onnxruntime", original, made, "onnxruntime.transformers")


def torch(original: Original, *, compiled: bool = False) -> Prepared:
    """Return the torch module that the model was exported from, without gradients.

    Args:
        original: The program.
        compiled: Whether `torch.compile` is called on it.
    """
    family = parse_program(original.uri).family
    if not family:
        raise BaselineError(f"torch runs no files of ONNX, such as {original.uri}: leave it out")
    library: Any = _imported("torch", INSTALL_MODELS)
    # This module imports torch.
    from irgym.envs.graph.programs.exporting import build

    library.set_num_threads(original.threads)
    model = build(original.uri)
    function: Callable[..., Any] = library.compile(model.module) if compiled else model.module
    given = {name: library.from_numpy(np.array(array)) for name, array in original.feeds.items()}
    inputs = [given.get(name, example) for name, example in model.inputs.items()]
    results: list[Any] = [None]

    def run(times: int) -> None:
        with library.inference_mode():
            for _ in range(times):
                results[0] = function(*inputs)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the compiler warns about deprecated calls in torch
            run(1)
    except RuntimeError as error:
        if not compiled:
            raise
        said = next(iter(str(error).splitlines()), "")
        raise BaselineError(
            f"torch.compile fails on {original.uri} ({said}): install a C++ compiler, or leave it out"
        ) from error
    detail = f"torch {library.__version__}{', torch.compile' if compiled else ''}"
    return Prepared(run, lambda: [results[0].numpy()], detail, lingers=original.threads > 1)


PEERS: Mapping[str, Callable[[Original], Prepared]] = {
    "onnxslim": onnxslim,
    "onnxsim": onnxsim,
    "ort-transformers": transformers,
    "torch": torch,
    "torch-compile": partial(torch, compiled=True),
}
"""The baselines by name, except the levels of ONNX Runtime's optimiser."""


def _fastest(
    package: str, original: Original, make: Callable[[], onnx.ModelProto], name: str = ""
) -> Prepared:
    """Return a tool's model at the level of ONNX Runtime's optimiser at which it is fastest.

    Args:
        package: The tool's package.
        original: The original program.
        make: Runs the tool and returns its model. Any exception becomes a `BaselineError`.
        name: The tool's name, if not the package's.
    """
    try:
        content = make().SerializeToString()
    except BaselineError:
        raise
    except Exception as error:
        said = next(iter(str(error).splitlines()), type(error).__name__)
        raise BaselineError(f"{name or package} fails on {original.uri} ({said}): leave it out") from error
    found: dict[str, tuple[float, Bound]] = {}
    refused = ""
    for level in LEVELS:
        try:
            bound = Bound(opened(content, timed_options(level, original.threads)), original.feeds)
            found[level] = min(sample(bound.run, timing_of(original.threads))), bound
        except CompileError as error:
            refused = str(error)
    if not found:
        raise BaselineError(
            f"the result of {name or package} for {original.uri} does not run ({refused}): leave it out"
        )
    level = min(found, key=lambda level: found[level][0])
    bound = found[level][1]
    by = f"{name} {version(package)}" if name else f"{_version(package)}, {_version('onnxruntime')}"
    return Prepared(bound.run, bound.results, f"{by}, level {level}")


def _version(package: str) -> str:
    return f"{package} {version(package)}"


def _imported(module: str, install: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        missing = error.name or module
        raise BaselineError(f"{missing} is not installed: run {install}") from None
