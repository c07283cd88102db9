"""HLO modules on XLA:CPU, on one thread; imports jax, so it runs in child processes.

jaxlib takes StableHLO only. A module is converted on the way in, which merges some broadcasts and reshapes;
all modules go the same way. Then XLA:CPU runs its own passes on it, in its own order: what is timed is the
outcome of that pipeline when it starts from our module. With `passes=False` the passes that merely simplify
are left out, and legalisation, layout, fusion and code generation remain, so that our order shows. Without
any pass at all (`run_backend_only`, `xla_disable_all_hlo_passes`) the back end refuses modules or aborts: it
needs the layouts and copies that passes insert.
"""

# jax leaves parts of its own types open, and jaxlib has no type stubs.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import os
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import jax
import numpy as np
from jaxlib import _jax, xla_client  # pyright: ignore[reportAttributeAccessIssue, reportPrivateUsage]
from jaxlib.cpu import _lapack  # pyright: ignore[reportAttributeAccessIssue, reportPrivateUsage]

from irgym.base.errors import IrgymError, ProgramError
from irgym.envs.hlo.checking.inputs import Parameter, parameters
from irgym.envs.hlo.checking.rounding import Exactness, coarser, exactness
from irgym.envs.hlo.compiling.stablehlo import stablehlo
from irgym.measure.checking.numbers import Array

SIMPLIFICATIONS = (
    "algsimp",
    "batch-dot-simplification",
    "conditional-canonicalizer",
    "conditional-to-select",
    "constant_folding",
    "cse",
    "gemv-rewriter",
    "literal-canonicalizer",
    "map-inline",
    "reshape-mover",
    "simplify-conditional",
    "simplify-sorts",
    "simplify-while-loops",
    "transpose-folding",
    "tree_reduction_rewriter",
    "while-loop-constant-sinking",
    "while-loop-invariant-code-motion",
    "zero_sized_hlo_elimination",
)
"""XLA:CPU's passes that no later stage needs: those that `passes=False` leaves out."""


class CompileFailure(IrgymError):
    """XLA:CPU refused a module; the message is the compiler's, in one line."""


class Executable:
    """A compiled module.

    Args:
        loaded: What jaxlib made of it.
        wanted: The arrays that it takes.

    Attributes:
        compile_s: Seconds that the compiler took, without the conversion.
    """

    def __init__(self, loaded: Any, wanted: list[Parameter], compile_s: float) -> None:
        self._loaded = loaded
        self._wanted = wanted
        self.compile_s = compile_s

    def takes(self, arguments: Sequence[Array]) -> bool:
        """Say whether these are arguments of its shapes and types."""
        wanted = [(one.shape, one.dtype) for one in self._wanted]
        return wanted == [(one.shape, one.dtype) for one in arguments]

    def run(self, arguments: Sequence[Array]) -> list[Array]:
        """Run it once and return its results; a tuple's elements, nested ones too, in order.

        Raises:
            ProgramError: The arguments do not fit, or the program fails as it runs.
        """
        placed = self._placed(arguments)
        try:
            results = self._loaded.execute_sharded(placed).disassemble_into_single_device_arrays()
            return [np.asarray(per_device[0]) for per_device in results]
        except jax.errors.JaxRuntimeError as error:
            raise ProgramError(f"the program fails on XLA:CPU: {_first_line(error)}") from error

    def bind(self, arguments: Sequence[Array]) -> Callable[[int], None]:
        """Return what runs it on arguments placed beforehand, as many times as asked, and waits for the end.

        Allocating the results counts, as it does in jax; making Python objects of them does not.

        Raises:
            ProgramError: The arguments do not fit.
        """
        placed = self._placed(arguments)
        execute = self._loaded.execute_sharded

        def repeat(count: int) -> None:
            for _ in range(count):
                execute(placed, with_tokens=True).consume_token().block_until_ready()

        return repeat

    def _placed(self, arguments: Sequence[Array]) -> list[Any]:
        if not self.takes(arguments):
            raise ProgramError(f"the program takes {len(self._wanted)} arrays of other shapes or types")
        # jax would narrow 64-bit numbers otherwise.
        with jax.enable_x64(True):
            placed = [jax.device_put(one, _device()) for one in arguments]
        return jax.block_until_ready(placed)


