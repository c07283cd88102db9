"""Check of an import: the user's original file is run and compared with the imported program. In a child.

Both are lowered by MLIR's passes alone, and the file without any pass of the import. This works only for
functions on tensors of fixed shapes. Files with buffers, scalars, dynamic sizes, external functions, packing
or softmax are not compared, and neither are programs that take long.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.base.errors import ProgramError
from irgym.envs.linalg.checking.prepared import LONG, arguments_of, nudged
from irgym.envs.linalg.compiling.bindings import ir
from irgym.envs.linalg.compiling.compiler import ENTRY
from irgym.envs.linalg.compiling.contexts import CompileError, mlir, run_passes
from irgym.envs.linalg.compiling.plain import Plain
from irgym.envs.linalg.importing.cleaning import operations
from irgym.envs.linalg.importing.description import describe
from irgym.envs.linalg.importing.entry import chosen_of, functions_of
from irgym.envs.linalg.importing.reading import read
from irgym.envs.linalg.scheduling.operations import ELEMENTS
from irgym.measure.checking.agreement import agreement
from irgym.measure.checking.expected import rounded

SEED = 20261128
"""Seed of the inputs."""


def refuse_other_results(
    text: str, name: str, function: str, imported: str, constants: Mapping[int, NDArray[Any]]
) -> None:
    """Refuse a program whose results differ from those of the file that it was imported from.

    Args:
        text: Content of the file.
        name: Name of the file in errors.
        function: Name of the function that is the program; empty for the only one.
        imported: The program.
        constants: Values of its arguments that are constants in the file, by place.

    Raises:
        ProgramError: The results differ.
    """
    with mlir():
        as_given = _as_given(text, name, function)
    numbered, program = describe(imported)
    if as_given is None or program.flops > LONG:
        return
    given_text, count = as_given
    if count + len(constants) != len(program.arguments):  # uninitialised tensors became arguments
        return
    try:
        original, ours = Plain(given_text, program), Plain(numbered, program)
    except CompileError:
        return
    inputs = arguments_of(numbered, SEED)
    inputs = [np.ascontiguousarray(constants.get(place, array)) for place, array in enumerate(inputs)]
    given = [array for place, array in enumerate(inputs) if place not in constants]
    moved = original([nudged(array, SEED) for array in given])
    expected = [rounded(result, [near]) for result, near in zip(original(given), moved, strict=True)]
    found = agreement(expected, ours(inputs))
    if not found.ok:
        raise ProgramError(
            f"{name}: what is imported of it computes something else than the file itself ({found.detail}): "
            "please report it as a bug of irgym"
        )


def _as_given(text: str, name: str, function: str) -> tuple[str, int] | None:
    """Return the module of a file with the function as its entry, and the number of its arguments.

    Return None if the function cannot run without the rest of the module.
    """
    module = read(text, name, function)
    functions = functions_of(module)
    chosen = chosen_of(functions, name, function, {})
    for candidate, operation in functions.items():
        visibility = "public" if candidate == chosen else "private"
        operation.attributes["sym_visibility"] = ir.StringAttr.get(visibility)
    run_passes(module, "inline,symbol-dce")
    entry = functions_of(module)[chosen]
    alone = len(list(module.body.operations)) == 1
    kinds: Sequence[Any] = [*entry.type.inputs, *entry.type.results]
    asserts = any(operation.name == "cf.assert" for operation in operations(module))
    if not alone or asserts or not entry.type.results or not all(map(_is_plain, kinds)):
        return None
    entry.attributes["sym_name"] = ir.StringAttr.get(ENTRY)
    return str(module), len(entry.type.inputs)


def _is_plain(kind: Any) -> bool:
    return (
        isinstance(kind, ir.RankedTensorType) and kind.has_static_shape and str(kind.element_type) in ELEMENTS
    )
