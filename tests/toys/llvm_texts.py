"""Modules of LLVM as text, for tests; it runs in a child."""

from pathlib import Path

from irgym.envs.llvm.compiling.installed import PREFERRED
from irgym.envs.llvm.compiling.library import Context, library


def text_of(module: str) -> str:
    """Return the text of a module in a file."""
    return Context(library(PREFERRED), named=True).read(Path(module).read_bytes(), module).text()


def write_bitcode(text: str, file: str) -> None:
    """Write IR as bitcode."""
    module = Context(library(PREFERRED), named=True).read(text.encode(), file)
    Path(file).write_bytes(module.bitcode())
