"""Graphs and models in ONNX Runtime."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.core.errors import IrgymError
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.weights import Weights
from irgym.envs.graph.ir.writing import arrays_apart, model_of

Array = NDArray[Any]

_ORT: Any = import_module("onnxruntime")  # it comes without types

LEVELS: Mapping[str, Any] = {
    "off": _ORT.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": _ORT.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": _ORT.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": _ORT.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
"""How much ONNX Runtime's own optimiser does."""

FATAL = 4
"""The level of what ONNX Runtime logs: what is wrong with a model, its exceptions say."""


class CompileError(IrgymError):
    """ONNX Runtime refuses a model, or cannot run it."""


class Program:
    """A graph that is ready to run.

    Args:
        graph: The graph.
        weights: Arrays of its weights.
        threads: Threads of an operator.
        level: What ONNX Runtime's own optimiser does to it, a key of `LEVELS`.

    Raises:
        CompileError: ONNX Runtime refuses it.
    """

    def __init__(self, graph: Graph, weights: Weights, threads: int, level: str = "off") -> None:
        options = _ORT.SessionOptions()
        options.graph_optimization_level = LEVELS[level]
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = FATAL
        apart = arrays_apart(graph, weights)
        # ONNX Runtime reads these arrays where they lie, so they must live as long as the session does.
        self._arrays = [(array, _ORT.OrtValue.ortvalue_from_numpy(array)) for _, array in apart]
        if apart:
            options.add_external_initializers(
                [name for name, _ in apart], [value for _, value in self._arrays]
            )
        model = model_of(graph, weights, whole=False).SerializeToString()
        with _explained("refuses the model"):
            self._session: Any = _ORT.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def run(self, feeds: Mapping[str, Array]) -> list[Array]:
        """Return the results.

        Raises:
            CompileError: It cannot be run on them.
        """
        with _explained("cannot run the model"):
            return [np.asarray(one) for one in self._session.run(None, dict(feeds))]

    def bound(self, feeds: Mapping[str, Array]) -> "Bound":
        """Return it with inputs in place, to run it again and again."""
        return Bound(self._session, feeds)


class Bound:
    """A session with inputs and outputs in place.

    Args:
        session: The session.
        feeds: The inputs.
    """

    def __init__(self, session: Any, feeds: Mapping[str, Array]) -> None:
        self._session = session
        self._binding = session.io_binding()
        self._values = {name: _ORT.OrtValue.ortvalue_from_numpy(array) for name, array in feeds.items()}
        for value in session.get_inputs():
            self._binding.bind_ortvalue_input(value.name, self._values[value.name])
        for value in session.get_outputs():
            self._binding.bind_output(value.name)

    def run(self, times: int) -> None:
        """Run it so many times.

        Raises:
            CompileError: It cannot be run on its inputs.
        """
        with _explained("cannot run the model"):
            for _ in range(times):
                self._session.run_with_iobinding(self._binding)

    def results(self) -> list[Array]:
        """Return the results of the last run."""
        return [np.asarray(one) for one in self._binding.copy_outputs_to_cpu()]


@contextmanager
def _explained(what: str) -> Generator[None]:
    """Turn what ONNX Runtime raises into one line."""
    try:
        yield
    except Exception as error:
        # ONNX Runtime's errors have no common class but this.
        if not type(error).__module__.startswith("onnxruntime"):
            raise
        raise CompileError(f"ONNX Runtime {what}: {str(error).partition(chr(10))[0]}") from error


def version() -> str:
    """Return ONNX Runtime's version."""
    return f"onnxruntime {_ORT.__version__}"
