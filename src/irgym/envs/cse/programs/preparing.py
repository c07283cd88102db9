"""A file as the module that is scored: compiled, read by LLVM and prepared. It runs in a child process."""

import re
from collections.abc import Sequence
from pathlib import Path

from irgym.base.errors import ProgramError
from irgym.base.reading import content_of_program
from irgym.envs.cse.compiling import llvm
from irgym.envs.cse.programs.clang import compiled
from irgym.envs.cse.programs.uris import C

BITCODE = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")
"""What bitcode begins with, by itself or in a wrapper."""

_UNTOUCHED = re.compile(r"^(attributes #\d+ = \{.*) optnone\b", re.MULTILINE)
"""The attribute that keeps LLVM from a function; compilers set it where they are told not to optimise."""


def prepared(path: str, target: str, options: Sequence[str] = ()) -> bytes:
    """Return the module of a file, as text, in the form that expressions are shared in.

    Args:
        path: A file of C or of IR.
        target: Name of what code is made for.
        options: What the compiler of C is told.

    Raises:
        BackendError: llvmlite is missing, or the compiler of C.
        ProgramError: The file cannot be read, compiled, or read by LLVM.
    """
    file = Path(path)
    is_source = file.suffix.lower() == C
    content = compiled(file, target, options) if is_source else content_of_program(file)
    module = llvm.read(content if content.startswith(BITCODE) else _text(content, file), file.name)
    text = str(module)
    if _UNTOUCHED.search(text):
        module = llvm.read(_UNTOUCHED.sub(r"\1", text), file.name)
    return llvm.prepare(module, target).encode()


def _text(content: bytes, file: Path) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ProgramError(f"{file} is neither LLVM's IR as text nor bitcode: name a file that is") from error
