"""Conversion of modules of users and of torch-mlir to programs. Imported in a child only.

A program is a module with one function, `main`, on tensors of fixed shapes. Assertions are dropped, and large
constants become arguments: a program is scheduled for its shapes, not for its weights.
"""

import re
from collections.abc import Mapping
from math import prod
from typing import Any

from numpy.typing import NDArray

from irgym.base.errors import ProgramError
from irgym.envs.linalg.compiling.bindings import ir
from irgym.envs.linalg.compiling.compiler import ENTRY, function_of
from irgym.envs.linalg.compiling.contexts import CompileError, mlir, parse, run_passes
from irgym.envs.linalg.importing.cleaning import clean, fill_arguments, lift_constants, operations
from irgym.envs.linalg.importing.entry import entry_of, functions_of, is_public, listed, roots_of
from irgym.envs.linalg.importing.fusing import fuse_elementwise
from irgym.envs.linalg.importing.given import refuse_other_results
from irgym.envs.linalg.importing.reading import FROM_TORCH, read, torch_dialect
from irgym.envs.linalg.programs.operators import MAX_ELEMENTS
from irgym.envs.linalg.scheduling.operations import ELEMENTS, NARROW

DIALECTS = frozenset({"linalg", "tensor", "arith", "math", "scf"})
"""Dialects of a program's operations, apart from its return."""

_NONE: Mapping[str, int] = {}


def program_of_file(text: str, name: str, function: str = "", sizes: Mapping[str, int] = _NONE) -> str:
    """Return a user's module as a program.

    Args:
        text: MLIR as text.
        name: Name of the program in errors.
        function: Name of the function; see `entry_of`.
        sizes: Values of dynamic sizes; see `entry_of`.

    Raises:
        ProgramError: It does not parse, or is not a program; the message says what to change.
    """
    try:
        with mlir():
            module = entry_of(read(text, name, function), name, function, sizes)
            constants = _finish(module, name)
            imported = str(module)
        if not sizes:
            refuse_other_results(text, name, function, imported, constants)
        return imported
    except CompileError as error:
        raise ProgramError(f"{name}: MLIR refuses it ({error}): simplify it") from error


def functions_of_file(text: str, name: str) -> list[str]:
    """Return the names of the functions of a user's module that may be programs.

    Raises:
        ProgramError: It does not parse.
    """
    try:
        with mlir():
            module = read(text, name, "")  # named, since its functions do not keep it alive
            return roots_of(functions_of(module))
    except CompileError as error:
        raise ProgramError(f"{name}: MLIR refuses it ({error}): simplify it") from error


def program_of_torch(
    text: str, name: str, tables: Mapping[int, NDArray[Any]]
) -> tuple[str, dict[int, NDArray[Any]]]:
    """Return a module in torch-mlir's dialect as a program, with large constants as arguments.

    Args:
        text: Output of torch-mlir's importer.
        name: Name of the program in errors.
        tables: Values of arguments that become constants, by place.

    Returns:
        The program; the values of the arguments that were constants, by place.

    Raises:
        ProgramError: torch-mlir cannot lower the module, or the result is not a program.
    """
    try:
        with mlir():
            torch_dialect.register_dialect(ir.Context.current)
            module = parse(text)
            for passes in FROM_TORCH:
                run_passes(module, passes)
            fill_arguments(function_of(module), tables)
            fuse_elementwise(function_of(module))
            values = _finish(module, name)
            return str(module), values
    except CompileError as error:
        # For example: failed to legalize operation 'torch.operator' ... : "torch.aten.fft_rfft"
        found = re.findall(r"torch\.(?:aten|prims?|operator)\.\w+(?:\.\w+)?", str(error))
        problem = f"cannot lower {listed(found)}" if found else f"refuses it ({error})"
        raise ProgramError(f"{name}: torch-mlir {problem}: write it with other operations") from error


def _finish(module: Any, name: str) -> dict[int, NDArray[Any]]:
    """Clean and check a module in place; return the values of arguments that were constants, by place."""
    clean(module)
    function = _only_function(module, name)
    _check_signature(function, name)
    _check_body(function, name)
    values = lift_constants(function, name)
    function.attributes["sym_name"] = ir.StringAttr.get(ENTRY)
    return values


def _only_function(module: Any, name: str) -> Any:
    functions = [operation for operation in module.body.operations if operation.operation.name == "func.func"]
    public = [function for function in functions if not function.is_external and is_public(function)]
    if len(public) != 1:
        found = listed([f"@{function.name.value}" for function in public]) if public else "none"
        raise ProgramError(f"{name} must have one public function with a body, but has {found}")
    others = [operation.operation.name for operation in module.body.operations if operation not in public]
    if others:
        raise ProgramError(
            f"{name} has more than its function @{public[0].name.value} ({listed(others)}): "
            "inline what it calls and remove global state and random numbers"
        )
    return public[0]


def _check_signature(function: Any, name: str) -> None:
    signature = function.type
    for role, types in (("argument", signature.inputs), ("result", signature.results)):
        for place, kind in enumerate(types):
            _check_type(kind, f"{name}: {role} {place}")
            if not isinstance(kind, ir.RankedTensorType):
                raise ProgramError(
                    f"{name}: {role} {place} is {kind}: only tensors of fixed shapes can be passed"
                )
    if not signature.results:
        raise ProgramError(f"{name} returns nothing: return tensors")


def _check_body(function: Any, name: str) -> None:
    foreign: list[str] = []
    inside = list(operations(function))
    for operation in inside:
        if operation.name != "func.return" and operation.name.partition(".")[0] not in DIALECTS:
            foreign.append(operation.name)
        for value in operation.results:
            _check_type(value.type, f"{name}: a result of {operation.name}")
    if foreign:
        raise ProgramError(
            f"{name} has operations that cannot be scheduled ({listed(foreign)}): "
            f"lower them to {', '.join(sorted(DIALECTS))} first"
        )
    if not any(operation.name.startswith("linalg.") for operation in inside):
        raise ProgramError(f"{name} has no linalg operation: there is nothing to schedule")


def _check_type(kind: Any, what: str) -> None:
    """Refuse buffers, dynamic shapes, huge tensors and unsupported element types."""
    if isinstance(kind, ir.MemRefType | ir.UnrankedMemRefType):
        raise ProgramError(f"{what} is {kind}: give the program on tensors, before bufferisation")
    if not isinstance(kind, ir.ShapedType):
        return
    if not isinstance(kind, ir.RankedTensorType) or not kind.has_static_shape:
        raise ProgramError(f"{what} has a dynamic shape ({kind}): fix every size")
    if prod(kind.shape) > MAX_ELEMENTS:
        raise ProgramError(f"{what} is {kind}, of more than {MAX_ELEMENTS} elements: choose smaller sizes")
    element = str(kind.element_type)
    if element not in ELEMENTS and element not in NARROW:
        raise ProgramError(f"{what} is {kind}: convert it to float32 or float64")
