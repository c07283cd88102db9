"""HLO modules on XLA:CPU, on one thread. Imports jax: for child processes only.

jaxlib takes only StableHLO, so every module is converted, which merges some broadcasts and reshapes. XLA:CPU
then runs its pass pipeline on the module: timings are of the result of that pipeline. `passes=False` disables
its simplification passes, so that the effect of our order is visible; legalisation, layout, fusion and code
generation remain. Without any passes (`run_backend_only`, `xla_disable_all_hlo_passes`) the back end rejects
modules or aborts, as it needs the layouts and copies that passes insert.
"""

# The type declarations of jax are incomplete, and jaxlib has none.
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
"""XLA:CPU's passes that no later stage needs; `passes=False` disables them."""


class CompileFailure(IrgymError):
    """XLA:CPU rejected a module; the message is the compiler's, in one line."""


class Executable:
    """A compiled module.

    Args:
        loaded: The executable of jaxlib.
        wanted: The arrays that it takes.
        compile_s: Seconds that the compiler took, without the conversion.

    Attributes:
        compile_s: Seconds that the compiler took, without the conversion.
    """

    def __init__(self, loaded: Any, wanted: list[Parameter], compile_s: float) -> None:
        self._loaded = loaded
        self._wanted = wanted
        self.compile_s = compile_s

    def takes(self, arguments: Sequence[Array]) -> bool:
        """Say whether arguments have the shapes and types of its parameters."""
        wanted = [(parameter.shape, parameter.dtype) for parameter in self._wanted]
        return wanted == [(argument.shape, argument.dtype) for argument in arguments]

    def run(self, arguments: Sequence[Array]) -> list[Array]:
        """Run it once and return its results; tuples, also nested ones, are flattened in order.

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
        """Return a function that runs it a number of times on arguments on the device, and waits for the end.

        The time includes allocating the results, as in jax, but not converting them to Python objects.

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
        # Otherwise jax narrows 64-bit numbers.
        with jax.enable_x64(True):
            placed = [jax.device_put(argument, _device()) for argument in arguments]
        return jax.block_until_ready(placed)


def compile_module(proto: bytes, passes: bool = True, *, quickly: bool = False) -> Executable:
    """Compile a module for one thread of the CPU.

    XLA:CPU runs its whole pipeline on it, whatever passes ran before; see the module's docstring. Donations
    are removed, so that a training step can run repeatedly on the same arguments.

    Args:
        proto: Serialized HloModuleProto.
        passes: Whether XLA:CPU runs its `SIMPLIFICATIONS` too.
        quickly: Whether to compile in a quarter of the time, to slower code; see `_load`.

    Raises:
        ProgramError: It takes arrays of dynamic shape, or calls back into Python.
        CompileFailure: The compiler rejected it.
    """
    wanted = parameters(proto)
    disabled = "" if passes else ",".join(SIMPLIFICATIONS)
    return _load(_converted(proto), wanted, disabled, quickly=quickly)


def compile_stablehlo(text: str | bytes, proto: bytes) -> Executable:
    """Compile StableHLO unchanged, and quickly.

    Args:
        text: The StableHLO, as text, bytecode or portable artifact.
        proto: HloModuleProto of a module that takes the same arguments.

    Raises:
        CompileFailure: The compiler rejected it.
    """
    return _load(text, parameters(proto), "", quickly=True)


def compile_coarser(proto: bytes) -> tuple[Executable, list[Exactness], str]:
    """Compile a module with coarser rounding, quickly; see `rounding`.

    Returns:
        The compiled module, the exactness of each result, and the StableHLO with ordinary rounding.

    Raises:
        ProgramError: It takes arrays of dynamic shape, or calls back into Python.
        CompileFailure: The compiler rejected it.
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
        disabled: Passes of XLA:CPU to disable, separated by commas.
        quickly: Whether to compile quickly: LLVM does not optimise, and XLA:CPU's older generator, which does
            not use MLIR, emits fusions. The older generator alone would be slower.
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
        # jax does this while lowering, which does not happen here: it registers the addresses of LAPACK.
        # It imports scipy, which takes as long as compiling a small module.
        _lapack.initialize()
    try:
        started = time.perf_counter()
        loaded = _client().compile_and_load(module, devices, options)
        return Executable(loaded, wanted, time.perf_counter() - started)
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        raise CompileFailure(f"XLA:CPU refuses the module: {_first_line(error)}") from error


@cache
def _client() -> Any:
    """Return a separate CPU client, independent of jax's settings: one thread, synchronous."""
    with _environment("PJRT_NPROC", "1"):
        return xla_client.make_cpu_client(asynchronous=False)


def _device() -> Any:
    return _client().local_devices()[0]


@contextmanager
def _environment(name: str, value: str) -> Generator[None, None, None]:
    """Set an environment variable temporarily."""
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
