"""Bitcode for tests; it is made in a child, since LLVM may end its process."""

from irgym.envs.llvm.compiling.library import Context, library


def of_text(text: str) -> bytes:
    """Return the bitcode of a module in text form."""
    return Context(library("llvm-23")).read(text.encode(), "a test").bitcode()