def compile_module(proto: bytes, passes: bool = True, *, quickly: bool = False) -> Executable:
    """Compile a module for one thread of the CPU.

    XLA:CPU runs its whole pipeline on it, whatever passes ran before; see the module's docstring. Donated
    arguments are kept, so that a training step can run again on the same ones.

    Args:
        proto: Serialized HloModuleProto.
        passes: Whether XLA:CPU runs its own `SIMPLIFICATIONS` too.
        quickly: Whether to generate code in a quarter of the time, which may run longer: see `_load`.

    Raises:
        ProgramError: It takes arrays of dynamic shape, or calls back into Python.
        CompileFailure: The compiler refused it.
    """
    wanted = parameters(proto)
    disabled = "" if passes else ",".join(SIMPLIFICATIONS)
    return _load(_converted(proto), wanted, disabled, quickly=quickly)


def compile_stablehlo(text: str | bytes, proto: bytes) -> Executable:
    """Compile StableHLO as it is, quickly.

    Args:
        text: The StableHLO, as text, bytecode or portable artifact.
        proto: HloModuleProto of a module that takes the same arguments.

    Raises:
        CompileFailure: The compiler refused it.
    """
    return _load(text, parameters(proto), "", quickly=True)


def compile_coarser(proto: bytes) -> tuple[Executable, list[Exactness], str]:
    """Compile a module that rounds more coarsely, as quickly as may be; see `rounding`.

    Returns:
        The module, what rounding can do to each of its results, and the StableHLO that does not round so.

    Raises:
        ProgramError: It takes arrays of dynamic shape, or calls back into Python.
        CompileFailure: The compiler refused it.
    """
    wanted = parameters(proto)
    module = _converted(proto)
    executable = _load(coarser(module), wanted, ",".join(SIMPLIFICATIONS), quickly=True)
    return executable, exactness(module), module


def _converted(proto: bytes) -> str:
    try:
        return stablehlo(proto)
    except ValueError as error:
        raise CompileFailure(f"jaxlib cannot convert the module: {_first_line(error)}") from error


def _load(
    module: str | bytes, wanted: list[Parameter], disabled: str, *, quickly: bool = False
) -> Executable:
    """Compile StableHLO.

    Args:
        module: Its text, bytecode or portable artifact.
        wanted: The arrays that it takes.
        disabled: Passes of XLA:CPU to leave out.
        quickly: Whether to generate code quickly: LLVM does not optimise it, and fusions are emitted by
            XLA:CPU's older generator, without MLIR. Of the two, the older one alone takes longer.
    """
    options = _jax.CompileOptions()
    debug = options.executable_build_options.debug_options
    debug.xla_disable_hlo_passes = disabled
    if quickly:
        debug.xla_backend_optimization_level = 0
        options.env_option_overrides = [("xla_cpu_use_fusion_emitters", False)]
    devices = _jax.DeviceList((_device(),))
    content = module if isinstance(module, bytes) else module.encode()
    if b"custom_call" in content:
        # jax does this as it lowers, and here nothing is lowered: without it calls into LAPACK have no
        # address. It imports scipy, which takes as long as to compile a small module.
        _lapack.initialize()
    try:
        started = time.perf_counter()
        loaded = _client().compile_and_load(module, devices, options)
        return Executable(loaded, wanted, time.perf_counter() - started)
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        raise CompileFailure(f"XLA:CPU refuses the module: {_first_line(error)}") from error


@cache
def _client() -> Any:
    """Return a CPU client of our own, which leaves jax's settings alone: one thread, no run-ahead."""
    with _environment("PJRT_NPROC", "1"):
        return xla_client.make_cpu_client(asynchronous=False)


def _device() -> Any:
    return _client().local_devices()[0]


@contextmanager
def _environment(name: str, value: str) -> Generator[None, None, None]:
    """Set an environment variable for a while."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
