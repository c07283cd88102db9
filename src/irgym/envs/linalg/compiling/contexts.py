"""MLIR's contexts, and the pass managers and scripts that live in them. Call it from a child.

A context takes 6 ms to make and delete, and every pass manager builds tables of patterns in it. But a context
never frees a type, attribute or location: shared by some thousands of candidates it would grow by a gigabyte.
So candidates share a context until it is replaced.
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import local
from typing import Any

from irgym.base.errors import IrgymError
from irgym.envs.linalg.compiling.bindings import PassManager, interpreter, ir

USES = 64
"""Number of candidates for which a context is used."""

SAID = 300
"""Greatest number of characters kept of MLIR's errors; some contain the whole program."""


class CompileError(IrgymError):
    """MLIR refuses a module; the message is one line."""


@dataclass
class _Context:
    """A context of MLIR, used by one thread.

    Attributes:
        context: The context.
        reused: Whether candidates of a program are made in it, one after another.
        managers: Pass managers by their pipelines.
        scripts: Transform scripts that were parsed.
        uses: Number of times that it was entered to be reused.
    """

    context: Any
    reused: bool
    managers: dict[str, Any] = field(default_factory=dict[str, Any])
    scripts: dict[str, Any] = field(default_factory=dict[str, Any])
    uses: int = 0


class _Thread(local):
    """The contexts that a thread is in, the innermost last, and the one that it reuses."""

    def __init__(self) -> None:
        self.entered: list[_Context] = []
        self.reused: _Context | None = None


_thread = _Thread()


@contextmanager
def mlir(reuse: bool = False) -> Generator[None]:
    """Enter an MLIR context, and turn MLIR's errors into one line.

    Args:
        reuse: Whether to enter the context of this thread's last calls with `reuse`; it is replaced after
            `USES` of them. There, modules are verified after pipelines, not after each pass, which took as
            long as the passes. By default the context is new.

    Raises:
        CompileError: MLIR refused something.
    """
    entered = _reused() if reuse else _made(reused=False)
    _thread.entered.append(entered)
    try:
        with entered.context, ir.Location.unknown():
            yield
    except ir.MLIRError as error:
        said = [str(error.message), *(str(diagnostic.message) for diagnostic in error.error_diagnostics)]
        raise CompileError(_line(": ".join(said))) from error
    except (RuntimeError, ValueError) as error:
        raise CompileError(_line(str(error))) from error
    finally:
        _thread.entered.pop()


def _made(reused: bool) -> _Context:
    context = ir.Context()
    context.enable_multithreading(False)
    return _Context(context, reused)


def _reused() -> _Context:
    """Return the context that this thread reuses, a new one after `USES` uses."""
    if _thread.reused is None or _thread.reused.uses == USES:
        _thread.reused = _made(reused=True)
    _thread.reused.uses += 1
    return _thread.reused


def _line(said: str) -> str:
    words = " ".join(said.split())
    return words if len(words) <= SAID else words[:SAID] + " ..."


def parse(text: str) -> Any:
    """Parse and verify a module, within `mlir`."""
    return ir.Module.parse(text)


def apply(module: Any, script: str) -> None:
    """Run a transform script on a module in place, within `mlir`."""
    _transform(module, ir.Module.parse(script))


def apply_again(module: Any, script: str) -> None:
    """Run a script that many modules share, which is parsed once in a context, within `mlir`."""
    scripts = _thread.entered[-1].scripts
    if script not in scripts:
        scripts[script] = ir.Module.parse(script)
    _transform(module, scripts[script])


def _transform(module: Any, transforms: Any) -> None:
    interpreter.apply_named_sequence(module.operation, transforms.body.operations[0], transforms)


def run_passes(module: Any, passes: str) -> None:
    """Run a pipeline on a module in place, within `mlir`."""
    entered = _thread.entered[-1]
    if passes not in entered.managers:
        entered.managers[passes] = PassManager.parse(f"builtin.module({passes})")
        entered.managers[passes].enable_verifier(not entered.reused)
    entered.managers[passes].run(module.operation)
    if entered.reused:
        module.operation.verify()
