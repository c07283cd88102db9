"""Prepared modules of programs: each is made once, in a child, and kept in the cache."""

from collections import OrderedDict
from pathlib import Path

from irgym.base.closing import Closing
from irgym.base.errors import ProgramError
from irgym.base.reading import check_size, content_of_program
from irgym.core.cost import Call
from irgym.core.uri import ProgramUri
from irgym.envs.cse.compiling.toolchain import llvm_version
from irgym.envs.cse.ir.analysis import Analysed, analysed
from irgym.llvmir.ir.linking import aliasee
from irgym.llvmir.ir.modules import ModuleText
from irgym.llvmir.ir.syntax import bare
from irgym.llvmir.programs.clang import FLAGS, clang_version
from irgym.llvmir.programs.files import SourceFile, function_of, listed, member_of
from irgym.llvmir.programs.included import Included
from irgym.measure.code_digest import digest_of
from irgym.measure.opening import Opener
from irgym.measure.store import Store, content_digest, digest, stem_of

SECONDS = 30.0
"""Time limit for preparing a small file, in seconds: it may include large files."""

CODE = (
    "envs/cse/compiling",
    *(f"envs/cse/programs/{name}.py" for name in ("lowering", "preparing", "targets")),
    *(f"llvmir/programs/{name}.py" for name in ("clang", "files", "machines")),
)
"""Sources of irgym that prepare modules."""

STORE = Store("cse/modules", ".ll")
"""Prepared modules."""

HELD = 8
"""Number of parsed modules kept in memory, the most recently used ones."""


class Sources(Closing):
    """Prepares the modules of programs. Close it, or let it end with the process."""

    def __init__(self) -> None:
        self._opener = Opener("clang or LLVM", seconds=SECONDS)
        self._modules: OrderedDict[Path, ModuleText] = OrderedDict()
        self._named: dict[Path, list[str]] = {}
        self._included = Included()

    def module(self, source: SourceFile, target: str) -> Path:
        """Return the file of a prepared module, preparing it if needed.

        Args:
            source: The source file.
            target: Name of the target.

        Raises:
            BackendError: llvmlite or the C compiler is not installed.
            ProgramError: The file cannot be read or compiled.
            StorageError: The cache folder cannot be written.
        """
        file = source.path
        content = content_of_program(file)
        if source.compiled and not source.pinned:
            content = self._included.content(source, target)
        made_by = [clang_version(), *FLAGS, *source.options] if source.compiled else []
        prepared_by = [llvm_version(), digest_of(*CODE)]
        parts = (file.suffix, content, str(file.absolute()), target, *prepared_by, *made_by)
        return STORE.get(f"{stem_of(file.stem)}-{digest(*parts)}", lambda: self._made(source, target))

    def _made(self, source: SourceFile, target: str) -> bytes:
        file = source.path
        call = Call("irgym.envs.cse.programs.preparing:prepared", (str(file), target, source.options))
        return self._opener.call(call, str(file), check_size(file))

    def function(self, program: ProgramUri, module: Path) -> Analysed:
        """Analyse the function that a program names.

        Args:
            program: The program.
            module: File of its module.

        Raises:
            ProgramError: The program names no function, or one that the file does not define, or one that cse
                cannot read.
        """
        text = self._text(module)
        name, file = function_of(program), program.path or member_of(program)
        if not name:
            raise ProgramError(f"{program.uri} names no function: write one after #, of {_listed(text)}")
        names = {bare(function): function for function in text.functions}
        names |= {
            bare(alias): symbol
            for alias, line in text.entries.items()
            if (symbol := aliasee(line)) in text.functions
        }
        if name not in names:
            raise ProgramError(f"{file} defines no function {name!r}: choose among {_listed(text)}")
        return analysed(text, names[name])

    def with_candidates(self, module: Path) -> list[str]:
        """Return the names of a module's functions with candidates, those with the fewest first.

        Functions that cse cannot read are included: `function` raises an error that says why.
        """
        if module not in self._named:
            text = self._text(module)
            counts = {bare(name): _candidates(text, name) for name in text.functions}
            found = [name for name, count in counts.items() if count != 0]
            self._named[module] = sorted(found, key=lambda name: counts[name] or 0)
        return self._named[module]

    def _text(self, module: Path) -> ModuleText:
        found = self._modules.pop(module, None)
        found = self._modules[module] = found or ModuleText.read(module.read_text())
        if len(self._modules) > HELD:
            self._modules.popitem(last=False)
        return found

    def close(self) -> None:
        """End the child processes."""
        self._included.close()
        self._opener.close()


def content_of(module: Path) -> str:
    """Return the digest of a module's content."""
    return content_digest(module.read_bytes())


def _candidates(text: ModuleText, name: str) -> int | None:
    """Return the number of candidates of a function; None if cse cannot read it."""
    try:
        return len(analysed(text, name).candidates)
    except ProgramError:
        return None


def _listed(text: ModuleText) -> str:
    return listed([bare(name) for name in text.functions]) or "none: it defines no function"
