"""Files of modules after their passes."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from irgym.base.files import write_files
from irgym.core.task import form_of
from irgym.envs.llvm.actions import passes_of
from irgym.envs.llvm.compiling.modules import ProgramModules
from irgym.measure.passes.store import Path as PassPath

FORMS: Mapping[str, str] = MappingProxyType(
    {".ll": "LLVM's IR as text", ".bc": "bitcode", ".o": "object file", ".txt": "passes for opt"}
)
"""The suffixes that `export` writes, and what each stands for."""


def export(modules: ProgramModules, path: PassPath, file: Path) -> list[Path]:
    """Write a module after its passes, or the passes as a command for LLVM's opt.

    Raises:
        IrgymError: The suffix is none of `FORMS`, or LLVM generates no code.
        StorageError: The file cannot be written.
    """
    makers: dict[str, Callable[[], bytes]] = {
        ".ll": lambda: str(modules.ask("text", path)).encode(),
        ".bc": lambda: _bytes(modules.ask("bitcode", path)),
        ".o": lambda: _bytes(modules.ask("code", path)),
        ".txt": lambda: opt_commands(modules, path).encode(),
    }
    write_files({file: makers[form_of(file, FORMS)]()})
    return [file]


def opt_commands(modules: ProgramModules, path: PassPath) -> str:
    """Return the command, on a line, that does the same: a call of opt, or of one for each pass.

    Within a call, passes use what earlier ones learnt of a module, and now and then decide otherwise.
    """
    joined = modules.ask("at_once", path)
    if joined or not path:
        return f"opt -passes='{joined}'\n"
    release = int(modules.pool.backend.rpartition("-")[2])
    return " | ".join(f"opt -passes='{passes_of(kind, release)}'" for kind in path) + "\n"


def _bytes(content: object) -> bytes:
    assert isinstance(content, bytes)
    return content
