"""A program as MLIR's own passes lower it, without any of ours: the reference of every check. In a child.

Tensors go to memory, operations become loops in the order in which they are written, and LLVM makes code of
these. No product and sum is fused to one operation, nothing is vectorised or reordered by us.
"""

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from irgym.envs.linalg.compiling.bindings import ir
from irgym.envs.linalg.compiling.compiler import function_of, mlir, parse, run_passes
from irgym.envs.linalg.compiling.executable import Executable
from irgym.envs.linalg.scheduling.operations import ELEMENTS, Program
from irgym.measure.arrays import aligned
from irgym.measure.machine import restart_clock

BRIEF = 3_000_000
"""Arithmetic operations for each of linalg, on average, below which LLVM's optimisations take longer than
the runs that they shorten."""

TO_MEMORY = (
    "one-shot-bufferize{bufferize-function-boundaries allow-return-allocs-from-loops "
    "function-boundary-type-conversion=identity-layout-map}",
    "buffer-results-to-out-params{modify-public-functions=true}",
)

TO_LLVM = (
    "convert-linalg-to-loops",
    "func.func(lower-affine)",
    "convert-scf-to-cf",
    "expand-strided-metadata",
    "lower-affine",
    "func.func(llvm-request-c-wrappers)",
    "convert-vector-to-llvm",
    "convert-math-to-llvm",
    "convert-math-to-libm",
    "arith-expand",
    "convert-index-to-llvm",
    "finalize-memref-to-llvm",
    "convert-arith-to-llvm",
    "convert-func-to-llvm",
    "convert-cf-to-llvm",
    "convert-ub-to-llvm",
    "reconcile-unrealized-casts",
)


def lower_plainly(module: Any) -> None:
    """Lower a program to LLVM's dialect in place, within `mlir`."""
    function = function_of(module)
    kept = ir.Attribute.parse("{bufferization.writable = false}")
    function.attributes["arg_attrs"] = ir.ArrayAttr.get([kept] * len(function.arguments))
    run_passes(module, ",".join((*TO_MEMORY, *TO_LLVM)))


class Plain:
    """A program that runs on any arguments.

    Args:
        text: The program.
        program: What it is made of.

    Raises:
        CompileError: MLIR or LLVM refuses it.
    """

    def __init__(self, text: str, program: Program) -> None:
        self._program = program
        restart_clock()
        with mlir():
            module = parse(text)
            lower_plainly(module)
            brief = program.flops < BRIEF * len(program.operations)
            self._code = Executable(module, (), level=0 if brief else 2)

    def __call__(self, inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Return its results."""
        restart_clock()
        results = [aligned(shape, ELEMENTS[element]) for shape, element in self._program.results]
        self._code.on([*inputs, *results]).run(1)
        return results
