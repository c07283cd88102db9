"""Preparation of a file: compiled, read by LLVM, and reduced to a function if one is named. Runs in a child.

LLVM 23 has no pipeline -Oz: it optimises for size where functions have the attributes `optsize` and
`minsize`. C is compiled so that they have; IR is left as it is.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from irgym.base.errors import ProgramError
from irgym.base.reading import content_of_program
from irgym.envs.llvm.compiling.library import Context, Library, Module, PassFailure, library
from irgym.envs.llvm.programs.editing import defined, drop_optnone, keep_function, set_processor
from irgym.llvmir.programs.clang import UNOPTIMISED, compiled
from irgym.llvmir.programs.files import BITCODE, ir_text, is_source, listed
from irgym.llvmir.programs.machines import MACHINES

LARGEST = 1 << 26
"""Most bytes of a file."""

SIZE, SPEED = "size", "speed"

_FLAGS = (*UNOPTIMISED, "-fno-stack-protector", "-fomit-frame-pointer")

AIMS: Mapping[str, tuple[str, ...]] = {SIZE: ("-Oz", *_FLAGS), SPEED: ("-O3", *_FLAGS)}
"""Options of clang by what code is optimised for, the default first."""

REFERENCE = "default<O2>"
"""-Oz of LLVM 23, for functions with `minsize`."""

_PROCESSORS = "function(require<target-ir>)"
"""An analysis that looks up the processor of each function."""

_ATTRIBUTES = re.compile(r"^attributes #\d+ = \{.*$", re.MULTILINE)
_FEATURES = re.compile(r' "target-features"="[^"]*"')
_SOURCE = re.compile(r'^source_filename = ".*"$', re.MULTILINE)
_UNQUOTED = re.compile(r'[^ -~]|["\\]')
_TRIPLE = re.compile(r"^target triple\b", re.MULTILINE)


@dataclass(frozen=True)
class Preparation:
    """A file to prepare, and how.

    Attributes:
        paths: A file of C or of IR, and those that are linked with it.
        function: Name of the function to keep, with what it needs; empty for all.
        aim: What code is optimised for.
        target: Name of the target; not of IR that names another.
        options: Options of the C compiler: header folders and macros.
        backend: Name of the LLVM.
    """

    paths: tuple[str, ...]
    function: str
    aim: str
    target: str
    options: tuple[str, ...]
    backend: str


def prepared(asked: Preparation) -> bytes:
    """Return the bitcode of a file's module, valid and with at least one function.

    Raises:
        BackendError: LLVM or the C compiler is not installed.
        ProgramError: The file cannot be read, compiled, or read by LLVM, or lacks the function.
    """
    llvm = library(asked.backend)
    files = [Path(path) for path in asked.paths]
    context = Context(llvm)
    contents = [_content(file, asked) for file in files]
    module = context.read(contents[0], files[0].name)
    for file, content in zip(files[1:], contents[1:], strict=True):
        _link(module, context.read(content, file.name), file)
    _check(llvm, module, files[0])
    drop_optnone(llvm, module)
    if asked.function:
        _reduce(llvm, module, asked.function, files[0])
    machine = MACHINES[asked.target]
    if asked.aim == SPEED and llvm.triple(module.handle).decode().startswith(f"{machine.architecture}-"):
        set_processor(llvm, module, machine.cpu)
    return module.bitcode()


def counted(path: str, backend: str) -> tuple[int, int]:
    """Return the number of instructions of a prepared module, before any pass and after -Oz.

    Raises:
        ProgramError: LLVM fails on it.
    """
    module = Context(library(backend)).read(Path(path).read_bytes(), Path(path).name)
    before = module.order()
    try:
        module.run(REFERENCE)
    except PassFailure as error:
        raise ProgramError(
            f"LLVM cannot optimise {path} ({_line(str(error))}): choose another program"
        ) from error
    return before, module.order()


def _content(file: Path, asked: Preparation) -> bytes:
    """Return the IR of a file."""
    if is_source(file):
        return _of_source(compiled(file, asked.target, asked.options, AIMS[asked.aim]), file, asked.aim)
    return _of_ir(content_of_program(file, LARGEST), file, asked.target)


def _link(module: Module, other: Module, file: Path) -> None:
    """Link a file's module into another one.

    Raises:
        ProgramError: They do not go together.
    """
    try:
        module.link(other)
    except PassFailure as error:
        raise ProgramError(
            f"{file.name} cannot be linked with the others ({_line(str(error))}): name files of one program"
        ) from error


def _of_source(content: bytes, file: Path, aim: str) -> bytes:
    """Return clang's IR with the attributes of an aim, and no trace of the file's folder.

    LLVM does not know all the target features that a newer or older clang lists; the processor implies them.
    """

    def edited(match: re.Match[str]) -> str:
        line = _FEATURES.sub("", match[0])
        return line.replace(" optsize ", " optsize minsize ") if aim == SIZE else line

    text = _ATTRIBUTES.sub(edited, content.decode())
    name = _UNQUOTED.sub("_", file.name)
    return _SOURCE.sub(lambda _: f'source_filename = "{name}"', text, count=1).encode()


def _of_ir(content: bytes, file: Path, target: str) -> bytes:
    """Return IR; text that names no target gets one."""
    if content.startswith(BITCODE):
        return content
    text = ir_text(content, file)
    if _TRIPLE.search(text):
        return content
    return f'target triple = "{MACHINES[target].triple}"\n{text}'.encode()


def _check(llvm: Library, module: Module, file: Path) -> None:
    """Make sure that a module is valid and defines a function, and that LLVM knows its functions' processors.

    An unknown processor ends the process, here instead of in some pass.

    Raises:
        ProgramError: It does not.
    """
    wrong = module.verify()
    if wrong:
        raise ProgramError(f"LLVM finds {file.name} invalid ({_line(wrong)}): make it again")
    if not defined(llvm, module):
        raise ProgramError(f"{file.name} defines no function: choose a file with code")
    module.run(_PROCESSORS)


def _reduce(llvm: Library, module: Module, function: str, file: Path) -> None:
    """Keep one function, and what it needs.

    Raises:
        ProgramError: The module does not define it, or LLVM fails.
    """
    names = defined(llvm, module)
    if function not in names:
        raise ProgramError(
            f"{file.name} defines no function {function!r}: choose among {listed(sorted(names))}"
        )
    try:
        keep_function(llvm, module, function)
    except PassFailure as error:
        raise ProgramError(
            f"LLVM cannot reduce {file.name} to {function} ({_line(str(error))}): name no function"
        ) from error


def _line(text: str) -> str:
    return (text.strip().splitlines() or ["no reason given"])[0][:200]
