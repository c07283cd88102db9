"""A child process for checks, so that an instance that kills ONNX Runtime costs nothing else."""

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")

PATIENCE = 120.0
"""Time limit of an instance, in seconds."""


class Died(Exception):
    """The process died or took too long; `stage` is its last stage."""

    def __init__(self, stage: str) -> None:
        super().__init__(stage)
        self.stage = stage


class Apart(Generic[Result]):
    """Calls a function in a child process, which is replaced when it dies.

    Args:
        function: Takes a function that records its stage, and the arguments of a call.
    """

    def __init__(self, function: Callable[..., Result]) -> None:
        self._function = function
        self._context = multiprocessing.get_context("fork")  # rules hold functions that cannot be pickled
        self._start()

    def _start(self) -> None:
        self._pipe, other = self._context.Pipe()
        self._process = self._context.Process(target=_serve, args=(other, self._function), daemon=True)
        self._process.start()
        other.close()

    def __call__(self, *arguments: Any) -> Result:
        """Return the result of the function.

        Raises:
            Died: The process died.
            Exception: Any exception of the function.
        """
        self._pipe.send(arguments)
        stage = ""
        while True:
            try:
                if not self._pipe.poll(PATIENCE):
                    raise EOFError
                kind, value = self._pipe.recv()
            except (EOFError, ConnectionError):
                self.close()
                self._start()
                raise Died(stage) from None
            if kind == "stage":
                stage = value
            elif kind == "error":
                raise value
            else:
                return value

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()
        self._pipe.close()


def _serve(pipe: Connection, function: Callable[..., Any]) -> None:
    def note(stage: str) -> None:
        pipe.send(("stage", stage))

    while True:
        try:
            arguments = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        try:
            pipe.send(("result", function(note, *arguments)))
        except KeyboardInterrupt:
            return
        except Exception as error:  # noqa: BLE001 - the caller raises it
            pipe.send(("error", error))
