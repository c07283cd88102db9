"""The content of C files with all that they include."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from irgym.base.closing import Closing
from irgym.base.reading import check_size
from irgym.core.cost import Call
from irgym.llvmir.programs.clang import FLAGS, included
from irgym.llvmir.programs.files import SourceFile
from irgym.measure.isolation.protocol import GIB
from irgym.measure.opening import Opener
from irgym.measure.store import content_digest

SECONDS = 10.0
"""Time limit for a small file, in seconds: a file of 3 MB takes some tenths of a second."""


class Included(Closing):
    """Digests of preprocessed C files, cached until one of the included files changes.

    Clang runs in a child with tighter limits than those of compilation: macros and included files may expand
    without end. Close it, or let it end with the process.
    """

    def __init__(self) -> None:
        remedy = "look for a macro or an included file that expands without end, or choose another file"
        self._opener = Opener("clang's preprocessor", remedy, SECONDS, GIB)
        self._known: dict[tuple[SourceFile, str, tuple[str, ...]], tuple[Mapping[str, int], str]] = {}

    def content(self, file: SourceFile, target: str, flags: Sequence[str] = FLAGS) -> str:
        """Return the digest of a preprocessed file.

        Args:
            file: The file.
            target: Name of the target.
            flags: Options of clang; macros follow from some.

        Raises:
            BackendError: The C compiler is not installed.
            ProgramError: The file is no C, or an included file is missing.
        """
        key = (file, target, tuple(flags))
        changed, found = self._known.get(key, ({}, ""))
        if not found or any(_changed(path) != when for path, when in changed.items()):
            arguments = (file.path, target, file.options, tuple(flags))
            call = Call("irgym.llvmir.programs.clang:preprocessed", arguments)
            text = self._opener.call(call, str(file.path), check_size(file.path))
            changed, found = {path: _changed(path) for path in included(text)}, content_digest(text)
            self._known[key] = changed, found
        return found

    def close(self) -> None:
        """End the child process."""
        self._opener.close()


def _changed(file: str) -> int:
    """Return the modification time of a file, in nanoseconds; -1 if it is gone."""
    try:
        return Path(file).stat().st_mtime_ns
    except OSError:
        return -1
