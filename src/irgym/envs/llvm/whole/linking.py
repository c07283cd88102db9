"""Executables of modules with a `main`, linked by ziglang."""

import re
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from irgym.base.errors import ProgramError
from irgym.envs.llvm.compiling.modules import ProgramModules
from irgym.llvmir.programs.clang import TIMEOUT_S, clang_version, zig_cc
from irgym.measure.store import Store, digest, stem_of
from irgym.measure.target import host_target

OPTIONS = ("-O2", "-lm", "-lpthread", "-ldl")
"""Options after the object file. With -O2, ziglang's start code and libraries are optimised ones."""

REMEDY = "name a program with a main, such as llvm://programs/nbody.c, or choose another objective than time"

STORE = Store("llvm/executables", ".elf")
"""Original programs that link."""

SHOWN = 4
"""Number of missing symbols that an error names."""

_MISSING = re.compile(r"undefined symbol: (\S+)")


@contextmanager
def executable(code: bytes, name: str) -> Generator[Path]:
    """Link an object file as a program of this machine, which is removed in the end.

    Args:
        code: The object file.
        name: Name of the program in errors.

    Raises:
        BackendError: ziglang is not installed.
        ProgramError: It does not link: it has no `main`, or needs symbols that the C library lacks.
    """
    with TemporaryDirectory(prefix="irgym-") as folder:
        source, program = Path(folder, "program.o"), Path(folder, "program")
        source.write_bytes(code)
        machine = ("-target", f"{host_target().architecture}-linux-gnu")
        try:
            done = zig_cc([*machine, "-o", str(program), str(source), *OPTIONS], folder)
        except subprocess.TimeoutExpired as error:
            raise ProgramError(f"{name}: linking took longer than {TIMEOUT_S:g} s: try again") from error
        if done.returncode or not program.is_file():
            raise ProgramError(_complaint(done.stderr, name))
        yield program


def check_linked(modules: ProgramModules) -> None:
    """Make sure that a program links, once for each of its modules.

    Raises:
        BackendError: ziglang is not installed.
        ProgramError: It does not link.
    """

    def link() -> bytes:
        code = modules.ask("code", ())
        assert isinstance(code, bytes)
        with executable(code, modules.uri) as program:
            return program.read_bytes()

    parts = (modules.content, modules.pool.backend, clang_version(), *OPTIONS)
    STORE.get(f"{stem_of(modules.path.stem)}-{digest(*parts)}", link)


def _complaint(said: str, name: str) -> str:
    """Return why a program does not link, with the remedy."""
    missing = list(dict.fromkeys(_MISSING.findall(said)))
    if "main" in missing:
        return f"{name} has no main, so it cannot be run: {REMEDY}"
    if missing:
        more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
        return (
            f"{name} lacks {', '.join(missing[:SHOWN])}{more}, so it cannot be run: add the files that "
            "define them, as in llvm:main.c?with=util.c, or choose another objective than time"
        )
    lines = [line for line in said.splitlines() if line.strip()] or ["no reason given"]
    line = next((line for line in lines if "error:" in line), lines[0]).strip()
    return f"{name} does not link ({line[:200]}): {REMEDY}"
