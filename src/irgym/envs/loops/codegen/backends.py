"""Back ends: what turns a nest into a function in memory, and which of them this machine can run."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Protocol

from irgym.core.environment import BackendStatus
from irgym.core.errors import BackendError
from irgym.envs.loops.codegen import assembler as asm
from irgym.envs.loops.codegen import avx2, avx512, elf, llvm
from irgym.envs.loops.codegen.kernel import Kernel, Target
from irgym.envs.loops.codegen.lower import lower
from irgym.envs.loops.contraction import Contraction
from irgym.envs.loops.nest import Nest
from irgym.measure.machine import fingerprint
from irgym.measure.native import ExecutableBuffer
from irgym.measure.sources import digest_of

CODE_ALIGNMENT = 64
"""Boundary, in bytes, on which the generators' code wants to begin."""

INSTALL_LLVM = "pip install 'irgym[loops]'"
"""The command that makes the llvm back end available."""


class Executable(Protocol):
    """A compiled kernel in memory.

    Attributes:
        code: Its machine code; None where the back end does not give it away.
    """

    @property
    def code(self) -> bytes | None:
        """Its machine code; None where the back end does not give it away."""
        ...

    def run(self, a: int, b: int, c: int, repetitions: int) -> None:
        """Compute C from A and B, float32 tensors at these addresses, `repetitions` >= 1 times.

        Other Python threads run meanwhile.
        """
        ...

    def close(self) -> None:
        """Free the machine code; `run` must not be called any more. Closing twice does nothing."""
        ...


class Backend(Protocol):
    """A code generator.

    Attributes:
        name: Its name in `--backend`, tables and cache keys.
        target: What a register tile must fit into.
    """

    @property
    def name(self) -> str:
        """Its name in `--backend`, tables and cache keys."""
        ...

    @property
    def target(self) -> Target:
        """What a register tile must fit into."""
        ...

    def available(self) -> BackendStatus:
        """Say whether it runs here."""
        ...

    def compile(self, contraction: Contraction, nest: Nest) -> Executable:
        """Compile a nest.

        Raises:
            CodeTooLarge: Its code would be too long.
        """
        ...

    def object_file(self, contraction: Contraction, nest: Nest, name: str) -> bytes:
        """Return a relocatable object file with `void name(const float *a, const float *b, float *c)`.

        Raises:
            BackendError: It cannot write objects for this system.
            CodeTooLarge: The code would be too long.
        """
        ...

    def toolchain(self) -> str:
        """Return everything beside program and nest that the code depends on, as one line."""
        ...


class MachineCode:
    """Machine code of our own, in memory until it is closed.

    Attributes:
        code: The function's machine code.
    """

    def __init__(self, code: bytes) -> None:
        """Map the code of a function of the type `llvm.PROTOTYPE`.

        Raises:
            OSError: The system has no memory left, or forbids executable memory.
        """
        self.code: bytes | None = code
        self._buffer = ExecutableBuffer(code)
        self._function = llvm.PROTOTYPE(self._buffer.address)

    def run(self, a: int, b: int, c: int, repetitions: int) -> None:
        """Run the kernel `repetitions` times (at least once) on the tensors at these addresses."""
        self._function(a, b, c, repetitions)

    def close(self) -> None:
        """Free the machine code."""
        self._buffer.close()


@dataclass(frozen=True)
class MachineCodeBackend:
    """Emits x86-64 machine code directly, in about a millisecond.

    Attributes:
        name: Its name.
        target: What a register tile must fit into.
        emit: Returns the code of `void f(const float *a, const float *b, float *c, int64_t repetitions)`.
        features: Instruction-set flags that the processor must have.
    """

    name: str
    target: Target
    emit: Callable[[Kernel], bytes]
    features: tuple[str, ...]

    def available(self) -> BackendStatus:
        """Say whether the processor and the system run this code."""
        machine = fingerprint()
        if machine.architecture.lower() not in ("x86_64", "amd64") or machine.system == "Windows":
            detail = (
                f"emits x86-64 code for Linux and macOS, and this is {machine.architecture} {machine.system}"
            )
            return BackendStatus(self.name, False, detail)
        missing = [feature for feature in self.features if feature not in machine.features]
        if missing:
            return BackendStatus(self.name, False, f"this processor lacks {', '.join(missing)}")
        return BackendStatus(self.name, True, f"own x86-64 generator, {self.target.lanes} lanes")

    def compile(self, contraction: Contraction, nest: Nest) -> MachineCode:
        """Compile a nest.

        Raises:
            CodeTooLarge: Its code would be too long.
        """
        return MachineCode(self.emit(lower(contraction, nest, self.target)))

    def object_file(self, contraction: Contraction, nest: Nest, name: str) -> bytes:
        """Return an ELF object with the function `name`, which has no argument for repetitions.

        Raises:
            BackendError: This is macOS, whose linker takes no ELF.
            CodeTooLarge: The code would be too long.
        """
        if fingerprint().system == "Darwin":
            raise BackendError(
                f"the {self.name} back end writes ELF objects only, which macOS cannot link: "
                "export a .c file, or choose the llvm back end"
            )
        # The function sets the number of repetitions and runs on into the code, which stays aligned.
        once = asm.move_immediate(asm.RCX, 1)
        start = CODE_ALIGNMENT - len(once)
        code = asm.nops(start) + once + self.emit(lower(contraction, nest, self.target))
        return elf.relocatable(code, name, start)

    def toolchain(self) -> str:
        """Return the generator, its sources' hash and the features used."""
        return f"{self.name} {digest_of(*CODE)} {'+'.join(self.features)}"


