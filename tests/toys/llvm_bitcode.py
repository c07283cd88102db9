"""Bitcode for tests; it is made in a child, since LLVM may end its process."""

from pathlib import Path

from irgym.envs.llvm.compiling.library import Context, library


def of_text(text: str) -> bytes:
    """Return the bitcode of a module in text form."""
    return Context(library("llvm-23")).read(text.encode(), "a test").bitcode()


def around(file: str, passes: str) -> tuple[str, str]:
    """Return the text of a module of bitcode before and after passes."""
    module = Context(library("llvm-23")).read(Path(file).read_bytes(), file)
    before = module.text()
    module.run(passes)
    return before, module.text()
