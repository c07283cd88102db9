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
import re
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import Any

import jax
import numpy as np
from jaxlib import _hlo, _jax, xla_client  # pyright: ignore[reportAttributeAccessIssue, reportPrivateUsage]
from jaxlib.cpu import _lapack  # pyright: ignore[reportAttributeAccessIssue, reportPrivateUsage]
from numpy.typing import NDArray

from irgym.core.cost import Measurement, Outcome, Validation
from irgym.core.environment import Versus
from irgym.core.errors import IrgymError, ProgramError
from irgym.envs.hlo.agreement import TOLERANCES, Noise, agreement, describe
from irgym.envs.hlo.inputs import Parameter, parameters, perturbed, random_arguments
from irgym.envs.hlo.stablehlo import stablehlo
from irgym.measure.timing import DEFAULT_TIMING, Timing, interleave, sample

Array = NDArray[Any]

SEED = 20230828
"""Seed of the inputs on which modules are timed."""

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


_NUMBERS = re.compile(rf"\b({'|'.join(TOLERANCES)})(?:e\w+)?\[")


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
        given = [(one.shape, one.dtype) for one in arguments]
        if given != [(one.shape, one.dtype) for one in self._wanted]:
            raise ProgramError(f"the program takes {len(self._wanted)} arrays of other shapes or types")
        # jax would narrow 64-bit numbers otherwise.
        with jax.enable_x64(True):
            placed = [jax.device_put(one, _device()) for one in arguments]
        return jax.block_until_ready(placed)


def compile_module(proto: bytes, passes: bool = True) -> Executable:
    """Compile a module for one thread of the CPU.

    XLA:CPU runs its whole pipeline on it, whatever passes ran before; see the module's docstring. Donated
    arguments are kept, so that a training step can run again on the same ones.

    Args:
        proto: Serialized HloModuleProto.
        passes: Whether XLA:CPU runs its own `SIMPLIFICATIONS` too.

    Raises:
        ProgramError: It takes arrays of dynamic shape, or calls back into Python.
        CompileFailure: The compiler refused it.
    """
    wanted = parameters(proto)
    options = _jax.CompileOptions()
    if not passes:
        debug = options.executable_build_options.debug_options
        debug.xla_disable_hlo_passes = ",".join(SIMPLIFICATIONS)
    devices = _jax.DeviceList((_device(),))
    try:
        module = stablehlo(proto)
        started = time.perf_counter()
        loaded = _client().compile_and_load(module, devices, options)
        return Executable(loaded, wanted, time.perf_counter() - started)
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        raise CompileFailure(f"XLA:CPU refuses the module: {_first_line(error)}") from error


def compare(
    original: bytes, optimised: bytes, inputs: int = 3, seed: int = SEED, passes: bool = True
) -> Validation:
    """Run two modules on the same random inputs on XLA:CPU and compare their results.

    Args:
        original: Serialized HloModuleProto.
        optimised: The same program after passes.
        inputs: Number of random inputs.
        seed: Seed of the first; the others follow it.
        passes: Whether XLA:CPU runs its own `SIMPLIFICATIONS` too.

    Raises:
        ProgramError: The original cannot run.
        CompileFailure: XLA:CPU refused one of them.
    """
    tolerance = tolerance_of(original)
    ours = compile_module(optimised, passes)
    error = 0.0
    for place in range(inputs):
        arguments, expected, noise = _reference(original, seed + place, passes)
        if not _fits(arguments, optimised):
            error = float("inf")
            break
        error = max(error, agreement(expected, ours.run(arguments), tolerance, noise).error)
    return Validation(error <= tolerance, error, describe(tolerance), inputs)


