"""Programs as modules that are scored: each is made once, in a child process, and kept in the cache."""

from collections import OrderedDict
from pathlib import Path

from irgym.core.closing import Closing
from irgym.core.cost import Call
from irgym.core.errors import IrgymError, ProgramError, explained
from irgym.core.uri import ProgramUri
from irgym.envs.cse.ir.analysis import Analysed, analysed
from irgym.envs.cse.ir.modules import ModuleText
from irgym.envs.cse.programs.clang import FLAGS
from irgym.envs.cse.programs.uris import C, file_of, function_of
from irgym.envs.cse.toolchain import clang_version, llvm_version
from irgym.measure.evaluators import error_of
from irgym.measure.isolation.child import Child
from irgym.measure.isolation.protocol import GIB, Crashed, Limits, Raised, Returned
from irgym.measure.store import Store, content_digest, digest, stem_of

LIMITS = Limits(timeout_s=600.0, memory_bytes=8 * GIB)
"""What making a module may take."""

STORE = Store("cse/modules", ".ll")
"""Modules, prepared."""

HELD = 8
"""Modules that are held, those used last."""

LISTED = 12
"""Functions that a message lists."""


class Sources(Closing):
    """Makes modules of programs. Close it, or let it go with the process."""

    def __init__(self) -> None:
        self._child = Child(LIMITS)
        self._modules: OrderedDict[Path, ModuleText] = OrderedDict()

    def module(self, program: ProgramUri, target: str) -> Path:
        """Return the file of a program's module, making it where that was not done before.

        Args:
            program: The program.
            target: Name of what code is made for.

        Raises:
            BackendError: llvmlite is not installed, or the compiler of C.
            ProgramError: The file cannot be read, or is no code.
            StorageError: The cache folder cannot be written.
        """
        file = file_of(program)
        with explained(f"cannot read {file}", "check the path and its permissions", ProgramError):
            content = file.read_bytes()
        made_by = [clang_version(), *FLAGS] if file.suffix.lower() == C else []
        # C may include what lies beside it: then the path is a part of what the module depends on.
        parts = (file.suffix, content, str(file.absolute()), target, llvm_version(), *made_by)
        return STORE.get(f"{stem_of(file.stem)}-{digest(*parts)}", lambda: self._made(file, target))

    def _made(self, file: Path, target: str) -> bytes:
        call = Call("irgym.envs.cse.programs.preparing:prepared", (str(file), target))
        reply = self._child.call(call)
        if isinstance(reply, Returned):
            return reply.value
        if isinstance(reply, Raised):
            raise error_of(call, reply)
        if isinstance(reply, Crashed):
            raise ProgramError(f"{file}: LLVM aborted while reading it: {reply.detail}")
        raise IrgymError(f"{file} cannot be read here ({reply}): choose a smaller file")

    def function(self, program: ProgramUri, module: Path) -> Analysed:
        """Return what is known of the function that a program names.

        Args:
            program: The program.
            module: Its module.

        Raises:
            ProgramError: It names none, though there are several, or one that the file does not define; or
                the function is of a form that cannot be read.
        """
        text = self._text(module)
        name, file = function_of(program), file_of(program)
        if not name:
            raise ProgramError(f"{program.uri} names no function: write one after #, of {_listed(text)}")
        if f"@{name}" not in text.functions:
            raise ProgramError(f"{file} defines no function {name!r}: choose among {_listed(text)}")
        return analysed(text, f"@{name}")

    def _text(self, module: Path) -> ModuleText:
        found = self._modules.pop(module, None)
        found = self._modules[module] = found or ModuleText.read(module.read_text())
        if len(self._modules) > HELD:
            self._modules.popitem(last=False)
        return found

    def close(self) -> None:
        """End the child process."""
        self._child.close()


def content_of(module: Path) -> str:
    """Return what stands for the content of a module."""
    return content_digest(module.read_bytes())


def _listed(text: ModuleText) -> str:
    names = [name.removeprefix("@").strip('"') for name in text.functions]
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return (", ".join(names[:LISTED]) or "none: it defines no function") + more
