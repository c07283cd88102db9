"""Modules in forms that jax reads back and runs. Imports jax: for child processes only."""

# The type declarations of jax are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable, Sequence

import jax
import jax.export
import numpy as np

from irgym.base.errors import IrgymError, ProgramError
from irgym.envs.hlo.checking.checks import problem_of
from irgym.envs.hlo.compiling.executable import CompileFailure, Executable, compile_stablehlo
from irgym.envs.hlo.compiling.execution import SEED
from irgym.envs.hlo.programs.lowering import to_exported, to_stablehlo
from irgym.measure.checking.numbers import Array
from irgym.measure.checking.problem import Problem

Run = Callable[[Sequence[Array]], list[Array]]


def stablehlo_text(original: bytes, proto: bytes) -> str:
    """Return a module as StableHLO text that jaxlib reads and that computes the same as the original.

    Args:
        original: HloModuleProto of the original; if it does not run, the text is only read back.
        proto: HloModuleProto of the module.

    Raises:
        ProgramError: It has operations that StableHLO lacks, or jaxlib does not read it back correctly.
    """
    text = to_stablehlo(proto)
    executable = _compiled(text, proto)
    problem = _problem(original)
    if executable is not None and problem is not None:
        _check(problem, executable.run, "StableHLO")
    return text


def exported_function(original: bytes, proto: bytes) -> bytes:
    """Return a module as a function that `jax.export.deserialize` reads and calls.

    Args:
        original: HloModuleProto of the original; if it does not run, the function is only read back.
        proto: HloModuleProto of the module.

    Raises:
        ProgramError: jax has no such function, or it computes something else.
    """
    content = to_exported(proto)
    executable = _compiled(to_stablehlo(proto), proto)
    try:
        function = jax.export.deserialize(bytearray(content))
    except (TypeError, ValueError) as error:
        raise ProgramError(
            f"jax does not read back the exported function ({_first_line(error)}): export .hlo or .pb"
        ) from error

    def run(arguments: Sequence[Array]) -> list[Array]:
        with jax.enable_x64(True):
            return [np.asarray(leaf) for leaf in jax.tree.leaves(function.call(*arguments))]

    problem = _problem(original)
    if executable is not None and problem is not None:
        _check(problem, run, "a function of jax")
    return content


def _compiled(text: str, proto: bytes) -> Executable | None:
    """Compile StableHLO as its readers will; None if it calls a library that is not on this machine.

    Raises:
        ProgramError: jaxlib does not read it.
    """
    try:
        return compile_stablehlo(text, proto)
    except CompileFailure as failure:
        if _ABSENT in str(failure):
            return None
        raise ProgramError(
            f"jaxlib does not read the module as StableHLO ({failure}): export .hlo or .pb"
        ) from failure


_ABSENT = "No registered implementation"
"""XLA's message about calls into missing libraries."""


def _problem(original: bytes) -> Problem | None:
    """Return the problem on which a program is checked; None if it does not run."""
    try:
        return problem_of(original, SEED, True)
    except IrgymError:
        return None


def _check(problem: Problem, run: Run, form: str) -> None:
    """Raise ProgramError unless a module in another form computes the same as the original."""
    try:
        found = problem.judge(run(problem.inputs))
    except (IrgymError, jax.errors.JaxRuntimeError, TypeError, ValueError) as error:
        raise ProgramError(
            f"the module does not run as {form} ({_first_line(error)}): export .hlo or .pb"
        ) from error
    if not found.ok:
        raise ProgramError(
            f"the module computes something else as {form} ({found.detail}): export .hlo or .pb"
        )


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
