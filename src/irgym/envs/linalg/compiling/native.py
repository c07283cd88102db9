"""A program as a C function on plain pointers, in an object file. Imported in a child only."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from irgym.core.target import Target
from irgym.envs.linalg.compiling.compiler import ENTRY, lower, make_for, make_internal
from irgym.envs.linalg.compiling.contexts import mlir, parse
from irgym.envs.linalg.compiling.executable import engine_of, entry_of
from irgym.envs.linalg.compiling.openmp import runtime_calls
from irgym.envs.linalg.importing.description import describe
from irgym.envs.linalg.scheduling.operations import Program


def object_file(text: str, script: str, target: Target, threads: int | None, name: str) -> bytes:
    """Return the object file of a function that computes a program, in ELF's format.

    It takes pointers to the arguments, then to the results, each an array in row-major order.

    Args:
        text: The program, its operations numbered.
        script: The schedule; empty for none.
        target: Target of the code.
        threads: Threads of parallel loops; None makes them sequential.
        name: Name of the function.

    Raises:
        CompileError: MLIR refuses the schedule.
    """
    program = describe(text)[1]
    with mlir():
        module = lower(text, script, threads)
        _wrap(module, program, name)
        make_for(module, target)
        engine = engine_of(module, runtime_calls() if threads else {})
        entry_of(engine, name)  # compiles; engines keep their object files
        with TemporaryDirectory() as folder:
            path = Path(folder, "program.o")
            engine.dump_to_object_file(str(path))
            return path.read_bytes()


def _wrap(module: Any, program: Program, name: str) -> None:
    """Add a wrapper function to a module in LLVM's dialect, and make all others internal, in place.

    The engine's wrapper around it stays in the object file, unused. It calls the function: inlined there, a
    small program would be compiled again, for this machine instead of the target.
    """
    for function in module.body.operations:
        if function.operation.name == "llvm.func" and len(function.operation.regions[0].blocks):
            make_internal(function)
    # The call is verified together with its callee, so that a declaration of the callee comes first.
    beside = parse(_wrapper(program, name))
    *_, wrapper = beside.body.operations
    module.body.append(wrapper)


def _wrapper(program: Program, name: str) -> str:
    """Return a module with a function on pointers, and a declaration of the program that it calls.

    The program takes offsets, sizes and strides in addition to pointers.
    """
    lines: list[str] = []
    given: list[str] = []
    types: list[str] = []
    arrays = (*program.arguments, *program.results)
    for place, (shape, _) in enumerate(arrays):
        strides = [1] * len(shape)
        for axis in reversed(range(len(shape) - 1)):
            strides[axis] = strides[axis + 1] * shape[axis + 1]
        given += [f"%p{place}"] * 2
        types += ["!llvm.ptr"] * 2
        for number in (0, *shape, *strides):
            value = f"%n{len(lines)}"
            lines.append(f"{value} = llvm.mlir.constant({number} : i64) : i64")
            given.append(value)
            types.append("i64")
    lines.append(f"llvm.call @{ENTRY}({', '.join(given)}) : ({', '.join(types)}) -> ()")
    lines.append("llvm.return")
    pointers = ", ".join(f"%p{place}: !llvm.ptr" for place in range(len(arrays)))
    called = f"llvm.func @{ENTRY}({', '.join(types)})"
    return (
        f"{called}\nllvm.func @{name}({pointers}) attributes {{no_inline}} {{\n  "
        + "\n  ".join(lines)
        + "\n}"
    )