def time_module(
    proto: bytes, timing: Timing = DEFAULT_TIMING, original: bytes | None = None, passes: bool = True
) -> Measurement:
    """Compile, check and time a module on one thread of the CPU.

    Args:
        proto: Serialized HloModuleProto.
        timing: The timing protocol.
        original: The program before passes, whose results this one must give; None to time without a check.
        passes: Whether XLA:CPU runs its own `SIMPLIFICATIONS` too.

    Returns:
        Samples in nanoseconds, or the outcome of what failed.

    Raises:
        ProgramError: The original cannot run.
    """
    try:
        executable = compile_module(proto, passes)
    except CompileFailure as failure:
        return Measurement(Outcome.COMPILE_ERROR, detail=str(failure))
    if original is None:
        arguments = random_arguments(proto, SEED)
    else:
        arguments, expected, noise = _reference(original, SEED, passes)
        tolerance = tolerance_of(original)
        error = float("inf")
        if _fits(arguments, proto):
            error = agreement(expected, executable.run(arguments), tolerance, noise).error
        if error > tolerance:
            detail = f"the greatest relative error is {error:.3g}, more than {tolerance:g}"
            return Measurement(Outcome.WRONG_RESULT, compile_s=executable.compile_s, detail=detail)
    return Measurement(Outcome.OK, sample(executable.bind(arguments), timing), executable.compile_s)


def time_in_turn(
    ours: bytes,
    peer: bytes,
    rounds: int = 15,
    timing: Timing = DEFAULT_TIMING,
    passes: bool = True,
    detail: str = "XLA:CPU, one thread",
) -> Versus:
    """Time two modules of one program in turn, on the same inputs.

    Args:
        ours: Serialized HloModuleProto of what is judged.
        peer: The same program after other passes, or none.
        rounds: Number of rounds.
        timing: The timing protocol.
        passes: Whether XLA:CPU runs its own `SIMPLIFICATIONS` too.
        detail: What the peer is, in words.

    Raises:
        CompileFailure: XLA:CPU refused one of them.
        ProgramError: They take different arguments.
    """
    arguments = random_arguments(peer, SEED)
    runs = [compile_module(proto, passes).bind(arguments) for proto in (ours, peer)]
    pairs = interleave(runs[0], runs[1], rounds, timing)
    return Versus(
        ratios=tuple(peer_ns / ours_ns for ours_ns, peer_ns in pairs),
        peer_ns=min(peer_ns for _, peer_ns in pairs),
        ours_ns=min(ours_ns for ours_ns, _ in pairs),
        detail=detail,
    )


def tolerance_of(proto: bytes) -> float:
    """Return the relative error allowed, by the least precise floating-point type that a module uses."""
    used = set(re.findall(_NUMBERS, _hlo.XlaComputation(proto).as_hlo_text()))
    return max((TOLERANCES[name] for name in used), default=TOLERANCES["f32"])


@lru_cache(maxsize=1)
def _reference(original: bytes, seed: int, passes: bool) -> tuple[list[Array], list[Array], Noise]:
    """Return arguments, the original's results on them, and how these react to rounding; the last is kept.

    Signed arguments exercise more, but may leave a program's domain where no root of a parameter is in sight:
    if they lead to NaN, positive ones are taken.
    """
    executable = _compiled(original, passes)
    arguments = random_arguments(original, seed)
    expected = executable.run(arguments)
    if any(_has_nan(one) for one in expected):
        arguments = random_arguments(original, seed, positive=True)
        expected = executable.run(arguments)
    changed, step = perturbed(arguments, seed)
    return arguments, expected, Noise(executable.run(changed), step)


@lru_cache(maxsize=1)
def _compiled(original: bytes, passes: bool) -> Executable:
    """Compile the original; the last one is kept for its next inputs and candidates."""
    return compile_module(original, passes)


def _fits(arguments: Sequence[Array], proto: bytes) -> bool:
    """Say whether a module takes these arguments."""
    wanted = [(one.shape, one.dtype) for one in parameters(proto)]
    return wanted == [(one.shape, one.dtype) for one in arguments]


def _has_nan(values: Array) -> bool:
    return bool(np.any(values != values))


@cache
def _client() -> Any:
    """Return a CPU client of our own, which leaves jax's settings alone: one thread, no run-ahead."""
    # jax does this as it lowers, and here nothing is lowered: without it calls into LAPACK have no address.
    _lapack.initialize()
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
