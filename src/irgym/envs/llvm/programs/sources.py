"""Prepared modules of programs: each is made once, in a child, and kept in the cache."""

from collections.abc import Sequence
from pathlib import Path

from irgym.base.closing import Closing
from irgym.base.errors import IrgymError
from irgym.base.reading import check_size, content_of_program
from irgym.core.cost import Call
from irgym.core.uri import ProgramUri
from irgym.envs.llvm.compiling.installed import PREFERRED, llvm_named
from irgym.envs.llvm.programs.csmith import generated
from irgym.envs.llvm.programs.preparing import AIMS, LARGEST, SIZE, SPEED, Preparation
from irgym.envs.llvm.programs.uris import CSMITH_FAMILY, WHOLE_FAMILY, linked_files
from irgym.envs.llvm.programs.whole import WHOLE
from irgym.llvmir.programs.clang import clang_version, searched
from irgym.llvmir.programs.files import SourceFile, file_of, function_of, member_of
from irgym.llvmir.programs.included import Included
from irgym.llvmir.programs.machines import MACHINES
from irgym.measure.code_digest import digest_of
from irgym.measure.opening import Opener
from irgym.measure.store import Store, digest, stem_of

SECONDS = 30.0
"""Time limit for preparing a small file, in seconds: it may include large files."""

CODE = (
    "envs/llvm/compiling/library.py",
    "envs/llvm/compiling/native",
    *(f"envs/llvm/programs/{name}.py" for name in ("editing", "preparing")),
    *(f"llvmir/programs/{name}.py" for name in ("clang", "files", "machines")),
)
"""Sources of irgym that prepare modules."""

STORE = Store("llvm/modules", ".bc")
"""Prepared modules."""

RUNNER = "irgym.envs.llvm.programs.preparing"

TARGET = "x86-64"
"""The default target of C."""


class Sources(Closing):
    """Prepares the modules of programs. Close it, or let it end with the process.

    Args:
        backend: Name of the LLVM that reads the modules, of `installed.BACKENDS`.
    """

    def __init__(self, backend: str = PREFERRED) -> None:
        self._backend = backend
        self._opener = Opener("clang or LLVM", seconds=SECONDS)
        self._included = Included()

    def module(self, program: ProgramUri, aim: str = SIZE, target: str = TARGET) -> Path:
        """Return the file with a program's bitcode, preparing it if needed.

        Args:
            program: The program.
            aim: What code is optimised for: `size` (functions have `optsize` and `minsize`) or `speed`.
                IR of the user's keeps its attributes.
            target: Name of the target of C, and of IR as text that names none.

        Raises:
            BackendError: LLVM, the C compiler or csmith is not installed.
            IrgymError: There is no such aim, or no such target.
            ProgramError: The file cannot be read or compiled, is no valid module, or has no such function.
            StorageError: A package cannot be fetched, or the cache folder cannot be written.
        """
        others = [SourceFile(file, searched()) for file in linked_files(program)]
        return self.of_file(_source(program), function_of(program), aim, target, others)

    def of_file(
        self,
        source: SourceFile,
        function: str = "",
        aim: str = SIZE,
        target: str = TARGET,
        others: Sequence[SourceFile] = (),
    ) -> Path:
        """Return the file with the bitcode of a source file; see `module`.

        Args:
            source: The source file.
            function: The function to keep; empty for all.
            aim: See `module`.
            target: See `module`.
            others: Files that are linked with it.

        Raises:
            IrgymError: As for `module`.
        """
        if aim not in AIMS:
            raise IrgymError(f"there is no aim {aim!r}: choose among {', '.join(AIMS)}")
        if target not in MACHINES:
            raise IrgymError(f"llvm has no target {target!r}: choose among {', '.join(MACHINES)}")
        files = [source, *others]
        contents = [part for file in files for part in (file.path.name, self._content(file, aim, target))]
        compiled = any(file.compiled for file in files)
        made_by = [clang_version(), *AIMS[aim], *source.options] if compiled else []
        prepared_by = [llvm_named(self._backend).origin, digest_of(*CODE)]
        speed = [aim] if aim == SPEED else []  # sets the processor of IR too
        parts = (*contents, function, target, *prepared_by, *made_by, *speed)
        name = f"{stem_of(function or source.path.stem)}-{digest(*parts)}"
        paths = tuple(str(file.path) for file in files)
        asked = Preparation(paths, function, aim, target, source.options, self._backend)
        return STORE.get(name, lambda: self._made(asked))

    def _content(self, source: SourceFile, aim: str, target: str) -> str | bytes:
        """Return what the module of a file depends on; of C that may change, a digest of all it includes."""
        content = content_of_program(source.path, LARGEST)
        if source.compiled and not source.pinned:
            return self._included.content(source, target, AIMS[aim])
        return content

    def sizes(self, module: Path) -> tuple[int, int]:
        """Return the number of instructions of a prepared module, before any pass and after -Oz.

        Raises:
            ProgramError: LLVM crashes on it, or takes too much time or memory.
        """
        call = Call(f"{RUNNER}:counted", (str(module), self._backend))
        return self._opener.call(call, module.name, check_size(module))

    def _made(self, asked: Preparation) -> bytes:
        size = sum(check_size(Path(path), LARGEST) for path in asked.paths)
        return self._opener.call(Call(f"{RUNNER}:prepared", (asked,)), asked.paths[0], size)

    def close(self) -> None:
        """End the child processes."""
        self._included.close()
        self._opener.close()


def _source(program: ProgramUri) -> SourceFile:
    """Return the source file of a program, generated or fetched if needed."""
    if program.family == CSMITH_FAMILY:
        return generated(program.numbers["seed"])
    if program.family == WHOLE_FAMILY:
        return SourceFile(WHOLE / member_of(program), pinned=True)
    return file_of(program)
