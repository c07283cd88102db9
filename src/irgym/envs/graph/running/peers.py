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
from typing import Any, Protocol

import numpy as np
import onnx
from numpy.typing import NDArray

from irgym.base.errors import BaselineError
from irgym.envs.graph.checking.cases import Case
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
        cases: Its inputs, one for each profile of sizes.
        threads: Threads of an operator.
    """

    uri: str
    path: str
    cases: Sequence[Case]
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


class Ready(Protocol):
    """A model that is ready to run on some inputs."""

    def run(self, times: int) -> None:
        """Compute the results a number of times."""
        ...

    def results(self) -> Sequence[Array]:
        """Return the results of the last run."""
        ...


@dataclass(frozen=True)
class Prepared:
    """A baseline that is ready to run.

    Attributes:
        on: The baseline on each of the original's inputs.
        detail: The versions of the tools, and other settings except threads.
    """

    on: Sequence[Ready]
    detail: str


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
        program = Program(loaded.graph, loaded.weights, original.threads, level)
        on = [program.bound(case.feeds) for case in original.cases]
        for bound in on:
            bound.run(1)
    except CompileError as error:
        raise BaselineError(
            f"at level {level}, {error}, though it runs with its optimiser off: leave ort-{level} out"
        ) from error
    return Prepared(on, f"{_version('onnxruntime')}, level {level}")


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
    [case] = original.cases  # exported models have fixed sizes
    given = {name: library.from_numpy(np.array(array)) for name, array in case.feeds.items()}
    inputs = [given.get(name, example) for name, example in model.inputs.items()]
    ready = _TorchCalls(function, inputs, library.inference_mode)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the compiler warns about deprecated calls in torch
            ready.run(1)
    except RuntimeError as error:
        if not compiled:
            raise
        said = next(iter(str(error).splitlines()), "")
        raise BaselineError(
            f"torch.compile fails on {original.uri} ({said}): install a C++ compiler, or leave it out"
        ) from error
    detail = f"torch {library.__version__}{', torch.compile' if compiled else ''}"
    return Prepared([ready], detail)


class _TorchCalls:
    """Calls of a torch module on the same inputs."""

    def __init__(self, function: Callable[..., Any], inputs: Sequence[Any], mode: Callable[[], Any]) -> None:
        self._function, self._inputs, self._mode = function, inputs, mode
        self._result: Any = None

    def run(self, times: int) -> None:
        """Call the module a number of times."""
        with self._mode():
            for _ in range(times):
                self._result = self._function(*self._inputs)

    def results(self) -> list[Array]:
        """Return the result of the last call."""
        return [self._result.numpy()]


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
    found: dict[str, tuple[float, list[Bound]]] = {}
    refused = ""
    for level in LEVELS:
        try:
            session = opened(content, timed_options(level, original.threads))
            on = [Bound(session, case.feeds) for case in original.cases]
            timing = timing_of(original.threads)
            times = [
                case.share * min(sample(bound.run, timing))
                for case, bound in zip(original.cases, on, strict=True)
            ]
            found[level] = sum(times), on
        except CompileError as error:
            refused = str(error)
    if not found:
        raise BaselineError(
            f"the result of {name or package} for {original.uri} does not run ({refused}): leave it out"
        )
    level = min(found, key=lambda level: found[level][0])
    on = found[level][1]
    by = f"{name} {version(package)}" if name else f"{_version(package)}, {_version('onnxruntime')}"
    return Prepared(on, f"{by}, level {level}")


def _version(package: str) -> str:
    return f"{package} {version(package)}"


def _imported(module: str, install: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        missing = error.name or module
        raise BaselineError(f"{missing} is not installed: run {install}") from None
