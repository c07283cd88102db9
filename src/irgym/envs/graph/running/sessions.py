"""Sessions of graphs and models in ONNX Runtime."""

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from threading import Timer
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.base.errors import IrgymError
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.weights import Weights
from irgym.envs.graph.ir.writing import arrays_apart, model_of
from irgym.envs.graph.running.session_options import CONFIG_VARIABLE, LEVELS, OFF

Array = NDArray[Any]

_ORT: Any = import_module("onnxruntime")  # it comes without types

FATAL = 4
"""ONNX Runtime's lowest level of logging; its exceptions report errors anyway."""


LONGEST_S = 30.0
"""Limit in seconds for the run of a model when it is read."""


class CompileError(IrgymError):
    """ONNX Runtime refuses a model, or cannot run it."""


class TooSlowError(CompileError):
    """A run takes too long."""


def options_of(level: str, threads: int) -> Any:
    """Return the options of a session.

    Args:
        level: Level of ONNX Runtime's optimiser, a key of `LEVELS`.
        threads: Threads of an operator.
    """
    options = _ORT.SessionOptions()
    options.graph_optimization_level = getattr(_ORT.GraphOptimizationLevel, LEVELS[level])
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = FATAL
    return options


def timed_options(level: str, threads: int) -> Any:
    """Return the options of a session that is timed, perhaps in turn with others.

    Its threads spin during a run, as by default, but not after it. With the threads of another session
    spinning, two threads on two cores took up to twice as long, and either of two sessions of the same model
    could seem faster by a quarter.

    Args:
        level: Level of ONNX Runtime's optimiser, a key of `LEVELS`.
        threads: Threads of an operator.
    """
    options = options_of(level, threads)
    options.add_session_config_entry("session.force_spinning_stop", "1")
    return options


def opened(model: bytes | str, options: Any) -> Any:
    """Return a session of a serialised model or of a model's file.

    Raises:
        CompileError: ONNX Runtime refuses it.
    """
    with _given_options(), _explained("refuses the model"):
        return _ORT.InferenceSession(model, options, providers=["CPUExecutionProvider"])


@contextmanager
def _given_options() -> Generator[None]:
    """Hide the variable that makes ONNX Runtime take options from the model: ours would be ignored."""
    told = os.environ.pop(CONFIG_VARIABLE, None)
    try:
        yield
    finally:
        if told is not None:
            os.environ[CONFIG_VARIABLE] = told


class Opened:
    """A model that is ready to run.

    Args:
        model: The model as `model_of` writes it, not whole.
        apart: The weights that the model leaves out, with their arrays.
        threads: Threads of an operator.
        level: Level of ONNX Runtime's optimiser, a key of `LEVELS`.

    Raises:
        CompileError: ONNX Runtime refuses it.
    """

    def __init__(
        self, model: Any, apart: Sequence[tuple[str, Array]], threads: int, level: str = OFF
    ) -> None:
        options = timed_options(level, threads)
        self._arrays = _given_apart(options, apart)
        self._session = opened(model.SerializeToString(), options)

    def run(self, feeds: Mapping[str, Array]) -> list[Array]:
        """Return the results on some inputs.

        Raises:
            CompileError: The model cannot run on them.
        """
        with _explained("cannot run the model"):
            return [np.asarray(result) for result in self._session.run(None, dict(feeds))]

    def bound(self, feeds: Mapping[str, Array]) -> "Bound":
        """Return the session bound to inputs, for repeated runs."""
        return Bound(self._session, feeds)


class Program(Opened):
    """A graph that is ready to run.

    Args:
        graph: The graph.
        weights: Arrays of its weights.
        threads: Threads of an operator.
        level: Level of ONNX Runtime's optimiser, a key of `LEVELS`.

    Raises:
        CompileError: ONNX Runtime refuses it.
    """

    def __init__(self, graph: Graph, weights: Weights, threads: int, level: str = OFF) -> None:
        super().__init__(model_of(graph, weights, whole=False), arrays_apart(graph, weights), threads, level)


