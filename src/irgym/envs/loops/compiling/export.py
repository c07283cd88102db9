"""Export of scheduled nests for use without irgym: C source, object file, shared library."""

import re
import tempfile
from pathlib import Path

from irgym.base.errors import BackendError, IrgymError, ScheduleError, StorageError
from irgym.base.files import write_files
from irgym.core.task import form_of
from irgym.envs.loops.compiling import c_source
from irgym.envs.loops.compiling.backends import ONE_THREAD, Backend, ThreadedBackend
from irgym.envs.loops.compiling.lower import CodeTooLarge, lower
from irgym.envs.loops.nest import Nest
from irgym.envs.loops.programs.contraction import Contraction
from irgym.measure.linking import shared_library
from irgym.measure.target import host_target

FORMS = {".c": "C source", ".o": "object file", ".so": "shared library"}
"""Forms of export by suffix."""


def export(
    contraction: Contraction, nest: Nest, backend: Backend, path: Path, name: str = "irgym_kernel"
) -> list[Path]:
    """Write `void name(const float *a, const float *b, float *c)`, which computes a contraction.

    The types are those of its elements; a contraction of one input has no `b`.

    Args:
        contraction: The program.
        nest: Its schedule.
        backend: Compiler of the machine code; for C source, only its target matters.
        path: File to write; its suffix selects the form: `.c` for C source, `.o` for an object file, `.so`
            for a shared library. The latter two get a header beside them.
        name: Name of the function.

    Returns:
        The files written, `path` first. Each is written whole or not at all.

    Raises:
        IrgymError: The suffix is unknown, or the name is not an identifier of C.
        BackendError: The linker of a shared library is missing or fails.
        ScheduleError: The code would be too long.
        StorageError: A file cannot be written.
    """
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise IrgymError(f"{name!r} cannot name a C function: use letters, digits and underscores")
    form = form_of(path, FORMS)
    if isinstance(backend, ThreadedBackend):
        raise BackendError(ONE_THREAD.format(name=backend.generator.name))
    try:
        if form == ".c":
            source = c_source.emit(lower(contraction, nest, backend.target), contraction, nest, name)
            files = {path: source.encode()}
        else:
            content = backend.object_file(contraction, nest, name)
            if form == ".so":
                content = shared_library(content, instead="export a .o or .c file")
            header = _header(contraction, nest, backend, path, name)
            files = {path: content, path.with_suffix(".h"): header.encode()}
    except CodeTooLarge as error:
        raise ScheduleError(f"{error}: unroll or split less") from None
    except OSError as error:
        raise StorageError(
            f"cannot write to {tempfile.gettempdir()} ({error.strerror}): free some space or set TMPDIR"
        ) from error
    write_files(files)
    return list(files)


def _header(contraction: Contraction, nest: Nest, backend: Backend, path: Path, name: str) -> str:
    notes = [
        f"Compiled by: {backend.toolchain()}",
        _runs_on(backend),
        f"Link with: {path.name}",
    ]
    guard = f"{name.upper()}_H"
    lines = [
        *c_source.comment(contraction, nest, name, notes),
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        *(["#include <stdint.h>", ""] if contraction.elements.bytes < contraction.elements.sum_bytes else []),
        "#ifdef __cplusplus",
        'extern "C"',
        "#endif",
        # C++ lacks restrict, and in C it is not part of the function's type.
        f"{c_source.signature(name, contraction).replace('restrict ', '')};",
        "",
        "#endif",
    ]
    return "\n".join(lines) + "\n"


def _runs_on(backend: Backend) -> str:
    """Return the line on processors that run the code of a back end."""
    exactly = backend.name == "llvm" and backend.target.name == host_target().name
    others = " and the other instruction sets of the one that it was compiled on" if exactly else ""
    return f"Runs on: processors with {backend.target.name}{others}"
