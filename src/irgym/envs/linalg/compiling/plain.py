"""A program lowered by MLIR's passes alone, the reference of every check. Imported in a child only.

Tensors become buffers, operations become loops in program order, and LLVM compiles the loops. None of irgym's
lowering is used: no products and sums are fused, and nothing is vectorised or reordered.
"""

import ctypes
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.envs.linalg.compiling.bindings import ir
from irgym.envs.linalg.compiling.compiler import SHORT_FLOATS, TO_BFLOAT, function_of, has_short_floats
from irgym.envs.linalg.compiling.contexts import mlir, parse, run_passes
from irgym.envs.linalg.compiling.executable import Executable
from irgym.envs.linalg.importing.description import describe
from irgym.envs.linalg.scheduling.operations import ELEMENTS, Program
from irgym.measure.arrays import aligned
from irgym.measure.machine import restart_clock

BRIEF = 3_000_000
"""Arithmetic operations for each linalg operation, on average, below which LLVM's optimisations take longer
than the time that they save."""

TO_MEMORY = (
    "one-shot-bufferize{bufferize-function-boundaries allow-return-allocs-from-loops "
    "function-boundary-type-conversion=identity-layout-map}",
    "buffer-results-to-out-params{modify-public-functions=true}",
    "ownership-based-buffer-deallocation",
    "canonicalize",
    "buffer-deallocation-simplification",
    "bufferization-lower-deallocations",
    "func.func(optimize-allocation-liveness)",
    "convert-linalg-to-loops",
)

TO_LLVM = (
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
    run_passes(module, ",".join(TO_MEMORY))
    short = has_short_floats(module)
    if short:
        run_passes(module, SHORT_FLOATS)
    run_passes(module, ",".join(TO_LLVM))
    if short:
        module.body.append(ir.Operation.parse(TO_BFLOAT))


class _Unranked(ctypes.Structure):
    """An unranked buffer as MLIR passes it: the rank, and a pointer to the descriptor."""

    _fields_ = (("rank", ctypes.c_int64), ("descriptor", ctypes.POINTER(ctypes.c_int64)))


@ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.POINTER(_Unranked), ctypes.POINTER(_Unranked))
def _memref_copy(size: int, source: Any, target: Any) -> None:
    """Copy a buffer, as the function `memrefCopy` of MLIR's runtime library does."""
    np.copyto(_viewed(target.contents, size), _viewed(source.contents, size))


def _viewed(buffer: Any, size: int) -> NDArray[np.void]:
    """Return a buffer as an array of elements of `size` bytes.

    The descriptor holds two addresses (allocated, aligned), an offset, sizes, and strides in elements.
    """
    rank, words = buffer.rank, buffer.descriptor
    shape = tuple(words[3 : 3 + rank])
    if not math.prod(shape):
        return np.empty(shape, f"V{size}")
    strides = [stride * size for stride in words[3 + rank : 3 + 2 * rank]]
    last = sum((length - 1) * stride for length, stride in zip(shape, strides, strict=True))
    memory = (ctypes.c_char * (last + size)).from_address(words[1] + words[2] * size)
    return np.ndarray(shape, f"V{size}", memoryview(memory), strides=strides)


CALLS = {"memrefCopy": ctypes.cast(_memref_copy, ctypes.c_void_p)}
"""Functions of MLIR's runtime library that lowered programs call."""


class Plain:
    """A plainly lowered program that runs on any arguments.

    Args:
        text: The program.
        program: Description of the program.

    Raises:
        CompileError: MLIR or LLVM refuses the program.
    """

    def __init__(self, text: str, program: Program) -> None:
        self._program = program
        restart_clock()
        with mlir():
            module = parse(text)
            lower_plainly(module)
            brief = program.flops < BRIEF * len(program.operations)
            self._code = Executable(module, (), CALLS, level=0 if brief else 2)

    def __call__(self, inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Return the program's results."""
        restart_clock()
        results = [aligned(shape, ELEMENTS[element]) for shape, element in self._program.results]
        self._code.on([*inputs, *results]).run(1)
        return results


@lru_cache(maxsize=1)
def _plain(text: str) -> tuple[Plain, Program]:
    program = describe(text)[1]
    return Plain(text, program), program


def computed(text: str, inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Return the results of a program, which stays compiled until another program is called.

    Args:
        text: The program.
        inputs: Its arguments, with any strides.
    """
    run, program = _plain(text)
    pairs = zip(inputs, program.arguments, strict=True)
    # ascontiguousarray makes arrays without dimensions one-dimensional.
    return run([np.ascontiguousarray(array, ELEMENTS[kind]).reshape(shape) for array, (shape, kind) in pairs])