@dataclass(frozen=True)
class LlvmBackend:
    """Emits LLVM IR for this processor and compiles it through llvmlite, in about ten milliseconds.

    Attributes:
        name: Its name.
    """

    name: str = "llvm"

    @property
    def target(self) -> Target:
        """What a register tile must fit into on this processor.

        Raises:
            BackendError: llvmlite is not installed.
        """
        return llvm.host_target()

    def available(self) -> BackendStatus:
        """Say whether llvmlite is installed."""
        if find_spec("llvmlite") is None:
            return BackendStatus(self.name, False, "llvmlite is not installed", INSTALL_LLVM)
        return BackendStatus(self.name, True, f"{llvm.version()}, {self.target.lanes} lanes")

    def compile(self, contraction: Contraction, nest: Nest) -> llvm.LlvmExecutable:
        """Compile a nest.

        Raises:
            BackendError: llvmlite is not installed.
            CodeTooLarge: Its code would be too long.
        """
        ir = llvm.emit(lower(contraction, nest, self.target), "kernel", repetitions=True)
        return llvm.compile(ir, "kernel")

    def object_file(self, contraction: Contraction, nest: Nest, name: str) -> bytes:
        """Return an object file of this system's format with the function `name`.

        Raises:
            BackendError: llvmlite is not installed.
            CodeTooLarge: The code would be too long.
        """
        return llvm.compile_object(llvm.emit(lower(contraction, nest, self.target), name, repetitions=False))

    def toolchain(self) -> str:
        """Return the generator, irgym's sources' hash, LLVM's version and what it knows of the processor.

        Raises:
            BackendError: llvmlite is not installed.
        """
        host = llvm.host()
        features = hashlib.sha256(host.features.encode()).hexdigest()[:12]
        return f"{self.name} {digest_of(*CODE)} {llvm.version()} {host.cpu} {features}"


AVX512 = MachineCodeBackend("avx512", avx512.TARGET, avx512.emit, ("avx512f",))
AVX2 = MachineCodeBackend("avx2", avx2.TARGET, avx2.emit, ("avx2", "fma"))
LLVM = LlvmBackend()

CODE = (
    "envs/loops/checking.py",
    "envs/loops/codegen",
    "envs/loops/contraction.py",
    "envs/loops/nest.py",
    "envs/loops/runner.py",
)
"""The sources that turn a nest into code, check it and time it, beside those of all environments."""

BACKENDS: tuple[Backend, ...] = (AVX512, AVX2, LLVM)
"""All back ends, the preferred first."""


@cache
def _status(candidate: Backend) -> BackendStatus:
    """Return the state of a back end, probed once."""
    return candidate.available()


def preferred() -> Backend:
    """Return the first back end that runs here: AVX-512, else AVX2, else LLVM.

    Raises:
        BackendError: None does.
    """
    for candidate in BACKENDS:
        if _status(candidate).available:
            return candidate
    raise BackendError(
        f"no code generator of loops runs on this machine: install the portable one with {INSTALL_LLVM}"
    )


def backend(name: str) -> Backend:
    """Return the back end of that name.

    Raises:
        BackendError: There is none, or it does not run here.
    """
    named = {candidate.name: candidate for candidate in BACKENDS}
    if name not in named:
        raise BackendError(f"there is no back end {name!r} in loops: choose among {', '.join(named)}")
    status = _status(named[name])
    if not status.available:
        remedy = f"install it with {status.remedy}" if status.remedy else f"choose {preferred().name}"
        raise BackendError(f"the back end {name} does not run here ({status.detail}): {remedy}")
    return named[name]
