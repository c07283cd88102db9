"""Loading of files of torch.export, and trial runs of their programs in a child."""

import logging
import os
import warnings
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from irgym.base.errors import ProgramError
from irgym.measure.pt2.archive import copy_checked
from irgym.measure.pt2.refusal import Refused

REMEDY = "give the module itself, as package.module:function that returns it and its inputs"

_WEIGHTS_ONLY = {"TORCH_FORCE_WEIGHTS_ONLY_LOAD": "1", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "0"}
"""Environment variables that make torch unpickle tensors and plain values only."""


def load(path: Path, extra_files: dict[str, Any] | None = None) -> Any:
    """Return the program of a file without running any code of the file.

    Args:
        path: The file.
        extra_files: Receives the file's extra entries, by name; see `torch.export.load`.

    Raises:
        ProgramError: It is not such a file, was cut off, or holds more than torch's operators and tensors.
    """
    import torch

    try:
        with TemporaryFile() as copy:
            copy_checked(path, copy)
            copy.seek(0)
            with _weights_only(), _quiet():
                return torch.export.load(copy, extra_files=extra_files)
    except Refused as refused:
        raise ProgramError(f"{path} {refused}: {REMEDY}") from refused
    except Exception as error:
        if "Weights only load failed" in str(error):
            raise ProgramError(f"{path} holds pickled objects beside its tensors: {REMEDY}") from error
        raise ProgramError(
            f"torch.export cannot load {path} ({_first_line(error)}): write it with torch.export.save"
        ) from error


def try_out(path: Path) -> None:
    """Load a file and run its program once on the file's example inputs.

    Raises:
        ProgramError: See `load`; or the program fails.
    """
    import torch

    program = load(path)
    arguments, keywords = inputs_of(program, path)
    try:
        with torch.inference_mode(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program.module()(*arguments, **keywords)
    except MemoryError:
        raise
    except Exception as error:
        if "allocate" in str(error):
            raise MemoryError(str(error)) from error
        raise ProgramError(
            f"{path} fails on its example inputs ({_first_line(error)}): export it again"
        ) from error


def inputs_of(program: Any, path: Path) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Return the positional and the keyword example inputs of a program.

    Raises:
        ProgramError: It has none.
    """
    if not program.example_inputs or not any(program.example_inputs):
        raise ProgramError(f"{path} has no example inputs: export it with some")
    return program.example_inputs


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


@contextmanager
def _weights_only() -> Generator[None]:
    """Make torch unpickle tensors and plain values only."""
    before = {name: os.environ.get(name) for name in _WEIGHTS_ONLY}
    os.environ.update(_WEIGHTS_ONLY)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _quiet() -> Generator[None]:
    """Keep torch from logging tracebacks of exceptions that it raises."""
    log = logging.getLogger("torch.export")
    disabled, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = disabled
