"""Preparation of a file for scoring: compiled, parsed and normalised by LLVM. It runs in a child."""

import re
from collections.abc import Sequence
from pathlib import Path

from irgym.base.reading import content_of_program
from irgym.envs.cse.compiling import llvm
from irgym.llvmir.programs.clang import compiled
from irgym.llvmir.programs.files import BITCODE, C, ir_text

_UNTOUCHED = re.compile(r"^(attributes #\d+ = \{.*) optnone\b", re.MULTILINE)
"""The attribute `optnone`, under which LLVM skips a function; compilers set it at -O0."""


def prepared(path: str, target: str, options: Sequence[str] = ()) -> bytes:
    """Return the text of a file's module in the form in which expressions are shared.

    Args:
        path: A file of C or of IR.
        target: Name of the target.
        options: Options of the C compiler.

    Raises:
        BackendError: llvmlite or the C compiler is not installed.
        ProgramError: The file cannot be read, compiled, or read by LLVM.
    """
    file = Path(path)
    is_source = file.suffix.lower() == C
    content = compiled(file, target, options) if is_source else content_of_program(file)
    module = llvm.read(content if content.startswith(BITCODE) else ir_text(content, file), file.name)
    text = str(module)
    if _UNTOUCHED.search(text):
        module = llvm.read(_UNTOUCHED.sub(r"\1", text), file.name)
    return llvm.prepare(module, target).encode()