class Profiled:
    """A model that is profiled in one run, with ONNX Runtime's optimiser off.

    Args:
        model: The model as `model_of` writes it, not whole.
        apart: The weights that the model leaves out, with their arrays.
        folder: Where the profile is written.

    Raises:
        CompileError: ONNX Runtime refuses it.
    """

    def __init__(self, model: Any, apart: Sequence[tuple[str, Array]], folder: Path) -> None:
        options = timed_options(OFF, threads=1)
        options.enable_profiling = True
        options.profile_file_prefix = str(folder / "run")
        options.add_session_config_entry("session.disable_prepacking", "1")  # it copies weights
        self._arrays = _given_apart(options, apart)
        self._session = opened(model.SerializeToString(), options)

    def run(self, feeds: Mapping[str, Array]) -> list[Array]:
        """Return the results on some inputs.

        Raises:
            CompileError: The model cannot run on them.
            TooSlowError: The run takes longer than `LONGEST_S`.
        """
        options = _ORT.RunOptions()
        stop = Timer(LONGEST_S, setattr, (options, "terminate", True))
        stop.start()
        try:
            with _explained("cannot run the model"):
                return [np.asarray(result) for result in self._session.run(None, dict(feeds), options)]
        except CompileError as error:
            if options.terminate:
                raise TooSlowError(f"a run takes longer than {LONGEST_S:.0f} s") from error
            raise
        finally:
            stop.cancel()

    def profile(self) -> Path:
        """Return the file with the profile, in JSON."""
        return Path(self._session.end_profiling())


def _given_apart(options: Any, apart: Sequence[tuple[str, Array]]) -> list[tuple[Array, Any]]:
    """Pass weights to a session that its model leaves out; return the objects that must outlive it."""
    # ONNX Runtime reads these arrays in place.
    values = [(array, _ORT.OrtValue.ortvalue_from_numpy(array)) for _, array in apart]
    if apart:
        options.add_external_initializers([name for name, _ in apart], [value for _, value in values])
    return values


class Bound:
    """A session with bound inputs and outputs.

    Args:
        session: The session.
        feeds: The inputs.

    Raises:
        CompileError: ONNX Runtime rejects the inputs.
    """

    def __init__(self, session: Any, feeds: Mapping[str, Array]) -> None:
        self._session = session
        self._binding = session.io_binding()
        self._values = {name: _ORT.OrtValue.ortvalue_from_numpy(array) for name, array in feeds.items()}
        names = [value.name for value in session.get_outputs()]
        # A binding has a place for each name, and a model may list an output twice.
        distinct = list(dict.fromkeys(names))
        self._places = [distinct.index(name) for name in names]
        with _explained("cannot run the model"):
            for value in session.get_inputs():
                self._binding.bind_ortvalue_input(value.name, self._values[value.name])
            for name in distinct:
                self._binding.bind_output(name)

    def run(self, times: int) -> None:
        """Run the model a number of times.

        Raises:
            CompileError: The model cannot run on its inputs.
        """
        with _explained("cannot run the model"):
            for _ in range(times):
                self._session.run_with_iobinding(self._binding)

    def results(self) -> list[Array]:
        """Return the results of the last run, in the order of the model's outputs."""
        arrays = [np.asarray(array) for array in self._binding.copy_outputs_to_cpu()]
        return [arrays[place] for place in self._places]


@contextmanager
def _explained(what: str) -> Generator[None]:
    """Turn the exceptions of ONNX Runtime into a `CompileError` of one line."""
    try:
        yield
    except Exception as error:
        # The exceptions have no common class, and a run with bound inputs raises plain RuntimeErrors.
        if type(error) is not RuntimeError and not type(error).__module__.startswith("onnxruntime"):
            raise
        raise CompileError(f"ONNX Runtime {what}: {str(error).partition(chr(10))[0]}") from error


def version() -> str:
    """Return ONNX Runtime's version."""
    return f"onnxruntime {_ORT.__version__}"
