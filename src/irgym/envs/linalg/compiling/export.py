"""Export of a schedule, the scheduled program and its code, for use without irgym."""

import re
from collections.abc import Sequence
from itertools import chain, repeat
from pathlib import Path

from irgym.base.files import write_files
from irgym.core.cost import Call
from irgym.core.target import Target
from irgym.core.task import form_of
from irgym.envs.linalg.compiling.openmp import runtime
from irgym.envs.linalg.programs.sources import LIMITS, answer
from irgym.envs.linalg.scheduling.operations import Program
from irgym.envs.linalg.scheduling.script import transform_module
from irgym.measure.isolation.child import Child
from irgym.measure.linking import shared_library
from irgym.measure.machine import threads_text
from irgym.measure.target import host_target

TRANSFORM = ".transform.mlir"

FORMS = {
    ".mlir": "the program after the schedule",
    TRANSFORM: "the schedule itself",
    ".ll": "LLVM's code",
    ".o": "object file and C header",
    ".so": "shared library and C header",
}
"""Forms that can be exported, by suffix."""


C_TYPES = {
    "f32": "float",
    "f64": "double",
    "i1": "bool",
    "i8": "int8_t",
    "i16": "int16_t",
    "i32": "int32_t",
    "i64": "int64_t",
    "index": "int64_t",
}
"""C types of elements."""


def export(
    text: str,
    program: Program,
    script: str,
    target: Target,
    threads: int | None,
    path: Path,
    names: Sequence[str] = (),
) -> list[Path]:
    """Write the schedule, the scheduled program, or its code, according to the file's suffix.

    An object file or a shared library comes with a header; the function is called `irgym_` and the file's
    name. The schedule is a transform-dialect script, and comes with the program that it applies to.

    Args:
        text: The program's MLIR, the operations numbered.
        program: Description of the program.
        script: The schedule; empty if nothing is transformed.
        target: Target of the code.
        threads: Threads of parallel loops; None makes them sequential.
        path: File to write.
        names: Names of the first arguments, for the header's comments.

    Raises:
        IrgymError: The suffix is unknown, or MLIR refuses the schedule.
        BackendError: A shared library is wanted, and there is no linker or it fails.
        StorageError: A file cannot be written.
    """
    suffix = form_of(path, FORMS)
    if suffix == TRANSFORM:
        beside = path.with_name(path.name[: -len(TRANSFORM)] + ".program.mlir")
        files = {path: script or transform_module(""), beside: text}
    elif suffix in (".o", ".so"):
        name = "irgym_" + re.sub(r"\W", "_", path.stem, flags=re.ASCII)
        call = Call("irgym.envs.linalg.compiling.native:object_file", (text, script, target, threads, name))
        with Child(LIMITS) as child:
            content: bytes = answer(child, call, "the schedule")
        if suffix == ".so":
            content = shared_library(content, ("m", runtime().path) if threads else ("m",))
        header = _header(program, target, threads, path, name, names)
        write_files({path: content, path.with_suffix(".h"): header.encode()})
        return [path, path.with_suffix(".h")]
    else:
        form = "llvm" if suffix == ".ll" else "mlir"
        call = Call("irgym.envs.linalg.runner:written", (text, script, form, target, threads))
        with Child(LIMITS) as child:
            files = {path: answer(child, call, "the schedule")}
    write_files({file: content.encode() for file, content in files.items()})
    return list(files)


def _header(
    program: Program, target: Target, threads: int | None, path: Path, name: str, names: Sequence[str]
) -> str:
    """Return a C header, which says what the function takes, in which order, and where it runs."""
    arrays = [
        *((f"arg{place}", "const ", *tensor) for place, tensor in enumerate(program.arguments)),
        *((f"result{place}", "", *tensor) for place, tensor in enumerate(program.results)),
    ]
    described = [
        f"{array}: {_array(shape, element)}" + (f", {name.replace('*/', '')}" if name else "")
        for (array, _, shape, element), name in zip(arrays, chain(names, repeat("")), strict=False)
    ]
    taken = ",\n    ".join(f"{kept}{C_TYPES[element]} *{array}" for array, kept, _, element in arrays)
    here = target.name == host_target().name
    others = " and the other instruction sets of the one that it was compiled on" if here else ""
    runs_on = f"processors with {target.name}{others}"
    lines = [
        "/*",
        " * Written by irgym. Arrays are in row-major order; they may not overlap.",
        *(f" *   {line}" for line in described),
        f" * Runs on: {runs_on}, {threads_text(threads or 1)}",
        f" * Link with: {path.name}, -lm" + (f" and an OpenMP runtime: {runtime().path}" if threads else ""),
        " */",
        f"#ifndef {name.upper()}_H",
        f"#define {name.upper()}_H",
        "",
        "#include <stdbool.h>",
        "#include <stdint.h>",
        "",
        "#ifdef __cplusplus",
        'extern "C"',
        "#endif",
        f"void {name}(\n    {taken});",
        "",
        "#endif",
    ]
    return "\n".join(lines) + "\n"


def _array(shape: tuple[int, ...], element: str) -> str:
    return " x ".join(map(str, shape)) + f" {C_TYPES[element]}" if shape else f"one {C_TYPES[element]}"
