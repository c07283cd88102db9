"""Compiled programs and kernels in this process. Imported in a child only."""

import copy
import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

from numpy.typing import NDArray

from irgym.core.target import Target
from irgym.envs.linalg.compiling.bindings import ExecutionEngine, get_ranked_memref_descriptor, ir
from irgym.envs.linalg.compiling.compiler import ENTRY, Apart, make_for, make_internal, to_llvm
from irgym.envs.linalg.compiling.contexts import CompileError, parse
from irgym.envs.linalg.compiling.kernels import KERNEL
from irgym.envs.linalg.compiling.openmp import runtime_calls

KEPT = 512
"""Number of compiled kernels that a process keeps: those of several networks."""


FASTEST = 3
"""LLVM's optimisation level for the fastest code, as with -O3."""

INTERFACE = f"_mlir_ciface_{ENTRY}"
"""Function that takes the program's arguments by reference, and calls it."""

Entry = Any
"""A function of compiled code, called with an array of the addresses of its arguments and results."""


def engine_of(module: Any, calls: Mapping[str, ctypes.c_void_p], level: int = FASTEST) -> Any:
    """Return an execution engine with the machine code of a module in LLVM's dialect, within `mlir`.

    Args:
        module: The module.
        calls: Addresses of the functions that it calls apart from C's, by name.
        level: LLVM's optimisation level, 0 to 3.
    """
    engine = ExecutionEngine(module, opt_level=level)
    for name, address in calls.items():
        engine.raw_register_runtime(name, address)
    engine.initialize()
    return engine


def _compile_once(module: Any, name: str) -> None:
    """Let a function of a module in LLVM's dialect be compiled only once, for its target, in place.

    Engines add a wrapper for this machine to each public function, and call programs by it. LLVM would inline
    small functions there, and compile these copies too: four times as much code, and not for the target.
    """
    functions = module.body.operations
    function = next(other for other in functions if other.attributes["sym_name"].value == name)
    make_internal(function)
    function.attributes["no_inline"] = ir.UnitAttr.get()


def entry_of(engine: Any, name: str) -> Entry:
    """Return a function of compiled code.

    Raises:
        CompileError: There is none of that name.
    """
    address = engine.raw_lookup(name)
    if not address:
        raise CompileError(f"the compiled program has no function {name}")
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)


@dataclass(frozen=True)
class Kernel:
    """A compiled kernel.

    Attributes:
        engine: Owner of its code.
        address: Address of its code, valid during the engine's life.
    """

    engine: Any
    address: ctypes.c_void_p


ADDRESS = "address"
"""Name of a function that returns a kernel's address: engines only give the addresses of wrappers."""


@lru_cache(maxsize=KEPT)
def compiled_kernel(text: str, target: Target, threads: int | None = None) -> Kernel:
    """Return a compiled kernel, cached, within `mlir`: a change of one operator recompiles only that one.

    Args:
        text: Text of the kernel, from `take_kernels`.
        target: Target of the code.
        threads: Threads of parallel loops; None makes them sequential.

    Raises:
        BackendError: There are threads, and no OpenMP runtime.
        CompileError: LLVM refuses the kernel.
    """
    module = parse(text)
    to_llvm(module, threads)
    make_for(module, target)
    _compile_once(module, KERNEL)
    _tell_address(module)
    engine = engine_of(module, runtime_calls() if threads else {})
    address = ctypes.c_void_p()
    entry_of(engine, ADDRESS)((ctypes.c_void_p * 1)(ctypes.addressof(address)))
    return Kernel(engine, address)


def _tell_address(module: Any) -> None:
    """Add the function `ADDRESS` to a kernel's module."""
    body = "%0 = llvm.mlir.zero : !llvm.ptr\nllvm.return %0 : !llvm.ptr"
    function = ir.Operation.parse(f"llvm.func @{ADDRESS}() -> !llvm.ptr {{\n{body}\n}}")
    module.body.append(function)
    zero, ends = function.regions[0].blocks[0].operations
    # A function that refers to another one does not parse alone.
    symbol = {"global_name": ir.FlatSymbolRefAttr.get(KERNEL)}
    with ir.InsertionPoint(ends):
        address = ir.Operation.create("llvm.mlir.addressof", [zero.results[0].type], attributes=symbol)
    ends.operands[0] = address.results[0]


class Executable:
    """A compiled program bound to its arrays; it is made within `mlir`.

    Args:
        module: The program in LLVM's dialect.
        arrays: The arguments, then the results, which it fills.
        calls: Addresses of the functions that it calls apart from C's, by name.
        kernels: Its kernels by name, if these are separate modules.
        level: LLVM's optimisation level, 0 to 3.

    Raises:
        CompileError: LLVM refuses the program.
    """

    def __init__(
        self,
        module: Any,
        arrays: Sequence[NDArray[Any]],
        calls: Mapping[str, ctypes.c_void_p] | None = None,
        kernels: Mapping[str, Kernel] | None = None,
        level: int = FASTEST,
    ) -> None:
        self._kernels = kernels or {}
        addresses = {name: kernel.address for name, kernel in self._kernels.items()}
        _compile_once(module, ENTRY)
        self._engine = engine_of(module, {**(calls or {}), **addresses}, level)
        self._function = entry_of(self._engine, INTERFACE)
        self._bind(arrays)

    @classmethod
    def assembled(cls, apart: Apart, target: Target, threads: int | None = None) -> Self:
        """Return a program linked with its kernels, bound to no arrays yet, within `mlir`.

        Args:
            apart: The program and its kernels.
            target: Target of the code.
            threads: Threads of parallel loops; None makes them sequential.

        Raises:
            BackendError: There are threads, and no OpenMP runtime.
            CompileError: LLVM refuses the program.
        """
        make_for(apart.module, target)
        kernels = {name: compiled_kernel(text, target, threads) for name, text in apart.kernels.items()}
        calls = runtime_calls() if threads else None
        return cls(apart.module, (), calls, kernels, level=0 if apart.only_calls else FASTEST)

    def _bind(self, arrays: Sequence[NDArray[Any]]) -> None:
        self._arrays = tuple(arrays)
        self._descriptors = [ctypes.pointer(get_ranked_memref_descriptor(array)) for array in arrays]
        self._packed = (ctypes.c_void_p * len(arrays))(
            *(ctypes.addressof(descriptor) for descriptor in self._descriptors)
        )

    def on(self, arrays: Sequence[NDArray[Any]]) -> "Executable":
        """Return the same code, bound to other arrays of the same shapes and types."""
        other = copy.copy(self)
        other._bind(arrays)
        return other

    def run(self, repetitions: int) -> None:
        """Execute the program the given number of times."""
        function, packed = self._function, self._packed
        for _ in range(repetitions):
            function(packed)
