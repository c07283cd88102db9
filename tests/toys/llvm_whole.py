"""Whole programs with a planted wrong pass; it works in a child, since LLVM may end its process."""

from irgym.core.cost import Measurement, Validation
from irgym.envs.llvm import runner
from irgym.envs.llvm.compiling.library import Context, library
from irgym.envs.llvm.compiling.store import Stored, store
from irgym.envs.llvm.whole import timing
from irgym.envs.llvm.whole.running import Limits
from irgym.envs.llvm.whole.timing import TIMING, WholeProgram
from irgym.measure.passes.store import Path

WRONG: Path = (0,)
"""The path of the module after the planted pass."""


def plant(program: WholeProgram, constant: str, other: str) -> None:
    """Let the first pass change a constant of the program."""
    text = store(program.backend).module(program.file, ()).module.text()
    assert constant in text
    changed = Context(library(program.backend)).read(text.replace(constant, other).encode(), "wrong")
    store(program.backend)._keep((program.file, WRONG), Stored(changed))


def measured(program: WholeProgram, constant: str, other: str) -> Measurement:
    """Return the measurement of a program after a planted pass."""
    plant(program, constant, other)
    return runner.time_program(program, WRONG, TIMING)


def validated(program: WholeProgram, constant: str, other: str) -> Validation:
    """Return the comparison of a program after a planted pass with the original."""
    plant(program, constant, other)
    return runner.validate(program.file, WRONG, program.backend, 1, 0, program)


def hurried(program: WholeProgram) -> None:
    """Run an original program under a time limit of a fifth of a second."""
    usual = timing.LIMITS
    timing.LIMITS = Limits(seconds=0.2)
    try:
        timing.original_of(program)
    finally:
        timing.LIMITS = usual
