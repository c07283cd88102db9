"""Programs as modules that are scored: each is made once, in a child process, and kept in the cache."""

from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path

from irgym.base.closing import Closing
from irgym.base.errors import ProgramError
from irgym.base.reading import check_size, content_of_program
from irgym.core.cost import Call
from irgym.core.uri import ProgramUri
from irgym.envs.cse.compiling.toolchain import clang_version, llvm_version
from irgym.envs.cse.ir.analysis import Analysed, analysed
from irgym.envs.cse.ir.linking import aliasee
from irgym.envs.cse.ir.modules import ModuleText
from irgym.envs.cse.ir.syntax import bare
from irgym.envs.cse.programs.clang import FLAGS, included
from irgym.envs.cse.programs.files import SourceFile
from irgym.envs.cse.programs.uris import function_of, listed, member_of
from irgym.measure.code_digest import digest_of
from irgym.measure.opening import Opener
from irgym.measure.store import Store, content_digest, digest, stem_of

SECONDS = 30.0
"""Seconds that the preprocessor, or clang and LLVM, may take for a small file: it may include large ones."""

CODE = (
    "envs/cse/compiling",
    *(f"envs/cse/programs/{name}.py" for name in ("clang", "files", "lowering", "preparing", "targets")),
)
"""The sources that prepare modules."""

STORE = Store("cse/modules", ".ll")
"""Modules, prepared."""

HELD = 8
"""Modules that are held, those used last."""


class Sources(Closing):
    """Makes modules of programs. Close it, or let it go with the process."""

    def __init__(self) -> None:
        self._opener = Opener("clang or LLVM", seconds=SECONDS)
        self._modules: OrderedDict[Path, ModuleText] = OrderedDict()
        self._named: dict[Path, list[str]] = {}
        self._included = _Included(self._opener)

    def module(self, source: SourceFile, target: str) -> Path:
        """Return the file of a module, making it where that was not done before.

        Args:
            source: The file that it is made of.
            target: Name of what code is made for.

        Raises:
            BackendError: llvmlite is not installed, or the compiler of C.
            ProgramError: The file cannot be read, or is no code.
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
        """Return what is known of the function that a program names.

        Args:
            program: The program.
            module: Its module.

        Raises:
            ProgramError: It names none, though there are several, or one that the file does not define; or
                the function is of a form that cannot be read.
        """
        text = self._text(module)
        name, file = function_of(program), program.path or member_of(program)
        if not name:
            raise ProgramError(f"{program.uri} names no function: write one after #, of {_listed(text)}")
        names = {bare(one): one for one in text.functions}
        names |= {
            bare(alias): symbol
            for alias, line in text.entries.items()
            if (symbol := aliasee(line)) in text.functions
        }
        if name not in names:
            raise ProgramError(f"{file} defines no function {name!r}: choose among {_listed(text)}")
        return analysed(text, names[name])

    def with_candidates(self, module: Path) -> list[str]:
        """Return the names of a module's functions that have candidates, those with the fewest first.

        Functions that cannot be read are among them: whoever asks for one is told why.
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
        """End the child process."""
        self._opener.close()


class _Included:
    """What files of C consist of with all that they include, as long as none of these changes."""

    def __init__(self, opener: Opener) -> None:
        self._opener = opener
        self._known: dict[tuple[SourceFile, str], tuple[Mapping[str, int], str]] = {}

    def content(self, file: SourceFile, target: str) -> str:
        """Return what stands for a file with all that it includes.

        Raises:
            BackendError: The compiler of C is not installed.
            ProgramError: The file is no C, or includes what is not there.
        """
        changed, found = self._known.get((file, target), ({}, ""))
        if not found or any(_changed(one) != when for one, when in changed.items()):
            call = Call("irgym.envs.cse.programs.clang:preprocessed", (file.path, target, file.options))
            text = self._opener.call(call, str(file.path), check_size(file.path))
            changed, found = {one: _changed(one) for one in included(text)}, content_digest(text)
            self._known[file, target] = changed, found
        return found


def _changed(file: str) -> int:
    """Return when a file was changed last, in nanoseconds; -1 where it is gone."""
    try:
        return Path(file).stat().st_mtime_ns
    except OSError:
        return -1


def content_of(module: Path) -> str:
    """Return what stands for the content of a module."""
    return content_digest(module.read_bytes())


def _candidates(text: ModuleText, name: str) -> int | None:
    """Return how many candidates a function has; None where it cannot be read."""
    try:
        return len(analysed(text, name).candidates)
    except ProgramError:
        return None


def _listed(text: ModuleText) -> str:
    return listed([bare(name) for name in text.functions]) or "none: it defines no function"
